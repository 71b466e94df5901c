from pathlib import Path

import numpy as np
import tyro

from ... import data
from ...plot import save
from . import claims, compute, draw, draw_components


def main(
    faces: Path | None = None, out: Path = Path("results"), quick: bool = False
) -> None:
    """Computes the figure, draws it and says what holds.

    Args:
        faces: An olivettifaces.mat; by default scikit-learn's loader.
        out: Where to write the figures and the arrays.
        quick: One preparation and one number of components.
    """
    found = compute(data.faces(faces), quick, progress=True)
    out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out / "olivetti.npz", **found)  # pyright: ignore
    save(draw(found), out / "olivetti.png")
    save(draw_components(found), out / "olivetti_components.png")
    for claim in claims(found):
        print(f"{claim.verdict}: {claim.says}\n    {claim.found}\n    {claim.why}")


if __name__ == "__main__":
    tyro.cli(main)
