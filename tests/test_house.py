"""The house rules that can be read from the source."""

import ast
import inspect
from pathlib import Path

import equinox as eqx
import pytest

import inopca_jax as ino

PACKAGE = Path(ino.__file__).parent
# In dependency order: a room imports from those before it, and from itself.
ROOMS = (
    ("_check", "_module", "_types", "_numerics", "_files", "_extras", "_interrupt", "_xla"),
    ("_observables", "_schedule", "_rule"),
    ("_model",),
    ("_start",),
    ("_config", "_leaves"),
    ("_noise", "_result", "_trajectory", "_timeline", "_components"),
    ("_order_parameters",),
    ("_engine",),
    ("_batch",),
    ("_densities",),
    ("_tuning",),
    ("_streaming", "data"),
    ("_sweep",),
    ("plot",),
    ("paper",),
    ("_report",),
    ("_cli",),
)
FLOOR = {room: i for i, rooms in enumerate(ROOMS) for room in rooms}


def imports(path):
    """The rooms that a file imports from, inside of functions too."""
    package = path.relative_to(PACKAGE.parent).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            module = (*base, *(node.module or "").split("."))
            names = [alias.name for alias in node.names]
            first = [m for m in module[1:] if m] or names
            yield from first[:1] if module[1:] != ("",) else names


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=str)
def test_no_room_imports_from_a_later_one(path):
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if room == "__init__":
        return
    later = [name for name in imports(path) if FLOOR.get(name, -1) > FLOOR[room]]
    assert later == []


def modules_of_the_package():
    found, todo = set(), [eqx.Module]
    while todo:
        for kind in todo.pop().__subclasses__():
            if kind not in found:
                found.add(kind)
                todo.append(kind)
    return {kind for kind in found if kind.__module__.startswith("inopca_jax")}


def is_concrete(function):
    return inspect.isfunction(function) and not getattr(
        function, "__isabstractmethod__", False
    )


ALLOWED = {
    "__init__", "__check_init__", "__init_subclass__", "__repr__", "__hash__", "__eq__",
    "__getstate__", "__setstate__", "__post_init__",
}  # fmt: skip


def test_no_concrete_method_is_overridden():
    overridden = []
    for kind in modules_of_the_package():
        for name, function in vars(kind).items():
            if name in ALLOWED or not is_concrete(function):
                continue
            for base in kind.__mro__[1:]:
                if base.__module__.startswith("inopca_jax") and is_concrete(
                    vars(base).get(name)
                ):
                    overridden.append(f"{kind.__name__}.{name}")
    assert overridden == []


# Names of an earlier vocabulary, which the glossary has replaced.
GONE = (
    "suited", "walk", "Walk", "Slow", "Cloud", "Weights", "Stretch", "Window", "Phase",
    "_Careful", "hops", "Hops", "heard_by_all", "told", "_unnamed", "newton_like",
    "witness", "Limit", "Pickled", "float_p",
)  # fmt: skip


@pytest.mark.parametrize("name", GONE)
def test_a_name_of_the_old_vocabulary_is_gone(name):
    for path in sorted(PACKAGE.rglob("*.py")):
        names = {
            getattr(node, "id", None)
            or getattr(node, "name", None)
            or getattr(node, "attr", None)
            or getattr(node, "arg", None)
            for node in ast.walk(ast.parse(path.read_text()))
        }
        # `Limits` is a command, and the loop variable of `os.walk` is not ours.
        assert name not in names, path
