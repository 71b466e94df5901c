"""The paper's figures and claims, computed with the public functions of the package.

A folder a figure: `compute.py` computes its numbers, `draw.py` draws them and `claims.py`
checks what the paper says about them. `FIGURES` lists them in the order of the report.
"""

from . import (
    adaptive_comparison,
    comparison,
    components,
    convergence,
    cos_lambda,
    density_evolution,
    density_evolution2,
    error_bars,
    lambda0,
    olivetti,
    past,
    phase_diagram,
    rivals,
    statements,
    steady_state_dist,
    tau,
    tuned,
)

FIGURES = (
    density_evolution.FIGURE,
    cos_lambda.FIGURE,
    density_evolution2.FIGURE,
    steady_state_dist.FIGURE,
    tau.FIGURE,
    lambda0.FIGURE,
    comparison.FIGURE,
    adaptive_comparison.FIGURE,
    olivetti.FIGURE,
    error_bars.FIGURE,
    rivals.FIGURE,
    convergence.FIGURE,
    phase_diagram.FIGURE,
    tuned.FIGURE,
    components.FIGURE,
    past.FIGURE,
    statements.FIGURE,
)
