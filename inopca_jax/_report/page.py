"""Web pages in one file: a template with its style, scripts and texts inserted."""

import re
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType


def page(package: str, texts: Mapping[str, str] = MappingProxyType({})) -> str:
    """Returns `page.html` of the package with each `{{ name }}` replaced: by the text of
    this name, or else by the file of this name in the package or in this folder."""
    shared, own = (resources.files(x) for x in (__package__ or "", package))

    def content(match: re.Match[str]) -> str:
        name = match[1]
        if name in texts:
            return texts[name]
        file = next(f for f in (own / name, shared / name) if f.is_file())
        return file.read_text(encoding="utf-8")

    template = (own / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{ (\S+) \}\}", content, template)
