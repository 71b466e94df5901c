"""Several components of a stream of images of faces.

The paper does not say how many components were learnt nor how the images were prepared.
Both matter, so the figure shows all combinations. As in the paper, learning rates and the
amnesic parameter are chosen by the distance after 4,000 samples; the streams on which they
are chosen are not those shown. Lines are means over streams, and bands contain nine out of
ten streams. Below, the first components learnt from one of the streams.
"""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="olivetti",
    section="paper",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"olivetti": draw.draw, "olivetti_components": draw.draw_components},
    claims=claims.claims,
    work_order=14,
)
