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
# What does a new algorithm need, and what does it get?
#
# A rule maps a few scalars of a sample to two numbers, a gain and a decay:
#
# $$x' = (1 - \text{decay}/p)\, x + (\text{gain}/p)\, (y \cdot x)\, y.$$
#
# The exact chain, the mean field, its error bars, the steady state, the transition and
# the tuning follow from these two numbers.

# %%
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import inopca_jax as ino
from inopca_jax import data, plot

# %% [markdown]
# ## A rule that limits the weight of a sample
#
# INO-PCA has the gain $\tau/\lambda$ for every sample. This rule has a smaller gain for
# samples with a large component along the estimate: `observables.s2` is $(y\cdot
# x)^2/|x|^2$.


# %%
class Clipped(ino.AbstractRule):
    """INO-PCA with less weight for samples that have a large component along `x`."""

    tau: ino.AbstractSchedule
    scale: float = 4.0
    projects = False

    def rates(self, observables, tau):
        weight = self.scale / (self.scale + observables.s2)
        return ino.Rates(gain=weight * tau / observables.lam, decay=tau)


ts = np.linspace(0, 30, 61)
model, start = ino.SpikedModel(p=5_000), ino.WarmStart(0.1)
clipped = ino.Config(Clipped(0.5), model, start, ts)
plain = ino.Config(ino.InoPCA(0.5), model, start, ts)
curves = [
    plot.Curve(
        name, ino.fluctuations(config), ino.simulate(config, key=jr.key(0), trials=20)
    )
    for name, config in {"clipped": clipped, "INO-PCA": plain}.items()
]
figure = plot.learning_curves(curves, omega=1.0)

# %% [markdown]
# Its steady state and its transition have no closed form, so they are computed as roots
# of the mean field. The rates depend on the sample, so means over samples are computed by
# quadrature.

# %%
for name, config in {"clipped": clipped, "INO-PCA": plain}.items():
    q, lam = ino.steady_state(config)
    omega_c = ino.critical_snr(config.rule)
    print(f"{name}: q = {q:.4f}, lam = {lam:.4f}; q > 0 if omega > {omega_c:.4f}")

# %% [markdown]
# ## A schedule of your own
#
# A schedule supplies the $\tau$ of a rule. This one depends on time alone, so it derives
# from `AbstractStatelessSchedule` and has one method. A schedule whose rate follows the
# samples derives from `AbstractSchedule`; it also says how its state begins (`init`) and
# how a sample changes it (`drift`).


# %%
class Cooling(ino.AbstractStatelessSchedule):
    """A rate that falls exponentially from `first` to `last`."""

    first: float
    last: float
    decay: float

    def tau(self, observables, state, hidden):
        fraction = jnp.exp(-self.decay * observables.t)
        return self.last + (self.first - self.last) * fraction


cooled = ino.Config(ino.Oja(Cooling(0.8, 0.1, 0.15)), model, start, ts)
runs = ino.simulate(cooled, key=jr.key(1), trials=20)
curves = [
    plot.Curve("Oja, cooling", ino.mean_field(cooled), runs),
    plot.Curve("Oja, 0.5", ino.mean_field(ino.Config(ino.Oja(0.5), model, start, ts))),
]
figure = plot.learning_curves(curves, quantities=["q"], omega=1.0)

# %% [markdown]
# ## What a rule may read
#
# `Observables` has the scalars that an algorithm knows on real data: the norm, $S^2$, the
# length of the sample, the time and the dimension. The overlap is not among them. It is
# in `Hidden`, which a schedule is given, too; a schedule that reads it is an oracle.

# %%
print(list(ino.Observables.__dataclass_fields__))
print(list(ino.Hidden.__dataclass_fields__))

# %% [markdown]
# ## The same rule on data
#
# The same rule estimates several components of a stream: each component is updated with
# the residual of a sample, from which the components before it are subtracted.

# %%
stream = data.Drift([9.0, 6.0, 4.0], p=200, seed=1)
samples = np.concatenate(list(stream.samples(4_000)))
for name, rule in {"clipped": Clipped(2.0), "INO-PCA": ino.InoPCA(2.0)}.items():
    state = ino.stream_pca(rule, samples, 3)
    print(name, ino.grassmann_distance(state.components, stream.basis(4_000)))

# %% [markdown]
# ## Answer
#
# One method with two numbers was enough. In return the rule has a simulation, a theory
# with error bars, a steady state, a transition, and an estimator of components of data.
