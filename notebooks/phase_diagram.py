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
# # A sweep and its phase diagram
#
# For which signals and rates is nothing learnt?
#
# Below a critical signal-to-noise ratio $\omega_c$ the overlap of INO-PCA vanishes,
# however many samples there are. $\omega_c$ depends on the learning rate, so this
# notebook simulates a grid of both.

# %%
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np

import inopca_jax as ino
from inopca_jax import plot

# %% [markdown]
# A grid names numbers of the config, or parts of it, and lists their values. All devices
# compute. With a `store`, results are written to disk as soon as they are computed: a
# sweep that was killed continues from there, and several processes can share a store.

# %%
store = Path(tempfile.mkdtemp()) / "phases.zarr"
dataset = ino.sweep(
    ino.Config(
        model=ino.SpikedModel(p=1_000), start=ino.WarmStart(0.5), ts=np.array([0.0, 40.0])
    ),
    {
        "rule": [ino.InoPCA(), ino.Oja()],
        "model.omega": np.linspace(0.05, 2.0, 20),
        "rule.tau": np.linspace(0.1, 2.0, 20),
    },
    trials=10,
    key=jr.key(0),
    store=store,
    theory=True,
)
print(dataset)

# %% [markdown]
# The result is an `xarray.Dataset`, whose dimensions have the names of the grid.

# %%
figure = plot.sweep(dataset)

# %% [markdown]
# The line is the theory's transition, $\omega_c = (\sqrt{1 + 2\tau} - 1)/2$ for INO-PCA
# and $\tau/2$ for Oja's method. The norm of INO-PCA follows the eigenvalue, which lowers
# its gain; so the dark region is smaller.
#
# A section at one $\tau$, with the mean field and the steady state:

# %%
section = dataset.isel(rule=0).sel({"rule.tau": 0.5}, method="nearest").isel(time=-1)
omegas = section["model.omega"].values


def steady_overlap(omega):
    tau = float(section["rule.tau"])
    return ino.steady_state(ino.Config(ino.InoPCA(tau), ino.SpikedModel(1_000, omega)))[0]


with plot.style():
    figure, ax = plt.subplots(figsize=(4.2, 3))
    q, std = section.abs_q_mean, section.abs_q_std
    ax.errorbar(omegas, q, std, fmt="o", label="10 trials, $t = 40$")
    ax.plot(omegas, section.q_theory, color=plot.COLOURS[1], label="mean field, $t = 40$")
    steady_q = jax.vmap(steady_overlap)(jnp.asarray(omegas, jnp.float32))
    ax.plot(omegas, steady_q, "--", color="0.5", label="steady state")
    ax.set(xlabel=r"$\omega$", ylabel="$|q|$")
    ax.legend()

# %% [markdown]
# Near the transition there are two differences: the mean field has not reached the steady
# state at $t = 40$, and runs at $p = 1{,}000$ scatter, so that $|q|$ is positive where
# its limit is 0.
#
# A store can be opened at any time, also while a sweep writes to it.

# %%
print(ino.open_sweep(store).done.all().item(), dataset.finite.min().item(), "finite trials")

# %% [markdown]
# ## Answer
#
# Nothing is learnt below the line in the maps, for any number of samples. A smaller
# rate moves the line to weaker signals, and at the same rate INO-PCA learns from weaker
# signals than Oja's method.
