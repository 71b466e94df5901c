"""The explorer: a web page that solves the mean field of the seven algorithms."""

from ..page import page as _page


def page() -> str:
    """Returns the whole page as HTML, with its style and scripts.

    `model.js` solves in the browser the equations that `mean_field` solves here. The hash
    of the address holds what is shown, for example
    `#rule=oja&tau=0.3&omega=2&lam0=1&q0=0.1&t_max=50`.
    """
    return _page(__name__, "Explorer: the mean field of online PCA", {}, scripts=True)
