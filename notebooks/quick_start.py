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
# A stream of samples $y_k = \sqrt{\omega/p}\, c_k\, \xi + a_k$ in $p$ dimensions has one
# direction $\xi$ with more variance than the others, and an online algorithm looks for it,
# a sample at a time. Two numbers say how it fares: the overlap $q$ of its estimate $x$ with
# the truth, and the norm $\lambda = |x|/\sqrt p$. Time is $t = k/p$.

# %%
import jax.random as jr
import numpy as np

import inopca_jax as ino
from inopca_jax import plot

# %% [markdown]
# One config says everything: the algorithm, the data, the start, the times to look at.

# %%
config = ino.Config(
    rule=ino.InoPCA(tau=0.5),
    model=ino.SpikedModel(p=10_000, omega=1.0),
    start=ino.WarmStart(q0=0.1, lam0=1.0),
    ts=np.linspace(0, 30, 61),
)

# %% [markdown]
# `simulate` runs trials of it. It does not touch $p$ numbers a step: $(q, \lambda)$ is a
# Markov chain by itself, and three random numbers a step have the same law as the whole
# sample. `mean_field` has the limit of large $p$, and `fluctuations` how runs scatter about
# it at this $p$.

# %%
runs = ino.simulate(config, key=jr.key(0), trials=20)
limit = ino.fluctuations(config)
figure = plot.learning_curves([plot.Curve("INO-PCA", limit, runs)], omega=1.0)

# %% [markdown]
# The dashed line is what PCA on all samples so far could reach: no online algorithm gets
# above it. Where the curves end is known in closed form.

# %%
q_s, lam_s = ino.steady_state(config)
print(f"q = {q_s:.4f} (runs: {runs.mean().q[-1]:.4f}), lam = {lam_s:.4f}")
print(f"nothing is learned below omega = {ino.critical_snr(config.rule):.4f}")

# %% [markdown]
# Another algorithm is another rule. Everything else stays as it is.

# %%
rivals = {
    "INO-PCA": ino.InoPCA(0.5),
    "Oja, same rate": ino.Oja(0.5),
    "Oja, same end": ino.Oja(0.25),
    "oracle": ino.AdaptiveInoPCA(),
}
curves = []
for name, rule in rivals.items():
    study = ino.Config(rule, config.model, config.start, config.ts)
    trials = ino.simulate(study, key=jr.key(1), trials=20)
    curves.append(plot.Curve(name, runs=trials))
figure = plot.learning_curves(curves, quantities=["q"], omega=1.0)
