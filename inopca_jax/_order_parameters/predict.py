"""The theory that fits a config: the limit, with fluctuations, or the law of `|q|`."""

import itertools
import warnings

import jax
import numpy as np

from .._check import Checked, require_flag, require_instance
from .._config import Config
from .._trajectory import Prediction, Trajectory
from .escape import overlap_law
from .fluctuations import fluctuations
from .initial import first_step_size
from .mean_field import mean_field

# Below this the mean field's overlap is zero, up to rounding.
ZERO_OVERLAP = 1e-6
# Two spikes whose means have a smaller product than this have no overlap to speak of.
_RELATED_MEANS = 0.05


def predict(
    config: Checked[Config], *, error_bars: Checked[bool] = True
) -> Trajectory | Prediction:
    """Returns the theory to compare simulations of a config with.

    It is `fluctuations(config)` if all trials keep the sign of their overlap (see
    `keeps_sign`). Otherwise it is the theory of `|q|`, to be compared with
    `simulate(...).abs()`: `overlap_law(config).abs()`, or, where the first sample outweighs
    the start and the scatter cannot be predicted, `mean_field(config).abs()`.

    **Arguments:**

    - `config`: what was simulated.
    - `error_bars`: whether to return the standard deviations over trials at this `p` too.
      Without them, the first of the three theories is `mean_field(config)`, which takes
      less time.

    **Returns:**

    A `Prediction` with arrays of shape (times,), or a `Trajectory` if `error_bars` is false
    or the standard deviations cannot be predicted.
    """
    require_instance("config", config, Config)
    error_bars = require_flag("error_bars", error_bars)
    if keeps_sign(config):
        return fluctuations(config) if error_bars else mean_field(config)
    if is_regular(config):
        law = overlap_law(config).abs()
        return law if error_bars else Trajectory(law.ts, law.q, law.lam)
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
    overlap with the one before, and for a rule whose first sample outweighs the start.

    **Arguments:**

    - `config`: what is to be simulated.

    **Returns:**

    `True` or `False`.
    """
    require_instance("config", config, Config)
    phases = config.model.phases()
    q0, _ = config.start.moments(phases[0].spike)
    keeps_overlap = all(related_switches(config))
    return abs(float(q0)) > ZERO_OVERLAP and is_regular(config) and keeps_overlap


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
