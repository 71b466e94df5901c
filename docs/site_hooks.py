"""What the build of the documentation site adds to mkdocs.

The gallery's pages are made from the executed notebooks, formulas are turned into MathML,
which browsers draw without a script, and signatures of Modules from their fields.
"""

import re
from html import unescape
from pathlib import Path

import griffe
from latex2mathml.converter import convert
from mkdocs.structure.files import File
from nbconvert import MarkdownExporter

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def on_files(files, config):
    """Adds a page for every notebook, and its figures."""
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        name = notebook.stem
        exporter = MarkdownExporter()
        text, resources = exporter.from_filename(
            str(notebook), resources=dict(unique_key=name, output_files_dir=name)
        )
        files.append(File.generated(config, f"gallery/{name}.md", content=_page(text)))
        for path, content in resources["outputs"].items():
            files.append(File.generated(config, f"gallery/{path}", content=content))
    return files


def _page(text: str) -> str:
    """Returns a notebook's Markdown, with the outputs, which are indented, in fences."""
    output = re.compile(r"^    .*\S.*\n(?:(?: *\n)*    .*\S.*\n)*", re.MULTILINE)
    parts = re.split(r"(^```python\n.*?^```\n)", text, flags=re.MULTILINE | re.DOTALL)
    for i in range(2, len(parts), 2):  # what stands after a block of code
        parts[i] = output.sub(_as_fence, parts[i])
    return "".join(parts)


def _as_fence(match: re.Match) -> str:
    lines = [line[4:].rstrip() for line in match[0].strip("\n").split("\n")]
    return "\n" + "\n".join(["```text", *lines, "```"]) + "\n"


def on_page_content(html, **_):
    """Turns formulas into MathML."""
    formula = r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>'
    return re.sub(formula, _mathml, html, flags=re.DOTALL)


def _mathml(match: re.Match) -> str:
    display = "block" if match[1] == "div" else "inline"
    return convert(unescape(match[2]), display=display)


class ModuleSignatures(griffe.Extension):
    """Gives Modules, whose `__init__` equinox makes from their fields, a signature.

    Fields of base classes stand in front, as in `__init__`. Abstract fields are left out.
    """

    def on_package(self, *, pkg, **_):
        for module in _modules_in(pkg):
            for item in module.classes.values():
                if (
                    not item.is_alias
                    and "__init__" not in item.members
                    and _is_module(item)
                ):
                    item.members["__init__"] = _init(item)


def _modules_in(package):
    yield package
    for module in package.modules.values():
        if not module.is_alias:
            yield from _modules_in(module)


def _bases(item):
    try:
        return item.mro()
    except (ValueError, griffe.GriffeError):
        return []


def _is_module(item) -> bool:
    return item.name != "PublicModule" and any(
        base.name == "PublicModule" for base in _bases(item)
    )


def _init(item):
    parameters = {"self": griffe.Parameter("self")}
    for kind in [*reversed(_bases(item)), item]:
        for field in kind.attributes.values():
            is_field = {"instance-attribute", "property"} & field.labels == {
                "instance-attribute"
            }
            is_abstract = "AbstractVar" in str(field.annotation)
            if not is_field or is_abstract or field.name.startswith("_"):
                continue
            parameters[field.name] = griffe.Parameter(
                field.name,
                kind=griffe.ParameterKind.positional_or_keyword,
                default=_default(field.value),
            )
    function = griffe.Function(
        "__init__", parameters=griffe.Parameters(*parameters.values())
    )
    function.parent = item
    return function


def _default(value) -> str | None:
    """Returns the default of a field as it reads in a signature."""
    text = None if value is None else str(value)
    if text is None or not text.startswith("eqx.field("):
        return text
    if factory := re.search(r"default_factory=(\w+)", text):
        return "..." if factory[1].startswith("_") else f"{factory[1]}()"
    default = re.search(r"\bdefault=(.+?)(?:, \w+=|\)$)", text)
    return default[1] if default else None
