"""Starts of any law: their moments, their samples, their simulations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import stats

import inopca_jax as ino

from .cases import assert_same_law, config, sparing


class Triangle(ino.AbstractDensityStart):
    """A user's own: triangular on [0, 2], tilted towards the spike."""

    tilt: float = 0.25

    def pdf(self, x, xi):
        z = x - self.tilt * xi
        return jnp.where((z >= 0) & (z <= 2), 1 - jnp.abs(z - 1), 0)

    def support(self, xi):
        return self.tilt * xi, self.tilt * xi + 2


@pytest.mark.usefixtures("x64")
def test_the_moments_are_those_asked_for():
    for spike in (ino.Uniform(), ino.ShiftedExponential(), ino.Sparse()):
        for start in (ino.TwoBumps(-0.3, 1.7, 0.6), ino.Box(-0.3, 1.7)):
            q0, lam0 = start.moments(spike)
            assert np.isclose(q0, -0.3, atol=1e-9)
            assert np.isclose(lam0, 1.7, rtol=1e-9)
        # x = .25 xi + z with E z = 1, E z^2 = 7/6.
        mean, lam2 = float(spike.mean()), 0.0625 + 7 / 6 + 0.5 * float(spike.mean())
        q0, lam0 = Triangle().moments(spike)
        assert np.isclose(lam0**2, lam2, rtol=1e-3)
        assert np.isclose(q0 * lam0, 0.25 + mean, rtol=1e-3)


@pytest.mark.parametrize("start", [ino.TwoBumps(0.4, 2.0), ino.Box(0.4, 2.0), Triangle()])
def test_samples_have_the_density(start):
    xi = jnp.asarray(np.repeat([-1.2, 0.7], 3000), dtype=jnp.float32)
    x = np.asarray(start.sample(jr.key(1), xi))
    for value in (-1.2, 0.7):
        low, high = map(float, start.support(jnp.float32(value)))
        at = jnp.linspace(low, high, 4001)
        pdf = np.asarray(jax.vmap(start.pdf, (0, None))(at, jnp.float32(value)), float)
        cdf = np.cumsum(pdf) / np.sum(pdf)
        mine = x[np.isclose(xi, value)]
        law = stats.kstest(mine, lambda v, a=at, c=cdf: np.interp(v, a, c))
        assert law.pvalue > 1e-3
        assert low <= mine.min()
        assert mine.max() <= high


@pytest.mark.parametrize("changes", sparing([(), ((1.0,),)]))
def test_the_chain_and_the_stream_have_the_same_law_from_any_start(changes):
    # A start with a mean remembers it across a change, if the spikes have one too.
    spikes = [ino.ShiftedExponential(), ino.Sparse(0.4)][: len(changes) + 1]
    models = [ino.SpikedModel(p=60, omega=2.0, spike=spike) for spike in spikes]
    model = ino.Switching(models, changes) if changes else models[0]
    study = ino.Config(model=model, start=Triangle(), ts=[0.0, 1.0, 3.0])
    chain = ino.simulate(study, key=jr.key(0), trials=3000)
    stream = ino.simulate(study, key=jr.key(1), trials=1000, engine=ino.Stream())
    assert_same_law(
        eqx.tree_at(lambda r: (r.q, r.lam), chain, (chain.q[:, 1:], chain.lam[:, 1:])),
        eqx.tree_at(lambda r: (r.q, r.lam), stream, (stream.q[:, 1:], stream.lam[:, 1:])),
    )
    assert np.allclose(chain.lam[:, 0], stream.lam[0, 0], rtol=1e-5)


def test_the_mean_field_starts_where_the_start_does():
    study = config(start=ino.Box(0.3, 1.2), p=2000, ts=[0, 2, 6])
    same = config(start=ino.WarmStart(0.3, 1.2), p=2000, ts=[0, 2, 6])
    assert np.allclose(ino.mean_field(study).q, ino.mean_field(same).q, atol=1e-6)


def test_a_density_that_is_none_is_refused():
    class Twice(Triangle):
        def pdf(self, x, xi):
            return 2 * Triangle.pdf(self, x, xi)

    class Negative(Triangle):
        def pdf(self, x, xi):
            z = x - self.tilt * xi - 1
            return jnp.where(jnp.abs(z) <= 1, 3 * z**2 - 0.5, 0)

    with pytest.raises(ValueError, match=r"the integral of Twice.pdf .* must be one"):
        config(start=Twice())
    with pytest.raises(ValueError, match=r"the least value of Negative.pdf"):
        config(start=Negative())
    for kind in (ino.TwoBumps, ino.Box):
        with pytest.raises(ValueError, match=r"q0 = 1.0 is not allowed"):
            kind(1.0)
        with pytest.raises(ValueError, match=r"lam0 = 0.0 is not allowed"):
            kind(0.1, 0.0)
    with pytest.raises(ValueError, match="separation"):
        ino.TwoBumps(separation=1.0)
