"""The paper's figures use the package as a user does: no private module is imported."""

import ast
from pathlib import Path

import pytest

import inopca_jax
from inopca_jax.paper import FIGURES

PAPER = Path(inopca_jax.__file__).parent / "paper"
FILES = sorted(PAPER.rglob("*.py"))


def imported_modules(path):
    """The absolute names of all modules, and of names from modules, that a file imports."""
    package = ("inopca_jax", "paper", *path.relative_to(PAPER).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*parents, *(node.module or "").split(".")]).rstrip(".")
            yield from (f"{module}.{alias.name}" for alias in node.names)


def is_private(name):
    """Whether a name of the package is private, or of a module outside `paper` that is not
    public."""
    _, *parts = name.split(".")
    return any(part.startswith("_") for part in parts)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PAPER)))
def test_no_private_module_is_imported(path):
    ours = [name for name in imported_modules(path) if name.startswith("inopca_jax")]
    assert [name for name in ours if is_private(name)] == []
    # Nor reached through an attribute.
    tree = ast.walk(ast.parse(path.read_text()))
    attributes = [
        node.attr
        for node in tree
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("ino", "plot", "data")
    ]
    assert [name for name in attributes if name.startswith("_")] == []


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_figure_has_a_folder_of_its_own_and_imports_no_other(figure):
    folder = PAPER / figure.name
    files = {path.name for path in folder.glob("*.py")}
    assert {"__init__.py", "compute.py", "claims.py"} <= files
    # Figures of the same kind share a drawing, which is then beside their folders.
    own = [draw for draw in figure.drawings.values() if figure.name in draw.__module__]
    assert ("draw.py" in files) == bool(own)
    others = {other.name for other in FIGURES} - {figure.name}
    for path in folder.glob("*.py"):
        for name in imported_modules(path):
            if name.startswith("inopca_jax.paper."):
                assert name.split(".")[2] not in others, f"{path} imports {name}"
