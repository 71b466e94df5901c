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
# # A stream of data
#
# The algorithms of this package are made for streams. Here they take the handwritten digits
# that come with scikit-learn, and then streams whose main directions change.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA, IncrementalPCA

import inopca_jax as ino
from inopca_jax import data, plot

# %% [markdown]
# ## Digits
#
# Each sample is seen once, in any number of calls. INO-PCA's rate was chosen from the first
# samples. It is constant, so that the estimate comes to rest near the truth and stays ready
# to move; CCIPCA's falls, and goes on to improve.

# %%
digits = np.random.default_rng(0).permutation(np.tile(data.digits(), (5, 1)))
truth = PCA(6).fit(digits)
models = {
    "INO-PCA": ino.StreamingPCA(6),
    "CCIPCA": ino.StreamingPCA(6, rule=ino.CCIPCA(2.0)),
    "AdaOja": ino.StreamingPCA(6, rule=ino.AdaOja()),
}


def distance(a, b):
    return float(ino.grassmann_distance(np.asarray(a, np.float32), b.astype(np.float32)))


seen, away = [], {name: [] for name in models}
for batch in np.array_split(digits, 60):
    for name, model in models.items():
        model.partial_fit(batch)
        away[name].append(distance(model.components_, truth.components_))
    seen.append(models["INO-PCA"].n_samples_seen_)
print("tau =", models["INO-PCA"].tau_)


def curves(seen, away, ax):
    for i, (name, values) in enumerate(away.items()):
        look = dict(color=plot.COLOURS[i], marker=plot.MARKERS[i], markevery=(i, 6))
        ax.plot(seen, values, label=name, **look)
    ax.set(xlabel="samples", ylabel="Grassmann distance", ylim=(0, None))
    ax.legend()


with plot.style():
    figure, ax = plt.subplots(figsize=(5, 3))
    curves(seen, away, ax)

# %% [markdown]
# The vectors' lengths are INO-PCA's estimates of the eigenvalues.

# %%
for name, model in models.items():
    print(f"{name:10}", np.round(model.explained_variance_, 3))
print(f"{'offline':10}", np.round(truth.explained_variance_, 3))

# %% [markdown]
# ## A subspace that jumps, and one that turns
#
# `IncrementalPCA` weighs all samples alike, so after a change it averages over what was and
# what is. A constant rate forgets.

# %%
streams = {
    "a jump": data.Drift([12.0, 10.0, 8.0], p=50, jumps=[4_000]),
    "a steady turn": data.Drift([12.0, 10.0, 8.0], p=50, turn=np.pi / 16_000),
}
followed = {}
with plot.style():
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True)
    for ax, (what, stream) in zip(axes, streams.items(), strict=True):
        models = {"INO-PCA": ino.StreamingPCA(3), "IncrementalPCA": IncrementalPCA(3)}
        seen, away = [], {name: [] for name in models}
        for batch in stream.samples(8_000, chunk=100):
            seen.append(100 * (len(seen) + 1))
            for name, model in models.items():
                model.partial_fit(batch)
                now = stream.basis(seen[-1] - 1)
                away[name].append(distance(model.components_, now))
        curves(seen, away, ax)
        ax.set_title(what)
        followed[what] = {name: values[-1] for name, values in away.items()}
print(followed)

# %% [markdown]
# ## Without an estimator
#
# `stream_pca` is the algorithm itself, in the units of the data, with any rule. It takes
# arrays, memory maps and iterators, and goes on from where it was.

# %%
state = ino.stream_pca(ino.InoPCA(0.2), streams["a jump"].samples(4_000), 3)
print(state.count, np.round(state.eigenvalues, 1))
state = ino.stream_pca(ino.InoPCA(0.2), digits[:1, :50], 3, state=state)
print(state.count)
