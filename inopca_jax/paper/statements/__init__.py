"""Statements that the paper makes in its text and its appendix without a figure."""

from ..figure import PaperFigure
from . import claims, compute

FIGURE = PaperFigure(
    name="statements",
    section="statements",
    description="""\
Statements of the text and of the appendix that have no figure.

They are checked with many samples of one step of the p-dimensional algorithm from a fixed
estimate; with identities that hold for every sample; with the norm at late times and from
extreme initial norms, by the exact chain at p = 2,000; and with several components of a
small synthetic stream.
""",
    configs=compute.configs,
    compute=compute.compute,
    drawings={},
    claims=claims.claims,
    work_order=9,
)
