"""Options of XLA's compiler. All are optional: a version of JAX may lack any of them."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

QUICK_TO_COMPILE = {
    "xla_backend_optimization_level": "1",
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": "1",
}
"""Halves the time to compile a CPU program; its loops then run up to a fifth longer."""


def supported(options: Mapping[str, str | bool]) -> dict[str, str | bool]:
    """Returns those of the compile options that the XLA of this process has.

    An unknown option raises an error in `jax.jit`, and ends the process if it is in the
    environment variable `XLA_FLAGS`. So each is tried on a trivial program.
    """
    return {name: value for name, value in options.items() if _is_known(name, value)}


def quick_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `eqx.filter_jit(function)`, on a CPU with the options that compile fastest.

    For functions that take most of their time to compile, and are loops over a few numbers,
    of which XLA can optimise little.
    """

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return _quick(function, jax.default_backend())(*args)

    return call


@functools.cache
def _quick(function: Callable[..., Any], backend: str) -> Callable[..., Any]:
    options = supported(QUICK_TO_COMPILE) if backend == "cpu" else None
    return eqx.filter_jit(function, compiler_options=options)  # pyright: ignore


def as_flags(options: Mapping[str, str | bool]) -> str:
    """Returns the options in the form of the environment variable `XLA_FLAGS`."""
    return " ".join(f"--{name}={str(value).lower()}" for name, value in options.items())


@functools.cache
def _is_known(name: str, value: str | bool) -> bool:
    program = jax.jit(lambda x: x).lower(jax.ShapeDtypeStruct((), jnp.float32))
    try:
        program.compile(compiler_options={name: value})
    except jax.errors.JaxRuntimeError:
        return False
    return True
