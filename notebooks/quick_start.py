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
# # Quick start
#
# How well does an online algorithm estimate a direction in high-dimensional data, and does
# theory predict it?
#
# Samples $y_k = \sqrt{\omega/p}\, c_k\, \xi + a_k$ in $p$ dimensions have more variance
# in the direction $\xi$ than in all others. An online algorithm estimates this direction
# from one sample at a time. Two numbers describe its estimate $x$: the overlap $q$, which
# is the cosine of the angle between $x$ and $\xi$, and the norm $\lambda = |x|/\sqrt p$.
# The time after $k$ samples is $t = k/p$.

# %%
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import inopca_jax as ino
from inopca_jax import plot

# %% [markdown]
# A config holds the algorithm, the model of the data, the start and the times of
# observation.

# %%
config = ino.Config(
    rule=ino.InoPCA(tau=0.5),
    model=ino.SpikedModel(p=10_000, omega=1.0),
    start=ino.WarmStart(q0=0.1, lam0=1.0),
    ts=np.linspace(0, 30, 61),
)

# %% [markdown]
# `simulate` runs trials of it. A step does not need $p$ numbers: $(q, \lambda)$ is a
# Markov chain, which three random numbers per step simulate exactly. `mean_field` returns
# the limit as $p$ grows. `fluctuations` returns the same limit with the standard
# deviations of runs at this $p$.

# %%
runs = ino.simulate(config, key=jr.key(0), trials=20)
theory = ino.fluctuations(config)
figure = plot.learning_curves([plot.Curve("INO-PCA", theory, runs)], omega=1.0)

# %% [markdown]
# The dashed line is the overlap of PCA on all samples until then, a bound for online
# algorithms. The steady state has a closed form.

# %%
q_s, lam_s = ino.steady_state(config)
print(f"q = {q_s:.4f} (runs: {runs.mean().q[-1]:.4f}), lam = {lam_s:.4f}")
print(f"the steady overlap is 0 below omega = {ino.critical_snr(config.rule):.4f}")

# %% [markdown]
# Another algorithm is another rule; all else stays the same.

# %%
rules = {
    "INO-PCA": ino.InoPCA(0.5),
    "Oja, same rate": ino.Oja(0.5),
    "Oja, same end": ino.Oja(0.25),
    "oracle": ino.AdaptiveInoPCA(),
}
curves = []
for name, rule in rules.items():
    other = ino.Config(rule, config.model, config.start, config.ts)
    curves.append(plot.Curve(name, runs=ino.simulate(other, key=jr.key(1), trials=20)))
figure = plot.learning_curves(curves, quantities=["q"], omega=1.0)

# %% [markdown]
# ## Trials inside of JAX
#
# `simulate` runs a loop on the host. `simulate_trial` is one trial as a pure function: it
# can be jitted, vmapped over keys and configs, and differentiated in forward mode. Here
# are the overlaps of 64 configs with one trial each, and the derivative of the overlap
# with respect to the learning rate, averaged over 64 trials, beside that of the theory.


# %%
def last_overlap(tau, omega, key):
    model, start = ino.SpikedModel(p=1_000, omega=omega), ino.WarmStart(0.3)
    trial_config = ino.Config(ino.InoPCA(tau), model, start, ts=np.array([0.0, 10.0]))
    return ino.simulate_trial(trial_config, key=key).q[-1]


def last_mean(tau):
    ts = np.array([0.0, 10.0])
    return ino.mean_field(ino.Config(ino.InoPCA(tau), start=ino.WarmStart(0.3), ts=ts)).q[
        -1
    ]


keys, omegas = jr.split(jr.key(2), 64), jnp.linspace(0.5, 3.0, 64)
over_configs = jax.jit(jax.vmap(last_overlap, in_axes=(None, 0, 0)))(0.5, omegas, keys)
print("overlaps at omega = 0.5 and 3:", over_configs[0], over_configs[-1])
slopes = jax.vmap(jax.jacfwd(last_overlap), in_axes=(None, None, 0))(0.5, 1.0, keys)
slope = jax.grad(last_mean)(0.5)
print(f"dq/dtau: {slopes.mean():.4f} +- {slopes.std() / 8:.4f}, mean field {slope:.4f}")

# %% [markdown]
# ## Answer
#
# The overlap rises to a value below 1 that the rate decides, and the theory predicts
# the mean and the scatter of runs. At the same rate INO-PCA ends higher than Oja's
# method, because its norm lowers its gain; Oja's method with half of the rate ends at
# the same overlap and rises later. The oracle shows what the best gain would reach.
