# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # Write your own rule
#
# A rule looks at a few scalars of a sample and says two numbers, a gain and a decay:
#
# $$x' = (1 - \text{decay}/p)\, x + (\text{gain}/p)\, (y \cdot x)\, y.$$
#
# That is all. The exact chain, the mean field, its error bars, the steady state, the
# transition and the tuning follow from it.

# %%
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import inopca_jax as ino
from inopca_jax import data, plot

# %% [markdown]
# ## A rule that distrusts outliers
#
# INO-PCA pulls with $\tau/\lambda$ towards every sample. This one pulls less the further a
# sample lies out along the estimate, `sample.s2` being $(y\cdot x)^2/|x|^2$.


# %%
class Clipped(ino.AbstractRule):
    """INO-PCA that trusts no single sample more than `most`."""

    tau: ino.AbstractSchedule
    most: float = 4.0
    projects = False

    def rates(self, sample, tau):
        trust = self.most / (self.most + sample.s2)
        return ino.Rates(gain=trust * tau / sample.lam, decay=tau)


ts = np.linspace(0, 30, 61)
model, start = ino.SpikedModel(p=5_000), ino.WarmStart(0.1)
clipped = ino.Config(Clipped(ino.Constant(0.5)), model, start, ts)
plain = ino.Config(ino.InoPCA(0.5), model, start, ts)
curves = [
    plot.Curve(
        name, ino.fluctuations(config), ino.simulate(config, key=jr.key(0), trials=20)
    )
    for name, config in {"clipped": clipped, "INO-PCA": plain}.items()
]
figure = plot.learning_curves(curves, omega=1.0)

# %% [markdown]
# Its steady state has no closed form, so it is found as a root of the mean field; so is the
# transition. The expectation over a sample is taken by quadrature, since the rates depend
# on it.

# %%
for name, config in {"clipped": clipped, "INO-PCA": plain}.items():
    q, lam = ino.steady_state(config)
    from_omega = ino.critical_snr(config.rule)
    print(f"{name}: q = {q:.4f}, lam = {lam:.4f}; learns from omega = {from_omega:.4f} on")

# %% [markdown]
# ## A schedule of your own
#
# A schedule supplies the rule's $\tau$. It may have a memory, which drifts as samples come;
# this one has none, and cools down.


# %%
class Cooling(ino.AbstractSchedule):
    """From `first` down to `last`, at a pace."""

    first: float
    last: float
    pace: float

    def init(self, p):
        return ()

    def drift(self, sample, memory):
        return ()

    def tau(self, sample, memory, hidden):
        fall = jnp.exp(-self.pace * sample.t)
        return self.last + (self.first - self.last) * fall


cooled = ino.Config(ino.Oja(Cooling(0.8, 0.1, 0.15)), model, start, ts)
runs = ino.simulate(cooled, key=jr.key(1), trials=20)
curves = [
    plot.Curve("Oja, cooling", ino.mean_field(cooled), runs),
    plot.Curve("Oja, 0.5", ino.mean_field(ino.Config(ino.Oja(0.5), model, start, ts))),
]
figure = plot.learning_curves(curves, quantities=["q"], omega=1.0)

# %% [markdown]
# ## What a rule may see
#
# `Sample` has the scalars that an algorithm knows: the norm, $S^2$, the length of the
# sample, the time. The overlap is not among them. A schedule is given `hidden`, which has
# it, and only an oracle should look.

# %%
print(list(ino.Sample.__dataclass_fields__))
print(list(ino.Hidden.__dataclass_fields__))

# %% [markdown]
# ## The same rule on data
#
# Several components of a stream are the same update, deflated; so the rule serves there,
# too.

# %%
stream = data.Drift([9.0, 6.0, 4.0], p=200, seed=1)
samples = np.concatenate(list(stream.samples(4_000)))
for name, rule in {"clipped": Clipped(ino.Constant(2.0)), "INO": ino.InoPCA(2.0)}.items():
    state = ino.stream_pca(rule, samples, 3)
    print(name, ino.grassmann_distance(state.components, stream.basis(4_000)))
