"""The report's main page, in one file: all figures and claims."""

import base64
import importlib.metadata
import platform
import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from inspect import cleandoc
from pathlib import Path
from typing import get_args

import jax

from ...paper.claim import Claim, Verdict
from ...paper.figure import PaperFigure
from ...paper.labels import in_words
from ...plot._style import PIXELS_PER_INCH
from ..page import page
from ..result import FigureResult

_PACKAGES = ("inopca_jax", "jax", "jaxlib", "diffrax", "equinox", "optax", "numpy")
_CSS_CLASSES = dict(zip(get_args(Verdict), ("holds", "condition", "not"), strict=True))

_SUBSCRIPT = re.compile(r"(?<![A-Za-z])([A-Za-zλω])_([a-z])(?![A-Za-z])")
_PHONE_INCHES = 6.0
"""The widest picture whose letters can still be read if it is scaled to a phone's width."""


def report_page(
    out: Path, results: Sequence[tuple[PaperFigure, FigureResult]], quick: bool
) -> str:
    """Returns the text of `index.html`, with the pictures from `out / "figures"`."""
    claims = [claim for _, result in results for claim in result.claims]
    texts = dict(
        summary=_summary(claims, quick),
        contents="".join(f"<li>{_link(figure)}</li>" for figure, _ in results),
        figures="".join(_section(out, *pair) for pair in results),
        filter=_filter(),
        statements="".join(_statements(*pair) for pair in results),
        configs="".join(_configs(*pair) for pair in results),
        versions=_versions(),
    )
    return page(__name__, "Implicitly Normalized Online PCA, reproduced", texts)


def _versions() -> str:
    """Returns the versions of the packages that the numbers depend on, and the machine."""
    pairs = {name: importlib.metadata.version(name) for name in _PACKAGES}
    devices = ", ".join(dict.fromkeys(device.device_kind for device in jax.devices()))
    pairs["Python"] = platform.python_version()
    pairs["devices"] = f"{jax.device_count()} x {devices}"
    pairs["system"] = platform.platform(terse=True)
    return "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in pairs.items())


def _summary(claims: Sequence[Claim], quick: bool) -> str:
    unexpected = sum(claim.verdict != claim.recorded for claim in claims)
    counts = Counter(claim.verdict for claim in claims)
    verdicts = ", ".join(f"{name}: {counts[name]}" for name in _CSS_CLASSES)
    text = f"{len(claims)} statements are checked ({verdicts})."
    if unexpected:
        text += f" <strong>Verdicts other than on record: {unexpected}.</strong>"
    return text + (" This was a quick run, with fewer trials." if quick else "")


def _filter() -> str:
    """Returns radio buttons that filter the table by verdict; the style sheet does the
    filtering, without a script."""
    return "".join(
        f'<label><input type="radio" name="shown" id="show-{kind}"'
        f"{' checked' if kind == 'all' else ''}>{name}</label>"
        for name, kind in {"all": "all", **_CSS_CLASSES}.items()
    )


def _link(figure: PaperFigure) -> str:
    return f'<a href="#{figure.name}">{escape(figure.label)}</a>'


def _title_and_caption(figure: PaperFigure) -> tuple[str, str]:
    """Returns the first paragraph of the figure's description, and the others as HTML."""
    title, *caption = cleandoc(figure.description).split("\n\n")
    title = " ".join(title.split()).rstrip(".")
    return as_html(title), "".join(f"<p>{as_html(text)}</p>" for text in caption)


def as_html(text: str) -> str:
    """Returns text as HTML, with code for `code` and a subscript for that of `Q_t`."""
    parts = escape(text).split("`")
    parts[::2] = [_SUBSCRIPT.sub(r"\1<sub>\2</sub>", part) for part in parts[::2]]
    parts[1::2] = [f"<code>{part}</code>" for part in parts[1::2]]
    return "".join(parts)


def _section(out: Path, figure: PaperFigure, result: FigureResult) -> str:
    """Returns the figure's pictures and caption with the statements about it."""
    title, caption = _title_and_caption(figure)
    name = figure.name
    if result.unavailable or result.failure:
        outcome = "left out" if result.unavailable else "failed"
        reason = escape(f"{outcome}: {result.unavailable or result.failure}")
        content = f'<p class="alert">{reason}</p><pre>{escape(result.traceback)}</pre>'
    else:
        pictures = "".join(_picture(out, drawing, title) for drawing in result.drawings)
        claims = "".join(_claim(name, i, claim) for i, claim in enumerate(result.claims))
        files = [f"figures/{drawing}.pdf" for drawing in result.drawings]
        files.append(f"arrays/{name}.npz")
        links = " ".join(f'<a href="{file}">{Path(file).name}</a>' for file in files)
        content = (
            f'<div class="beside"><figure>{pictures}<figcaption>{caption}'
            f'<p class="files">{links}</p></figcaption></figure>'
            f'<ul class="claims" aria-label="Statements">{claims}</ul></div>'
        )
    kind = " · beyond the paper" if figure.section == "beyond" else ""
    return (
        f'<section id="{name}" class="card" aria-labelledby="{name}-title">'
        f'<h2 id="{name}-title"><span>{_link(figure)}{kind}</span>{title}</h2>'
        f"{content}</section>"
    )


def _picture(out: Path, name: str, title: str) -> str:
    png = (out / "figures" / f"{name}.png").read_bytes()
    alt = f"{re.sub('<[^>]+>', '', title.replace('<sub>', '_'))} ({name})"
    inches = int.from_bytes(png[16:20], "big") / PIXELS_PER_INCH  # the file's width
    least = f' style="--least: {72 * inches:.0f}px"' if inches > _PHONE_INCHES else ""
    data = base64.b64encode(png).decode()
    return (
        f'<a class="picture" href="figures/{name}.png">'
        f'<img alt="{alt}"{least} src="data:image/png;base64,{data}"></a>'
    )


def _claim(name: str, i: int, claim: Claim) -> str:
    return (
        f'<li><details id="{name}-{i}"><summary>{as_html(claim.statement)} {_chip(claim)}'
        f'</summary><p class="source">{escape(claim.source)}</p>'
        f"<p>{as_html(claim.evidence)}.</p><p>{as_html(claim.explanation)}</p></details></li>"
    )


def _chip(claim: Claim) -> str:
    chip = f'<span class="chip {_CSS_CLASSES[claim.verdict]}">{claim.verdict}</span>'
    if claim.verdict == claim.recorded:
        return chip
    return f'{chip} <span class="alert">on record: {claim.recorded}</span>'


def _statements(figure: PaperFigure, result: FigureResult) -> str:
    """Returns the rows of the figure in the table of all statements."""
    if not result.claims:
        return ""
    rows = "".join(
        f'<tr class="{_CSS_CLASSES[claim.verdict]}">'
        f'<th scope="row"><a href="#{figure.name}-{i}">{as_html(claim.statement)}</a></th>'
        f"<td>{_chip(claim)}</td><td>{escape(claim.source)}</td>"
        f'<td data-label="number">{claim.number:.4g}</td>'
        f'<td data-label="error">{f"{claim.error:.2g}" if claim.error else ""}</td></tr>'
        for i, claim in enumerate(result.claims)
    )
    head = f'<tr><th colspan="5" scope="rowgroup">{_link(figure)}</th></tr>'
    return f"<tbody>{head}{rows}</tbody>"


def _configs(figure: PaperFigure, result: FigureResult) -> str:
    if not result.configs:
        return ""
    texts = "".join(
        f"<h3>{escape(in_words(name))}</h3><pre>{escape(text)}</pre>"
        for name, text in result.configs.items()
    )
    return f"<details><summary>{escape(figure.label)}</summary>{texts}</details>"
