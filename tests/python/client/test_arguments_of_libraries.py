"""Values of pandas, numpy, pyarrow, polars and web3 as arguments: right, or an error that names the place."""

from __future__ import annotations

import datetime as dt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import chainframe as cf
from chainframe.testing import LocalService

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def polars_series(values: list[Any]) -> Any:
    return pytest.importorskip("polars").Series(values)


@pytest.fixture(scope="module")
def client() -> Iterator[cf.Client]:
    with LocalService(transactions=200, seed=5) as service, service.client(rate_limit=None) as client:
        yield client


class HexBytes(bytes):
    """As web3 returns them."""

    def __repr__(self) -> str:
        return f"HexBytes('0x{self.hex()}')"


FORMS: dict[str, Callable[[list[str]], Any]] = {
    "list": list,
    "bytes": lambda hashes: [bytes.fromhex(each[2:]) for each in hashes],
    "HexBytes": lambda hashes: [HexBytes.fromhex(each[2:]) for each in hashes],
    "mixed": lambda hashes: [bytes.fromhex(hashes[0][2:]), *hashes[1:]],
    "numpy": np.array,
    "objects": lambda hashes: np.array(hashes, dtype=object),
    "pandas": pd.Series,
    "arrow": pa.array,
    "chunked": lambda hashes: pa.chunked_array([hashes[:1], hashes[1:]]),
    "arrow bytes": lambda hashes: pa.array([bytes.fromhex(each[2:]) for each in hashes], pa.binary(32)),
    "polars": polars_series,
    "generator": iter,
}


@pytest.mark.parametrize("form", FORMS)
def test_hashes_of_any_library_are_looked_up(client: cf.Client, form: str) -> None:
    hashes: list[Any] = [record.tx_id for record in client.transactions(max_items=3).collect()]
    assert [record.tx_id for record in client.transactions_by_hash(FORMS[form](hashes)).collect()] == hashes


def test_one_hash_and_address_may_be_bytes(client: cf.Client) -> None:
    record: Any = client.transactions(max_items=1).collect()[0]
    (found,) = client.transactions_by_hash(HexBytes.fromhex(record.tx_id[2:])).collect()
    assert found.tx_id == record.tx_id
    assert repr(client.address_transactions(bytes.fromhex("ab" * 20))) == repr(
        client.address_transactions("0x" + "ab" * 20)
    )


GOOD = "0x" + "1" * 64
BAD: list[tuple[Any, str]] = [
    ([GOOD, None], r"^tx_ids\[1\] must be a string, or 32 bytes; got None"),
    ([GOOD, float("nan")], r"^tx_ids\[1\] must be a string, or 32 bytes; got nan"),
    ([GOOD, GOOD, pd.NA], r"^tx_ids\[2\] must be a string, or 32 bytes; got <NA>"),
    ([pd.NaT], r"^tx_ids\[0\] must be a string, or 32 bytes; got NaT"),
    (pd.Series([GOOD, None]), r"^tx_ids\[1\] must be .*; got (None|nan)"),
    (pd.Series([float("nan")]), r"^tx_ids\[0\] must be .*; got nan"),
    (pa.array([GOOD, None]), r"^tx_ids\[1\] must be .*; got None"),
    (lambda: polars_series([None, GOOD]), r"^tx_ids\[0\] must be .*; got None"),
    ([b"\x01\x02"], r"^tx_ids\[0\] must be .*; got b'\\x01\\x02'"),
    ([GOOD, b"\x01" * 20], r"^tx_ids\[1\] must be a string, or 32 bytes; got b'"),
    (b"\x01" * 20, r"^tx_ids must be .*; got bytes of 20 bytes, not 32"),
    ([GOOD, 5], r"^tx_ids\[1\] must be .*; got 5"),
    ([[GOOD]], r"^tx_ids\[0\] must be .*; got \['0x1"),
    (b"\x01", r"^tx_ids must be .*; got bytes of 1 bytes, not 32"),
    (7, r"^tx_ids must be a transaction hash or a list of them; got 7"),
    (pd.DataFrame({"tx_id": [GOOD]}), r"^tx_ids must be .*; got a DataFrame: pass one of its columns"),
    (
        lambda: pytest.importorskip("polars").DataFrame({"tx_id": [GOOD]}),
        r"^tx_ids must be .*; got a DataFrame: pass one of its columns",
    ),
    (pa.table({"tx_id": [GOOD]}), r"^tx_ids must be .*; got a Table: pass one of its columns"),
    ({"mine": GOOD}, r"^tx_ids must be .*; got a dict: pass its keys\(\) or its values\(\)"),
    (MappingProxyType({GOOD: 1}), r"^tx_ids must be .*; got a mappingproxy: pass its keys\(\) or its values\(\)"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_value_that_is_no_hash_is_named_with_its_place(client: cf.Client, number: int) -> None:
    value, message = BAD[number]
    value = value() if callable(value) else value
    for call in (client.transactions_by_hash, client.logs):
        with pytest.raises(cf.InvalidParameterError, match=message) as caught:
            call(value)
        assert "\n" not in str(caught.value)


def test_query_in_place_of_its_column_is_refused_before_it_sends_anything() -> None:
    with LocalService(transactions=50, seed=5) as service, service.client(rate_limit=None) as client:
        for call in (client.transactions_by_hash, client.logs, client.address_transactions, client.token_transfers):
            with pytest.raises(cf.InvalidParameterError, match=r"got a Query: pass one of its columns$"):
                call(client.transactions())  # type: ignore[arg-type]
        assert service.request_count == 0


def test_lazy_frame_in_place_of_its_column_is_refused_without_its_schema(client: cf.Client) -> None:
    frame = pytest.importorskip("polars").LazyFrame({"address": [GOOD]})
    with pytest.raises(
        cf.InvalidParameterError, match=r"^address must be .*; got a LazyFrame: pass one of its columns$"
    ):
        client.address_transactions(frame)


def test_address_is_no_hash_of_a_block(client: cf.Client) -> None:
    for value in (b"\x01" * 20, HexBytes(b"\x01" * 20)):
        with pytest.raises(cf.InvalidParameterError, match=r"^block_hash must be a string"):
            client.transactions(block_hash=value)
        with pytest.raises(cf.InvalidParameterError, match=r"^tx_id must be a string"):
            client.cross_chain_transactions(tx_id=value)  # type: ignore[arg-type]


EMPTY = pd.Series([], dtype="datetime64[ns, UTC]")
TIMES: list[Any] = [pd.NaT, EMPTY.max(), float("nan"), np.datetime64("NaT"), pd.NA]


@pytest.mark.parametrize("number", range(len(TIMES)))
def test_time_that_is_missing_is_named(client: cf.Client, number: int) -> None:
    value = TIMES[number]
    calls: list[tuple[str, Callable[[], object]]] = [
        ("start_time", lambda: client.transactions(start_time=value)),
        ("start_time", lambda: client.tokens(start_time=value)),
        ("end_time", lambda: client.transactions(end_time=value, start_height=1)),
        ("time", lambda: client.height_at(value)),
    ]
    for name, call in calls:
        with pytest.raises(cf.InvalidParameterError, match=rf"^{name} must ") as caught:
            call()
        assert "got " in str(caught.value)


def test_time_with_a_failing_offset_is_an_invalid_parameter(client: cf.Client) -> None:
    class Zone(dt.tzinfo):
        def utcoffset(self, _moment: dt.datetime | None) -> dt.timedelta:
            raise ValueError("no such zone")

        def dst(self, _moment: dt.datetime | None) -> None:
            return None

        def tzname(self, _moment: dt.datetime | None) -> None:
            return None

    with pytest.raises(cf.InvalidParameterError, match=r"^start_time must be an aware datetime"):
        client.transactions(start_time=dt.datetime(2026, 1, 1, tzinfo=Zone()))


def test_missing_values_of_other_parameters_are_named(client: cf.Client) -> None:
    calls: list[tuple[str, Callable[[], object]]] = [
        ("height", lambda: client.blocks(height=float("nan"))),  # type: ignore[arg-type]
        ("min_amount", lambda: client.large_transactions(min_amount=float("nan"))),  # type: ignore[arg-type]
        ("block_hash", lambda: client.transactions(block_hash=float("nan"))),  # type: ignore[arg-type]
        ("address", lambda: client.address_transactions(pd.NA)),  # type: ignore[arg-type]
    ]
    for name, call in calls:
        with pytest.raises(cf.InvalidParameterError, match=rf"^{name} must "):
            call()


def test_addresses_are_not_the_keys_of_a_dict(client: cf.Client) -> None:
    for given in ({"mine": GOOD}, MappingProxyType({GOOD: 1})):
        with pytest.raises(cf.InvalidParameterError, match=r"^address must be one value or several; got a .*: pass"):
            client.address_transactions(given)
    wallets = {GOOD: "mine"}
    assert repr(client.address_transactions(wallets.keys())) == repr(client.address_transactions([GOOD]))


@pytest.mark.parametrize("columns", [{"height": "block"}, {"height", "hash"}, frozenset({"height"})])
def test_columns_have_an_order_and_keep_their_names(client: cf.Client, columns: Any) -> None:
    with pytest.raises(cf.InvalidParameterError, match=r"^columns must be a list of names; got "):
        client.blocks().to_dicts(columns=columns)


@pytest.mark.parametrize("given", [pd.Series(["auto"]), np.array(["auto", "x"]), pa.array(["auto"]), pd.NA, ["auto"]])
def test_column_in_place_of_a_word_is_refused_by_name(client: cf.Client, given: Any, tmp_path: Path) -> None:
    with pytest.raises(cf.ConfigError, match=r'^progress must be "auto", True or False; got '):
        client.with_options(progress=given)
    with pytest.raises(cf.InvalidParameterError, match=r"^mode must be one of .*; got ") as caught:
        client.blocks().to_parquet(tmp_path / "blocks", mode=given)
    assert "\n" not in str(caught.value)
    with pytest.raises(cf.InvalidParameterError, match=r"^name must be a string; got "):
        cf.Event.named(given)
