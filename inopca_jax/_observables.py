"""What an algorithm sees of one sample, and what only an oracle may see."""

from ._pickling import Pickled
from ._types import Real


class Sample(Pickled):
    """The scalars that a rule and its schedule may look at.

    `lam = |x|/sqrt(p)`, `s2 = (y.x)^2/|x|^2`, `r = |y|^2/p`, `t` the macroscopic time
    at the end of the step, `p` the dimension. An algorithm that computes with these
    alone can be run on data; it is what makes the exact chain possible.
    """

    lam: Real
    s2: Real
    r: Real
    t: Real
    p: Real


class Hidden(Pickled):
    """What the model knows and no algorithm can: only `Oracle` reads it.

    `unit_gain` is public, the gain that the rule takes at `tau = 1`; it is here
    because an oracle alone has to ask for a gain rather than for a learning rate.
    """

    q: Real
    omega: Real
    unit_gain: Real
