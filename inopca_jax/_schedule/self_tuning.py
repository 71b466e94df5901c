import equinox as eqx
import jax.numpy as jnp

from .._observables import Observables
from .._types import Real, Scalar
from .vector import AbstractVectorSchedule, VectorStep

# Chosen by simulations at p = 1,000 and 10,000 with omega = 0.4 to 5. None is critical:
# with a speed of 2 to 4, a ridge of 100 to 300 or a time of 1 to 2 the overlap rises about
# as fast. The running means forget at this rate in a unit of time if the gain is small.
_SPEED = 3.0
# Times 1/p: ten standard deviations of what noise adds to `information` and `evidence` in
# twenty units of time.
_RIDGE = 100.0
# The time at which a search that has found nothing has the gain 1.
_UNIT_GAIN_TIME = 1.6


class SelfTuningState(eqx.Module):
    """The state of `SelfTuning`, in units in which the noise has unit variance.

    **Arguments:**

    - `power`: a running mean of `|y|^2/p`, the variance of the noise.
    - `variance`: a running mean of the sample's squared component along the estimate.
    - `information`, `evidence`: the sums `D` and `N` of least squares.
    - `search`: the gain of a search that has found nothing yet.
    """

    power: Real
    variance: Real
    information: Real
    evidence: Real
    search: Real

    def inverse_information(self, p: Real) -> Real:
        """Returns `1/(D + ridge)`, without the negative D that noise may lead to."""
        return 1 / (jnp.maximum(self.information, 0) + _RIDGE / p)

    def known(self, p: Real) -> Real:
        """Returns the weight of the data, against the search, in the estimate."""
        return jnp.maximum(self.information, 0) * self.inverse_information(p)

    def eigenvalue(self, p: Real) -> Real:
        """Returns the estimate of the leading eigenvalue of the covariance."""
        sought = _RIDGE / p * (1 + self.search)
        return jnp.maximum((self.evidence + sought) * self.inverse_information(p), 1)

    def gain(self, p: Real) -> Real:
        """Returns the gain for noise of unit variance."""
        variance = jnp.maximum(self.variance, 1)
        return jnp.maximum(self.eigenvalue(p) / variance - 1, 0)

    def speed(self, p: Real) -> Real:
        """Returns the rate at which the running means forget, at most all at once."""
        return jnp.minimum(_SPEED * (1 + self.gain(p)), p)

    def inverse_power(self) -> Real:
        # The power is zero if all samples are; then all products are zero, too.
        return 1 / jnp.where(self.power > 0, self.power, 1)


class SelfTuning(AbstractVectorSchedule):
    """A learning rate that finds itself: no number is chosen, and nothing has to be known
    of the signal-to-noise ratio, of the rate at which the spike turns, or of when it
    switches.

    The best gain is `nu = (1 + omega)/E[S^2] - 1`, with the component `S = y.x/|x|` of the
    sample along the estimate: the oracle's. `E[S^2]` is observed; `Lambda = 1 + omega` is
    estimated from the covariance of present and past innovations. With a vector `g`, the
    running mean of the innovations `S y - Lambda x/|x|`,

        E[S (y.g) - |y|^2/p (g.x/|x|)] = 0    if and only if  Lambda = 1 + omega,

    wherever the estimate is, however fast it moves, and also if the spike turns: `S y` has
    the mean `C x/|x|`, of which `C - I` sees the part along the spike alone. In units of
    the noise's variance `r`, a running mean of `|y|^2/p`, and with `s2`, that of `S^2`, and
    `u = s2 - 1`:

        dg/dt = k (S y - Lambda x/|x| - g),      ds2/dt = k (S^2 - s2),   k = 3 (1 + nu)
        dD/dt = u (S^2 - |y|^2/p) - nu^2 D,
        dN/dt = u (S (y.g) - |y|^2/p g.x/|x| + Lambda (S^2 - |y|^2/p)) - nu^2 N
        Lambda = (N + ridge (1 + search)) / (D + ridge),   nu = Lambda/max(s2, 1) - 1
        dsearch/dt = search/4 (nu^2 D/(D + ridge) - search^4/1.6),   ridge = 100/p

    `Lambda` is a least squares estimate with the weights `u^2`. Its constants:

    - `k`: the running means forget within a third of a unit of time, and faster as long as
      the gain is large and the overlap moves fast. Its value trades the noise of `nu`,
      `sqrt(k/p)`, against the delay after a switch.
    - `ridge`: what noise alone adds to `D` and `N` is small against it, so that `Lambda` is
      what the search says until the data know better.
    - `search`: the gain by which a spike of unknown strength is sought, `(1.6/t)^(1/4)`.
      It falls slowly: strong spikes are found while it is large, weak ones when it is
      small. Once a spike is lost, it rises again as what is known is forgotten.
    - What is known is forgotten at the rate `nu^2`, which is twice that at which noise
      turns the estimate itself. With the gain `nu = omega` a lost spike is found again
      within `log(p)/omega^2`, when only a factor p has been forgotten of `D`; if it is not
      found, its strength must have changed, and the search begins anew. While a spike is
      followed the gain is small, and `D` grows.

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> rule = ino.InoPCA(ino.SelfTuning())
    >>> config = ino.Config(rule, ino.SpikedModel(p=400, omega=2.0), ts=[0.0, 20.0])
    >>> runs = ino.simulate(config, key=jr.key(0), trials=8)
    >>> bool(abs(runs.q[:, -1]).mean() > 0.9)
    True
    ```
    """

    def init(self, p: Scalar) -> SelfTuningState:
        one, zero = jnp.ones(()), jnp.zeros(())
        search = jnp.sqrt(jnp.sqrt(_UNIT_GAIN_TIME * jnp.asarray(p)))
        return SelfTuningState(one, one, zero, zero, search)

    def drift(self, observables: Observables, state: SelfTuningState) -> SelfTuningState:
        p, vector = observables.p, observables.vector
        assert vector is not None
        speed = state.speed(p)
        square = state.search * state.search
        hurry = square * square / _UNIT_GAIN_TIME
        # The first sample is taken whole.
        dpower = jnp.maximum(speed, hurry) * (observables.r - state.power)
        power = state.power + dpower / p
        unit = 1 / jnp.where(power > 0, power, 1)
        excess = unit * (observables.s2 - observables.r)
        innovation = unit * (vector.with_sample - observables.r * vector.along)
        evidence = innovation + state.eigenvalue(p) * excess
        signal = state.variance - 1
        forgetting = jnp.minimum(state.gain(p) ** 2, p)
        return SelfTuningState(
            power=dpower,
            variance=speed * (1 + excess - state.variance),
            information=signal * excess - forgetting * state.information,
            evidence=signal * evidence - forgetting * state.evidence,
            search=state.search * (state.known(p) * forgetting - hurry) / 4,
        )

    def gain(self, observables: Observables, state: SelfTuningState) -> Real:
        return state.gain(observables.p) * state.inverse_power()

    def vector_step(self, observables: Observables, state: SelfTuningState) -> VectorStep:
        p = observables.p
        speed = state.speed(p)
        along = -speed * state.eigenvalue(p)
        return VectorStep(decay=speed, along=along, pull=speed * state.inverse_power())
