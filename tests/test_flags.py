"""Which flags a command reads: those, and only those, that make a difference."""

import dataclasses
import itertools
from pathlib import Path

import equinox as eqx
import numpy as np
import pytest

from inopca_jax._cli.density import DensityCommand
from inopca_jax._cli.fit import Fit
from inopca_jax._cli.flags import as_typed, flags_in, require_read, with_typed_flags
from inopca_jax._cli.output import Files
from inopca_jax._cli.problem import LABELS, Algorithm, Model, Start, Times
from inopca_jax._cli.simulate import Simulate
from inopca_jax._cli.sweep import Plot, Run
from inopca_jax._cli.tune import Tune

SCHEDULES = ("constant", "harmonic", "adagrad", "oracle", "interpolated")
SPIKES = ("uniform", "shifted-exponential", "sparse", "gaussian")

# Parts of a config, one for each choice, and another value of each of its flags.
PARTS = [
    *(Algorithm(rule=r, schedule=s) for r, s in itertools.product(LABELS, SCHEDULES)),
    *(Model(spike=spike) for spike in SPIKES),
    *(Model(switch_times=(1.0,), switch_spikes=(spike,)) for spike in SPIKES),
    *(
        Start(start=start)
        for start in ("warm", "cold", "two-bumps", "box", "first-samples")
    ),
    Times(),
    Times(ts=(0.0, 1.0)),
]
OTHER = dict(
    tau=0.7,
    degree=4.0,
    c=3.0,
    t0=2.0,
    k0=7.0,
    b0=0.5,
    amnesic=3.0,
    knots=(1.0,),
    taus=(0.7,),
    p=200,
    omega=(2.0,),
    rate=2.0,
    shift=0.3,
    rho=0.3,
    q0=0.2,
    separation=0.5,
    lam0=2.0,
    t_max=7.0,
    points=3,
)


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_a_flag_is_read_if_and_only_if_it_changes_what_is_built(part):
    names = [f.name for f in dataclasses.fields(part) if f.name in OTHER]
    assert names
    for name in names:
        changed = dataclasses.replace(part, **{name: OTHER[name]})
        same = _equal(part.build(), changed.build())
        if same:
            with pytest.raises(ValueError, match=f"^{as_typed(name)} .* is read only with"):
                require_read([changed], {name})
        else:
            require_read([changed], {name})


def _equal(a, b):
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else eqx.tree_equal(a, b)


@pytest.mark.parametrize(
    "part", [Algorithm, Model, Start, Times, Simulate, DensityCommand, Tune, Fit, Run]
)
def test_the_tables_name_flags_that_there_are(part):
    flags = {f.name for one in (part, Model, Files) for f in dataclasses.fields(one)}
    assert part.READS
    for flag, alternatives in part.READS.items():
        assert {
            flag,
            *(name for conditions in alternatives for name in conditions),
        } <= flags


def test_flags_are_found_as_the_parser_takes_them():
    line = "sweep run --t-max 5 --tau=-0.5 --ts -1 2 --no-check --t_0 1 a--b"
    assert flags_in(line.split()) == {"t_max", "tau", "ts", "check", "t_0"}


def test_an_error_names_flags_as_they_are_typed_and_nothing_else():
    error = "t_max = -1, but config.tau = 2 and InoPCA(tau=3), start = x: p = 5 samples"
    shown = "--t-max -1, but config.tau = 2 and InoPCA(tau=3), --start x: --p 5 samples"
    assert with_typed_flags(error, Simulate()) == shown
    assert with_typed_flags("store = a.zarr, out = b", Plot(Path("a"), Path("b"))) == (
        "store = a.zarr, --out b"  # a positional argument has no flag
    )
