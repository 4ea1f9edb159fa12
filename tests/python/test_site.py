"""The site in a browser, as a reader has it: on a desk and on a telephone, in light and dark."""

from __future__ import annotations

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
    """Tells nobody what it was asked for."""

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
        yield context.new_page()


WIDTHS = (1280, 390)  # a desk, a telephone
LOOK = """() => [
    document.querySelectorAll('h1').length,
    [...document.querySelectorAll('[id]')].map(one => one.id),
    [...document.querySelectorAll('a[href]')].map(one => one.href),
    [...document.images].some(one => one.complete && !one.naturalWidth),
]"""


def test_every_page_is_sound(page: Page, url: str, site: Path) -> None:
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(f"{page.url}: console: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"{page.url}: {error}"))
    page.on("request", lambda asked: wrong.append(f"{page.url} asks {asked.url}") if foreign(asked.url, url) else None)
    links: dict[str, str] = {}
    places = {url, f"{url}."}
    names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    for name in names:
        answer = page.goto(name)
        assert answer is not None
        assert answer.ok
        heads, ids, out, broken = page.evaluate(LOOK)
        places |= {f"{url}{name}", *(f"{url}{name}#{one}" for one in ids)}
        links |= {link.removesuffix("#"): name for link in out if link.startswith(url)}
        wrong += [f"{name}: {heads} h1"] * (heads != 1) + [f"{name}: a picture is missing"] * broken
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 844})
            try:  # the menu takes a moment to get out of the way
                page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth", timeout=3_000)
            except TimeoutError:
                wrong.append(f"{name}: wider than {width}")
    wrong += [f"{name}: no {link}" for link, name in links.items() if link not in places]
    assert wrong == []
    assert len(names) > 25
    assert len(links) > 200


@pytest.mark.parametrize(("scheme", "name"), [("light", "default"), ("dark", "slate")])
def test_it_takes_the_readers_colours(page: Page, scheme: Literal["light", "dark"], name: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto("index.html")
    assert page.evaluate("document.body.dataset.mdColorScheme") == name


def foreign(asked: str, url: str) -> bool:
    return not asked.startswith((url, "data:", "blob:"))


@pytest.mark.parametrize(
    ("word", "where"),
    [
        ("NumericOverflowError", "reference/errors.html"),
        ("partitions", "guide/parts.html"),
        ("rate_limit", "guide/limits.html"),
    ],
)
def test_the_search_leads_there(page: Page, word: str, where: str) -> None:
    page.goto("index.html")
    field = page.get_by_role("textbox", name="Search")
    field.click()
    field.press_sequentially(word)
    expect(page.locator(f".md-search-result__link[href*='{where}'][href*='h={word.lower()}']").first).to_be_attached()


def test_code_is_copied_as_it_stands(page: Page) -> None:
    page.goto("guide/query.html")
    blocks = page.locator(".md-typeset pre > code")
    assert blocks.count() > 3
    for block in blocks.all():
        block.hover()
        block.locator("..").get_by_role("button").click()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.strip() == block.inner_text().strip() != ""


def test_what_a_cell_gave_is_not_for_copying(page: Page) -> None:
    page.goto("notebooks/first_look.html")
    given = page.locator(".output pre")
    assert given.count() > 3
    assert given.get_by_role("button").count() == 0


# What notebooks say of every cell of a table.
JUPYTER = ":not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon :is(td, th) { text-align: right; padding: 0.5em; }"


def test_a_notebook_leaves_a_form_as_it_is(page: Page, client: cf.Client) -> None:
    form = client.blocks(max_items=3).collect()._repr_html_()
    page.set_content(f'<style>{JUPYTER}</style><div class="jp-RenderedHTMLCommon">{form}</div>')
    aligned = [cell.evaluate("cell => getComputedStyle(cell).textAlign") for cell in page.locator("tbody td").all()]
    assert aligned == ["left", "right", "left", "left", "right"] * 3
