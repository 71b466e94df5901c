"""The paper's numbers of equations, figures and sections, and symbols for readers."""

import re

_KINDS = {
    "eq": "equation ({})",
    "fig": "Figure {}",
    "theo": "Theorem {}",
    "cor": "Corollary {}",
    "lem": "Lemma {}",
    "rem": "Remark {}",
    "alg": "Algorithm {}",
    "sec": "Section {}",
    "appendix": "Appendix {}",
}
# By the paper's own labels. What has no label there has a name that begins with `our_`.
_NUMBERS = {
    "eq:data_model": "1",
    "eq:formulation": "4",
    "eq:regularized_update": "5",
    "eq:dynamics_update": "6",
    "eq:weak_pde": "10",
    "eq:tracked_par": "12",
    "eq:strong_pde": "13",
    "eq:Q_t": "14",
    "eq:lambda_t": "15",
    "eq:our_unlearned_state": "16",
    "eq:learning_capacity": "17",
    "eq:steady_state_dist": "18",
    "eq:max_nu_t": "19",
    "eq:optimal_nu_t": "20",
    "eq:exchangeability": "22",
    "eq:drift": "23",
    "eq:diffusion": "24",
    "eq:in_derivation_lambda_t_ode": "76",
    "fig:density_evolution": "1",
    "fig:cos_lambda": "2",
    "fig:density_evolution2": "3",
    "fig:steady_state_dist": "4",
    "fig:tau": "5",
    "fig:lambda0": "6",
    "fig:comparison": "7",
    "fig:adaptive_comparison": "8",
    "fig:olivetti": "9",
    "theo:main_conv": "1",
    "cor:Qt": "1",
    "cor:lambdat": "2",
    "lem:lambda>0": "1",
    "lem:lambda_bound": "2",
    "rem:our_krasulina": "1",
    "rem:our_search_phase": "3",
    "rem:our_oracle": "5",
    "alg:INO-PCA_multiple_pc": "1",
    "sec:our_introduction": "1",
    "sec:our_setting": "4.1",
    "sec:our_steady_state": "4.3",
    "sec:our_initial_norm": "4.5",
    "sec:our_baselines": "4.6.2",
    "sec:exchangebility_and_derivation": "5",
    "appendix:bounded_lambda_k": "A",
    "appendix:equivalence_to_oja": "B",
    "appendix:our_moments": "D.2",
    "appendix:proof_of_corollaries": "E",
}
_LABEL = re.compile(rf"\b({'|'.join(_KINDS)}):[\w>-]*\w")

_SYMBOLS = {
    "tau": "τ",
    "omega": "ω",
    "lambda": "λ",
    "lam": "λ",
    "xi": "ξ",
    "nu": "ν",  # noqa: RUF001
    "eta": "η",
    "Delta": "Δ",
}
_SYMBOL = re.compile(rf"(?<![A-Za-z])({'|'.join(_SYMBOLS)})(?![A-Za-z])")
_SIGNS = {"+-": "±", "->": "→", "!=": "≠", "<=": "≤", "sqrt(p)": "√p"}
_SIGNS |= {"sqrt(": "√(", "^2": "²", "^3": "³", "^4": "⁴", "^T": "ᵀ"}
_INITIAL = re.compile(r"(?<![\w`])([a-zA-Zλω])_?0(?!\w)")


def in_words(text: str) -> str:
    """Returns the text with LaTeX labels replaced by the paper's numbers, such as "equation
    (14)" for `eq:Q_t`, and with symbols such as `tau` as letters of their own."""
    text = _LABEL.sub(lambda match: _KINDS[match[1]].format(_NUMBERS[match[0]]), text)
    text = _SYMBOL.sub(lambda match: _SYMBOLS[match[0]], text)
    for written, sign in _SIGNS.items():
        text = text.replace(written, sign)
    return _INITIAL.sub(r"\1₀", text)
