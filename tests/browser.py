"""A real browser, for tests of pages that say `pytest_plugins = ["tests.browser"]`."""

import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

# Debian's names and Google's. A browser of playwright's own would have to be fetched.
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# As root there is no sandbox; the rest keeps the browser from calling home.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless, with a profile that is empty; a page or context of it is a test's own."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(
            f"no browser: none of {', '.join(NAMES)} is on PATH. On Debian or Ubuntu: "
            "apt-get install --no-install-recommends chromium fonts-dejavu-core"
        )
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture
def visit(browser) -> Iterator[Callable[..., Page]]:
    """Opens an address. What is opened must ask for nothing but local files, whose contents
    may be in the page, and must not complain."""
    pages, asked, complaints = [], [], []

    def visit(address: str, width: int = 1200, scheme: str = "light") -> Page:
        size = dict(width=width, height=900)
        page = browser.new_page(viewport=size, color_scheme=scheme)
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        pages.append(page)
        return page

    yield visit
    for page in pages:
        page.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert complaints == []
