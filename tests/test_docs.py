"""The documentation builds, its links resolve, and what docstrings show is true."""

import doctest
import functools
import inspect
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import jax
import matplotlib.pyplot as plt
import pytest

import inopca_jax as ino
from inopca_jax import data, plot

ROOT = Path(__file__).parents[1]
PAGES = sorted(ROOT.glob("docs/**/*.md"))

# The site is built once, and the examples share compiled programs.
pytestmark = pytest.mark.xdist_group("docs")


class Page(HTMLParser):
    """The links of a page, what it loads, and the anchors that it has."""

    LOADED = (("img", "src"), ("script", "src"), ("link", "href"), ("iframe", "src"))

    def __init__(self, path: Path):
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors |= {attributes.get("id"), attributes.get("name")} - {None}
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        self.loaded += [
            attributes[a] for t, a in self.LOADED if t == tag and a in attributes
        ]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site, and what the build printed."""
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    # Where nothing answers, a build that asks the network fails.
    nowhere = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https")}
    build = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | nowhere | dict(NO_MKDOCS_2_WARNING="1"),
        capture_output=True,
        text=True,
    )
    assert build.returncode == 0, build.stderr
    return folder, build.stdout + build.stderr


def test_the_site_builds_without_a_warning(site):
    folder, printed = site
    assert "WARNING" not in printed
    assert "ERROR" not in printed
    assert (folder / "index.html").stat().st_size > 1000


def test_every_link_of_the_site_resolves(site):
    folder, _ = site
    paths = sorted(p for p in folder.rglob("*.html") if p.name != "404.html")
    pages = {path: Page(path) for path in paths}
    assert len(pages) > len(PAGES)
    missing = []
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            is_found = target.is_file()
            if is_found and parts.fragment and target in pages:
                is_found = unquote(parts.fragment) in pages[target].anchors
            missing += [] if is_found else [(path.name, link)]
    assert missing == []


def test_the_site_loads_nothing_from_the_network(site):
    folder, _ = site
    for path in folder.rglob("*.html"):
        page = Page(path)
        assert [a for a in page.loaded if urlsplit(a).netloc] == [], path.name
    for path in folder.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*[\"']?https?:", path.read_text()) == []


def test_the_gallery_shows_the_figures_of_all_notebooks(site):
    folder, _ = site
    for notebook in ROOT.glob("notebooks/*.ipynb"):
        page = Page(folder / "gallery" / f"{notebook.stem}.html")
        assert any(image.endswith(".png") for image in page.loaded), notebook.stem
        assert (
            "arithmatex" not in (folder / "gallery" / f"{notebook.stem}.html").read_text()
        )


@pytest.mark.parametrize(
    "path",
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_every_relative_link_of_a_source_resolves(path):
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        parts = urlsplit(target)
        if parts.scheme or not parts.path:
            continue
        linked = (path.parent / parts.path).resolve()
        # The gallery's pages are made from the notebooks.
        notebook = ROOT / "notebooks" / f"{linked.stem}.ipynb"
        in_gallery = linked.parent == ROOT / "docs/gallery" and notebook.is_file()
        assert linked.exists() or in_gallery, target
        # The anchors of names are made from docstrings.
        is_heading = parts.fragment and not parts.fragment.startswith("inopca_jax.")
        if linked.suffix == ".md" and is_heading and not in_gallery:
            assert parts.fragment in headings(linked), target


def headings(path: Path) -> set[str]:
    """The anchors that GitHub and mkdocs make from a page's headings."""
    found = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", title).strip().lower() for title in found]
    return {re.sub(r"\s", "-", title) for title in plain}


PUBLIC = {
    **{f"inopca_jax.{name}": ino for name in ino.__all__ if not name.startswith("__")},
    **{f"inopca_jax.plot.{name}": plot for name in plot.__all__},
    **{
        f"inopca_jax.data.{name}": data
        for name, value in vars(data).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == data.__name__
    },
}


def test_every_public_name_is_on_one_page_of_the_api():
    shown = Counter(
        name
        for path in ROOT.glob("docs/api/*.md")
        for name in re.findall(r"^::: (\S+)$", path.read_text(), re.MULTILINE)
    )
    assert [name for name, count in shown.items() if count > 1] == []
    # Constants of `data` have no module that tells whose they are.
    assert set(shown) - set(PUBLIC) <= {"inopca_jax.data.FACES"}
    assert set(PUBLIC) - set(shown) == set()


@functools.cache
def documented(name):
    return getattr(PUBLIC[name], name.rsplit(".", 1)[1])


def is_explained(name):
    """Whether a name needs sections and an example: not a constant, nor an exception."""
    value = documented(name)
    is_error = isinstance(value, type) and issubclass(value, Exception)
    return callable(value) and not is_error


EXAMPLE = re.compile(r"\*\*Example:\*\*\n\n```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPLAINED = [name for name in PUBLIC if is_explained(name)]


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_docstring_has_its_sections(name):
    value = documented(name)
    doc = inspect.getdoc(value) or ""
    assert len(doc.splitlines()[0]) > 10
    takes = [
        p for p in inspect.signature(value).parameters.values() if p.kind != p.VAR_KEYWORD
    ]
    is_interface = isinstance(value, type) and inspect.isabstract(value)
    if takes and not is_interface:
        assert "**Arguments:**" in doc
    returns = inspect.signature(value).return_annotation is not None
    if returns and not isinstance(value, type):
        assert "**Returns:**" in doc


@pytest.mark.docs
@pytest.mark.parametrize("name", EXPLAINED)
def test_the_example_of_a_docstring_runs(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    doc = inspect.getdoc(documented(name)) or ""
    found = EXAMPLE.search(doc)
    assert found, f"the docstring of {name} has no **Example:** in a pycon block"
    example = doctest.DocTestParser().get_doctest(found[1], {}, name, None, 0)
    assert example.examples
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    printed: list[str] = []
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        result = doctest.DocTestRunner(optionflags=options).run(example, out=printed.append)
    plt.close("all")
    assert result.failed == 0, "".join(printed)


def test_the_files_and_names_of_how_it_works_exist():
    """A cell of a table names files, and what to read in them."""
    package = ROOT / "inopca_jax"
    cells = [
        cell
        for path in ROOT.glob("docs/inside/*.md")
        for line in path.read_text().splitlines()
        for cell in line.split("|")
        if line.startswith("|") and ".py`" in cell
    ]
    assert len(cells) > 20
    for cell in cells:
        folder, text = package, ""
        for token in re.findall(r"`([\w/]+\.py)`", cell):
            # Either from the package on, or beside the file before it.
            path = next(p for p in (package / token, folder / token) if p.is_file())
            folder, text = path.parent, text + path.read_text()
        for name in re.findall(r"`(\w+)`", cell):
            assert re.search(rf"(def|class) {name}\b", text), cell
