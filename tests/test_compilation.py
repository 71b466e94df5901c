"""One trace a shape, and programs that lower for every platform."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax import export

import inopca_jax as ino
from inopca_jax import _xla
from inopca_jax._batch import batch, trials
from inopca_jax._numerics import cast

from .cases import SEVEN, config, sparing

TRACES = []


class Counting(ino.AbstractRule):
    """INO-PCA that notes each time it is traced."""

    tau: ino.AbstractSchedule
    projects = False

    def rates(self, observables, tau):
        TRACES.append(1)
        return ino.Rates(gain=tau / observables.lam, decay=tau)


def a_study(tau=0.5, omega=1.0, q0=0.3, lam0=1.0, ts=(0.0, 0.5)):
    rule, start = Counting(ino.Constant(tau)), ino.WarmStart(q0, lam0)
    return config(rule, p=120, omega=omega, start=start, ts=ts)


CHANGES = [
    dict(tau=0.7),
    dict(omega=2.0),
    dict(q0=-0.4),
    dict(lam0=2.0),
    dict(ts=(0.25, 0.75)),
]


@pytest.mark.parametrize(
    "engine", [ino.Chain(snapshots=True), ino.Stream(), ino.Diffusion()]
)
def test_no_engine_compiles_again_when_a_number_or_the_key_changes(engine):
    ino.simulate(a_study(), key=jr.key(0), trials=3, engine=engine)
    TRACES.clear()
    for i, change in enumerate(CHANGES):
        ino.simulate(a_study(**change), key=jr.key(i), trials=3 + i, engine=engine)
    assert not TRACES


@pytest.mark.slow
def test_threads_wait_for_the_first_to_compile():
    """Cold, on several threads: as many traces as on one."""
    counts = []
    for count in (3, 200):
        jax.clear_caches()
        trials._COMPILED.clear()
        TRACES.clear()
        ino.simulate(a_study(), key=jr.key(0), trials=count)
        counts.append(len(TRACES))
    assert counts[0] == counts[1] > 0


def test_threads_do_not_compile_again():
    for few, many in ((3, 200), (1100, 3000)):
        ino.simulate(a_study(), key=jr.key(0), trials=few)
        TRACES.clear()
        ino.simulate(a_study(), key=jr.key(0), trials=many)
        assert not TRACES


@pytest.mark.parametrize("theory", [ino.mean_field, ino.steady_state])
def test_no_theory_compiles_again_when_a_number_changes(theory):
    theory(a_study())
    TRACES.clear()
    for change in CHANGES:
        theory(a_study(**change))
    assert not TRACES


def test_a_users_python_floats_are_not_compiled_in():
    class Cooling(ino.AbstractStatelessSchedule):
        first: float
        pace: float

        def tau(self, observables, state, hidden):
            return self.first * jnp.exp(-self.pace * observables.t)

    for i, pace in enumerate((0.1, 0.2, 0.3)):
        study = config(Counting(Cooling(0.5, pace)), p=120, ts=(0.0, 0.5))
        ino.simulate(study, key=jr.key(0), trials=2)
        if i == 0:
            TRACES.clear()
    assert not TRACES


PLATFORMS = ("cpu", "cuda", "tpu")


def lowered(function, *arguments):
    """The exported module; static parts are closed over, arrays are arguments."""
    arrays, static = eqx.partition(arguments, eqx.is_array_like)

    def call(arrays):
        outputs = function(*eqx.combine(arrays, static))
        return [leaf for leaf in jax.tree.leaves(outputs) if eqx.is_array(leaf)]

    return export.export(jax.jit(call), platforms=PLATFORMS)(arrays)


ENGINES = [
    *((ino.Chain(), name) for name in ("InoPCA", "Krasulina", "AdaOja")),
    *((ino.Stream(), name) for name in ("InoPCA", "Krasulina", "AdaOja")),
    (ino.Diffusion(), "InoPCA"),
    (ino.Chain(snapshots=True), "InoPCA"),
    (ino.Chain(snapshots=True), "AdaOja"),
    (ino.Stream(block=8), "InoPCA"),
    (ino.Stream(block=8), "AdaOja"),
]


@pytest.mark.parametrize(("engine", "name"), ENGINES)
def test_the_engines_lower_for_every_platform(engine, name):
    study = config(SEVEN[name](), p=128)
    engine = engine.prepare(study)
    parts = cast((study.rule, study.model, study.start), jnp.result_type(float))
    numbers = [jnp.zeros((1, 2), jnp.int32)]
    keys, state = batch._init(engine, True, parts, jr.key(0), numbers)
    stops, is_observation = jnp.array([8, 20], jnp.int32), jnp.array([True, False])
    times = (jnp.int32(0), stops, is_observation)
    advance = lambda engine, *rest: batch._advance(engine, True, *rest)
    exported = lowered(advance, engine, parts[:2], keys, state, *times)
    assert exported.platforms == PLATFORMS
    assert "stablehlo.while" in exported.mlir_module()


@pytest.mark.parametrize("name", ["InoPCA", "Krasulina", "AdaOja"])
def test_the_mean_field_lowers_for_every_platform(name):
    def final(q0):
        start = ino.WarmStart(q0)
        return ino.mean_field(config(SEVEN[name](), start=start, ts=[0.0, 1.0])).q

    exported = export.export(jax.jit(final), platforms=PLATFORMS)(jnp.asarray(0.3))
    assert exported.platforms == PLATFORMS
    if name == "InoPCA":  # and the program that was lowered is the right one
        assert np.allclose(exported.call(jnp.asarray(0.3)), final(0.3), atol=1e-6)


def test_options_that_xla_does_not_know_are_left_out():
    known = "xla_backend_optimization_level"
    assert _xla.supported({known: "1", "xla_no_such_option": True}) == {known: "1"}
    assert _xla.as_flags({known: "1", "a": False}) == f"--{known}=1 --a=false"


def test_nothing_of_jaxs_private_modules_is_used():
    package = Path(ino.__file__).parent
    sources = [*package.rglob("*.py"), *package.parent.glob("benchmarks/*.py")]
    assert len(sources) > 100
    assert [path for path in sources if "jax._src" in path.read_text()] == []


@pytest.mark.parametrize("engine", [ino.Chain(), ino.Diffusion()])
def test_simulations_of_other_dimensions_share_a_program(engine):
    sizes = [dict(p=p, ts=(0.0, 0.5)) for p in (120, 150, 400)]
    studies = [config(Counting(ino.Constant(0.5)), **size) for size in sizes]
    ino.simulate(studies[0], key=jr.key(0), trials=3, engine=engine)
    TRACES.clear()
    for study in studies:
        ino.simulate(study, key=jr.key(0), trials=3, engine=engine)
    assert not TRACES


THEORIES = [ino.mean_field, ino.steady_state, ino.fluctuations, lambda c: ino.density(c)]


@pytest.mark.parametrize("theory", sparing(THEORIES, 2))
def test_a_vmap_over_p_has_the_values_of_each_and_is_traced_once(theory):
    ps = np.array([100.0, 400.0, 2500.0])

    def values(p):
        study = config(Counting(ino.Harmonic(1.0, t0=2.0, k0=5.0)), p=p, ts=(0.0, 0.5))
        found = theory(study)
        return found[0] if isinstance(found, tuple) else found.q

    together = jax.jit(jax.vmap(values))(ps)
    TRACES.clear()
    for p, row in zip(ps, together, strict=True):
        assert np.allclose(row, values(int(p)), atol=1e-5)
    count = len(TRACES)
    values(1600)
    assert len(TRACES) == count
