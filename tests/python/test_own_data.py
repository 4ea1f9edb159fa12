"""A service of one's own data: whatever library they come from, each value as it was, and found by every filter."""

from __future__ import annotations

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

import by_hand
import chainframe as cf
from chainframe.testing import Cassette, LocalService
from conftest import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")


@pytest.fixture(scope="module")
def own() -> Iterator[LocalService]:
    """A service with hardly any data, for all tests that load some."""
    with LocalService(transactions=3) as running:
        yield running


@pytest.fixture
def ask(own: LocalService) -> Iterator[cf.Client]:
    with own.client() as client:
        yield client


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


@pytest.mark.parametrize("case", [(call, way) for call in by_hand.ENDPOINTS for way in WAYS], ids="-".join)
def test_records_come_back_as_they_were(
    own: LocalService, client: cf.Client, sample: Sample, case: tuple[str, str], tmp_path: Path
) -> None:
    call, way = case
    records = sample.query(client, call).collect()
    own.load(call, WAYS[way](records, tmp_path))
    with own.client() as ask:
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


@pytest.mark.parametrize("call", by_hand.ENDPOINTS)
def test_nothing_stays_nothing_and_empty_text_empty(own: LocalService, ask: cf.Client, call: str) -> None:
    kind = getattr(cf, by_hand.ENDPOINTS[call]["record"])
    found: dict[str, Any] = {"tx_id": "0xa", "token_contract_address": "0xa", "from_address": "0xa"}
    names = [name for name in kind().to_dict() if name in found]
    needed = {name: found[name] for name in names}
    if call == "large_transactions":
        needed["amount"] = Decimal(101)
    given = kind(**needed)
    own.load(call, [given])
    query = Sample(token="0xa", address="0xa", height=0, tx_ids=("0xa",)).query(ask, call)
    assert list(query.collect()) == [given]
    texts = [field["name"] for field in by_hand.RECORDS[kind.__name__]["fields"] if field["python"] == "str"]
    empty = kind(**{**dict.fromkeys(texts, ""), **needed})
    own.load(call, [empty])
    assert list(query.collect()) == [empty]
    assert len(texts) > 1


def test_times_come_in_every_spelling(own: LocalService, ask: cf.Client) -> None:
    moment = datetime(2026, 1, 31, 9, 8, 57, 715_000, tzinfo=UTC)
    spelt = [moment, "2026-01-31T09:08:57.715Z", "2026-01-31T10:08:57.715+01:00", 1769850537715, "1769850537715", ""]
    own.load("blocks", [{"block_time": value} for value in spelt])
    assert [block.block_time for block in ask.blocks()] == [moment] * 5 + [None]
    own.load("blocks", [{"blockTime": "1769850537"}])
    assert [block.block_time for block in ask.blocks()] == [moment.replace(microsecond=0)]


def test_filters_find_what_was_loaded(own: LocalService, ask: cf.Client) -> None:
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


def test_what_was_loaded_can_be_replaced_by_nothing(own: LocalService, ask: cf.Client) -> None:
    own.load("blocks", [cf.Block(height=height) for height in range(250)])
    assert [block.height for block in ask.blocks()] == list(range(250))
    own.load("blocks", [])
    records = ask.blocks().collect()
    assert len(records) == 0
    assert records.report.complete


WRONG: list[tuple[Any, str]] = [
    ([{"height": 1}, {"hight": 2}], "blocks: row 1 has 'hight', which is none of hash, height"),
    ([{"height": "4.5"}], "blocks: row 0: height is not a whole number from 0 on: '4.5'"),
    ([{"height": True}], "not a whole number"),
    ([{"height": -1}], "not a whole number from 0 on: -1"),
    ([{"height": float("nan")}], "not a whole number from 0 on: nan"),
    ([{"height": float("inf")}], "not a whole number"),
    ([{"hash": 1.5}], "hash is not text"),
    ([{"block_time": "yesterday"}], "block_time is not a time"),
    ([{"block_time": 10**30}], "block_time is not a time"),
    ([{"block_time": datetime(2026, 1, 1)}], "row 0: block_time is a naive datetime"),  # noqa: DTZ001 - refused
    ([{"height": 2**64}], "row 0: height is not"),
    ([{"height": 1}, 5], "row 1 is neither a record nor a mapping of its fields: 5"),
    ([[1, 2]], "row 0 is neither a record nor a mapping"),
    ({"height": [1]}, "one record, or columns; give a list of records"),
    (7, "data: is neither a table, nor a list of records, nor a file of them: 7"),
    (b"{}", "neither a table"),
    ("blocks.txt", "blocks.txt is no file of records"),
    ("no-such.jsonl", "no-such.jsonl cannot be read: No such file or directory"),
    ("no-such.parquet", "no-such.parquet cannot be read: No such file or directory"),
]


@pytest.mark.parametrize(("data", "said"), WRONG)
def test_what_cannot_be_loaded_is_named(own: LocalService, ask: cf.Client, data: Any, said: str) -> None:
    own.load("blocks", [{"height": 1}])
    with pytest.raises(cf.ConfigError) as caught:
        own.load("blocks", data)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(ask.blocks().collect()) == 1


def test_a_call_that_is_none_is_named(own: LocalService) -> None:
    with pytest.raises(cf.ConfigError, match="'block' is no call of a client; there are tokens"):
        own.load("block", [])
    with pytest.raises(cf.ConfigError, match="'block' is no call"):
        LocalService(transactions=3, data={"block": []})


FILES = [
    ("broken.jsonl", b'{"height": 1}\n{"height":\n', "broken.jsonl line 2 is not JSON"),
    ("list.jsonl", b'{"height": 1}\n\n[1]\n', "list.jsonl line 3 is neither a record nor a mapping of its fields: [1]"),
    ("wrong.jsonl", b'\n{"height": -1}\n', "wrong.jsonl line 2: height is not a whole number from 0 on: -1"),
    ("big.jsonl", b'\n{"height": 9223372036854775808}\n', "big.jsonl line 2: height is not"),
    ("nan.jsonl", b'{"height": NaN}', "nan.jsonl line 1 is not JSON: NaN is no number of JSON"),
    ("latin.jsonl", b'{"hash": "\xe9"}', "latin.jsonl line 1 is not UTF-8"),
    ("deep.json", b"[" * 100_000, "deep.json is not JSON"),
    ("text.json", b'"height"', "text.json holds neither a list of records nor an answer: 'height'"),
    ("rows.json", b"[{}, null]", "rows.json row 1 is neither a record"),
    ("answer.json", b'{"code":"0","data":[{"data":[{"height":"x"}]}]}', "answer.json: data[0].data[0].height"),
    ("not.parquet", b"height\n1\n", "not.parquet is not a Parquet file"),
    ("torn.parquet", b"PAR1" + b"x" * 40, "torn.parquet is a damaged Parquet file: "),
]


@pytest.mark.parametrize(("name", "content", "said"), FILES, ids=[file[0] for file in FILES])
def test_a_file_that_cannot_be_loaded_is_named(
    own: LocalService, tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(cf.ConfigError) as caught:
        own.load("blocks", tmp_path / name)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_value_that_a_frame_does_not_have_is_none(own: LocalService, ask: cf.Client) -> None:
    frame = pd.DataFrame({"height": [2.0, float("nan")], "block_time": [pd.NaT, pd.Timestamp("2026-01-31", tz="UTC")]})
    own.load("blocks", frame)
    assert [block.height for block in ask.blocks()] == [2, None]
    assert [block.block_time is None for block in ask.blocks()] == [True, False]
    own.load("blocks", pd.DataFrame({"height": pd.array([1, None], dtype="Int64")}))
    assert [block.height for block in ask.blocks()] == [1, None]


@pytest.mark.filterwarnings("error::chainframe.IncompleteResultWarning")
def test_without_transactions_there_is_nothing() -> None:
    with LocalService(transactions=0) as service, service.client() as client:
        for query in (client.tokens(), client.blocks(), client.transactions(), client.cross_chain_transactions()):
            assert len(query.collect()) == 0


def test_an_answer_as_it_was_sent(own: LocalService, ask: cf.Client, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    answer.write_text('{"code":0,"data":[{"totalPage":"1","data":[{"height":"7.0","new":1},{"hash":""}]}]}')
    own.load("blocks", answer)
    assert list(ask.blocks()) == [cf.Block(height=7), cf.Block(hash="")]
    answer.write_text('{"code":"50011","msg":"slow down","data":[]}')
    with pytest.raises(cf.ConfigError, match="50011"):
        own.load("blocks", answer)


def test_other_words(tmp_path: Path) -> None:
    words = cf.Deployment(main="alpha", zone="beta")
    crossing = {"alphaTxHash": "0x1", "betaBlockHeight": "7", "tx_type": "MainToZone"}
    with (
        LocalService(transactions=3, deployment=words, data={"cross_chain_transactions": [crossing]}) as service,
        service.client() as client,
    ):
        expected = cf.CrossChainTransaction(main_tx_hash="0x1", zone_block_height=7, tx_type="MainToZone")
        assert list(client.cross_chain_transactions(height=7)) == [expected]
        with pytest.raises(cf.ConfigError, match=r"deployment: /api/v5/main/\S+ is no path"):
            service.load_answers(recorded(tmp_path))


def recorded(folder: Path) -> Path:
    path = folder / "cassette.jsonl"
    with LocalService(transactions=60, seed=11) as service, service.client(cassette=Cassette(path)) as client:
        client.blocks(height=4_300_001).collect()
        client.transactions().collect()
    return path


def test_recorded_answers_are_given_again(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    with LocalService(transactions=60, seed=11) as service, service.client() as client:
        expected = list(client.transactions())
    with LocalService(transactions=3) as service, service.client() as client:
        assert service.load_answers(path) == len(path.read_text().splitlines())
        for _ in range(2):
            assert list(client.transactions()) == expected
        assert len(client.blocks().collect()) == 3
        service.faults = [{"kind": "status", "status": 503, "first": 1}]
        assert client.transactions().collect().report.retries == 1
        with service.client(secret_key="wrong") as stranger, pytest.raises(cf.AuthenticationError):
            stranger.transactions().collect()
        assert service.request_log[0]["code"] == "0"
    (tmp_path / "broken").write_text("{")
    with LocalService(transactions=3) as service, pytest.raises(cf.CassetteError, match=r"broken line 1"):
        service.load_answers(tmp_path / "broken")


def test_a_mirror_answers_the_very_calls_alike(service: LocalService, sample: Sample, tmp_path: Path) -> None:
    with service.client() as client:
        queries = [sample.query(client, call) for call in by_hand.ENDPOINTS]
        queries.append(client.blocks(page_size=7, max_items=20))
        expected = [list(query.collect()) for query in queries]
        assert all(expected)
        with LocalService(transactions=3, db=tmp_path / "offline.sqlite") as mirror:
            mirror.mirror(*queries)
    with LocalService(transactions=5, db=tmp_path / "offline.sqlite") as offline, offline.client() as client:
        again = [sample.query(client, call) for call in by_hand.ENDPOINTS]
        again.append(client.blocks(page_size=7, max_items=20))
        assert [list(query.collect()) for query in again] == expected


def test_a_database_keeps_what_was_loaded(tmp_path: Path) -> None:
    path = tmp_path / "chain.sqlite"
    with LocalService(transactions=3, db=path, data={"blocks": [{"height": 7}]}) as service:
        service.load_answers(recorded(tmp_path))
    for transactions in (3, 9):
        with LocalService(transactions=transactions, db=path) as service, service.client() as client:
            assert [block.height for block in client.blocks()] == [7]
            assert len(client.transactions().collect()) == 60
            assert len(client.large_transactions().collect()) < 9


def test_it_can_be_set_while_it_runs() -> None:
    with LocalService(transactions=50) as service, service.client(max_retries=0) as client:
        assert (service.faults, service.growth, service.rate_limit, service.clock_ahead) == ([], 0, None, 0.0)
        client.blocks(max_items=1).collect()
        service.faults = [{"kind": "code", "code": "50037", "path": "block-list"}]
        assert service.faults == [{"kind": "code", "code": "50037", "msg": "fault", "path": "block-list"}]
        with pytest.raises(cf.NotFoundError):
            client.blocks().collect()
        service.faults = []
        service.growth = 3
        counts = [int(by_hand.get(service, "blocks", limit="1")[0]["total"]) for _ in range(2)]
        assert counts[1] - counts[0] == service.growth
        service.growth = 0
        service.rate_limit = 0.001
        by_hand.get(service, "blocks", limit="1")
        with pytest.raises(cf.RateLimitError):
            client.blocks().collect()
        service.rate_limit = None
        service.clock_ahead = 100.0
        assert client.blocks(max_items=1).collect().report.retries == 1
        service.clock_ahead = 0.0
        assert service.requests == len(service.request_log) > 5
        service.clear_requests()
        assert (service.requests, service.request_log) == (0, [])
        for name, value in (("rate_limit", 0.0), ("clock_ahead", float("inf")), ("faults", [{"kind": "flood"}])):
            with pytest.raises(cf.ConfigError, match=name):
                setattr(service, name, value)


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        (5, "is not a list of mappings"),
        ([object()], "is not a list of mappings"),
        ([{"kind": "stall", "seconds": float("nan")}], "is not a list of mappings"),
        (["reset"], 'it has string "reset" in place of an object'),
        ([{"kind": 5}], "it has integer 5 in place of a text"),
        ([{"kind": "reset", "often": 2}], 'it has "often", which is none of kind, status,'),
        ([{"kind": "reset", "every": -1}], "it has integer -1 in place of a whole number from 0 on"),
        ([{"kind": "flood"}], '"flood" is no kind of fault'),
    ],
)
def test_faults_that_are_none_are_named(own: LocalService, faults: Any, said: str) -> None:
    with pytest.raises(cf.ConfigError) as caught:
        own.faults = faults
    assert str(caught.value).startswith(f"faults: {said}")


def test_records_of_a_pickled_frame_are_records(own: LocalService, ask: cf.Client) -> None:
    own.load("blocks", pickle.loads(pickle.dumps(pl.DataFrame({"height": [2, 1], "hash": ["0x2", None]}))))
    assert list(ask.blocks()) == [cf.Block(height=2, hash="0x2"), cf.Block(height=1)]
