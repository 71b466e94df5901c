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
# Below a critical signal-to-noise ratio INO-PCA learns nothing, however many samples it
# sees. Where that is depends on the learning rate: so let us simulate a grid of both.

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
# A grid names numbers of the config, or whole parts of it, and their values. Every cell
# gets its trials, on all devices. With a `store` the results are on disk as they come: a
# sweep that is killed goes on where it was, and several processes may share one.

# %%
store = Path(tempfile.mkdtemp()) / "phases.zarr"
found = ino.sweep(
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
print(found)

# %% [markdown]
# What comes back is an `xarray.Dataset`, by the grid's names.

# %%
figure = plot.sweep(found)

# %% [markdown]
# The line is the theory's transition, $\omega_c = (\sqrt{1 + 2\tau} - 1)/2$ for INO-PCA and
# $\tau/2$ for Oja's method. INO-PCA's norm tells it the eigenvalue, and it lowers its gain
# accordingly: the dark region is smaller.
#
# A cut through it, beside the mean field and the steady state:

# %%
cut = found.isel(rule=0).sel({"rule.tau": 0.5}, method="nearest").isel(time=-1)
omegas = cut["model.omega"].values


def steady(omega):
    tau = float(cut["rule.tau"])
    return ino.steady_state(ino.Config(ino.InoPCA(tau), ino.SpikedModel(1_000, omega)))[0]


with plot.style():
    figure, ax = plt.subplots(figsize=(4.2, 3))
    ax.errorbar(omegas, cut.abs_q_mean, cut.abs_q_std, fmt="o", label="10 trials, $t = 40$")
    ax.plot(omegas, cut.q_theory, color=plot.COLOURS[1], label="mean field, $t = 40$")
    ends = jax.vmap(steady)(jnp.asarray(omegas, jnp.float32))
    ax.plot(omegas, ends, "--", color="0.5", label="steady state")
    ax.set(xlabel=r"$\omega$", ylabel="$|q|$")
    ax.legend()

# %% [markdown]
# Near the transition two things differ from the steady state: at $t = 40$ it is not reached
# yet, and at $p = 1{,}000$ runs scatter, so that $|q|$ is not zero where the limit is.
#
# The store can be opened by anybody, also while it is being filled.

# %%
print(ino.open_sweep(store).done.all().item(), found.finite.min().item(), "finite trials")
