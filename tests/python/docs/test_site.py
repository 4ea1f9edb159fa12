"""The built site in a browser: wide and narrow, in light and dark."""

from __future__ import annotations

import json
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Literal

import pytest
from playwright.sync_api import Browser, Page, TimeoutError, expect, sync_playwright  # noqa: A004 - its name there

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import chainframe as cf

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update")


class Files(SimpleHTTPRequestHandler):
    """Serves files without logging requests."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        pass


@pytest.fixture(scope="module")
def url(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium was found; install one, for example: sudo apt-get install chromium")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=found, args=[*QUIET, "--disable-background-networking"])


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    with browser.new_context(base_url=url, permissions=["clipboard-read", "clipboard-write"]) as context:
        # A busy machine takes longer than the 30 seconds of the library.
        context.set_default_navigation_timeout(0)
        yield context.new_page()


WIDTHS = (1280, 390)  # a desktop, a phone
LOOK = """() => [
    document.querySelectorAll('h1').length,
    [...document.querySelectorAll('[id]')].map(one => one.id),
    [...document.querySelectorAll('a[href]')].map(one => one.href),
    [...document.images].some(one => one.complete && !one.naturalWidth),
]"""


def watched(page: Page, url: str) -> list[str]:
    """A list that gets the errors of the page, and its requests to other hosts."""
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(f"{page.url}: console: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"{page.url}: {error}"))
    page.on(
        "request",
        lambda request: wrong.append(f"{page.url} requests {request.url}") if foreign(request.url, url) else None,
    )
    return wrong


def test_every_page_has_no_errors_broken_links_or_overflow(page: Page, url: str, site: Path) -> None:
    wrong = watched(page, url)
    # Each page would take half a second to index the text of all. The tests of the search do.
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8")) | {"docs": []}
    page.route("**/search_index.json", lambda route: route.fulfill(json=index))
    links: dict[str, str] = {}
    pages = {url, f"{url}."}
    widths = WIDTHS
    names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    for name in names:
        response = page.goto(name)
        assert response is not None
        assert response.ok
        heads, ids, out, broken = page.evaluate(LOOK)
        pages |= {f"{url}{name}", *(f"{url}{name}#{one}" for one in ids)}
        links |= {link.removesuffix("#"): name for link in out if link.startswith(url)}
        wrong += [f"{name}: {heads} h1"] * (heads != 1) + [f"{name}: an image is missing"] * broken
        # A page begins with the width of the one before.
        widths = widths[::-1]
        for width in widths:
            page.set_viewport_size({"width": width, "height": 844})
            try:  # the menu closes with an animation
                page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth", timeout=3_000)
            except TimeoutError:
                wrong.append(f"{name}: wider than {width}")
    wrong += [f"{name}: no {link}" for link, name in links.items() if link not in pages]
    assert wrong == []
    assert len(names) > 25
    assert len(links) > 200


@pytest.mark.parametrize(("scheme", "name"), [("light", "default"), ("dark", "slate")])
def test_color_scheme_follows_the_reader(page: Page, scheme: Literal["light", "dark"], name: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto("index.html")
    assert page.evaluate("document.body.dataset.mdColorScheme") == name


def foreign(requested: str, url: str) -> bool:
    return not requested.startswith((url, "data:", "blob:"))


@pytest.mark.parametrize(
    ("word", "where"),
    [
        ("NumericOverflowError", "reference/errors.html"),
        ("partitions", "guide/distributed.html"),
        ("rate_limit", "reliability.html"),
    ],
)
def test_search_finds_page(page: Page, url: str, word: str, where: str) -> None:
    wrong = watched(page, url)
    page.goto("index.html")
    field = page.get_by_role("textbox", name="Search")
    field.click()
    field.press_sequentially(word)
    expect(page.locator(f".md-search-result__link[href*='{where}'][href*='h={word.lower()}']").first).to_be_attached()
    assert wrong == []


def test_copy_button_copies_the_code(page: Page) -> None:
    page.goto("guide/queries.html")
    blocks = page.locator(".md-typeset pre > code")
    assert blocks.count() > 3
    for block in blocks.all():
        block.hover()
        block.locator("..").get_by_role("button").click()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.strip() == block.inner_text().strip() != ""


def test_notebook_outputs_have_no_copy_button(page: Page) -> None:
    page.goto("notebooks/first_look.html")
    outputs = page.locator(".output pre")
    assert outputs.count() > 3
    assert outputs.get_by_role("button").count() == 0


# The style that notebooks apply to every cell of a table.
JUPYTER = ":not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon :is(td, th) { text-align: right; padding: 0.5em; }"


def test_notebook_style_does_not_change_the_html_table(page: Page, client: cf.Client) -> None:
    html = client.blocks(max_items=3).collect()._repr_html_()
    page.set_content(f'<style>{JUPYTER}</style><div class="jp-RenderedHTMLCommon">{html}</div>')
    aligned = [cell.evaluate("cell => getComputedStyle(cell).textAlign") for cell in page.locator("tbody td").all()]
    assert aligned == ["right", "left", "right", "left", "left"] * 3
