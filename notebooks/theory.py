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
# # Theory against simulation
#
# How good is each theory, and where does it end?
#
# This notebook compares simulations with theory: the p-dimensional algorithm, its exact
# chain, the mean field, predicted fluctuations, densities and cold starts. All take the
# same config.

# %%
import jax
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np

import inopca_jax as ino
from inopca_jax import plot

# %% [markdown]
# ## The algorithm and its chain
#
# `Stream` updates vectors of $p$ numbers. `Chain` updates two numbers and has the same
# law at every $p$, not only in the limit. So their means agree up to the statistical
# error of the trials, also at $p = 200$, where the limit differs visibly.

# %%
small = ino.Config(
    model=ino.SpikedModel(p=200), start=ino.WarmStart(0.3), ts=np.linspace(0, 10, 11)
)
streams = ino.simulate(small, key=jr.key(0), trials=500, engine=ino.Stream())
chains = ino.simulate(small, key=jr.key(1), trials=5_000)
error = np.hypot(streams.std().q / 500**0.5, chains.std().q / 5_000**0.5)
difference = np.asarray(streams.mean().q - chains.mean().q, float)
print("difference in standard errors:", np.round(difference / np.asarray(error, float), 1))

# %%
limit = ino.mean_field(small)
print("limit minus chain:", np.round(limit.q - chains.mean().q, 3))

# %% [markdown]
# ## How fast the limit is reached
#
# The mean over runs differs from the limit by $O(1/p)$, and single runs scatter by
# $O(1/\sqrt p)$. `fluctuations` predicts both.

# %%
ps = [100, 400, 1_600]
rows = []
for p in ps:
    config = ino.Config(model=ino.SpikedModel(p=p), start=small.start, ts=np.array([4.0]))
    runs = ino.simulate(config, key=jr.key(2), trials=20_000)
    theory = ino.fluctuations(config)
    shift, std = runs.mean().q[0] - theory.q[0], runs.std().q[0]
    rows.append([shift, theory.q_shift[0], std, theory.q_std[0]])
shift, predicted_shift, std, predicted_std = np.abs(np.array(rows)).T
with plot.style():
    figure, ax = plt.subplots(figsize=(4.2, 3))
    ax.loglog(ps, shift, "o", color=plot.COLOURS[0], label="mean minus limit")
    ax.loglog(ps, predicted_shift, color=plot.COLOURS[0], label="predicted")
    ax.loglog(ps, std, "s", color=plot.COLOURS[1], label="standard deviation")
    ax.loglog(ps, predicted_std, color=plot.COLOURS[1], label="predicted")
    ax.set(xlabel="$p$", ylabel="overlap at $t = 4$")
    ax.legend()

# %% [markdown]
# ## The law of the entries
#
# The theory also describes the estimate's entries: their density given the spike's entry.
# `density` solves the Fokker-Planck equation for it. With `snapshots=True` the chain
# draws the whole vector at the times of observation.

# %%
sparse = ino.Config(
    model=ino.SpikedModel(p=10_000, spike=ino.Sparse()),
    start=ino.WarmStart(0.1),
    ts=np.array([2.0, 8.0, 20.0]),
)
pdf = ino.density(sparse)
snapshots = ino.simulate(sparse, key=jr.key(3), trials=10, engine=ino.Chain(snapshots=True))
histogram = ino.empirical_density(snapshots, atoms=pdf.nodes, rescaled=True)
figure = plot.density(pdf, histogram, given=[0.0, 20**0.5])

# %% [markdown]
# ## Cold starts
#
# A cold start has an overlap of order $1/\sqrt p$, and the limit stays at $q = 0$ for
# ever. At finite $p$ chance decides when a run leaves it. `overlap_law` returns the law
# of $q$, and `Diffusion` simulates it in steps whose length does not depend on $p$.

# %%
cold = ino.Config(
    model=ino.SpikedModel(p=10**8), start=ino.ColdStart(), ts=np.linspace(0, 80, 81)
)
law = ino.overlap_law(cold).abs()
cold_runs = ino.simulate(cold, key=jr.key(4), trials=400, engine=ino.Diffusion()).abs()
figure = plot.learning_curves([plot.Curve("p = 1e8", law, cold_runs)], quantities=["q"])

# %% [markdown]
# ## Many configs
#
# The numbers of a config are array leaves, so the theory of many configs is a `vmap`:


# %%
def last_overlap(omega):
    model = ino.SpikedModel(p=10_000, omega=omega)
    return ino.mean_field(ino.Config(model=model, ts=np.array([0.0, 30.0]))).q[-1]


print(jax.vmap(last_overlap)(np.linspace(0.2, 2.0, 7)))

# %% [markdown]
# ## Answer
#
# The chain has the law of the algorithm at every $p$. The mean field is its limit, with
# an error of $O(1/p)$ in the mean, and `fluctuations` predicts the scatter. Both
# describe runs that start with an overlap. From a cold start chance decides, and
# `overlap_law` is the theory to use; the entries of the estimate have the law that
# `density` computes.
