"""Packages that the extras install, imported where they are used."""

import importlib
from typing import Any


def import_extra(module: str, needed_by: str, extra: str) -> Any:
    """Returns a module of a package that one of this package's extras installs.

    **Arguments:**

    - `module`: the module, such as `"sklearn.datasets"`.
    - `needed_by`: what the user called; the error names it if the module is missing.
    - `extra`: the extra that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0].replace("sklearn", "scikit-learn")
        raise ImportError(
            f"{needed_by} needs {package}: pip install 'inopca_jax[{extra}]'."
        ) from error
