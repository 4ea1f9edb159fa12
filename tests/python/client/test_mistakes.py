"""Mistakes of beginners: the error says in one line what is wrong, with the value, and what to do."""

from __future__ import annotations

import asyncio
import datetime as dt
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import chainframe as cf
from conftest import Sample, needs_extra

EARLY = dt.datetime.min.replace(tzinfo=dt.UTC)


class Frame:
    columns = ("a", "b")


def raised(call: Callable[[], object]) -> BaseException:
    """The error of a call, whose message has one line."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of many kinds
        call()
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("method", ["collect_async", "first_async", "to_dicts_async"])
@pytest.mark.parametrize(
    ("use", "problem"),
    [
        (list, "is not iterable"),
        (lambda coroutine: "x" in coroutine, "is not iterable"),
        (lambda coroutine: coroutine[0], "is not subscriptable"),
        (len, "has no length"),
        (lambda coroutine: type(coroutine).__aiter__(coroutine), "is not iterable"),
    ],
)
def test_coroutine_in_place_of_its_result_says_that_it_was_not_awaited(
    client: cf.Client, method: str, use: Callable[[Any], object], problem: str
) -> None:
    coroutine = getattr(client.blocks(max_items=2), method)()
    error = raised(lambda: use(coroutine))
    assert isinstance(error, TypeError)
    assert str(error) == f"the coroutine of Query.{method} {problem}; await it first"
    assert coroutine
    coroutine.close()


@needs_extra
def test_coroutine_of_an_export_says_that_it_was_not_awaited(client: cf.Client, tmp_path: Path) -> None:
    coroutine: Any = client.blocks(max_items=2).to_csv_async(tmp_path / "x.csv")
    assert str(raised(lambda: list(coroutine))).endswith("is not iterable; await it first")
    assert str(raised(lambda: coroutine.rows)).endswith("no attribute 'rows'; await it first")
    coroutine.close()


def test_coroutine_is_awaited_by_an_iteration_over_its_await(client: cf.Client) -> None:
    class Delegating:
        def __init__(self, awaitable: Any) -> None:
            self.awaitable = awaitable

        def __await__(self) -> Any:
            result = yield from self.awaitable.__await__()
            return result

    async def lengths() -> list[int]:
        query = client.blocks(max_items=2)
        return [len(await Delegating(each)) for each in (query, query.collect_async(), query.collect())]

    assert asyncio.run(lengths()) == [2, 2, 2]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("Timeout", "; use Client(timeout=...), or RequestTimeoutError"),
        ("TimeoutException", "; use RequestTimeoutError"),
        ("Limits", "; use Client(concurrency=..., rate_limit=...)"),
        ("read_parquet", "; use chainframe.exports.read"),
        ("AsyncClient", "; use Client, whose queries have async methods, such as collect_async"),
        ("Error", "; use ChainframeError"),
        ("LocalService", "; use chainframe.testing.LocalService"),
        ("Clinet", "; did you mean 'Client'?"),
        ("qqq", ""),
    ],
)
def test_import_of_a_name_of_another_package_names_the_class(name: str, advice: str) -> None:
    program = f"import chainframe; assert not hasattr(chainframe, {name!r})\nfrom chainframe import {name}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert last == f"ImportError: cannot import name {name!r} from 'chainframe'{advice}" or not advice
    assert last.startswith(f"ImportError: cannot import name {name!r} from 'chainframe'")
    assert done.stderr.count("File ") == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda client: client.transactions(1, 2),
            r"Client.transactions\(\) takes 0 positional arguments; got 2; pass block_hash=, height=, .* by name$",
        ),
        (
            lambda client: client.address_transactions("0x1", 5),
            r"takes 1 positional argument; got 2; pass start_height=, .* by name$",
        ),
        (lambda client: client.blocks(page=2), r"'page'; query.pages\(\) returns the pages one after the other$"),
        (lambda client: client.blocks(offset=2), r"'offset'; query.pages\(\) returns the pages one after the other$"),
        (lambda client: client.blocks(cursor="x"), r"'cursor'; client.resume\(cursor\) continues a query$"),
        (lambda client: client.blocks(timeout=5), r"'timeout'; it is a setting: client.with_options\(timeout=...\)$"),
        (lambda client: client.blocks().collect(progress=True), r"setting: client.with_options\(progress=...\)$"),
        (lambda client: client.blocks().collect_async(strict=True), r"setting: client.with_options\(strict=...\)$"),
        (lambda client: client.blocks().first(timeout=1), r"setting: client.with_options\(timeout=...\)$"),
        (lambda client: client.blocks().first_async(timeout=1), r"setting: client.with_options\(timeout=...\)$"),
        (lambda client: client.blocks().pages(page=2), r"pages\(\) got an unexpected keyword argument 'page'; query"),
        (lambda client: type(client)(headers={}), "'headers'; the client writes the requests itself$"),
    ],
)
def test_wrong_argument_says_where_it_belongs(client: cf.Client, call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call(client)


SECRETS = {"api_key": "key", "secret_key": "secret", "passphrase": "passphrase"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda client: client.blocks(chain=5), "chain must be a string; got a value of type int"),
        (
            lambda client: client.blocks(chain="a\nb"),
            r'chain must be the short name of a chain; got "a.nb", which has white space \(U\+000A\)$',
        ),
        (
            lambda client: type(client)(base_url="http://127.0.0.1:9", main_chain="a b", **SECRETS),
            'main_chain .*must be the short name of a chain; got "a b", which has white space',
        ),
        (
            lambda client: type(client)(base_url="http://127.0.0.1:9", zone_chain="a\x1b", **SECRETS),
            "zone_chain .*must be the short name of a chain; .* has a control character",
        ),
        (
            lambda client: client.address_transactions("0x" + "a" * 70_000),
            "address must be one address or hash; got 70002 characters$",
        ),
        (lambda client: client.tokens(chain="a" * 2_001), "must be the short name of a chain; got 2001 characters$"),
        (
            lambda client: type(client)(base_url="http://127.0.0.1:9", api_key=b"x"),
            "api_key .* must be a string; got a value of type bytes",
        ),
        (lambda client: client.with_options(cache=True), "cache must be a Cache, .* or None; got True"),
        (lambda client: type(client)(credentials="secret"), "credentials must be callable; got a value of type str"),
        (lambda client: client.resume("abc"), 'cursor must be .*, unchanged; got "abc"'),
        (lambda client: client.resume("{" + "x" * 99), r'unchanged; got "\{xxxxxxxxxxxxxxxxxxxxxxxxxxxxx"…'),
        (lambda client: client.transactions().follow(poll=-1), "poll must be .*; got -1"),
        (lambda client: client.transactions().follow(settle="1"), "settle must be .*; got '1'"),
        (lambda client: client.transactions().follow(start="yesterday"), 'start must be .*; got "yesterday"'),
        (lambda client: client.transactions(start_time=time.time()), r"an integer of Unix seconds or .*; got \d+\."),
        (
            lambda client: client.transactions(start_time="2026-02-30T00:00Z"),
            'must be a day of the calendar; got "2026',
        ),
        (
            lambda client: client.address_transactions(Frame()),
            "got a Frame: pass one of its columns",
        ),
        (lambda client: client.address_transactions(bytearray(3)), r"address must be a string; got bytearray\("),
        (lambda client: client.tokens(protocol_type="ERC1155"), 'got "ERC1155"; did you mean "token_1155"'),
        (lambda client: client.tokens(order_by="total_market_cap"), 'did you mean "totalMarketCap"'),
        (lambda client: client.tokens(protocol_type="all"), 'token_10; got "all"$'),
        (lambda client: client.logs([["0x1\n"] * 9]), r"tx_ids\[0\] must be .*; got \['0x1.n', .*…$"),
        (
            lambda client: client.transactions(start_time=EARLY),
            "1970 to 9999; got 0001-01-01T00:00:00",
        ),
        (lambda client: client.blocks(max_items=2).collect()[5], "record index out of range: 5 of 2 records"),
        (lambda client: client.blocks(max_items=1).collect()[-2], "record index out of range: -2 of 1 record$"),
        (
            lambda client: client.blocks(max_items=1).collect()[2**70],
            "record index out of range: 1180591620717411303424",
        ),
        (lambda client: client.blocks().first()["heigth"], "Block has no field 'heigth'; did you mean 'height'"),
    ],
)
def test_wrong_value_is_shown(client: cf.Client, call: Callable[[Any], object], message: str) -> None:
    with pytest.raises((cf.ChainframeError, LookupError), match=message):
        call(client)


def test_long_value_is_shown_with_its_cut(client: cf.Client, sample: Sample) -> None:
    record = sample.query(client, "transactions_by_hash").first()
    for given in (record, [record]):
        with pytest.raises(cf.InvalidParameterError, match=r"<Transaction: .{66}…; pass its tx_id$"):
            client.transactions_by_hash(cast("Any", given))


def test_long_text_is_shown_with_its_cut(client: cf.Client) -> None:
    text = "0x" + "ab" * 500
    calls: list[Callable[[], object]] = [
        lambda: client.tokens(protocol_type=text),  # type: ignore[arg-type]
        lambda: client.tokens(start_time=text),
        lambda: client.large_transactions(min_amount=text),
    ]
    for call in calls:
        with pytest.raises(cf.InvalidParameterError, match=r'; got "0x(ab){39}"…') as caught:
            call()
        assert len(str(caught.value)) < 300


def test_set_of_one_value_shows_their_number(client: cf.Client) -> None:
    assert repr(client.blocks(height=[7])).endswith(", height=1 value>")
    assert repr(client.blocks(height=[7, 8])).endswith(", height=2 values>")


def test_bytes_of_any_kind_are_hexadecimal(client: cf.Client, sample: Sample) -> None:
    raw = bytearray.fromhex(sample.address[2:])
    assert repr(client.address_transactions(cast("Any", raw))) == repr(client.address_transactions(sample.address))
    raw = bytearray.fromhex(sample.tx_ids[0][2:])
    assert [each.tx_id for each in client.transactions_by_hash(cast("Any", [raw]))] == [sample.tx_ids[0]]


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("page", r"use query.pages\(\) in a loop, with for or async for$"),
        ("where", r"use query.scan\(\) or query.dataset\(\)$"),
        ("csv", r"use query.to_csv\(path\)$"),
        ("cache", r"use query.collect\(\) once, or Client\(cache=...\)$"),
        ("colect", r"did you mean 'collect'\?$"),
        ("heigth", r"did you mean the column 'height'\?$"),
        ("qqq", "no attribute 'qqq'$"),
    ],
)
def test_unknown_attribute_names_a_public_one(client: cf.Client, word: str, advice: str) -> None:
    with pytest.raises(AttributeError, match=advice):
        getattr(client.blocks(max_items=1), word)


def test_unknown_attribute_of_records_names_a_public_one(client: cf.Client) -> None:
    records: Any = client.blocks(max_items=1).collect()
    with pytest.raises(AttributeError, match=r"did you mean the column 'height'\?$"):
        _ = records.heigth
    with pytest.raises(AttributeError, match=r"did you mean 'to_pandas'\?$"):
        records.to_panda()
    assert not hasattr(records, "_repr_png_")
