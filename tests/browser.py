"""A real browser, for tests of pages that say `pytest_plugins = ["tests.browser"]`."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

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
