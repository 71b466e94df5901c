"""The report: all figures and claims in one page, which needs neither network nor the files
beside it."""

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

from ..claim import Claim, Made, Verdict
from ..figures import BEYOND, PAPER
from ..page import page

_PACKAGES = ("inopca_jax", "jax", "jaxlib", "diffrax", "equinox", "optax", "numpy")
_CLASSES = dict(zip(get_args(Verdict), ("holds", "condition", "not"), strict=True))


def report_page(out: Path, results: Sequence[Made], quick: bool) -> str:
    """The text of `index.html`, with the pictures in the folder `out / "figures"`."""
    claims = [claim for made in results for claim in made.claims]
    texts = dict(
        summary=_summary(claims, quick),
        counts=_counts(claims),
        contents=_contents(results),
        glance="".join(_glance(made) for made in results),
        figures="".join(_section(out, made) for made in results),
        versions=_pairs(versions()),
    )
    return page(__name__, texts)


def versions() -> dict[str, str]:
    """Of all that the numbers depend on, and where they were computed."""
    found = {name: importlib.metadata.version(name) for name in _PACKAGES}
    devices = ", ".join(dict.fromkeys(device.device_kind for device in jax.devices()))
    return found | {
        "Python": platform.python_version(),
        "devices": f"{jax.device_count()} x {devices}",
        "system": platform.platform(terse=True),
    }


def _of(claims: Iterable[Claim]) -> dict[Verdict, int]:
    verdicts = [claim.verdict for claim in claims]
    return {name: verdicts.count(name) for name in _CLASSES}


def _summary(claims: Sequence[Claim], quick: bool) -> str:
    off = sum(claim.verdict != claim.recorded for claim in claims)
    told = ", ".join(
        f"{count} {_plural(name, count)}" for name, count in _of(claims).items()
    )
    text = f"Of {len(claims)} statements {told}."
    text += f" <strong>Not as on record: {off}.</strong>" if off else ""
    return text + (" A quick run, with fewer trials." if quick else "")


def _plural(verdict: Verdict, count: int) -> str:
    if count == 1:
        return verdict
    return verdict.replace("holds", "hold").replace("does", "do")


def _counts(claims: Sequence[Claim]) -> str:
    """What the table at the top shows can be chosen, without a script."""
    rows = [("all", "all", len(claims))]
    rows += [(_CLASSES[name], name, count) for name, count in _of(claims).items()]
    return "".join(
        f'<label><input type="radio" name="shown" id="show-{kind}"'
        f"{' checked' if kind == 'all' else ''}>{name} <b>{count}</b></label>"
        for kind, name, count in rows
    )


def _contents(results: Sequence[Made]) -> str:
    return "".join(
        f'<li><a href="#{made.name}">{_label(made.name)}</a> {_title(made)[0]}</li>'
        for made in results
    )


def _label(name: str) -> str:
    if name in PAPER:
        return f"fig:{name}"
    return name.replace("_", " ")


def _title(made: Made) -> tuple[str, str]:
    """The first sentence of what a module says of itself, and the rest."""
    text = cleandoc(made.about)
    title, _, rest = text.partition("\n\n")
    title = " ".join(title.split()).rstrip(".")
    return _marked(title), "".join(f"<p>{_marked(p)}</p>" for p in rest.split("\n\n") if p)


def _marked(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _glance(made: Made) -> str:
    return "".join(
        f'<tr class="{_CLASSES[claim.verdict]}"><td>{_chip(claim)}</td>'
        f"<td>{escape(claim.where)}</td>"
        f'<td><a href="#{made.name}-{i}">{escape(claim.says)}</a></td></tr>'
        for i, claim in enumerate(made.claims)
    )


def _chip(claim: Claim) -> str:
    chip = f'<span class="chip {_CLASSES[claim.verdict]}">{claim.verdict}</span>'
    if claim.verdict == claim.recorded:
        return chip
    return f'{chip}<span class="off">on record: {claim.recorded}</span>'


def _section(out: Path, made: Made) -> str:
    title, caption = _title(made)
    kind = "beyond the paper" if made.name in BEYOND else _label(made.name)
    head = f'<section id="{made.name}"><h2><span>{kind}</span>{title}</h2>'
    if made.missing or made.failed:
        why = f"left out: {made.missing}" if made.missing else f"failed: {made.failed}"
        trace = f"<pre>{escape(made.traceback)}</pre>" if made.traceback else ""
        return f'{head}<p class="off">{escape(why)}</p>{trace}</section>'
    pictures = "".join(_picture(out, name, title) for name in made.drawn)
    rows = "".join(_row(made.name, i, claim) for i, claim in enumerate(made.claims))
    table = (
        '<div class="wide"><table class="claims"><thead><tr><th>statement</th>'
        '<th>number</th><th title="a standard error of Monte Carlo, or the tolerance of a '
        'numerical check">error</th><th>what comes out, and why</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    arrays = f'<p class="files"><a href="arrays/{made.name}.npz">arrays (npz)</a></p>'
    configs = f"<details><summary>Configs</summary>{_configs(made.configs)}</details>"
    return (
        f'{head}{pictures}<div class="caption">{caption}</div>{arrays}{table}'
        f"{configs if made.configs else ''}</section>"
    )


def _picture(out: Path, name: str, title: str) -> str:
    path = out / "figures" / f"{name}.png"
    data = base64.b64encode(path.read_bytes()).decode()
    return (
        f'<figure><img alt="{title}" src="data:image/png;base64,{data}">'
        f'<figcaption class="files"><a href="figures/{name}.png">PNG</a> '
        f'<a href="figures/{name}.pdf">PDF</a></figcaption></figure>'
    )


def _row(name: str, i: int, claim: Claim) -> str:
    error = f"{claim.error:.2g}" if claim.error else ""
    return (
        f'<tr id="{name}-{i}"><td>{_chip(claim)}<p>{escape(claim.says)}</p>'
        f'<p class="where">{escape(claim.where)}</p></td>'
        f"<td>{claim.number:.4g}</td><td>{error}</td>"
        f'<td>{escape(claim.found)}.<p class="why">{escape(claim.why)}</p></td></tr>'
    )


def _configs(configs: Mapping[str, str]) -> str:
    return "".join(
        f"<h3>{escape(name)}</h3><pre>{escape(text)}</pre>"
        for name, text in configs.items()
    )


def _pairs(pairs: Mapping[str, str]) -> str:
    return "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in pairs.items())
