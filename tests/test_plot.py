"""Figures say what they show."""

import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np

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
