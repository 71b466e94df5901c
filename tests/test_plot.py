"""Figures say what they show."""

import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax import plot

from .cases import config

STUDY = config(p=100, ts=np.linspace(0, 3, 7))


def test_curves_bars_and_the_offline_limit_are_drawn_from_the_numbers():
    theory = ino.mean_field(STUDY)
    runs = ino.simulate(STUDY, key=jr.key(0), trials=8)
    curves = [plot.Curve("a", theory, runs), plot.Curve("b", theory)]
    figure = plot.learning_curves(curves, bars=1 / 3, omega=1.0)
    overlap, norm = figure.axes
    lines = {line.get_label(): line for line in overlap.lines}
    assert np.allclose(lines["a, theory"].get_ydata(), theory.q)
    offline = lines["offline PCA, limit"].get_ydata()
    assert np.allclose(offline, ino.offline_overlap(1.0, np.linspace(0, 3, 401)))
    bars = overlap.containers[0]
    segments = bars.lines[2][0].get_segments()
    assert np.allclose([np.ptp(s[:, 1]) for s in segments], 2 / 3 * runs.std().q, atol=1e-6)
    assert np.allclose(bars.lines[0].get_ydata(), runs.mean().q)
    labels = [text.get_text() for text in norm.get_legend().get_texts()]
    assert "a, 8 trials $\\pm$ 0.33 sd" in labels
    assert "offline PCA, limit" not in labels
    assert lines["a, theory"].get_color() != lines["b, theory"].get_color()
    plt.close(figure)


def test_trials_that_were_left_out_are_counted_in_the_legend():
    runs = ino.simulate(STUDY, key=jr.key(0), trials=8)
    broken = ino.Trajectory(runs.ts, runs.q.at[2, 3].set(jnp.nan), runs.lam)
    figure = plot.learning_curves([plot.Curve("a", runs=broken)], quantities=["q"])
    (label,) = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert "7 of 8 trials (1 diverged)" in label
    plt.close(figure)


def test_the_style_does_not_leak(tmp_path):
    before, figures = dict(plt.rcParams), plt.get_fignums()
    plot.save(
        plot.learning_curves([plot.Curve("a", ino.mean_field(STUDY))]), tmp_path / "a.pdf"
    )
    assert dict(plt.rcParams) == before
    assert (tmp_path / "a.pdf").stat().st_size > 1000
    assert plt.get_fignums() == figures


def test_tuning_is_drawn_with_its_limits_and_gains():
    before = config(ino.InoPCA(0.5), ts=np.linspace(0, 10, 11), start=ino.WarmStart(0.1))
    after = config(ino.InoPCA(0.3), ts=np.linspace(0, 10, 11), start=ino.WarmStart(0.1))
    figure = plot.tuning(before, after)
    overlap, gain = figure.axes
    drawn = {line.get_label(): line.get_ydata() for line in overlap.get_lines()}
    assert np.allclose(drawn["after, theory"], ino.mean_field(after).q)
    best = ino.oracle_overlap(1.0, 0.1, before.ts)
    assert np.allclose(drawn["best gain"], best)
    gains = {line.get_label(): line.get_ydata() for line in gain.get_lines()}
    assert np.allclose(gains["before"], 0.5 / ino.mean_field(before).lam, rtol=1e-5)
    assert np.allclose(gains["best gain"], (1 - best**2) / (best**2 + 1), rtol=1e-5)
    # A schedule with a memory has a gain that a path does not tell.
    ada = config(ino.AdaOja(200.0), ts=before.ts, start=before.start)
    assert len(plot.tuning(ada, ada).axes) == 1
    slopes = {"rule.tau": ino.sensitivity(before, "rule.tau")}
    left, right = plot.sensitivities(slopes).axes
    assert np.allclose(left.get_lines()[0].get_ydata(), slopes["rule.tau"].q)
    assert np.allclose(right.get_lines()[0].get_ydata(), slopes["rule.tau"].lam)
    plt.close("all")


def test_a_notebook_goes_on_showing_figures():
    # Its backend does this when the first figure is made, which may be one of ours.
    with plot.style():
        plt.ion()
    shows = plt.isinteractive()
    plt.ioff()
    assert shows


def helpers():
    """Each function of `plot` that draws, with the shape of its panels."""
    theory = ino.mean_field(STUDY)
    curve, pdf = plot.Curve("a", theory), ino.density(STUDY)
    slope = {"tau": ino.Trajectory(theory.ts, theory.q, theory.lam)}
    grid = {"rule.tau": [0.2, 0.5], "model.omega": [0.5, 1.0], "start.q0": [0.2, 0.3]}
    cells = ino.sweep(STUDY, grid, key=jr.key(0), trials=2)
    return {
        "learning_curves": ((1, 2), lambda ax: plot.learning_curves([curve], ax=ax)),
        "one learning curve": (
            (1, 1),
            lambda ax: plot.learning_curves([curve], quantities=["q"], omega=1.0, ax=ax),
        ),
        "density": (
            (2, 2),
            lambda ax: plot.density(pdf, times=[0.0, 3.0], given=[0.0, 1.0], ax=ax),
        ),
        "tuning": ((1, 2), lambda ax: plot.tuning(STUDY, STUDY, ax=ax)),
        "sensitivities": ((1, 2), lambda ax: plot.sensitivities(slope, ax=ax)),
        "scree": ((1, 1), lambda ax: plot.scree(np.array([2.0, 1.0]), 4.0, ax=ax)),
        "maps": ((1, 2), lambda ax: plot.sweep(cells, ax=ax)),
        "curves": (
            (1, 1),
            lambda ax: plot.sweep(cells.isel({"model.omega": 0, "start.q0": 0}), ax=ax),
        ),
    }


def drawn_lines(axes):
    return [line.get_xydata() for panel in axes for line in panel.lines]


def test_each_function_draws_on_given_axes_what_its_own_figure_has():
    for name, (shape, draw) in helpers().items():
        own = draw(None)
        _, axes = plt.subplots(*shape)
        others = plt.get_fignums()
        assert draw(axes) is axes, name
        assert plt.get_fignums() == others, name  # none was made
        panels = np.ravel(axes).tolist()
        count = len(panels)
        for a, b in zip(own.axes[:count], panels, strict=True):
            assert (a.get_xlabel(), a.get_ylabel()) == (b.get_xlabel(), b.get_ylabel())
            assert np.allclose(a.get_xlim(), b.get_xlim()), name
            assert a.has_data(), name
            assert b.has_data(), name
        for a, b in zip(drawn_lines(own.axes), drawn_lines(panels), strict=True):
            assert np.array_equal(a, b), name
        if count > 1:  # a list will do
            assert isinstance(draw(panels), list)
        for wrong in (np.append(panels, panels), "axes", {"a": axes}, []):
            with pytest.raises(ValueError, match=r"ax = .* or leave it out"):
                draw(wrong)
        plt.close("all")


def test_what_draws_on_axes_returns_them():
    _, ax = plt.subplots()
    assert plot.draw(ax, plot.Curve("a", ino.mean_field(STUDY)), "q") is ax
    assert plot.offline_limit(ax, 1.0, STUDY.ts) is ax
    plt.close("all")
