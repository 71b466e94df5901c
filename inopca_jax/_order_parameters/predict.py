"""The theory that fits a config: the limit, with fluctuations, or the law of `|q|`."""

import itertools
import warnings

import equinox as eqx
import jax
import numpy as np

from .._check import Checked, require_flag, require_instance
from .._config import Config, require_single
from .._trajectory import Prediction, Trajectory
from .escape import UndefinedLawError, overlap_law
from .fluctuations import fluctuations
from .initial import first_step_size
from .mean_field import mean_field

# Below this the mean field's overlap is zero, up to rounding.
ZERO_OVERLAP = 1e-6
# The linear theory underestimates the spread while a small overlap grows: with this many
# standard deviations from zero, less than one run in 100 changes its sign (see below).
_LEAST_STDS = 3.5
# Two spikes whose means have a smaller product than this have no overlap to speak of.
_RELATED_MEANS = 0.05


def predict(
    config: Checked[Config], *, error_bars: Checked[bool] = True
) -> Trajectory | Prediction:
    """Returns the theory to compare simulations of a config with.

    It is `fluctuations(config)` if all trials keep the sign of their overlap (see
    `keeps_sign`). Otherwise it is the theory of `|q|`, to be compared with
    `simulate(...).abs()`: `overlap_law(config).abs()`, or, where the first sample outweighs
    the start, or `p` is too small for that law, and the scatter cannot be predicted,
    `mean_field(config).abs()`, with a warning where it misses something.

    **Arguments:**

    - `config`: what was simulated.
    - `error_bars`: whether to return the standard deviations over trials at this `p` too.
      Without them, the first of the three theories is `mean_field(config)`, which takes
      less time.

    **Returns:**

    A `Prediction` with arrays of shape (times,), or a `Trajectory` if `error_bars` is false
    or the standard deviations cannot be predicted.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(start=ino.WarmStart(q0=0.3), ts=[0.0, 10.0, 50.0])
    >>> round(float(ino.predict(config, error_bars=False).q[-1]), 2)
    0.88
    ```
    """
    require_instance("config", config, Config)
    require_single(config, "predict")
    error_bars = require_flag("error_bars", error_bars)
    if keeps_sign(config):
        return fluctuations(config) if error_bars else mean_field(config)
    if is_regular(config):
        try:
            law = overlap_law(config).abs()
            return law if error_bars else Trajectory(law.ts, law.q, law.lam)
        except UndefinedLawError:
            warnings.warn(
                f"The theory is the mean field. At p = {int(config.model.p)} runs may "
                "change their sign, of which it knows nothing, and p is too small for "
                "overlap_law: trials may differ from it by more than their scatter.",
                stacklevel=2,
            )
            return mean_field(config).abs()
    theory = mean_field(config).abs()
    if np.any(np.asarray(theory.q) < ZERO_OVERLAP):
        warnings.warn(
            "The theory is the mean field, which stays at q = 0 where trials leave it by "
            "chance, so it does not predict their |q|. With t0 > 0 or a b0 of order p the "
            "law of |q| at this p is computed instead.",
            stacklevel=2,
        )
    return theory


def keeps_sign(config: Checked[Config]) -> bool:
    """Returns whether all trials can be expected to keep the sign of the start's overlap.

    If not, trials end with either sign, a mean of `q` over them is meaningless, and `|q|`
    should be reported. This is so from a cold start, after a switch to a spike that has no
    overlap with the one before, for a rule whose first sample outweighs the start, and at a
    `p` so small that the overlap of `fluctuations` comes within 3.5 standard deviations of
    0. That is a linear theory, which takes such runs for rarer than they are: of 2,000 runs
    of the chain (INO-PCA, omega = 1, tau = 0.5) 21 % changed their sign at p = 100 and
    q0 = 0.1, 0.6 % at p = 1,000 and q0 = 0.1, and 0.8 % at p = 100 and q0 = 0.3.

    **Arguments:**

    - `config`: what is to be simulated.

    **Returns:**

    `True` or `False`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> ino.keeps_sign(ino.Config(start=ino.WarmStart(q0=0.3)))
    True
    >>> ino.keeps_sign(ino.Config(start=ino.ColdStart()))
    False
    ```
    """
    require_instance("config", config, Config)
    require_single(config, "keeps_sign")
    q0, _ = config.start.moments(config.model.phases()[0].spike)
    if not (abs(float(q0)) > ZERO_OVERLAP and is_regular(config)):
        return False
    if not all(related_switches(config)):
        return False
    # Also between the config's times, as many as those to compile no further program.
    end, count = float(config.ts[-1]), max(config.ts.size, 33)
    ts = np.append(0.0, end * np.geomspace(1e-3, 1, count - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            linear = fluctuations(eqx.tree_at(lambda c: c.ts, config, ts))
        except RuntimeError:  # it cannot be integrated, and says nothing on the sign
            return True
    return bool(np.all(np.abs(linear.q) > _LEAST_STDS * np.asarray(linear.q_std)))


def is_regular(config: Config) -> bool:
    """Returns whether one sample moves the estimate by less than its length, so that the
    limit depends on the start."""
    return float(first_step_size(config)) < 1


def related_switches(config: Config) -> list[bool]:
    """Returns, for each switch of the spike, whether the estimate keeps an overlap across
    it: whether the entries of both spikes have means that are not zero."""
    # The means are constants of the spikes, known also under `jit`.
    with jax.ensure_compile_time_eval():
        means = [float(model.spike.mean()) for model in config.model.phases()]
    return [abs(a * b) > _RELATED_MEANS for a, b in itertools.pairwise(means)]
