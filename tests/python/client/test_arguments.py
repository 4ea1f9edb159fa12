"""Misspelt arguments: the error names the parameter or value that was probably meant, and nothing is sent."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
import reference_client
from chainframe.testing import Cassette, LocalService
from conftest import Sample, needs_extra

TIME = "2026-01-28T00:00Z"
# Arguments that the methods with optional ones require.
REQUIRED: dict[type, dict[str, tuple[object, ...]]] = {
    cf.Client: {
        **dict.fromkeys(("height_at", "height_at_async"), (TIME,)),
        **{call: ("0x1",) * len(reference_client.required(call)) for call in reference_client.ENDPOINTS},
        "with_options": (),
    },
    cf.Query: {
        **dict.fromkeys(("to_parquet", "to_parquet_series", "to_csv", "to_json", "sync", "sync_async"), ("x",)),
        **dict.fromkeys(("to_parquet_async", "to_parquet_series_async", "to_csv_async", "to_json_async"), ("x",)),
        **dict.fromkeys(("to_pandas", "to_polars", "to_arrow", "to_dicts"), ()),
        **dict.fromkeys(("to_pandas_async", "to_polars_async", "to_arrow_async", "to_dicts_async"), ()),
        **dict.fromkeys(("batches", "to_arrow_batch_reader", "follow"), ()),
    },
    cf.Records: {
        **dict.fromkeys(("to_pandas", "to_polars", "to_arrow", "to_dicts"), ()),
        **dict.fromkeys(("to_parquet", "to_csv", "to_json"), ("x",)),
    },
    cf.DecodedLogs: dict.fromkeys(("to_pandas", "to_polars", "to_arrow", "to_dicts"), ()),
}


def keywords(function: Callable[..., object]) -> list[str]:
    kinds = {inspect.Parameter.KEYWORD_ONLY}
    return [name for name, parameter in inspect.signature(function).parameters.items() if parameter.kind in kinds]


def misspelt(name: str) -> str:
    return name[0] + name[2:]


def rejects(function: Callable[..., Any], *required: object) -> None:
    """Calls a function with each of its keywords, misspelt."""
    for name in keywords(function):
        with pytest.raises(
            TypeError, match=rf"unexpected keyword argument '{misspelt(name)}'; did you mean '"
        ) as raised:
            function(*required, **{misspelt(name): None})
        assert f"'{name}'?" in str(raised.value)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'qqq'; it takes \w"):
        function(*required, qqq=None)


@pytest.mark.parametrize("kind", REQUIRED)
def test_methods_with_keywords_name_the_one_that_was_meant(client: cf.Client, sample: Sample, kind: type) -> None:
    logs = sample.query(client, "logs").collect()
    objects: dict[type, Any] = {
        cf.Client: client,
        cf.Query: client.blocks(),
        cf.Records: logs,
        cf.DecodedLogs: logs.decode(cf.Event.named("ERC20.Transfer")),
    }
    methods = {name for name in vars(kind) if not name.startswith("_") and callable(getattr(kind, name))}
    assert {name for name in methods if keywords(getattr(kind, name))} == set(REQUIRED[kind])
    for name, required in REQUIRED[kind].items():
        rejects(getattr(objects[kind], name), *required)


@needs_extra
def test_classes_and_functions_name_the_keyword_that_was_meant(client: cf.Client, tmp_path: Path) -> None:
    export = client.blocks(max_items=3).to_parquet(tmp_path / "blocks")
    from chainframe.integrations import otel  # noqa: PLC0415 - an extra

    calls: list[tuple[Callable[..., Any], tuple[object, ...], str, str]] = [
        (cf.Client, (), "rate_limt", "rate_limit"),
        (cf.Deployment, (), "header_prefx", "header_prefix"),
        (Cassette, (tmp_path / "x",), "allow_playback_repeat", "allow_playback_repeats"),
        (LocalService, (), "transaction", "transactions"),
        (export.verify, (), "smaple", "sample"),
        (otel.instrument, (), "tracer_provder", "tracer_provider"),
    ]
    for function, required, wrong, right in calls:
        with pytest.raises(TypeError, match=f"'{wrong}'; did you mean '{right}'"):
            function(*required, **{wrong: 1})
    with pytest.raises(TypeError, match="Block has no field \"heigth\"; did you mean 'height'"):
        cf.Block(heigth=1)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


class Unusual:
    """An object with a long repr, or with none."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        if not self.text:
            raise RuntimeError(self.text)
        return self.text


COLUMNS: list[tuple[dict[str, Any], str]] = [
    ({"columns": ["hight"]}, "columns must be among height, block_time, .*; got \"hight\"; did you mean 'height'"),
    ({"columns": ["qqq"]}, 'got "qqq"$'),
    ({"columns": "height"}, "columns must be a list of names; got 'height'"),
    ({"columns": 3}, "columns must be a list of names; got 3"),
    ({"columns": [3]}, r"columns must be a list of names; got \[3\]"),
    ({"columns": Unusual("one\ntwo")}, "columns must be a list of names; got one…$"),
    ({"columns": Unusual("")}, "columns must be a list of names; got a value without a repr$"),
]
NUMBERS: list[tuple[dict[str, Any], str]] = [
    ({"numbers": "exact"}, 'numbers must be one of decimal, float, string; got "exact"'),
    ({"numbers": Unusual("one\ntwo")}, "numbers must be one of decimal, float, string; got one…$"),
    ({"numbers": Unusual("")}, "numbers must be one of decimal, float, string; got a value without a repr$"),
]
VALUES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "to_pandas": [
        *COLUMNS,
        *NUMBERS,
        ({"dtype_backend": "numpy"}, 'dtype_backend must be one of numpy_nullable, pyarrow; got "numpy"'),
        ({"dtype_backend": 3}, "dtype_backend must be one of numpy_nullable, pyarrow; got 3"),
    ],
    "to_polars": [*COLUMNS, *NUMBERS],
    "to_arrow": [*COLUMNS, *NUMBERS],
    "to_dicts": [*COLUMNS, ({"json": "yes"}, "json must be True or False; got 'yes'")],
    "batches": [*COLUMNS, ({"batch_size": 0}, "batch_size must be an integer from 1")],
    "to_arrow_batch_reader": [*COLUMNS, *NUMBERS],
    "to_csv": [*COLUMNS, *NUMBERS, ({"mode": 3}, "mode must be one of resume, overwrite, error; got 3")],
    "to_json": [*COLUMNS, *NUMBERS, ({"mode": "new"}, "mode must be one of resume, overwrite, error; got 'new'")],
    "to_parquet": [
        *COLUMNS,
        *NUMBERS,
        ({"max_rows_per_file": 0}, "max_rows_per_file must be an integer from 1"),
        ({"settle": "x"}, "settle must be an integer from 1"),
    ],
    "follow": [({"undo": 1}, "undo must be True or False; got 1"), ({"poll": "aut"}, 'poll must be "auto"')],
}


FILES = {"to_csv": "x.csv", "to_json": "x.jsonl", "to_parquet": "x.parquet"}


@needs_extra
@pytest.mark.parametrize("method", VALUES)
def test_values_name_the_allowed_ones_and_nothing_is_sent(
    service: LocalService, client: cf.Client, tmp_path: Path, method: str
) -> None:
    query = client.blocks(max_items=3)
    service.reset_request_log()
    for options, message in VALUES[method]:
        required = (tmp_path / FILES[method],) if method in FILES else ()
        required = (tmp_path / "x",) if {"max_rows_per_file", "settle"} & options.keys() else required
        with pytest.raises(cf.InvalidParameterError, match=message):
            getattr(query, method)(*required, **options)
    assert service.request_count == 0
    assert list(tmp_path.iterdir()) == []


def test_attributes_of_results_name_the_call_that_was_meant(client: cf.Client) -> None:
    records: Any = client.blocks(max_items=3).collect()
    with pytest.raises(KeyError, match=r"Block has no column 'heigth'; it has height, .*; did you mean 'height'"):
        records["heigth"]
    with pytest.raises(AttributeError, match=r"use records\[:n\]"):
        records.head()
    with pytest.raises(AttributeError, match=r'it is a column: use records\["height"\], or records\[0\].height'):
        _ = records.height
    with pytest.raises(AttributeError, match=r"'Records' object has no attribute 'qqq'$"):
        _ = records.qqq
    query: Any = client.blocks()
    with pytest.raises(AttributeError, match=r'it is a column of the result: use query.collect\(\)\["height"\]'):
        _ = query.height
    with pytest.raises(AttributeError, match=r"use query.collect\(\), query.to_pandas\(\) or"):
        query.sort_values("height")


@needs_extra
def test_columns_of_dictionaries_are_in_the_order_given(client: cf.Client, sample: Sample) -> None:
    query = client.blocks(max_items=2)
    for source in (query, query.collect()):
        (first, _) = source.to_dicts(columns=["miner", "height"])
        assert list(first) == ["miner", "height"]
    decoded = sample.query(client, "logs").collect().decode(cf.Event.named("ERC20.Transfer"))
    whole = decoded.to_dicts()
    assert whole
    assert decoded.to_dicts(columns=["value", "tx_id"]) == [
        {"value": row["value"], "tx_id": row["tx_id"]} for row in whole
    ]
    assert (
        decoded.to_arrow(columns=["value", "tx_id"]).to_pydict()
        == decoded.to_arrow().select(["value", "tx_id"]).to_pydict()
    )
    assert decoded.to_polars(columns=["to"]).columns == ["to"]
    assert list(decoded.to_pandas(columns=["to"]).columns) == ["to"]


@pytest.mark.parametrize(
    ("call", "word", "meant"),
    [
        ("tokens", "limit", "max_items"),
        ("blocks", "n", "max_items"),
        ("tokens", "since", "start_time"),
        ("tokens", "sort", "order_by"),
        ("transactions", "from_block", "start_height"),
        ("transactions", "to_block", "end_height"),
        ("transactions", "fromBlock", "start_height"),
        ("transactions", "endblock", "end_height"),
        ("transactions", "startHeight", "start_height"),
        ("cross_chain_transactions", "wallet", "address"),
    ],
)
def test_word_of_another_library_names_the_parameter(call: str, word: str, meant: str, client: cf.Client) -> None:
    with pytest.raises(TypeError, match=f"argument '{word}'; did you mean '{meant}'"):
        getattr(client, call)(**{word: 5})


@pytest.mark.parametrize("name", ["start_height", "block_hash", "min_amount", "direction"])
def test_parameter_of_another_call_is_not_taken_for_a_misspelling(name: str, client: cf.Client) -> None:
    given: dict[str, Any] = {name: 5}
    with pytest.raises(TypeError, match=f"argument '{name}'; it takes height, chain, page_size, max_items"):
        client.blocks(**given)


@pytest.mark.parametrize(("name", "meant"), [("AsyncClient", "Client"), ("Error", "ChainframeError")])
def test_name_of_another_package_names_the_class(name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; use {meant}") as caught:
        getattr(cf, name)
    # Below the message Python suggests a name that is spelt like it, unless there is no object to look into.
    assert caught.value.obj is None


def test_name_of_a_module_that_is_not_imported_names_the_import() -> None:
    program = "import chainframe; chainframe.testing"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("has no attribute 'testing'; write import chainframe.testing\n")
    assert done.stderr.count("File ") == 1


OF_EXTRAS = [pytest.param(module, marks=needs_extra) for module in ("datasets", "exact")]


@pytest.mark.parametrize("module", [*OF_EXTRAS, "exports", "partitions", "sinks", "testing"])
def test_name_of_a_module_names_the_module(module: str) -> None:
    names = importlib.import_module(f"chainframe.{module}").__all__
    assert names
    for name in names:
        with pytest.raises(AttributeError, match=rf"'{name}'; use chainframe\.{module}\.{name}$"):
            getattr(cf, name)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("get_tokens", "tokens"),
        ("list_blocks", "blocks"),
        ("fetch_logs", "logs"),
        ("block", "blocks"),
        ("transfers", "token_transfers"),
        ("get_tokens_async", "tokens"),
    ],
)
def test_method_of_another_client_names_the_call(client: cf.Client, word: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{word}'; did you mean '{meant}'"):
        getattr(client, word)


def test_unknown_method_lists_the_calls(client: cf.Client) -> None:
    with pytest.raises(AttributeError, match=r"'get_balance'; its calls are tokens, .*, logs(, .*)?$") as caught:
        client.get_balance()  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]
    # Python would add the one that is spelt most like it.
    assert caught.value.obj is None
    for name in ("clse", "_repr_png_"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
            getattr(client, name)


def test_misspelt_call_is_suggested_once(client: cf.Client) -> None:
    with pytest.raises(AttributeError, match="did you mean 'token_transfers'") as caught:
        client.token_transfer("0x1")  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]
    assert "".join(traceback.format_exception(caught.value)).count("did you mean") == 1
    assert "Did you mean" not in "".join(traceback.format_exception(caught.value))


@needs_extra
def test_option_of_another_library_is_not_taken_for_one_that_is_spelt_otherwise(client: cf.Client) -> None:
    with pytest.raises(TypeError, match="'index'; it takes path, mode, since"):
        client.blocks(max_items=1).to_csv("x.csv", index=False)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


def test_record_in_place_of_its_value_names_the_value(client: cf.Client) -> None:
    token: Any = client.tokens().first()
    with pytest.raises(cf.InvalidParameterError, match=r"; pass its token_contract_address$"):
        client.token_transfers(token)
    records: Any = client.transactions(max_items=2).collect()
    with pytest.raises(cf.InvalidParameterError, match=r"^tx_ids\[0\] must be a string, .*; pass its tx_id$"):
        client.transactions_by_hash(records)


def test_coroutine_that_is_not_awaited_says_so(client: cf.Client) -> None:
    coroutine: Any = client.blocks(max_items=1).collect_async()
    with pytest.raises(AttributeError, match=r"no attribute 'report'; await it first$"):
        _ = coroutine.report
    assert not hasattr(coroutine, "_repr_html_")
    coroutine.close()


def test_required_argument_under_another_name_is_named(client: cf.Client) -> None:
    with pytest.raises(TypeError, match="'address'; did you mean 'token_contract_address'"):
        client.token_transfers(address="0x1")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="missing a required argument: 'token_contract_address'"):
        client.token_transfers(max_items=3)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("df", r"query.to_pandas\(\)"),
        ("json", r"query.to_dicts\(json=True\)"),
        ("limit", "max_items="),
        ("fetchall", r"query.collect\(\)"),
        ("pl", r"query.to_polars\(\)"),
    ],
)
def test_word_of_another_library_names_the_conversion(client: cf.Client, word: str, advice: str) -> None:
    query = client.blocks(max_items=1)
    with pytest.raises(AttributeError, match=f"no attribute '{word}'; .*{advice}"):
        getattr(query, word)
    if word in {"df", "json"}:
        with pytest.raises(AttributeError, match=advice.replace("query", "records")):
            getattr(query.collect(), word)


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("get", r"use record.to_dict\(\)"),
        ("items", r"use record.to_dict\(\)"),
        ("json", r"use record.to_dict\(json=True\)"),
        ("timestamp", "did you mean 'block_time'"),
        ("number", "did you mean 'height'"),
    ],
)
def test_word_of_another_library_names_the_attribute_of_a_record(client: cf.Client, word: str, advice: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{word}'; {advice}"):
        getattr(client.blocks().first(), word)


def test_unknown_attribute_of_a_record_has_no_advice(client: cf.Client) -> None:
    block: Any = client.blocks().first()
    assert not hasattr(block, "frobnicate")
    with pytest.raises(AttributeError, match=r"no attribute 'frobnicate'$") as caught:
        _ = block.frobnicate
    assert (caught.value.name, caught.value.obj) == ("frobnicate", block)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("LocalService", "chainframe.testing.LocalService"),
        ("NotFound", "NotFoundError"),
        ("transport_error", "TransportError"),
        ("tokens", r"Client\(\).tokens"),
    ],
)
def test_name_of_the_package_is_found_where_it_is(name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; use {meant}$"):
        getattr(cf, name)


def test_argument_that_is_no_cursor_or_event_shows_its_value(client: cf.Client, sample: Sample) -> None:
    given: Any = client.blocks()
    with pytest.raises(cf.InvalidParameterError, match=r"cursor must be a string from .*; got <Query blocks of"):
        client.resume(given)
    given = "Transfer"
    with pytest.raises(cf.InvalidParameterError, match=r"event must be an Event, such as .*; got 'Transfer'$"):
        sample.query(client, "logs").collect().decode(given)
    given = 3
    with pytest.raises(cf.InvalidParameterError, match="declaration must be a string; got a value of type int"):
        cf.Event(given)
