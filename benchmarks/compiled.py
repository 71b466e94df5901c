"""Compiles the package's programs for GPUs that are not there, and counts what they launch.

python -m benchmarks.compiled

XLA compiles for a GPU from a description of it. A program for a GPU is a sequence of
kernels: to launch one takes a few microseconds, however little it computes. In a loop whose
number of iterations is not known when the program is compiled, and before a branch, the
host waits for the device to hear how to go on. So the launches and the waits of a step tell
how fast a small step can be at best. Nothing is run, and no time is measured.

It needs JAX's plugin for CUDA and CUDA's assembler, which `make test-gpu-compile` installs
into an environment of their own.
"""

import dataclasses
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import inopca_jax as ino
from inopca_jax._batch import batch
from inopca_jax._densities import fokker_planck
from inopca_jax._densities.grid import build_grid
from inopca_jax._densities.solver import known_segments
from inopca_jax._engine import defaults
from inopca_jax._streaming.block import BLOCK, initial_estimates, update
from inopca_jax._timeline import without_spike


@dataclasses.dataclass(frozen=True)
class Device:
    """A GPU as XLA's compiler needs to know it, from its data sheet."""

    name: str
    architecture: str
    """As `ptxas` calls it."""
    capability: tuple[int, int]
    cores: int
    arithmetic_units_per_core: int
    memory: int
    bandwidth: int
    cache: int
    gigahertz: float
    shared_memory_per_core: int
    shared_memory_per_block: int

    def description(self) -> str:
        """Returns the text that XLA reads."""
        major, minor = self.capability
        return f"""
            gpu_device_info {{
              threads_per_block_limit: 1024 threads_per_warp: 32
              threads_per_core_limit: 2048
              shared_memory_per_block: 49152
              shared_memory_per_block_optin: {self.shared_memory_per_block}
              shared_memory_per_core: {self.shared_memory_per_core}
              registers_per_core_limit: 65536 registers_per_block_limit: 65536
              block_dim_limit_x: 2147483647
              block_dim_limit_y: 65535 block_dim_limit_z: 65535
              core_count: {self.cores} fpus_per_core: {self.arithmetic_units_per_core}
              memory_bandwidth: {self.bandwidth} l2_cache_size: {self.cache}
              clock_rate_ghz: {self.gigahertz} device_memory_size: {self.memory}
              cuda_compute_capability {{ major: {major} minor: {minor} }}
            }}
            platform_name: "CUDA"
            dnn_version_info {{ major: 9 minor: 8 }}
            runtime_version {{ major: 12 minor: 8 }}
            device_description_str: "{self.name}"
            """


DEVICES = {
    "A100": Device(
        "NVIDIA A100-SXM4-80GB", "sm_80", (8, 0), 108, 64,
        memory=85_899_345_920, bandwidth=2_039_000_000_000, cache=41_943_040,
        gigahertz=1.41, shared_memory_per_core=167_936, shared_memory_per_block=166_912,
    ),
    "H100": Device(
        "NVIDIA H100 80GB HBM3", "sm_90a", (9, 0), 132, 128,
        memory=85_899_345_920, bandwidth=3_352_320_000_000, cache=52_428_800,
        gigahertz=1.98, shared_memory_per_core=233_472, shared_memory_per_block=232_448,
    ),
}  # fmt: skip


def missing() -> str | None:
    """Returns which package is missing to compile for a GPU, if one is."""
    names = ("jax_cuda12_plugin", "jax_plugins.xla_cuda12", "nvidia.cuda_nvcc")
    for name in names:
        try:
            found = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            return name
    return None


def assembler() -> str:
    """Returns the path of CUDA's assembler."""
    spec = importlib.util.find_spec("nvidia.cuda_nvcc")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return str(Path(next(iter(spec.submodule_search_locations))) / "bin" / "ptxas")


@dataclasses.dataclass(frozen=True)
class Program:
    """A program of the package, as it is called on an accelerator.

    **Arguments:**

    - `name`: what it is.
    - `function`, `arguments`: what is compiled. Arguments that are no arrays are compiled
      into the program.
    - `x64`: whether it computes in double precision.
    - `steps`: how many steps an iteration of its main loop takes.
    - `unit`: what a step is.
    - `inner`: how often loops inside of the main loop run, if their number of iterations is
      not known to XLA. 0: they end at once but for rare numbers.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    x64: bool
    steps: int
    unit: str
    inner: int = 0


@dataclasses.dataclass(frozen=True)
class Counts:
    """What a compiled program does.

    **Arguments:**

    - `launches`: kernels and copies that are launched for a step.
    - `waits`: how often the host waits for the device in a step.
    - `calls_to_host`: the names of what calls back to Python or exchanges data with the
      host.
    - `kernels`: how many kernels there are; each has been assembled.
    - `registers`: the most registers of a thread of any kernel.
    - `spilled`: bytes of registers that do not fit, and are kept in memory.
    - `memory`: bytes of the device's memory that a call takes.
    """

    launches: float
    waits: float
    calls_to_host: tuple[str, ...]
    kernels: int
    registers: int
    spilled: int
    memory: int


def compile_program(program: Program, device: Device) -> Counts:
    """Compiles a program for a device and returns what it does."""
    topology = topologies.get_topology_desc(
        platform="cuda", target_config=device.description(), topology="1x1x1"
    )
    mesh = Mesh(np.array(topology.devices), ("devices",))
    everywhere = NamedSharding(mesh, PartitionSpec())
    is_array = lambda a: isinstance(
        a, (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)
    )
    arrays, static = eqx.partition(program.arguments, is_array)
    with jax.enable_x64(program.x64), tempfile.TemporaryDirectory() as folder:
        shapes = jax.tree.map(
            lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=everywhere), arrays
        )
        run = lambda arrays: eqx.filter(
            program.function(*eqx.combine(arrays, static)), eqx.is_array
        )
        with _as_on_an_accelerator():
            lowered = jax.jit(run, out_shardings=everywhere).lower(shapes)
        options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
        compiled = lowered.compile(compiler_options=options)
        kernels = list(_assembled(Path(folder), device.architecture))
    sizes = compiled.memory_analysis()
    text = compiled.as_text()
    assert sizes is not None
    assert text is not None
    launches, waits = main_loop(text, program.inner)
    return Counts(
        launches=launches / program.steps,
        waits=waits / program.steps,
        calls_to_host=calls_to_host(text),
        kernels=len(kernels),
        registers=max((kernel[0] for kernel in kernels), default=0),
        spilled=sum(kernel[1] for kernel in kernels),
        memory=sizes.argument_size_in_bytes
        + sizes.output_size_in_bytes
        + sizes.temp_size_in_bytes,
    )


def _assembled(folder: Path, architecture: str) -> Iterator[tuple[int, int]]:
    """Assembles all kernels, and yields their registers and bytes of spilled ones."""
    for path in sorted(folder.glob("*.ptx")):
        if ".entry" not in path.read_text():
            continue
        yield from assemble(path, architecture)


def assemble(path: Path, architecture: str, *options: str) -> Iterator[tuple[int, int]]:
    """Assembles the kernels of a file; yields the registers of each, and the bytes of those
    that are spilled by it and by the functions that it calls."""
    command = [assembler(), "-v", f"-arch={architecture}", "-o", os.devnull, *options]
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=True)
    spilled = 0
    for line in done.stderr.splitlines():
        bytes_moved = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line)
        registers = re.search(r"Used (\d+) registers", line)
        if bytes_moved:
            spilled += int(bytes_moved[1]) + int(bytes_moved[2])
        elif registers:
            yield int(registers[1]), spilled
            spilled = 0


_NOT_LAUNCHED = {
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all",
    "partition-id", "replica-id", "opt-barrier", "domain",
}  # fmt: skip
_LOOPS_AND_CALLS = {"while", "conditional", "call", "async-start", "async-done"}
_TO_HOST = re.compile(r"callback|infeed|outfeed|send|recv|host", re.IGNORECASE)


@dataclasses.dataclass
class Instruction:
    """An instruction of an optimised program."""

    opcode: str
    text: str

    def called(self, *attributes: str) -> list[str]:
        """Returns the computations that are named in some attributes."""
        names = []
        for attribute in attributes:
            for found in re.findall(
                rf"\b{attribute}=\{{?([^,}}]*(?:, ?%[^,}}]*)*)", self.text
            ):
                names += re.findall(r"%([\w.\-]+)", found)
        return names

    def trips(self) -> int | None:
        """Returns how often a loop runs, if that is known."""
        found = re.search(r'known_trip_count":\{"n":"(\d+)"', self.text)
        return int(found[1]) if found else None


def computations(text: str) -> tuple[dict[str, list[Instruction]], str]:
    """Returns the computations of an optimised program by name, and the name of the
    first."""
    found: dict[str, list[Instruction]] = {}
    entry, current = "", None
    for line in text.splitlines():
        head = re.match(r"(ENTRY )?%([\w.\-]+) \(.*\{$", line)
        if head:
            current = found.setdefault(head[2], [])
            entry = head[2] if head[1] else entry
        elif line.startswith("}"):
            current = None
        elif current is not None:
            # name = type opcode(operands), attributes; a type may be a tuple of types.
            match = re.match(r"\s+(?:ROOT )?%[\w.\-]+ = (?:\(.*?\)|\S+) ([\w\-]+)\(", line)
            if match is None:
                raise ValueError(f"An instruction was not understood: {line[:200]}")
            current.append(Instruction(match[1], line))
    if not entry:
        raise ValueError("The program has no entry.")
    return found, entry


def main_loop(text: str, inner: int = 0) -> tuple[float, float]:
    """Returns the launches and the waits of one iteration of the main loop.

    The main loop is the outermost one whose number of iterations is not known, or else the
    outermost one; of several, the one with the most launches.

    **Arguments:**

    - `text`: an optimised program.
    - `inner`: as of a `Program`.
    """
    parts, entry = computations(text)

    def count(name: str) -> tuple[float, float]:
        launches = waits = 0.0
        for instruction in parts[name]:
            if instruction.opcode in _NOT_LAUNCHED:
                continue
            if instruction.opcode == "while":
                (body,), (test,) = (
                    instruction.called("body"),
                    instruction.called("condition"),
                )
                trips = instruction.trips()
                more, tested = count(body), count(test)
                times = inner if trips is None else trips
                launches, waits = launches + times * more[0], waits + times * more[1]
                if trips is None:  # the host hears the result of each test
                    launches += (times + 1) * tested[0]
                    waits += (times + 1) * (1 + tested[1])
            elif instruction.opcode == "conditional":
                branches = instruction.called(
                    "branch_computations", "true_computation", "false_computation"
                )
                most = [count(branch) for branch in branches]
                launches += max(launched for launched, _ in most)
                waits += 1 + max(waited for _, waited in most)
            elif instruction.opcode in ("call", "async-start"):
                for name in instruction.called("to_apply", "calls"):
                    more = count(name)
                    launches, waits = launches + more[0], waits + more[1]
            elif instruction.opcode != "async-done":
                launches += 1
        return launches, waits

    loops = list(_loops(parts, entry, depth=0))
    if not loops:
        return count(entry)
    unknown = [loop for loop in loops if loop[1].trips() is None]
    if unknown:
        least = min(depth for depth, _ in unknown)
        loops = [loop for loop in unknown if loop[0] == least]
    else:
        loops = [loop for loop in loops if loop[0] == 0]
    totals = []
    for _, loop in loops:
        launches, waits = count(*loop.called("body"))
        if loop.trips() is None:
            more = count(*loop.called("condition"))
            launches, waits = launches + more[0], waits + more[1] + 1
        totals.append((launches, waits))
    return max(totals)


def _loops(
    parts: dict[str, list[Instruction]], name: str, depth: int
) -> Iterator[tuple[int, Instruction]]:
    """Yields all loops of a computation, each with the number of loops around it."""
    for instruction in parts[name]:
        if instruction.opcode == "while":
            yield depth, instruction
            for body in instruction.called("body"):
                yield from _loops(parts, body, depth + 1)
        elif instruction.opcode in ("conditional", "call"):
            for other in instruction.called(
                "to_apply", "branch_computations", "true_computation", "false_computation"
            ):
                yield from _loops(parts, other, depth)


def calls_to_host(text: str) -> tuple[str, ...]:
    """Returns what of an optimised program exchanges data with the host."""
    found = set(re.findall(r'custom_call_target="([^"]+)"', text))
    for instructions in computations(text)[0].values():
        found |= {instruction.opcode for instruction in instructions}
    return tuple(sorted(name for name in found if _TO_HOST.search(name)))


@contextmanager
def _as_on_an_accelerator() -> Iterator[None]:
    """The package chooses sizes by the backend, and here that is the CPU."""
    on_cpu = defaults.on_cpu
    defaults.on_cpu = lambda: False
    try:
        yield
    finally:
        defaults.on_cpu = on_cpu


def programs() -> dict[str, Program]:
    """Returns the programs that are compiled, by name."""
    p = 10_000
    times = np.linspace(0.0, 50.0, 51)
    config = ino.Config(model=ino.SpikedModel(p), ts=times)
    with _as_on_an_accelerator():
        chunk, block = defaults.chain_chunk(), defaults.stream_block(p)
        made = [
            engine_program("chain", ino.Chain(), config, chunk, "step of all trials"),
            engine_program(
                "chain, float32", ino.Chain(dtype="float32"), config, chunk,
                "step of all trials",
            ),
            engine_program("stream", ino.Stream(), config, block, "sample of all trials"),
            engine_program(
                "diffusion", ino.Diffusion(), config, 1, "iteration of its loop"
            ),
            sweep_program("sweep", config, chunk, "step of all cells"),
            mean_field_program(config, 4096),
            density_program(config),
            *(stream_pca_program(components, p) for components in (4, 16)),
        ]  # fmt: skip
    return {program.name: program for program in made}


def engine_program(
    name: str, engine: ino.AbstractEngine, config: ino.Config, steps: int, unit: str
) -> Program:
    """Returns what `simulate` calls, for one tile of trials."""
    trials = batch.Batch(engine, config, tiles=1, one_config=True)
    return _batch_program(name, trials, config, steps, unit)


def sweep_program(name: str, config: ino.Config, steps: int, unit: str) -> Program:
    """Returns what `sweep` calls, for one tile of cells that differ in all numbers."""
    cells = batch.Batch(ino.Chain(), config, tiles=1, one_config=False)
    configs = jax.tree.map(
        lambda leaf: np.broadcast_to(leaf, (cells.lanes, *np.shape(leaf))), config
    )
    return _batch_program(name, cells, configs, steps, unit)


def _batch_program(
    name: str, lanes: batch.Batch, configs: ino.Config, steps: int, unit: str
) -> Program:
    with jax.enable_x64(lanes.x64):
        rule, models, start = lanes._parts(configs)
        number = jax.ShapeDtypeStruct((lanes.tiles, lanes.tile), np.int32)
        key = jax.eval_shape(lambda: jr.key(0))
        init = partial(batch._init, lanes.engine, lanes.one_config)
        keys, state = eqx.filter_eval_shape(init, (rule, models[0], start), key, [number])
        calls = lanes.calls[0]
        parts = (rule, without_spike(models[0]))
    advance = batch._advance.__wrapped__  # pyright: ignore
    function = partial(advance, lanes.engine, lanes.one_config)
    stops = (np.int32(0), calls.stops[0], calls.rows[0] >= 0)
    return Program(name, function, (parts, keys, state, *stops), lanes.x64, steps, unit)


_STAGES = 13
"""The evaluations of the field in a step of the default solver, Dopri8."""


def mean_field_program(config: ino.Config, count: int) -> Program:
    """Returns the mean field of a grid of configs."""

    def on_grid(taus: jax.Array, omegas: jax.Array) -> Any:
        def one(tau: jax.Array, omega: jax.Array) -> Any:
            model = ino.SpikedModel(int(config.model.p), omega)
            path = ino.mean_field(ino.Config(ino.InoPCA(tau), model, ts=config.ts))
            return path.q, path.lam

        return jax.vmap(one)(taus, omegas)

    numbers = (np.linspace(0.1, 1.0, count), np.linspace(0.2, 2.0, count))
    name, unit = f"mean field of {count:,} configs", "step of the solver"
    return Program(name, on_grid, numbers, True, 1, unit, inner=_STAGES)


def density_program(config: ino.Config) -> Program:
    """Returns the Fokker-Planck equation."""
    config = eqx.tree_at(lambda c: c.ts, config, np.linspace(0.0, 10.0, 11))
    solver = ino.FokkerPlanck()
    plan = [fokker_planck._time_steps(s, solver.dt) for s in known_segments(config)]
    grid, _ = build_grid(config, solver.cells, solver.nodes, solver.domain)
    on_host = lambda tree: jax.tree.map(
        lambda a: np.asarray(a) if isinstance(a, jax.Array) else a, tree
    )
    integrate = fokker_planck._integrate.__wrapped__  # pyright: ignore
    function = lambda config, grid: integrate(config, grid, plan)
    arguments = (on_host(config), on_host(grid))
    return Program("density, 400 cells", function, arguments, False, 1, "step in time")


def stream_pca_program(components: int, p: int) -> Program:
    """Returns what `stream_pca` calls."""
    rule = jax.tree.map(np.float32, ino.InoPCA(0.5))
    estimates = eqx.filter_eval_shape(
        lambda: initial_estimates(rule, components, p, np.dtype(np.float32))
    )
    samples = jax.ShapeDtypeStruct((16 * BLOCK, p), np.float32)
    count = np.int32(16 * BLOCK)
    arguments = (rule, estimates, samples, count, True)
    name = f"stream_pca, {components} components"
    return Program(name, update, arguments, False, BLOCK, "sample")


def main(quick: bool = False) -> None:
    name = missing()
    if name is not None:
        sys.exit(
            f"{name} is not installed: run `make test-gpu-compile`, which installs it into "
            ".venvs/gpu, and then .venvs/gpu/bin/python -m benchmarks.compiled"
        )
    print("### Compiled for GPUs, and not run\n")
    print(
        "Counted in the programs that XLA compiles for a GPU. No GPU was there, nothing "
        "was run, and no time was measured. A wait is the host's for the device. Registers "
        "are those of a thread of the largest kernel; memory is that of one call.\n"
    )
    print("| program | GPU | a step is a | launches a step | waits a step | kernels | "
          "registers | spilled bytes | MiB |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    for program in programs().values():
        for device, description in DEVICES.items():
            counts = compile_program(program, description)
            print(
                f"| {program.name} | {device} | {program.unit} | {counts.launches:.3g} | "
                f"{counts.waits:.3g} | {counts.kernels} | {counts.registers} | "
                f"{counts.spilled} | {counts.memory / 2**20:.3g} |",
                flush=True,
            )
            if quick:
                return


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
