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
# # Tuning by gradients
#
# The mean field of an online PCA algorithm is a pair of ODEs in the overlap $q$ and the
# norm $\lambda$. They can be differentiated: with respect to a learning rate, to the norm
# of the start, to a whole schedule. This notebook asks what the path depends on, tunes it,
# and checks the answer on the algorithm itself.

# %%
import diffrax
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import inopca_jax as ino
from inopca_jax import plot

ts = np.linspace(0.0, 20.0, 101)
config = ino.Config(
    rule=ino.InoPCA(0.5),
    model=ino.SpikedModel(p=10_000, omega=1.0),
    start=ino.WarmStart(q0=0.1),
    ts=ts,
)

# %% [markdown]
# ## What does the path depend on?
#
# `sensitivity` has the derivatives of $q_t$ and $\lambda_t$ at all times. A larger rate
# helps at first and hurts in the end: the curve of $dq/d\tau$ crosses zero. From the norm
# of the start only the rise profits.

# %%
names = ("rule.tau", "start.lam0", "model.omega")
figure = plot.sensitivities({name: ino.sensitivity(config, name) for name in names})

# %% [markdown]
# It is JAX underneath, so any scalar of the theory has a gradient. Through the solver of
# the ODE backwards, which is the default, or forwards:


# %%
def last_overlap(tau, **options):
    study = ino.Config(ino.InoPCA(tau), config.model, config.start, ts)
    return ino.mean_field(study, **options).q[-1]


backwards = jax.grad(last_overlap)(0.5)
forwards = jax.jacfwd(lambda tau: last_overlap(tau, adjoint=diffrax.ForwardMode()))(0.5)
print("dq/dtau at t = 20:", backwards, forwards)

# %% [markdown]
# The steady state's derivative is that of a closed form, or by the implicit function
# theorem where there is none:

# %%
print(jax.grad(lambda tau: ino.steady_state(ino.Config(ino.InoPCA(tau)))[0])(0.5))

# %% [markdown]
# ## One number, or two
#
# `tune` follows the gradient of an objective. `bound` is what no gain exceeds, `gap` how
# far away the answer is.

# %%
tuned = ino.tune(config, over=("rule.tau", "start.lam0"))
print(tuned.stopped)
print("tau, lam0:", tuned.config.rule.tau.value, tuned.config.start.lam0)
print("overlap:", tuned.values[0], "->", tuned.value, "of at most", tuned.bound)
figure = plot.tuning(config, tuned.config)

# %% [markdown]
# ## A whole schedule
#
# With a rate that is free at 32 times there is no gap left, and the gain that was learnt is
# the one that the paper derives.

# %%
flat = ino.Config(
    ino.InoPCA(ino.Interpolated.flat(0.5, 20.0, knots=32)), config.model, config.start, ts
)
whole = ino.tune(flat, over="rule.tau.taus")
print("gap:", whole.gap)
runs = ino.simulate(whole.config, key=jr.key(0), trials=20)
figure = plot.tuning(flat, whole.config, runs=runs)

# %% [markdown]
# ## If the signal-to-noise ratio is not known
#
# What is best at one $\omega$ may be poor at another. `WorstCase` looks at the part of the
# best possible overlap that is lost, at several of them, and makes the largest small.

# %%
omegas = jnp.array([0.5, 1.0, 2.0, 3.0])
objective = ino.WorstCase(ino.FinalOverlap(), omegas)
robust = ino.tune(config, objective=objective)
for name, found in {"for omega = 1": ino.tune(config), "for all": robust}.items():
    print(name, found.config.rule.tau.value, objective.shortfalls(found.config))
