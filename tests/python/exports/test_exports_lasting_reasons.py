"""Series of lists that lack something for good: a night may fail, and the next one continues and reports it."""

from __future__ import annotations

import asyncio
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
import chainframe.exports
from chainframe.testing import LocalService
from exports.test_exports_since import Chain
from strict_server import error, key_of, member_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from strict_server import Request, Response, StrictServer

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
SETTLE = 3
HALF = "Some records have the member nonce in another spelling than others: these values were not read."


class Changed(Chain):
    """Changes its rows from some day on."""

    change: Callable[[list[dict[str, str]]], list[dict[str, str]]] | None = None

    def record(self, number: int) -> dict[str, str]:
        return {**super().record(number), "nonce": "7", "transactionTime": str(1_700_000_000_000 + number)}

    def respond(self, request: Request) -> Response:
        kept = self.rows
        self.rows = [dict(row) for row in kept] if self.change is None else self.change([dict(row) for row in kept])
        response = super().respond(request)
        self.rows = kept
        return response


def run(query: cf.Query[Any], directory: Path) -> list[str]:
    """The reasons of a night, or the message of its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            query.to_parquet_series(directory, settle=SETTLE)
        except cf.ExportError as failure:
            return [f"{type(failure).__name__}: {failure}"]
    return [str(warning.message) for warning in caught]


def heights(directory: Path) -> list[int]:
    found: list[Any] = chainframe.exports.read(directory).to_table()["height"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize("lost", [125, 118])
def test_block_that_is_never_listed_fails_one_night_and_is_reported_by_the_next(
    server: StrictServer, tmp_path: Path, lost: int
) -> None:
    chain = Changed(server, "blocks", 120)
    query = chain.query(server.client(), page_size=10)
    assert run(query, tmp_path) == []
    assert heights(tmp_path) == list(range(1, 118))
    chain.change = lambda rows: [row for row in rows if row["height"] != str(lost)]
    chain.grow(10)
    (error,) = run(query, tmp_path)
    assert "could not be read completely: The heights of blocks have gaps: 1 block is missing" in error
    chain.grow(10)
    reasons = run(query, tmp_path)
    assert reasons
    assert all("The heights of blocks have gaps: 1 block is missing" in reason for reason in reasons)
    chain.grow(10)
    assert run(query, tmp_path) == []
    assert heights(tmp_path) == [height for height in range(1, 148) if height != lost]


def test_exported_block_that_is_not_listed_any_more_is_corrected_by_the_second_night(
    server: StrictServer, tmp_path: Path
) -> None:
    chain = Changed(server, "blocks", 120)
    query = chain.query(server.client(), page_size=10)
    run(query, tmp_path)
    chain.change = lambda rows: [row for row in rows if row["height"] != "116"]
    chain.grow(10)
    assert "could not be read completely" in run(query, tmp_path)[0]
    assert 116 in heights(tmp_path)
    (reason,) = run(query, tmp_path)
    assert "1 block is missing" in reason
    first = chainframe.exports.Export.open(tmp_path / "export-000001")
    assert first.report.reasons[-1] == (
        "Records of earlier exports above height 114 changed in a list that was not complete: "
        "those that it lacked were taken for removed."
    )
    assert heights(tmp_path) == [height for height in range(1, 128) if height != 116]


def test_block_that_is_not_listed_for_a_night_is_exported_by_the_next(server: StrictServer, tmp_path: Path) -> None:
    chain = Changed(server, "blocks", 120)
    query = chain.query(server.client(), page_size=10)
    run(query, tmp_path)
    chain.change = lambda rows: [row for row in rows if row["height"] not in {"116", "125"}]
    chain.grow(10)
    assert "could not be read completely" in run(query, tmp_path)[0]
    chain.change = None
    assert run(query, tmp_path) == []
    assert heights(tmp_path) == list(range(1, 128))


def half(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    for row in rows[::2]:
        row["Nonce"] = row.pop("nonce")
    return rows


def without(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    for row in rows:
        del row["nonce"]
    return rows


def renamed(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    for row in rows:
        row["Nonce"] = row.pop("nonce")
    return rows


@pytest.mark.parametrize(
    ("before", "after"), [(None, without), (without, None), (None, renamed), (renamed, None), (renamed, without)]
)
def test_member_that_is_sent_from_some_day_on_or_no_longer_changes_no_exported_record(
    server: StrictServer, tmp_path: Path, before: Any, after: Any
) -> None:
    chain = Changed(server, "address_transactions", 120)
    query = chain.query(server.client(), page_size=10)
    chain.change = before
    for _ in range(3):
        assert not any("ExportError" in reason or "HeightError" in reason for reason in run(query, tmp_path))
        chain.change = after
        chain.grow(10)
    table = chainframe.exports.read(tmp_path).to_table().sort_by("height")
    assert table["height"].to_pylist() == list(range(1, 138))
    nonces = [None if before else 7] * 117 + [None if after else 7] * 20
    assert table["nonce"].to_pylist() == nonces


@pytest.mark.parametrize("first", [0, 1])
def test_member_in_two_spellings_fails_one_night(server: StrictServer, tmp_path: Path, first: int) -> None:
    chain = Changed(server, "address_transactions", 120)
    query = chain.query(server.client(), page_size=10)
    failed = []
    for _ in range(5):
        reasons = run(query, tmp_path)
        failed.append("ExportError" in reasons[0])
        assert (HALF in reasons[0]) == (chain.change is not None)
        chain.change = half
        chain.grow(10 + first)
    assert failed == [False, True, False, False, False]
    assert heights(tmp_path) == list(range(1, 118 + 4 * (10 + first)))
    table = chainframe.exports.read(tmp_path).to_table().sort_by("height")
    assert table["nonce"].to_pylist()[:117] == [7] * 117


def test_short_list_with_a_reason_is_compared_to_its_end(server: StrictServer, tmp_path: Path) -> None:
    chain = Changed(server, "address_transactions", 5)
    query = chain.query(server.client(), page_size=10)
    run(query, tmp_path)
    chain.change = half
    chain.grow(3)
    assert HALF in run(query, tmp_path)[0]
    assert not any("were not reached" in reason for reason in run(query, tmp_path))
    assert heights(tmp_path) == [1, 2, 3, 4, 5]


def test_interrupted_nights_of_a_list_with_a_lasting_reason_continue(server: StrictServer, tmp_path: Path) -> None:
    chain = Changed(server, "blocks", 120)
    client = server.client(max_retries=0)
    query = chain.query(client, page_size=10)
    run(query, tmp_path)
    chain.change = lambda rows: [row for row in rows if row["height"] != "395"]
    chain.grow(280)
    sent = 0

    def respond(request: Request) -> Response:
        nonlocal sent
        sent += 1
        return chain.respond(request) if sent <= 14 else failing()

    server.on("blocks", respond)
    outcomes = []
    for _ in range(12):
        sent = 0
        try:
            query.to_parquet_series(tmp_path, settle=SETTLE, max_rows_per_file=20)
        except cf.ChainframeError as failure:
            outcomes.append(type(failure).__name__)
        else:
            break
    assert len(outcomes) < 10, outcomes
    assert heights(tmp_path) == [height for height in range(1, 398) if height != 395]


def failing() -> Response:
    return error(500, "50000", "down")


@pytest.mark.parametrize("num_pages", [2, 3, 4, 100])
def test_height_that_is_listed_just_below_the_end_of_the_earlier_export_is_added(
    server: StrictServer, tmp_path: Path, num_pages: int
) -> None:
    chain = Chain(server, "token_transfers", 120)
    query = chain.query(server.client(max_retries=0), page_size=7)
    run(query, tmp_path)
    member = member_of("token_transfers", key_of("token_transfers"))
    chain.grow(10)
    at = [row["height"] for row in chain.rows].index("118")
    chain.rows[at : at + 2] = reversed(chain.rows[at : at + 2])
    pages = iter(range(num_pages))
    server.on("token_transfers", lambda request: failing() if next(pages, None) is None else chain.respond(request))
    if num_pages < 100:
        with pytest.raises(cf.ServiceUnavailableError):
            query.to_parquet_series(tmp_path, settle=SETTLE, max_rows_per_file=1)
        server.on("token_transfers", chain.respond)
    assert run(query, tmp_path) == []
    exported: list[Any] = chainframe.exports.read(tmp_path).to_table()[key_of("token_transfers")].to_pylist()
    assert sorted(exported) == sorted(row[member] for row in chain.rows if int(row["height"]) <= 127)


def blocks(count: int, replaced: int = 0) -> list[dict[str, Any]]:
    return [{"height": height, "hash": f"0x{height + 1000 * (height == replaced)}"} for height in range(count, 0, -1)]


@pytest.mark.parametrize("has_news", [False, True])
def test_series_that_a_settled_height_has_stopped_continues_with_a_larger_settle(
    tmp_path: Path, *, has_news: bool
) -> None:
    with LocalService(data={"blocks": blocks(30)}) as service, service.client() as client:
        query = client.blocks()
        query.to_parquet_series(tmp_path, settle=5)
        if not has_news:
            # An export without news, which the next one is to replace.
            query.to_parquet_series(tmp_path, settle=5)
        service.load("blocks", blocks(60, replaced=20))
        for _ in range(2):
            with pytest.raises(cf.SettledHeightError, match=r"height 20 changed .*export with a larger settle"):
                query.to_parquet_series(tmp_path, settle=5)
        query.to_parquet_series(tmp_path, settle=12)
        for count in (60, 70):
            service.load("blocks", blocks(count, replaced=20))
            query.to_parquet_series(tmp_path, settle=5)
        table = chainframe.exports.read(tmp_path).to_table().sort_by("height")
        assert table["hash"].to_pylist() == [row["hash"] for row in reversed(blocks(65, replaced=20))]


@pytest.mark.parametrize("is_awaited", [False, True])
def test_change_below_an_export_of_several_values_says_what_to_do(
    server: StrictServer, tmp_path: Path, *, is_awaited: bool
) -> None:
    chain = Changed(server, "address_transactions", 120)
    head = Changed(server, "transactions", 120)
    query = server.client().address_transactions(["0x" + "a" * 40, "0x" + "b" * 40], page_size=20)
    query.to_parquet_series(tmp_path, settle=SETTLE)
    chain.change = lambda rows: [row for row in rows if row["height"] != "116"]
    chain.grow(20)
    head.grow(20)

    def night() -> object:
        if is_awaited:
            return asyncio.run(query.to_parquet_series_async(tmp_path, settle=SETTLE))
        return query.to_parquet_series(tmp_path, settle=SETTLE)

    for _ in range(2):
        with pytest.raises(cf.ReorganizationError, match=r"height 116 .*: begin again in another directory") as caught:
            night()
        assert caught.value.height == 116
