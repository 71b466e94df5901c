"""Options of XLA's compiler. None is needed: a version of JAX may lack any of them."""

import functools
from collections.abc import Mapping

import jax
import jax.numpy as jnp

QUICK_TO_COMPILE = {
    "xla_backend_optimization_level": "1",
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": "1",
}
"""Halves the time to compile a CPU program; its loops then run up to a fifth longer."""


def supported(options: Mapping[str, str | bool]) -> dict[str, str | bool]:
    """Those of the compile options that the XLA of this process knows.

    An option that it does not know raises an error in `jax.jit`, and ends the process if it
    stands in the environment variable `XLA_FLAGS`. So each is tried on a trivial program.
    """
    return {name: value for name, value in options.items() if _is_known(name, value)}


def as_flags(options: Mapping[str, str | bool]) -> str:
    """The options as `XLA_FLAGS` has them."""
    return " ".join(f"--{name}={str(value).lower()}" for name, value in options.items())


@functools.cache
def _is_known(name: str, value: str | bool) -> bool:
    program = jax.jit(lambda x: x).lower(jax.ShapeDtypeStruct((), jnp.float32))
    try:
        program.compile(compiler_options={name: value})
    except jax.errors.JaxRuntimeError:
        return False
    return True
