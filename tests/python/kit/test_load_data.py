"""Loading data into the local service: values of every library are served unchanged and filters apply."""

from __future__ import annotations

import csv
import json
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import chainframe as cf
import reference_client
from chainframe.testing import Cassette, LocalService
from conftest import Sample
from recorded import lines

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")


def files(records: cf.Records[Any], suffix: str, folder: Path) -> Path:
    path = folder / f"records{suffix}"
    if suffix == ".parquet":
        parquet.write_table(records.to_arrow("string"), path)
    elif suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row, default=str) for row in records.to_dicts()) + "\n")
    else:
        path.write_text(json.dumps(records.to_dicts(), default=str, indent=1))
    return path


WAYS: dict[str, Callable[[cf.Records[Any], Path], Any]] = {
    "records": lambda records, _: records,
    "list of records": lambda records, _: list(records),
    "list of dicts": lambda records, _: records.to_dicts(),
    "generator": lambda records, _: (record for record in records),
    "pandas": lambda records, _: records.to_pandas("string"),
    "polars": lambda records, _: records.to_polars("string"),
    "pyarrow": lambda records, _: records.to_arrow("string"),
    "arrow stream": lambda records, _: pa.RecordBatchReader.from_stream(records.to_arrow("string")),
    "parquet": lambda records, folder: files(records, ".parquet", folder),
    "json lines": lambda records, folder: str(files(records, ".jsonl", folder)),
    "json": lambda records, folder: files(records, ".json", folder),
}


@pytest.mark.parametrize("case", [(call, way) for call in reference_client.ENDPOINTS for way in WAYS], ids="-".join)
def test_loaded_records_are_served_unchanged(
    own: LocalService, client: cf.Client, sample: Sample, case: tuple[Any, str], tmp_path: Path
) -> None:
    call, way = case
    records = sample.query(client, call).collect()
    own.load(call, WAYS[way](records, tmp_path))
    with own.client(rate_limit=None) as ask:
        again = sample.query(ask, call).collect()
    assert len(again) > 0
    assert list(again) == list(records)


def test_amounts_of_a_decimal_frame_keep_every_digit(own: LocalService, ask: cf.Client) -> None:
    amounts = [Decimal("0.150851832900380503"), Decimal("99999999999999999999.000000000000000001"), None]
    for frame in (pl.DataFrame({"amount": amounts}), pa.table({"amount": amounts}), duckdb_of(amounts)):
        own.load("transactions", frame)
        assert [record.amount for record in ask.transactions()] == amounts
    own.load("transactions", [{"amount": 0.1, "height": 4.0}, {"amount": "2.625E-6", "height": "7"}])
    assert [record.amount for record in ask.transactions()] == [Decimal("0.1"), Decimal("0.000002625")]
    assert [record.height for record in ask.transactions()] == [4, 7]


def duckdb_of(amounts: list[Decimal | None]) -> Any:
    rows = ", ".join(f"({'NULL' if amount is None else amount}::DECIMAL(38, 18))" for amount in amounts)
    return duckdb.sql(f"SELECT * FROM (VALUES {rows}) AS made(amount)")


@pytest.mark.parametrize("call", reference_client.ENDPOINTS)
def test_missing_values_and_empty_strings_stay_distinct(own: LocalService, ask: cf.Client, call: Any) -> None:
    kind = getattr(cf, reference_client.ENDPOINTS[call]["record"])
    found: dict[str, Any] = {"tx_id": "0xa", "token_contract_address": "0xa", "from_address": "0xa"}
    names = [name for name in kind().to_dict() if name in found]
    needed = {name: found[name] for name in names}
    if call == "large_transactions":
        needed["amount"] = Decimal(101)
    given = kind(**needed)
    own.load(call, [given])
    query = Sample(token="0xa", address="0xa", height=0, tx_ids=("0xa",)).query(ask, call)
    assert list(query.collect()) == [given]
    texts = [field["name"] for field in reference_client.RECORDS[kind.__name__]["fields"] if field["python"] == "str"]
    empty = kind(**{**dict.fromkeys(texts, ""), **needed})
    own.load(call, [empty])
    assert list(query.collect()) == [empty]
    assert texts


def test_times_are_loaded_in_every_format(own: LocalService, ask: cf.Client) -> None:
    moment = datetime(2026, 1, 31, 9, 8, 57, 715_000, tzinfo=UTC)
    spelt = [moment, "2026-01-31T09:08:57.715Z", "2026-01-31T10:08:57.715+01:00", 1769850537715, "1769850537715", ""]
    own.load("blocks", [{"block_time": value} for value in spelt])
    assert [block.block_time for block in ask.blocks()] == [moment] * 5 + [None]
    own.load("blocks", [{"blockTime": "1769850537"}])
    assert [block.block_time for block in ask.blocks()] == [moment.replace(microsecond=0)]


def test_filters_apply_to_loaded_data(own: LocalService, ask: cf.Client) -> None:
    own.load(
        "token_transfers",
        [{"token_contract_address": "0xAbC", "amount": str(amount), "tx_id": f"0x{amount}"} for amount in range(120)],
    )
    found = ask.token_transfers("0xabc", min_amount=7, max_amount="9.5").collect()
    assert [record.amount for record in found] == [7, 8, 9]
    assert len(ask.token_transfers("0xABC").collect()) == 120
    assert found[0].token_contract_address == "0xAbC"
    own.load("address_transactions", [{"from_address": "0xA,0xb"}, {"to_address": "0xa"}, {"from_address": "0xaa"}])
    assert len(ask.address_transactions("0xa").collect()) == 2
    assert len(ask.address_transactions("0xB", direction="from").collect()) == 1
    assert len(ask.address_transactions("0xB", direction="to").collect()) == 0
    own.load(
        "tokens", [{"token": "A", "total_market_cap": 1}, {"token": "B", "total_market_cap": "2.5"}, {"token": "C"}]
    )
    assert [token.token for token in ask.tokens()] == ["B", "A", "C"]
    own.load(
        "large_transactions", [{"height": 5, "amount": 101}, {"height": 6, "amount": 100}, {"height": 6, "amount": 1e6}]
    )
    assert [record.amount for record in ask.large_transactions()] == [101, 1_000_000]
    assert len(ask.large_transactions(height=6, min_amount=1_000).collect()) == 1


def test_loaded_data_can_be_replaced_by_no_records(own: LocalService, ask: cf.Client) -> None:
    own.load("blocks", [cf.Block(height=height) for height in range(250)])
    assert [block.height for block in ask.blocks()] == list(range(250))
    own.load("blocks", [])
    records = ask.blocks().collect()
    assert len(records) == 0
    assert records.report.complete


def test_missing_value_of_a_frame_is_none(own: LocalService, ask: cf.Client) -> None:
    frame = pd.DataFrame({"height": [2.0, float("nan")], "block_time": [pd.NaT, pd.Timestamp("2026-01-31", tz="UTC")]})
    own.load("blocks", frame)
    assert [block.height for block in ask.blocks()] == [2, None]
    assert [block.block_time is None for block in ask.blocks()] == [True, False]
    own.load("blocks", pd.DataFrame({"height": pd.array([1, None], dtype="Int64")}))
    assert [block.height for block in ask.blocks()] == [1, None]


@pytest.mark.filterwarnings("error::chainframe.IncompleteResultWarning")
def test_no_transactions_serve_no_records() -> None:
    with LocalService(transactions=0) as service, service.client() as client:
        for query in (client.tokens(), client.blocks(), client.transactions(), client.cross_chain_transactions()):
            assert len(query.collect()) == 0


def test_raw_response_is_loaded_as_sent(own: LocalService, ask: cf.Client, tmp_path: Path) -> None:
    response = tmp_path / "response.json"
    response.write_text('{"code":0,"data":[{"totalPage":"1","data":[{"height":"7.0","new":1},{"hash":""}]}]}')
    own.load("blocks", response)
    assert list(ask.blocks()) == [cf.Block(height=7), cf.Block(hash="")]
    response.write_text('{"code":"50011","msg":"slow down","data":[]}')
    with pytest.raises(cf.ConfigError, match="50011"):
        own.load("blocks", response)


def test_loading_uses_the_names_of_the_deployment(tmp_path: Path) -> None:
    deployment = cf.Deployment(main="alpha", zone="beta")
    transfer = {"alphaTxHash": "0x1", "betaBlockHeight": "7", "tx_type": "MainToZone"}
    with (
        LocalService(transactions=3, deployment=deployment, data={"cross_chain_transactions": [transfer]}) as service,
        service.client() as client,
    ):
        expected = cf.CrossChainTransaction(main_tx_hash="0x1", zone_block_height=7, tx_type="MainToZone")
        assert list(client.cross_chain_transactions(height=7)) == [expected]
        with pytest.raises(cf.ConfigError, match=r"^deployment /api/v5/main/\S+ is not a path"):
            service.load_cassette(recorded(tmp_path))


def recorded(folder: Path) -> Path:
    path = folder / "cassette.jsonl"
    with LocalService(transactions=60, seed=11) as service, service.client(cassette=Cassette(path)) as client:
        client.blocks(height=4_300_001).collect()
        client.transactions().collect()
    return path


def test_loaded_cassette_is_served(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    with LocalService(transactions=60, seed=11) as service, service.client() as client:
        expected = list(client.transactions())
    with LocalService(transactions=3) as service, service.client() as client:
        assert service.load_cassette(path) == len(lines(path))
        for _ in range(2):
            assert list(client.transactions()) == expected
        with pytest.raises(cf.NotFoundError, match="height=4300001 as well"):
            client.blocks().collect()
        service.faults = [{"kind": "status", "status": 503, "times": 1}]
        assert client.transactions().collect().report.retries == 1
        with service.client(secret_key="wrong") as stranger, pytest.raises(cf.AuthenticationError):
            stranger.transactions().collect()
        assert service.request_log[0]["code"] == "0"
    (tmp_path / "broken").write_text("{")
    with LocalService(transactions=3) as service, pytest.raises(cf.CassetteError, match=r"broken line 1"):
        service.load_cassette(tmp_path / "broken")


def test_database_file_keeps_loaded_data(tmp_path: Path) -> None:
    path = tmp_path / "chain.sqlite"
    with LocalService(transactions=3, db=path, data={"blocks": [{"height": 7}]}) as service:
        service.load_cassette(recorded(tmp_path))
    for transactions in (3, 9):
        with LocalService(transactions=transactions, db=path) as service, service.client() as client:
            assert [block.height for block in client.blocks()] == [7]
            assert len(client.transactions().collect()) == 60
            with pytest.raises(cf.NotFoundError, match="not recorded"):
                client.large_transactions().collect()


def test_settings_change_while_the_service_runs() -> None:
    with LocalService(transactions=50) as service, service.client(max_retries=0) as client:
        assert (service.faults, service.growth, service.rate_limit, service.clock_skew) == ([], 0, None, 0.0)
        client.blocks(max_items=1).collect()
        service.faults = [{"kind": "code", "code": "50037", "path": "block-list"}]
        assert service.faults == [{"kind": "code", "code": "50037", "msg": "fault", "path": "block-list"}]
        with pytest.raises(cf.NotFoundError):
            client.blocks().collect()
        service.faults = []
        service.growth = 3
        counts = [int(reference_client.get(service, "blocks", limit="1")[0]["total"]) for _ in range(2)]
        assert counts[1] - counts[0] == service.growth
        service.growth = 0
        service.rate_limit = 0.001
        reference_client.get(service, "blocks", limit="1")
        with pytest.raises(cf.RateLimitError):
            client.blocks().collect()
        service.rate_limit = None
        service.clock_skew = 100.0
        assert client.blocks(max_items=1).collect().report.retries == 1
        service.clock_skew = 0.0
        assert service.request_count == len(service.request_log) > 5
        service.reset_request_log()
        assert (service.request_count, service.request_log) == (0, [])
        for name, value in (("rate_limit", 0.0), ("clock_skew", float("inf")), ("faults", [{"kind": "flood"}])):
            with pytest.raises(cf.ConfigError, match=name):
                setattr(service, name, value)


def test_records_in_a_pickled_frame_are_loaded(own: LocalService, ask: cf.Client) -> None:
    own.load("blocks", pickle.loads(pickle.dumps(pl.DataFrame({"height": [2, 1], "hash": ["0x2", None]}))))
    assert list(ask.blocks()) == [cf.Block(height=2, hash="0x2"), cf.Block(height=1)]


def test_exported_directory_is_loaded(own: LocalService, service: LocalService, tmp_path: Path) -> None:
    with service.client() as client:
        export = client.blocks(max_items=250).to_parquet(tmp_path / "blocks", max_rows_per_file=100)
        assert len(export.parts) > 1
        expected = list(client.blocks(max_items=250))
    own.load("blocks", tmp_path / "blocks")
    with own.client() as ask:
        assert list(ask.blocks()) == expected
    (tmp_path / "empty").mkdir()
    with pytest.raises(cf.ConfigError, match=r"empty is not the directory of an export"):
        own.load("blocks", tmp_path / "empty")


def test_csv_is_loaded(own: LocalService, tmp_path: Path) -> None:
    (tmp_path / "logs.csv").write_text(
        'tx_id,topics,height,transaction_time\n0xa,"[""0x1"",""0x2""]",7,2026-01-31T09:08:57.715Z\n0xa,,,\n',
        encoding="utf-8-sig",
    )
    own.load("logs", tmp_path / "logs.csv")
    moment = datetime(2026, 1, 31, 9, 8, 57, 715_000, tzinfo=UTC)
    first = cf.EventLog(tx_id="0xa", topics=["0x1", "0x2"], height=7, transaction_time=moment)
    with own.client() as ask:
        assert list(ask.logs("0xa")) == [first, cf.EventLog(tx_id="0xa")]


@pytest.mark.parametrize("symbol", ["[ visit x.com ] claim", "[1]", '["a"]', "[", "{}"])
def test_text_of_csv_that_looks_like_a_list_is_text(own: LocalService, tmp_path: Path, symbol: str) -> None:
    with (tmp_path / "tokens.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("token_contract_address", "token"), ("0xa", symbol)])
    own.load("tokens", tmp_path / "tokens.csv")
    with own.client() as ask:
        assert [token.token for token in ask.tokens()] == [symbol]
