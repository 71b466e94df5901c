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

from .cases import config, sparing

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


def pulls(counted, pdf, i, group, cdf):
    """How many standard errors the bins are off the density's integrals over them."""
    edges = np.asarray(pdf.x) + float(pdf.width) / 2
    exact = np.diff(np.interp(counted.edges[i], edges, cdf)) / np.diff(counted.edges[i])
    found = counted.pdf[i, group] if group is not None else counted.marginal[i]
    error = counted.error[i, group] if group is not None else counted.marginal_error[i]
    seen = error > 0
    return (found - exact)[seen] / error[seen]


@pytest.mark.slow
@pytest.mark.parametrize("name", sparing(["sparse", "exponential"]))
def test_snapshots_of_the_chain_have_the_density(name):
    study, runs = snapshots(name, 10_000, 24, q0=-0.3)
    pdf = ino.density(study, solver=ino.FokkerPlanck(cells=800, nodes=16))
    # Kolmogorov's law has the mean .87; the norm is given, which takes a little away,
    # and the overlap's own fluctuation adds to it.
    far = kolmogorov(runs, pdf)
    assert np.all(far < 2.2)
    assert np.all((far.mean(axis=1) > 0.5) & (far.mean(axis=1) < 1.2))
    atoms = pdf.nodes if name == "sparse" else None
    counted = ino.empirical_density(runs, bins=np.linspace(-2, 2, 17), atoms=atoms)
    for i in range(3):
        off = pulls(counted, pdf, i, None, np.asarray(pdf.cdf())[i])
        assert np.abs(off).max() < 5
        assert 0.3 < np.mean(off**2) < 2.5
        for k in range(2 if name == "sparse" else 0):
            cdf = np.cumsum(np.asarray(pdf.pdf)[i, k]) * float(pdf.width)
            assert np.mean(pulls(counted, pdf, i, k, cdf) ** 2) < 2.5
    assert np.all(counted.counts.sum(axis=1) == 24 * 10_000)


@pytest.mark.slow
def test_snapshots_of_the_stream_have_the_density():
    stream = ino.Stream(snapshots=True)
    study, runs = snapshots("uniform", 2_000, 8, stream, ts=(0.0, 1.0))
    far = kolmogorov(runs, ino.density(study, solver=ino.FokkerPlanck(cells=800, nodes=16)))
    assert np.all(far < 2.2)
    assert np.all((far.mean(axis=1) > 0.45) & (far.mean(axis=1) < 1.3))


def made_up(trials, p=1000, law="uniform"):
    """Entries around .5 xi, without a simulation."""
    rng = np.random.default_rng(trials)
    shape = (trials, 2, p)
    sparse = np.where(rng.random(shape) < 0.05, 20**0.5, 0.0)
    xi = rng.uniform(-(3**0.5), 3**0.5, shape) if law == "uniform" else sparse
    x = 0.5 * xi + 0.75**0.5 * rng.normal(size=shape)
    lam = np.sqrt(np.mean(x**2, axis=2))
    q = np.mean(x * xi, axis=2) / lam
    return ino.Snapshots(np.array([1.0, 4.0]), *map(jnp.asarray, (q, lam, x, xi)))


def test_groups_condition_on_the_spike():
    counted = ino.empirical_density(made_up(4), groups=5)
    assert counted.pdf.shape == (2, 5, 60)
    assert np.all(np.diff(counted.nodes, axis=1) > 0)
    assert np.all(counted.counts.sum(axis=1) == 4 * 1000)
    mass = np.sum(counted.pdf * np.diff(counted.edges)[:, None, :], axis=2)
    assert np.allclose(mass, 1)
    means = np.sum(counted.pdf * counted.centres[:, None, :], axis=2)
    means = means * np.diff(counted.edges)[:, :1]
    assert np.abs(means - 0.5 * counted.nodes).max() < 0.1


def test_one_trial_has_binomial_errors_and_rescaled_entries_the_norm_one():
    runs = made_up(1)
    counted = ino.empirical_density(runs, bins=10, rescaled=True)
    width = np.diff(counted.edges)[:, None, :]
    share = counted.pdf * width
    assert np.allclose(counted.error * width, np.sqrt(share * (1 - share) / 1000))
    second = np.sum(share * counted.centres[:, None, :] ** 2, axis=2)
    assert np.allclose(second, 1, atol=0.1)


def test_what_cannot_be_counted_is_refused():
    runs = made_up(2)
    with pytest.raises(ValueError, match="no snapshots"):
        ino.empirical_density(ino.Trajectory(runs.ts, runs.q, runs.lam))
    with pytest.raises(ValueError, match="bins = 0"):
        ino.empirical_density(runs, bins=0)
    with pytest.raises(ValueError, match="bins"):
        ino.empirical_density(runs, bins=[1.0, 0.0])
    with pytest.raises(ValueError, match=r"groups = 4 .* Pass atoms"):
        ino.empirical_density(made_up(2, law="sparse"), groups=4)
    with pytest.raises(ValueError, match="cannot both be"):
        ino.empirical_density(runs, groups=2, atoms=[0.0])
    broken = eqx.tree_at(lambda r: r.q, runs, runs.q.at[0, 1].set(jnp.nan))
    with pytest.warns(UserWarning, match="1 of 2 trials"):
        assert np.all(ino.empirical_density(broken).counts == 1000)
    with pytest.raises(ValueError, match="no finite trial"):
        ino.empirical_density(eqx.tree_at(lambda r: r.q, runs, runs.q * jnp.nan))


def test_panels_show_the_numbers():
    runs, study = made_up(4, law="sparse"), config(spike=ino.Sparse(), ts=[0.0, 1.0, 4.0])
    pdf = ino.density(study, solver=ino.ClosedForm(cells=100))
    counted = ino.empirical_density(runs, bins=20, atoms=pdf.nodes)
    given = [float(node) for node in pdf.nodes]
    figure = plot.density(pdf, counted, times=[1.0, 4.0], given=given, rescaled=False)
    assert len(figure.axes) == 4
    for i, k in ((0, 0), (1, 0), (0, 1), (1, 1)):
        (line,) = [c for c in figure.axes[2 * k + i].lines if c.get_label() == "theory"]
        assert np.allclose(line.get_ydata(), pdf.pdf[i + 1, k])
        stairs = figure.axes[2 * k + i].patches[0].get_data()
        assert np.allclose(stairs.values, counted.pdf[i, k])
        assert np.allclose(stairs.edges, counted.edges[i])
    plt.close(figure)
    with pytest.raises(ValueError, match="rescaled = True is not allowed"):
        plot.density(pdf, counted, rescaled=True)
    counted = ino.empirical_density(runs, bins=20, atoms=pdf.nodes, rescaled=True)
    figure = plot.density(pdf, counted, times=[1.0, 4.0])
    assert [ax.get_title() for ax in figure.axes] == ["$t = 1$", "$t = 4$"]
    (line,) = [c for c in figure.axes[0].lines if c.get_label() == "theory"]
    assert np.allclose(line.get_ydata(), pdf.rescaled().marginal()[1])
    whole = ino.empirical_density(runs, bins=20, rescaled=True)
    assert np.allclose(whole.pdf[:, 0], whole.marginal)
    assert np.allclose(figure.axes[1].patches[0].get_data().values, whole.marginal[1])
    plt.close(figure)
    narrow = ino.empirical_density(runs, groups=[3.0, 6.0])
    with pytest.raises(ValueError, match="none of the histogram's groups"):
        plot.density(pdf, narrow, times=[1.0], given=[0.0])
    with pytest.raises(ValueError, match="empirical has no time"):
        plot.density(pdf, eqx.tree_at(lambda h: h.ts, narrow, narrow.ts + 1))
    plt.close("all")
