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
# # Streams of data
#
# How well does it work on data, and on data that change?
#
# This notebook estimates principal components of the handwritten digits that come with
# scikit-learn, and then of streams whose principal directions change.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA, IncrementalPCA

import inopca_jax as ino
from inopca_jax import data, plot

# %% [markdown]
# ## Digits
#
# Each sample is used once, and the number of calls does not matter. The sketch, the
# default, is PCA of all samples so far. The rate of INO-PCA is chosen from the first
# samples. It is constant: the distance from the truth stops falling, and the estimate can
# follow changes. The rate of CCIPCA falls, and its distance with it.

# %%
digits = np.random.default_rng(0).permutation(np.tile(data.digits(), (5, 1)))
truth = PCA(6).fit(digits)
models = {
    "INO-PCA": ino.StreamingPCA(6, rule=ino.InoPCA),
    "sketch": ino.StreamingPCA(6),
    "CCIPCA": ino.StreamingPCA(6, rule=ino.CCIPCA),
    "AdaOja": ino.StreamingPCA(6, rule=ino.AdaOja()),
}


def distance(a, b):
    return float(ino.grassmann_distance(np.asarray(a, np.float32), b.astype(np.float32)))


counts, distances = [], {name: [] for name in models}
for batch in np.array_split(digits, 60):
    for name, model in models.items():
        model.partial_fit(batch)
        distances[name].append(distance(model.components_, truth.components_))
    counts.append(models["INO-PCA"].n_samples_seen_)
print("tau =", models["INO-PCA"].tau_)


def draw(counts, distances, ax):
    for i, (name, values) in enumerate(distances.items()):
        style = dict(color=plot.COLOURS[i], marker=plot.MARKERS[i], markevery=(i, 6))
        ax.plot(counts, values, label=name, **style)
    ax.set(xlabel="samples", ylabel="Grassmann distance", ylim=(0, None))
    ax.legend()


with plot.style():
    figure, ax = plt.subplots(figsize=(5, 3))
    draw(counts, distances, ax)

# %% [markdown]
# The norms of INO-PCA's vectors are estimates of the eigenvalues.

# %%
for name, model in models.items():
    print(f"{name:10}", np.round(model.explained_variance_, 3))
print(f"{'offline':10}", np.round(truth.explained_variance_, 3))

# %% [markdown]
# ## A subspace that jumps, and one that turns
#
# `IncrementalPCA` gives all samples the same weight, so after a change it averages over
# the old and the new directions. With a constant rate, and in a sketch with a memory, old
# samples lose their weight.

# %%
streams = {
    "a jump": data.Drift([12.0, 10.0, 8.0], p=50, jumps=[4_000]),
    "a steady turn": data.Drift([12.0, 10.0, 8.0], p=50, turn=np.pi / 16_000),
}
last_distances = {}
with plot.style():
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True)
    for ax, (title, stream) in zip(axes, streams.items(), strict=True):
        models = {
            "INO-PCA": ino.StreamingPCA(3, rule=ino.InoPCA),
            "sketch": ino.StreamingPCA(3, memory=300),
            "IncrementalPCA": IncrementalPCA(3),
        }
        counts, distances = [], {name: [] for name in models}
        for batch in stream.samples(8_000, chunk=100):
            counts.append(100 * (len(counts) + 1))
            for name, model in models.items():
                model.partial_fit(batch)
                basis = stream.basis(counts[-1] - 1)
                distances[name].append(distance(model.components_, basis))
        draw(counts, distances, ax)
        ax.set_title(title)
        last_distances[title] = {name: values[-1] for name, values in distances.items()}
print(last_distances)

# %% [markdown]
# ## Without an estimator
#
# `stream_pca` is the algorithm without the estimator: it does not rescale the data, and
# takes any rule. It reads arrays, memory maps and iterators, and continues from a
# `state`.

# %%
state = ino.stream_pca(ino.InoPCA(0.2), streams["a jump"].samples(4_000), 3)
print(state.count, np.round(state.eigenvalues, 1))
state = ino.stream_pca(ino.InoPCA(0.2), digits[:1, :50], 3, state=state)
print(state.count)

# %% [markdown]
# ## Answer
#
# On data that do not change, the sketch is the most accurate, and a falling rate (CCIPCA)
# is better than a constant one. After a change, INO-PCA with its constant rate and a sketch
# with a memory find the new directions, where an average over all samples does not.
