"""Statements of the text and of the appendix that have no figure.

They are checked with many samples of one step of the p-dimensional algorithm from a fixed
estimate; with identities that hold for every sample; with the norm at late times and from
extreme initial norms, by the exact chain at p = 2,000; and with several components of a
small synthetic stream.
"""

from ..figure import PaperFigure
from . import appendix_claims, claims, compute

FIGURE = PaperFigure(
    name="statements",
    section="statements",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={},
    claims=lambda arrays: claims.claims(arrays) + appendix_claims.claims(arrays),
    work_order=9,
)
