"""Exports whose query has its addresses and hashes in another letter case than that of the run before."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import chainframe as cf
from chainframe.exports import read
from chainframe.exports.set_writer import SetWriter
from chainframe.testing import LocalService
from sets.test_sets import senders
from strict_server import page_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from strict_server import Request, Response, StrictServer

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=500, seed=44) as running:
        yield running


def upper(value: str) -> str:
    return "0x" + value[2:].upper()


def queries(service: LocalService, kind: str) -> list[cf.Query[Any]]:
    """The same query twice."""
    client = service.client()
    if kind == "hashes":
        hashes = [record.tx_id or "" for record in client.transactions(max_items=4)]
        return [client.transactions_by_hash(hashes), client.transactions_by_hash([upper(each) for each in hashes])]
    if kind == "chain":
        return [client.tokens(chain="MAIN"), client.tokens(chain="main")]
    # The last two sort otherwise if the first of them is in upper case.
    values = senders(service, 1) if kind == "address" else [*senders(service, 4), "0x" + "b" * 40, "0x" + "a" * 40]
    spellings = [values, [upper(value) if index % 2 == 0 else value for index, value in enumerate(values)]]
    return [client.address_transactions(each[0] if kind == "address" else each) for each in spellings]


@pytest.mark.parametrize("kind", ["address", "set", "hashes", "chain"])
def test_finished_export_is_the_same_in_any_letter_case(service: LocalService, tmp_path: Path, kind: str) -> None:
    first, second = queries(service, kind)
    rows = first.to_parquet(tmp_path / "export").rows
    before = service.request_count
    assert second.to_parquet(tmp_path / "export").rows == rows > 0
    assert service.request_count == before


@pytest.mark.parametrize("kind", ["address", "set"])
def test_series_continues_in_any_letter_case(service: LocalService, tmp_path: Path, kind: str) -> None:
    first, second = queries(service, kind)
    rows = first.to_parquet_series(tmp_path / "series", settle=8).rows
    assert second.to_parquet_series(tmp_path / "series", settle=8).rows == 0
    first.to_parquet(tmp_path / "monday", settle=8)
    assert second.to_parquet(tmp_path / "tuesday", settle=8, since=tmp_path / "monday").rows == 0
    assert read(tmp_path / "series").count_rows() == read(tmp_path / "tuesday").count_rows() == rows


def test_follower_continues_after_an_export_in_any_letter_case(service: LocalService, tmp_path: Path) -> None:
    first, second = queries(service, "address")
    export = first.to_parquet(tmp_path / "export")
    assert list(second.follow(start=export, poll=None)) == []


def test_interrupted_export_of_a_set_has_one_verdict_on_each_value(
    service: LocalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = queries(service, "set")
    fetch = SetWriter.fetch
    fetched = 0

    def interrupted(writer: SetWriter) -> None:
        nonlocal fetched
        fetched += 1
        if fetched == 3:
            raise InterruptedError
        fetch(writer)

    monkeypatch.setattr(SetWriter, "fetch", interrupted)
    with pytest.raises(InterruptedError):
        first.to_parquet(tmp_path / "export", settle=8, max_rows_per_file=1)
    export = second.to_parquet(tmp_path / "export", settle=8)
    rows = Counter(row["queried"][0].lower() for row in export.to_arrow().to_pylist())
    verdicts = export.report.by_argument
    assert {value: verdict["records"] for value, verdict in verdicts.items() if verdict["records"]} == rows
    assert len(verdicts) == 6


def test_first_value_of_a_long_list_that_differs_is_named(service: LocalService, tmp_path: Path) -> None:
    client = service.client()
    values = senders(service, 5)
    client.address_transactions(values[:4]).to_parquet(tmp_path)
    for given, problem in (
        (values[1:4], f"address has '{values[0]}' there and not here"),
        (values, f"address has '{values[4]}' here and not there"),
    ):
        with pytest.raises(cf.ExportError, match=f"holds an export of another query: {problem}; use another"):
            client.address_transactions(given).to_parquet(tmp_path)
    hashes = [record.tx_id or "" for record in client.transactions(max_items=4)]
    client.transactions_by_hash(hashes).to_parquet(tmp_path / "logs")
    with pytest.raises(cf.ExportError, match="another query: tx_ids has its values in another order there than here"):
        client.transactions_by_hash(hashes[::-1]).to_parquet(tmp_path / "logs")


def test_table_follows_a_set_in_any_letter_case_through_a_reorganization() -> None:
    values = ["0x" + "a" * 40, "0x" + "b" * 40]

    def transactions(branch: str) -> list[dict[str, Any]]:
        return [
            {"tx_id": f"{value}{height}", "height": height, "from_address": value, "block_hash": f"{branch}{height}"}
            for height in range(40, 0, -1)
            for value in values
        ]

    with LocalService(transactions=0) as service, service.client() as client, duckdb.connect() as connection:
        service.load("address_transactions", transactions("0xc"))
        # The newest height may not be whole.
        assert client.address_transactions(values).sync(connection, table="t").rows_added == 78
        changed = [*transactions("0xd")[:8], *transactions("0xc")[8:]]
        service.load("address_transactions", changed)
        synced = client.address_transactions(list(map(upper, values))).sync(connection, table="t")
        assert (synced.rows_removed, synced.rows_added) == (6, 6)
        found = connection.execute("select tx_id, block_hash from t order by height desc, tx_id").fetchall()
        assert found == [(row["tx_id"], row["block_hash"]) for row in changed[2:]]


def test_addresses_in_base58_differ_by_letter_case(service: LocalService, tmp_path: Path) -> None:
    first, second = "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcRTv8", "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcRTV8"
    client = service.client()
    client.address_transactions(first).to_parquet(tmp_path)
    with pytest.raises(cf.ExportError, match=f"another query: address is '{first}' there and '{second}' here"):
        client.address_transactions(second).to_parquet(tmp_path)


@pytest.mark.parametrize("member", ["blockHash", "txid", "from"])
def test_series_continues_in_any_letter_case_of_its_records(server: StrictServer, tmp_path: Path, member: str) -> None:
    rows = [
        dict.fromkeys(("blockHash", "txid", "from"), f"0x{number:040x}") | {"height": str(number), "amount": "1"}
        for number in range(170, 130, -1)
    ]

    def respond(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        members = {"page": str(page), "limit": str(limit), "totalPage": str(-(-len(rows) // limit))}
        return page_of("large_transactions", rows[(page - 1) * limit : page * limit], **members)

    server.on("large_transactions", respond)
    with server.client() as client:
        query = client.large_transactions(page_size=10)
        assert query.to_parquet_series(tmp_path / "series", settle=5).rows == 35
        for row in rows:
            row[member] = upper(row[member])
        assert query.to_parquet_series(tmp_path / "series", settle=5).rows == 0
        assert read(tmp_path / "series").count_rows() == 35
