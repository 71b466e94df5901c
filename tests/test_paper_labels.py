"""Readers see the paper's numbers and symbols, never its LaTeX labels."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from inopca_jax import paper
from inopca_jax.paper.claim import Claims, Finding
from inopca_jax.paper.labels import in_words

CLAIMS = sorted(Path(paper.__file__).parent.rglob("*claims.py"))
NOT_FOR_READERS = re.compile(
    r"\b(eq|fig|cor|sec|lem|rem|alg|theo|appendix):|[$\\]"
    r"|(?<![A-Za-z])(tau|omega|lambda|lam0?|xi|nu|eta|Delta|sqrt)(?![A-Za-z])"
)


def test_labels_and_symbols_become_words_and_letters():
    assert in_words("cor:Qt, eq:Q_t") == "Corollary 1, equation (14)"
    assert in_words("lem:lambda>0, alg:INO-PCA_multiple_pc.") == "Lemma 1, Algorithm 1."
    assert in_words("tau/lam0, lambda_0, omega_c, xi^T x") == "τ/λ₀, λ₀, ω_c, ξᵀ x"
    assert in_words("b0 = p, Q_0, t0=2, 10, p0x, `q0`") == "b₀ = p, Q₀, t₀=2, 10, p0x, `q0`"
    assert in_words("1/sqrt(p), sqrt(1 + 2 tau), Q^2") == "1/√p, √(1 + 2 τ), Q²"
    assert in_words("menu, lambs and taut") == "menu, lambs and taut"
    with pytest.raises(KeyError, match="eq:none"):
        in_words("as in eq:none")


def test_the_fixed_words_of_a_claim_are_those_of_its_check():
    claims = Claims()

    @claims.add("fig:tau", "does not hold", factor=2)
    def check(arrays, factor):
        """lam is {factor} times
        tau.

        Because of eq:Q_t.
        """
        return Finding(arrays["lam"], 0, "lam +- xi", arrays["lam"] > 0, conditional=True)

    found = [*claims({"lam": np.array(1.5)}), check({"lam": np.array(-1.5)})]
    assert [claim.verdict for claim in found] == ["holds", "holds with a condition"]
    assert found[0].statement == "λ is 2 times τ"
    assert found[0].evidence == "λ ± ξ"
    assert found[0].explanation == "Because of equation (14)."
    assert (found[0].source, found[0].label) == ("Figure 5", "fig:tau")
    assert (found[0].number, found[0].recorded) == (1.5, "does not hold")


@pytest.mark.parametrize("path", CLAIMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_text_of_a_claim_keeps_a_label_or_the_name_of_a_symbol(path):
    """Also the parts of texts into which numbers are inserted."""
    nodes = ast.walk(ast.parse(path.read_text()))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
    shown = [in_words(text) for text in texts if isinstance(text, str)]
    assert [text for text in shown if NOT_FOR_READERS.search(text)] == []


@pytest.mark.parametrize("figure", paper.FIGURES, ids=lambda figure: figure.name)
def test_no_caption_keeps_a_label_or_the_name_of_a_symbol(figure):
    assert not NOT_FOR_READERS.search(figure.description)
    assert not NOT_FOR_READERS.search(figure.label)
    expected = "Figure " if figure.section == "paper" else figure.name.replace("_", " ")
    assert figure.label.startswith(expected)
