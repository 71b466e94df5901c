"""What the programs of the package launch on a GPU: compiled for one, and not run.

`make test-gpu-compile` installs what this needs, and runs it.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from benchmarks import compiled
from benchmarks.compiled import DEVICES, Program

pytestmark = pytest.mark.gpu

# The most launches and waits a step, and MiB of a call. They are what was counted with the
# jax releases of `docs/guide/versions.md`, and a tenth more: a change that costs more of
# them fails.
MOST = {
    "chain": (0.21, 0.01, 32),
    "chain, float32": (0.27, 0.01, 32),
    "stream": (0.9, 0.02, 200),
    "diffusion": (29, 1, 4),
    "sweep": (0.13, 0.01, 32),
    "mean field of 4,096 configs": (103, 16, 10),
    "density, 400 cells": (43, 1, 4),
    "stream_pca, 4 components": (4.0, 0.02, 64),
    "stream_pca, 16 components": (4.7, 0.02, 64),
}


@pytest.fixture(scope="module")
def programs():
    return compiled.programs()


def test_every_program_has_its_limits(programs):
    assert list(programs) == list(MOST)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MOST)
def test_a_program_launches_little_and_never_calls_back(name, device, programs):
    counts = compiled.compile_program(programs[name], DEVICES[device])
    print(counts)  # shown if it fails, or with pytest -s
    launches, waits, mebibytes = MOST[name]
    assert counts.kernels > 0  # else nothing was assembled, and nothing known of spills
    assert counts.spilled == 0
    assert counts.calls_to_host == ()
    assert 0 < counts.launches <= launches
    assert counts.waits <= waits
    assert counts.memory <= mebibytes * 2**20


# That the counts find what they look for, in programs that have it.


def compile_small(function, *arguments, inner=0):
    program = Program("small", function, arguments, False, 1, "step", inner)
    return compiled.compile_program(program, DEVICES["H100"])


NUMBERS = np.ones(4096, np.float32)


def test_a_callback_is_found():
    def with_callback(x):
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(lambda x: x, shape, x) + 1

    # Compiled for this CPU, because JAX makes no callbacks for a GPU that is not there.
    text = jax.jit(with_callback).lower(NUMBERS).compile().as_text()
    assert text is not None
    assert compiled.calls_to_host(text)
    assert compile_small(lambda x: x + 1, NUMBERS).calls_to_host == ()


def sorted_steps(x, steps):
    """Each step sorts, which no other kernel can contain."""
    return lax.fori_loop(0, steps, lambda i, x: jnp.sort(x * 2 - i), x)


def test_a_loop_of_known_length_does_not_wait_and_another_does():
    known = compile_small(lambda x: sorted_steps(x, 100), NUMBERS)
    unknown = compile_small(sorted_steps, NUMBERS, np.int32(100))
    assert known.waits == 0
    assert unknown.waits == 1
    assert unknown.launches >= known.launches > 1


def test_loops_inside_of_the_main_loop_are_counted():
    def twice(x, steps):
        inner = lambda x: sorted_steps(x, 7)
        return lax.fori_loop(0, steps, lambda i, x: inner(x), x)

    one = compile_small(lambda x: sorted_steps(x, 7), NUMBERS).launches
    assert compile_small(twice, NUMBERS, np.int32(3)).launches >= 7 * one

    def nested(x, steps):
        return lax.fori_loop(0, steps, lambda i, x: sorted_steps(x, steps), x)

    few, many = (
        compile_small(nested, NUMBERS, np.int32(3), inner=inner) for inner in (0, 5)
    )
    assert many.launches >= few.launches + 5 * one
    assert (few.waits, many.waits) == (2, 7)


def test_a_branch_waits():
    def branch(x, steps):
        body = lambda i, x: lax.cond(x[0] > 3, jnp.sort, lambda x: x + 1, x)
        return lax.fori_loop(0, steps, body, x)

    assert compile_small(branch, NUMBERS, np.int32(3)).waits == 2


def test_spilled_registers_are_found(tmp_path):
    """A kernel that keeps 64 numbers, with 255 registers for them and with 24."""
    loads = "\n".join(f"ld.volatile.global.f32 %f{i}, [%rd1+{4 * i}];" for i in range(64))
    adds = "\n".join(
        f"fma.rn.f32 %f{i}, %f{i}, %f{(i + 31) % 64}, %f{i};" for i in range(64)
    )
    stores = "\n".join(f"st.volatile.global.f32 [%rd1+{4 * i}], %f{i};" for i in range(64))
    path = tmp_path / "kernel.ptx"
    path.write_text(
        ".version 7.8\n.target sm_80\n.address_size 64\n"
        ".visible .entry kernel(.param .u64 out) {\n"
        ".reg .f32 %f<64>;\n.reg .b64 %rd<2>;\n"
        "ld.param.u64 %rd1, [out];\n"
        f"{loads}\n{adds}\n{stores}\nret;\n}}\n"
    )
    ((registers, spilled),) = compiled.assemble(path, "sm_80")
    assert registers > 64
    assert spilled == 0
    ((registers, spilled),) = compiled.assemble(path, "sm_80", "--maxrregcount=24")
    assert registers == 24
    assert spilled > 0


def test_a_program_without_kernels_is_found():
    assert compile_small(lambda x: x, NUMBERS).kernels == 0


def test_a_program_that_takes_more_memory_is_found():
    small, large = (
        compile_small(jnp.sort, np.ones(n, np.float32)).memory for n in (2**12, 2**20)
    )
    assert large > 100 * small


def test_a_text_that_is_no_program_is_refused():
    with pytest.raises(ValueError, match="no entry"):
        compiled.main_loop("")
    with pytest.raises(ValueError, match="not understood"):
        compiled.main_loop("ENTRY %main (x: f32[]) -> f32[] {\n  what is this\n}\n")


def test_a_device_is_described_by_all_of_its_numbers():
    for device in DEVICES.values():
        text = device.description()
        for field in dataclasses.fields(device):
            value = getattr(device, field.name)
            if isinstance(value, (int, float)):
                assert str(value) in text
