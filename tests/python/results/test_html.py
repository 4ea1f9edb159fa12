"""HTML representations: complete, escaped, bounded and without secrets."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import Cassette, LocalService
from conftest import Sample
from strict_server import StrictServer, page_of

VOID = {"br"}


class Checked(HTMLParser):
    """Its text, once every element that was opened is found to be closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text: list[str] = []
        self.open: list[str] = []
        self.rows = 0
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"script", "img", "a"}
        assert {name for name, _ in attrs} <= {"class", "title"}
        self.rows += tag == "tr"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)


def shown(thing: Any) -> str:
    html = thing._repr_html_()
    assert len(html) < 40_000
    return " ".join(" ".join(Checked(html).text).split())


def test_records_are_shown_as_a_table(client: cf.Client, sample: Sample) -> None:
    records = client.token_transfers(sample.token).collect()
    text = shown(records)
    assert f"{len(records):,} rows of TokenTransfer, {len(records.schema)} columns" in text
    assert all(f"{name} " in text for name in records.schema.names)
    assert "time, UTC" in text
    assert str(records[0].transaction_time).replace("+00:00", "").rstrip("0") in text
    assert "✓ complete" in text
    assert Checked(records._repr_html_()).rows == 1 + 6 + 1 + 4
    assert Checked(records[:10]._repr_html_()).rows == 1 + 10
    assert Checked(records[:0]._repr_html_()).rows == 1
    assert "+00:00" not in text


def test_pages_are_shown_as_a_table(client: cf.Client) -> None:
    text = shown(next(client.blocks(page_size=50).pages()))
    columns = len(cf.Block.__match_args__)
    assert f"Page 1 of 12: 50 rows of Block, {columns} columns, 600 rows in the list" in text


def test_query_shows_its_report_after_a_run(client: cf.Client) -> None:
    query = client.transactions_by_hash(["0x1", "0x2"])
    assert "transactions_by_hash of MAIN" in (text := shown(query))
    assert "2 hashes" in text
    assert "Returns Transaction records with the columns transaction_time" in text
    assert "Nothing was sent yet." in text
    with pytest.warns(cf.IncompleteResultWarning):
        query.collect()
    assert "⚠ possibly incomplete: 0 records" in (text := shown(query))
    assert query.report.reasons[0] in text


def test_report_shows_its_counts_and_reasons(client: cf.Client) -> None:
    report = client.blocks().collect().report
    text = shown(report)
    assert "Report ✓ complete" in text
    assert f"{report.bytes:,}" in text


def test_client_shows_no_secret(service: LocalService) -> None:
    with service.client(passphrase="canary-of-a-passphrase", secret_key="canary-of-a-secret") as client:
        text = shown(client)
    assert service.url in text
    assert "MAIN" in text
    assert "canary" not in text
    assert service.api_key not in text


def test_values_of_the_api_are_escaped(server: StrictServer) -> None:
    nasty = "<script>alert('1')</script>\"&"
    rows = [
        {"tokenContractAddress": nasty, "token": nasty, "tokenFullName": "x" * 100_000, "website": "\x00\u202e"}
    ] * 30
    server.on("tokens", page_of("tokens", rows, chainFullName=nasty, totalPage="1"))
    with server.client() as client:
        query = client.tokens(token_contract_address=nasty)
        page = next(query.pages())
        for thing in (query, page, page.records):
            assert "\u202e" not in shown(thing)
            assert "<script" not in thing._repr_html_()
            assert "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;" in thing._repr_html_()


def test_texts_of_settings_and_responses_are_printable(server: StrictServer, tmp_path: Path) -> None:
    evil = "a\x1b]0;t\x07\x9b31m\u202eb\u2066c\u200bd\u00ade\ufefff\U000e0041g"
    server.on("tokens", page_of("tokens", [{"tokenContractAddress": "0x1", "token": evil}], chainFullName=evil))
    with pytest.raises(cf.ConfigError) as refused:
        server.client(main_chain=evil)
    with server.client() as client:
        records = client.tokens().collect()
        things = [records, records[0], records.report, next(client.tokens().pages()), refused.value]
        things += [client.blocks().follow(poll=None), Cassette(tmp_path / evil)]
        for thing in things:
            for text in (repr(thing), str(thing), getattr(thing, "_repr_html_", str)()):
                assert [char for char in text if not char.isprintable() and char != "\n"] == []


def test_repr_is_one_line(client: cf.Client) -> None:
    query = client.blocks()
    records = query.collect()
    for thing in (client, query, records, records.report, records[0], records.schema, next(query.pages())):
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 500


def test_query_shows_its_arguments(client: cf.Client) -> None:
    query = client.tokens(start_time="2026-01-31T09:08:57.715+01:00", page_size=7, max_items=9)
    given = "start_time=2026-01-31T08:08:57.715Z, page_size=7, max_items=9"
    assert repr(query) == f"<Query tokens of MAIN, {given}>"
    assert "2 hashes" in repr(client.logs(["0x1", "0x2"]))
    assert "2026-01-31T08:08:57.715Z" in query._repr_html_()
