"""Web pages in one file: `page.html` with styles, scripts and texts inserted."""

import re
from collections.abc import Mapping
from importlib import resources


def page(package: str, title: str, texts: Mapping[str, str], scripts: bool = False) -> str:
    """Returns `page.html` with the package's `body.html` and all of its style sheets.

    Each `{{ name }}` is replaced by the text of this name, or else by the package's file of
    this name. Unless `scripts` is true, the browser must not run any.
    """
    shared, own = (resources.files(x) for x in (__package__ or "", package))
    sheets = [file for file in own.iterdir() if file.name.endswith(".css")]
    sheets = [shared / "theme.css", *sorted(sheets, key=lambda file: file.name)]
    texts = {
        **texts,
        "title": title,
        "styles": "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets),
        "scripts": "'unsafe-inline'" if scripts else "'none'",
    }

    def content(match: re.Match[str]) -> str:
        name = match[1]
        return texts[name] if name in texts else filled((own / name).read_text("utf-8"))

    def filled(text: str) -> str:
        return re.sub(r"\{\{ (\S+) \}\}", content, text)

    return filled((shared / "page.html").read_text(encoding="utf-8"))
