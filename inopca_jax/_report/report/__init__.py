"""The report's main page, in one file: all figures and claims."""

import base64
import importlib.metadata
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from inspect import cleandoc
from pathlib import Path
from typing import get_args

import jax

from ...paper.claim import Claim, Verdict
from ...paper.figure import PaperFigure
from ..page import page
from ..result import FigureResult

_PACKAGES = ("inopca_jax", "jax", "jaxlib", "diffrax", "equinox", "optax", "numpy")
_CSS_CLASSES = dict(zip(get_args(Verdict), ("holds", "condition", "not"), strict=True))


def report_page(
    out: Path, results: Sequence[tuple[PaperFigure, FigureResult]], quick: bool
) -> str:
    """Returns the text of `index.html`, with the pictures from `out / "figures"`."""
    claims = [claim for _, result in results for claim in result.claims]
    texts = dict(
        summary=_summary(claims, quick),
        counts=_filter(claims),
        contents="".join(_contents_item(figure) for figure, _ in results),
        overview="".join(_overview_rows(result) for _, result in results),
        figures="".join(_section(out, *pair) for pair in results),
        versions=_definitions(versions()),
    )
    return page(__name__, texts)


def versions() -> dict[str, str]:
    """Returns the versions of the packages that the numbers depend on, and the machine."""
    packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
    devices = ", ".join(dict.fromkeys(device.device_kind for device in jax.devices()))
    return packages | {
        "Python": platform.python_version(),
        "devices": f"{jax.device_count()} x {devices}",
        "system": platform.platform(terse=True),
    }


def _counts(claims: Iterable[Claim]) -> dict[Verdict, int]:
    verdicts = [claim.verdict for claim in claims]
    return {name: verdicts.count(name) for name in _CSS_CLASSES}


def _summary(claims: Sequence[Claim], quick: bool) -> str:
    unexpected = sum(claim.verdict != claim.recorded for claim in claims)
    counts = ", ".join(
        f"{count} {_plural(name, count)}" for name, count in _counts(claims).items()
    )
    text = f"Of {len(claims)} statements {counts}."
    if unexpected:
        text += f" <strong>Verdicts other than on record: {unexpected}.</strong>"
    return text + (" This was a quick run, with fewer trials." if quick else "")


def _plural(verdict: Verdict, count: int) -> str:
    if count == 1:
        return verdict
    return verdict.replace("holds", "hold").replace("does", "do")


def _filter(claims: Sequence[Claim]) -> str:
    """Returns radio buttons that filter the overview by verdict; the style sheet does the
    filtering, without a script."""
    rows = [("all", "all", len(claims))]
    rows += [(_CSS_CLASSES[name], name, count) for name, count in _counts(claims).items()]
    return "".join(
        f'<label><input type="radio" name="shown" id="show-{kind}"'
        f"{' checked' if kind == 'all' else ''}>{name} <b>{count}</b></label>"
        for kind, name, count in rows
    )


def _contents_item(figure: PaperFigure) -> str:
    title, _ = _title_and_caption(figure)
    return f'<li><a href="#{figure.name}">{figure.label}</a> {title}</li>'


def _title_and_caption(figure: PaperFigure) -> tuple[str, str]:
    """Returns the first paragraph of the figure's description, and the others as HTML."""
    title, _, caption = cleandoc(figure.description).partition("\n\n")
    title = " ".join(title.split()).rstrip(".")
    paragraphs = [text for text in caption.split("\n\n") if text]
    return _with_code(title), "".join(f"<p>{_with_code(text)}</p>" for text in paragraphs)


def _with_code(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _overview_rows(result: FigureResult) -> str:
    return "".join(
        f'<tr class="{_CSS_CLASSES[claim.verdict]}"><td>{_chip(claim)}</td>'
        f"<td>{escape(claim.source)}</td>"
        f'<td><a href="#{result.name}-{i}">{escape(claim.statement)}</a></td></tr>'
        for i, claim in enumerate(result.claims)
    )


def _chip(claim: Claim) -> str:
    chip = f'<span class="chip {_CSS_CLASSES[claim.verdict]}">{claim.verdict}</span>'
    if claim.verdict == claim.recorded:
        return chip
    return f'{chip}<span class="alert">on record: {claim.recorded}</span>'


def _section(out: Path, figure: PaperFigure, result: FigureResult) -> str:
    title, caption = _title_and_caption(figure)
    kind = "beyond the paper" if figure.section == "beyond" else figure.label
    head = f'<section id="{figure.name}"><h2><span>{kind}</span>{title}</h2>'
    if result.unavailable or result.failure:
        reason = f"left out: {result.unavailable}"
        if result.failure:
            reason = f"failed: {result.failure}"
        trace = f"<pre>{escape(result.traceback)}</pre>" if result.traceback else ""
        return f'{head}<p class="alert">{escape(reason)}</p>{trace}</section>'
    pictures = "".join(_picture(out, name, title) for name in result.drawings)
    rows = "".join(_claim_row(figure.name, i, c) for i, c in enumerate(result.claims))
    table = (
        '<div class="wide"><table class="claims"><thead><tr><th>statement</th>'
        '<th>number</th><th title="the standard error of Monte Carlo, or the tolerance of '
        'a numerical check">error</th><th>evidence and explanation</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    arrays = f'<p class="files"><a href="arrays/{figure.name}.npz">arrays (npz)</a></p>'
    configs = f"<details><summary>Configs</summary>{_configs(result.configs)}</details>"
    return (
        f'{head}{pictures}<div class="caption">{caption}</div>{arrays}{table}'
        f"{configs if result.configs else ''}</section>"
    )


def _picture(out: Path, name: str, title: str) -> str:
    path = out / "figures" / f"{name}.png"
    data = base64.b64encode(path.read_bytes()).decode()
    return (
        f'<figure><img alt="{title}" src="data:image/png;base64,{data}">'
        f'<figcaption class="files"><a href="figures/{name}.png">PNG</a> '
        f'<a href="figures/{name}.pdf">PDF</a></figcaption></figure>'
    )


def _claim_row(name: str, i: int, claim: Claim) -> str:
    error = f"{claim.error:.2g}" if claim.error else ""
    return (
        f'<tr id="{name}-{i}"><td>{_chip(claim)}<p>{escape(claim.statement)}</p>'
        f'<p class="source">{escape(claim.source)}</p></td>'
        f"<td>{claim.number:.4g}</td><td>{error}</td><td>{escape(claim.evidence)}."
        f'<p class="explanation">{escape(claim.explanation)}</p></td></tr>'
    )


def _configs(configs: Mapping[str, str]) -> str:
    return "".join(
        f"<h3>{escape(name)}</h3><pre>{escape(text)}</pre>"
        for name, text in configs.items()
    )


def _definitions(pairs: Mapping[str, str]) -> str:
    return "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in pairs.items())
