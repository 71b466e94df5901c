"""Pages that need no network: a template with its style, scripts and texts put in."""

import re
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType


def page(package: str, texts: Mapping[str, str] = MappingProxyType({})) -> str:
    """`page.html` of the package, where `{{ name }}` is the text of this name, or else the
    file of this name, beside it or here."""
    here, beside = (resources.files(x) for x in ("inopca_jax.paper", package))

    def content(match: re.Match[str]) -> str:
        name = match[1]
        if name in texts:
            return texts[name]
        found = next(f for f in (beside / name, here / name) if f.is_file())
        return found.read_text(encoding="utf-8")

    template = (beside / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{ (\S+) \}\}", content, template)
