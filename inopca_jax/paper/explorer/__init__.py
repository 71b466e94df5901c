"""The explorer: the mean field of the seven algorithms in a page that needs no network."""

from .. import page as _page


def page() -> str:
    """The whole page as HTML, its style and its scripts in it.

    Its mathematics is `model.js`, which solves in the browser what `mean_field` solves
    here. The address's hash holds what is shown, for example
    `#rule=oja&tau=0.3&omega=2&lam0=1&q0=0.1&t_max=50`.
    """
    return _page.page(__name__)
