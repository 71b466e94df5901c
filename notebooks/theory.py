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
# Five ways to the same curves, from the algorithm itself to its limit, and how far apart
# they are. All take the same config.

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
# `Stream` runs the update on vectors of $p$ numbers. `Chain` keeps two numbers and has the
# same law, at every $p$ and not only in the limit: so their means agree within the error
# that so many trials have, also at $p = 200$, where the limit is visibly something else.

# %%
small = ino.Config(
    model=ino.SpikedModel(p=200), start=ino.WarmStart(0.3), ts=np.linspace(0, 10, 11)
)
streams = ino.simulate(small, key=jr.key(0), trials=500, engine=ino.Stream())
chains = ino.simulate(small, key=jr.key(1), trials=5_000)
error = np.hypot(streams.std().q / 500**0.5, chains.std().q / 5_000**0.5)
apart = np.asarray(streams.mean().q - chains.mean().q, float)
print("standard errors apart:", np.round(apart / np.asarray(error, float), 1))

# %%
limit = ino.mean_field(small)
print("limit less chain:", np.round(limit.q - chains.mean().q, 3))

# %% [markdown]
# ## How fast the limit is reached
#
# The mean approaches the limit as $1/p$, the scatter of single runs as $1/\sqrt p$, and
# `fluctuations` predicts both.

# %%
ps = [100, 400, 1_600]
rows = []
for p in ps:
    study = ino.Config(model=ino.SpikedModel(p=p), start=small.start, ts=np.array([4.0]))
    trials = ino.simulate(study, key=jr.key(2), trials=20_000)
    theory = ino.fluctuations(study)
    gap, spread = trials.mean().q[0] - theory.q[0], trials.std().q[0]
    rows.append([gap, theory.q_shift[0], spread, theory.q_std[0]])
gap, shift, spread, std = np.abs(np.array(rows)).T
with plot.style():
    figure, ax = plt.subplots(figsize=(4.2, 3))
    ax.loglog(ps, gap, "o", color=plot.COLOURS[0], label="gap of the mean")
    ax.loglog(ps, shift, color=plot.COLOURS[0], label="predicted")
    ax.loglog(ps, spread, "s", color=plot.COLOURS[1], label="scatter of runs")
    ax.loglog(ps, std, color=plot.COLOURS[1], label="predicted")
    ax.set(xlabel="$p$", ylabel="overlap at $t = 4$")
    ax.legend()

# %% [markdown]
# ## The law of the entries
#
# The limit says more than two numbers: it has the density of the estimate's entries, given
# the spike's. `density` solves the Fokker-Planck equation, and the chain draws the whole
# vector at the times that are looked at.

# %%
sparse = ino.Config(
    model=ino.SpikedModel(p=10_000, spike=ino.Sparse()),
    start=ino.WarmStart(0.1),
    ts=np.array([2.0, 8.0, 20.0]),
)
pdf = ino.density(sparse)
shots = ino.simulate(sparse, key=jr.key(3), trials=10, engine=ino.Chain(snapshots=True))
seen = ino.empirical_density(shots, atoms=pdf.nodes, rescaled=True)
figure = plot.density(pdf, seen, given=[0.0, 20**0.5])

# %% [markdown]
# ## From nothing
#
# A cold start has no overlap but by chance, and the limit stays at $q = 0$ for ever. What
# happens then is a matter of $p$: `overlap_law` has it, and `Diffusion` simulates it in
# steps that do not get smaller as $p$ grows.

# %%
cold = ino.Config(
    model=ino.SpikedModel(p=10**8), start=ino.ColdStart(), ts=np.linspace(0, 80, 81)
)
law = ino.overlap_law(cold).abs()
walks = ino.simulate(cold, key=jr.key(4), trials=400, engine=ino.Diffusion()).abs()
figure = plot.learning_curves([plot.Curve("p = 1e8", law, walks)], quantities=["q"])

# %% [markdown]
# And as it is all JAX, a theory over a grid is a `vmap`:


# %%
def late(omega):
    model = ino.SpikedModel(p=10_000, omega=omega)
    return ino.mean_field(ino.Config(model=model, ts=np.array([0.0, 30.0]))).q[-1]


print(jax.vmap(late)(np.linspace(0.2, 2.0, 7)))
