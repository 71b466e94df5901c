"""Snapshots against densities: histograms with honest errors, distances of order
1/sqrt(p), and the panels that show both."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax import plot

from .cases import config

SPIKES = {
    "uniform": ino.Uniform,
    "exponential": ino.ShiftedExponential,
    "sparse": ino.Sparse,
}


def snapshots(name, p, trials, engine=None, q0=0.3, ts=(0.0, 1.0, 4.0), start=None):
    start = ino.WarmStart(q0) if start is None else start
    study = config(spike=SPIKES[name](), p=p, start=start, ts=ts)
    engine = ino.Chain(snapshots=True) if engine is None else engine
    runs = ino.simulate(study, key=jr.key(3), trials=trials, engine=engine)
    return study, runs


def kolmogorov(runs, pdf):
    """`sqrt(p)` times the distance of each trial's entries from the marginal's law."""
    edges = np.asarray(pdf.x) + float(pdf.width) / 2
    entries = np.sort(np.asarray(runs.x, float), axis=2)
    p, found = entries.shape[2], []
    for i, cdf in enumerate(np.asarray(pdf.cdf())):
        law = np.interp(entries[:, i], edges, cdf)
        above = np.arange(1, p + 1) / p - law
        found.append(np.maximum(above, 1 / p - above).max(axis=1) * np.sqrt(p))
    return np.array(found)


@pytest.mark.parametrize("name", SPIKES)
@pytest.mark.parametrize("engine", ["chain", "stream"])
def test_entries_are_as_far_from_the_marginal_as_a_sample_of_p(name, engine):
    if engine == "chain":
        study, runs = snapshots(name, 10_000, 8, q0=-0.3)
    else:
        stream = ino.Stream(snapshots=True)
        study, runs = snapshots(name, 2_000, 8, stream, ts=(0.0, 1.0))
    far = kolmogorov(runs, ino.density(study, solver=ino.FokkerPlanck(cells=800)))
    # Kolmogorov's law has the mean .87; the norm is given, which takes a little away,
    # and the overlap's own fluctuation adds to it.
    assert np.all(far < 2.2)
    assert np.all((far.mean(axis=1) > 0.45) & (far.mean(axis=1) < 1.3))


def test_pulls_have_unit_variance():
    study, runs = snapshots("uniform", 2000, 200)
    counted = ino.empirical_density(runs, bins=np.linspace(-2.5, 2.5, 21))
    pdf = ino.density(study, solver=ino.FokkerPlanck(cells=1000, domain=(-10.0, 10.0)))
    # The mean of the density over a bin of .25, which is 12.5 cells: by its integral.
    edges = np.asarray(pdf.x) + float(pdf.width) / 2
    for i in range(3):
        cdf = np.interp(counted.edges[i], edges, np.asarray(pdf.cdf())[i])
        pulls = (counted.pdf[i, 0] - np.diff(cdf) / 0.25) / counted.error[i, 0]
        assert np.abs(pulls).max() < 4.5
        assert 0.4 < np.mean(pulls**2) < 2.0
    assert np.all(counted.counts == 200 * 2000)


def test_groups_and_atoms_condition_on_the_spike():
    study, runs = snapshots("sparse", 4000, 20, start=ino.TwoBumps(0.3))
    pdf = ino.density(study)
    counted = ino.empirical_density(runs, bins=np.linspace(-3, 6, 37), atoms=pdf.nodes)
    assert np.all(counted.counts.sum(axis=1) == 20 * 4000)
    assert np.allclose(counted.nodes[-1], pdf.nodes, rtol=0.03)
    for k in range(2):
        theory = np.interp(counted.centres[2], pdf.x, pdf.pdf[2, k])
        clear = counted.error[2, k] > 0
        pulls = (counted.pdf[2, k] - theory)[clear] / counted.error[2, k][clear]
        assert np.sqrt(np.mean(pulls**2)) < 2  # the curve inside a bin bends a little
    _, runs = snapshots("uniform", 1000, 4)
    counted = ino.empirical_density(runs, groups=5)
    assert counted.pdf.shape == (3, 5, 60)
    assert np.all(np.diff(counted.nodes, axis=1) > 0)
    assert np.allclose(counted.counts, 800, atol=2)
    mean = np.sum(counted.pdf * np.diff(counted.edges)[:, None, :], axis=2)
    assert np.allclose(mean, 1)


def test_one_trial_has_binomial_errors_and_rescaled_entries_the_norm_one():
    _, runs = snapshots("uniform", 1000, 1)
    counted = ino.empirical_density(runs, bins=10, rescaled=True)
    width = np.diff(counted.edges)[:, None, :]
    share = counted.pdf * width
    assert np.allclose(counted.error * width, np.sqrt(share * (1 - share) / 1000))
    second = np.sum(share * counted.centres[:, None, :] ** 2, axis=2)
    assert np.allclose(second, 1, atol=0.1)


def test_what_cannot_be_counted_is_refused():
    study, runs = snapshots("uniform", 200, 2)
    with pytest.raises(ValueError, match="no snapshots"):
        ino.empirical_density(ino.simulate(study, key=jr.key(0), trials=2))
    with pytest.raises(ValueError, match="bins = 0"):
        ino.empirical_density(runs, bins=0)
    with pytest.raises(ValueError, match="bins"):
        ino.empirical_density(runs, bins=[1.0, 0.0])
    with pytest.raises(ValueError, match=r"groups = 4 .* Pass atoms"):
        ino.empirical_density(snapshots("sparse", 200, 2)[1], groups=4)
    with pytest.raises(ValueError, match="cannot both be"):
        ino.empirical_density(runs, groups=2, atoms=[0.0])
    broken = eqx.tree_at(lambda r: r.q, runs, runs.q.at[0, 1].set(jnp.nan))
    with pytest.warns(UserWarning, match="1 of 2 trials"):
        assert np.all(ino.empirical_density(broken).counts == 200)
    with pytest.raises(ValueError, match="no finite trial"):
        ino.empirical_density(eqx.tree_at(lambda r: r.q, runs, runs.q * jnp.nan))


def test_panels_show_the_numbers():
    study, runs = snapshots("sparse", 500, 4)
    pdf = ino.density(study, solver=ino.FokkerPlanck(cells=100))
    counted = ino.empirical_density(runs, bins=20, atoms=pdf.nodes)
    given = [float(node) for node in pdf.nodes]
    figure = plot.density(pdf, counted, times=[1.0, 4.0], given=given, rescaled=False)
    assert len(figure.axes) == 4
    for i, k in ((0, 0), (1, 0), (0, 1), (1, 1)):
        (line,) = [c for c in figure.axes[2 * k + i].lines if c.get_label() == "theory"]
        assert np.allclose(line.get_ydata(), pdf.pdf[i + 1, k])
        stairs = figure.axes[2 * k + i].patches[0].get_data()
        assert np.allclose(stairs.values, counted.pdf[i + 1, k])
        assert np.allclose(stairs.edges, counted.edges[i + 1])
    plt.close(figure)
    with pytest.raises(ValueError, match="rescaled = True is not allowed"):
        plot.density(pdf, counted, rescaled=True)
    counted = ino.empirical_density(runs, bins=20, atoms=pdf.nodes, rescaled=True)
    figure = plot.density(pdf, counted)
    assert [ax.get_title() for ax in figure.axes] == ["$t = 0$", "$t = 1$", "$t = 4$"]
    (line,) = [c for c in figure.axes[1].lines if c.get_label() == "theory"]
    assert np.allclose(line.get_ydata(), pdf.rescaled().marginal()[1])
    whole = ino.empirical_density(runs, bins=20, rescaled=True)
    assert np.allclose(whole.pdf[:, 0], whole.marginal)
    assert np.allclose(figure.axes[1].patches[0].get_data().values, whole.marginal[1])
    plt.close(figure)
    narrow = ino.empirical_density(runs, groups=[3.0, 6.0])
    with pytest.raises(ValueError, match="none of the histogram's groups"):
        plot.density(pdf, narrow, given=[0.0])
    with pytest.raises(ValueError, match="empirical has no time"):
        plot.density(pdf, eqx.tree_at(lambda h: h.ts, narrow, narrow.ts + 1))
    plt.close("all")
