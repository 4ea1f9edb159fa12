"""Integers that no parameter takes: each is an error of the package with one line, never one of Python or a library."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

import chainframe as cf
import reference_client
from chainframe import exports
from chainframe.testing import LocalService, check_sink, make_records
from conftest import needs_extra

STUB = Path(cf.__file__).with_name("_native.pyi")


class Kit(NamedTuple):
    service: LocalService
    client: cf.Client
    directory: Path


Call = Callable[[Kit, Any], object]


def setting(name: str) -> Call:
    return lambda kit, value: kit.client.with_options(**{name: value})


def of_client(name: str) -> Call:
    return lambda kit, value: kit.service.client(**{name: value})


def of_cache(name: str) -> Call:
    return lambda kit, value: cf.Cache(kit.directory, **{name: value})


def of_deployment(name: str) -> Call:
    return lambda _, value: cf.Deployment(**{name: value})


def of_service(name: str) -> Call:
    return lambda _, value: LocalService(simulated=True, **{name: value})


def of_query(method: str, name: str, *arguments: Any) -> Call:
    return lambda kit, value: getattr(kit.client.blocks(), method)(*arguments, **{name: value})


def of_export(method: str, name: str) -> Call:
    return lambda kit, value: getattr(kit.client.blocks(), method)(kit.directory / "export", **{name: value})


def heights_of(call: str) -> list[str]:
    return [param["name"] for param in reference_client.ENDPOINTS[call]["params"] if param["kind"] == "height"]


def of_call(call: str, name: str) -> Call:
    first = ["0x" + "1" * 40 for _ in reference_client.required(call)]
    return lambda kit, value: getattr(kit.client, call)(*first, **{name: value})


# By class, method and parameter as in the stub.
CALLS: dict[tuple[str, str, str], Call] = {
    **{
        ("Client", "__new__", name): of_client(name)
        for name in ("concurrency", "max_requests", "max_response_bytes", "max_retries")
    },
    **{("Client", "with_options", name): setting(name) for name in ("concurrency", "max_requests", "max_retries")},
    **{("Cache", "__new__", name): of_cache(name) for name in ("max_bytes", "settle")},
    **{
        ("Deployment", "__new__", name): of_deployment(name)
        for name in ("log_window", "max_page_size", "result_window")
    },
    **{
        ("Client", call, name): of_call(call, name)
        for call in reference_client.PAGED
        for name in [*heights_of(call), "page_size", "max_items"]
    },
    ("Query", "batches", "batch_size"): of_query("batches", "batch_size"),
    ("Query", "to_arrow_batch_reader", "batch_size"): of_query("to_arrow_batch_reader", "batch_size"),
    ("Query", "partitions", "num_partitions"): of_query("partitions", "num_partitions"),
    ("Query", "follow", "settle"): of_query("follow", "settle"),
    ("Query", "sync", "settle"): of_export("sync", "settle"),
    ("Query", "sync_async", "settle"): lambda kit, value: finished(
        kit.client.blocks().sync_async(kit.directory / "table", settle=value)
    ),
    **{
        ("Query", method, name): of_export(method, name)
        for method in ("to_parquet", "to_parquet_async", "to_parquet_series", "to_parquet_series_async")
        for name in ("max_rows_per_file", "rows_per_group", "settle")
    },
    ("Undo", "__new__", "after_height"): lambda _, value: cf.Undo(value, "cursor"),
}
OTHERS: dict[str, Call] = {
    **{name: of_service(name) for name in ("transactions", "seed", "growth", "max_result_window")},
    "reorg": of_service("reorg"),
    "growth of a service": lambda kit, value: setattr(kit.service, "growth", value),
    "schedules": lambda _, value: check_sink(cast("Any", print), cast("Any", print), schedules=value),
    "record": lambda _, value: make_records("blocks", [{"height": value}]),
    "compact max_rows_per_file": lambda kit, value: compact(kit, max_rows_per_file=value),
    "compact rows_per_group": lambda kit, value: compact(kit, rows_per_group=value),
    "compact heights_per_partition": lambda kit, value: compact(kit, heights_per_partition=value),
    "verify sample": lambda kit, value: exported(kit).verify(kit.client, sample=value),
}
# Without the arguments of times and amounts, which have spellings of their own, and those of classes of records.
SKIPPED = {"start_time", "end_time", "time", "min_amount", "max_amount"}
WRONG = [2**64, -(2**63) - 1, 10**5_000, -(10**5_000), 10**4_000, True, 1.5, float("nan"), object()]


def compact(kit: Kit, **options: Any) -> object:
    return exports.compact(kit.directory, kit.directory / "lake", **options)


def exported(kit: Kit) -> Any:
    return kit.client.blocks(max_items=2).to_parquet(kit.directory / "export")


def finished(awaitable: Any) -> object:
    async def waited() -> object:
        return await awaitable

    return asyncio.run(waited())


@pytest.fixture
def kit(tmp_path: Path) -> Any:
    with LocalService(transactions=20) as service, service.client() as client:
        yield Kit(service, client, tmp_path)


def declared() -> set[tuple[str, str, str]]:
    """Parameters of the stub that take an integer."""
    found = set()
    for each in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if not isinstance(each, ast.ClassDef) or each.name.startswith("_"):
            continue
        for method in each.body:
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and (
                not method.name.startswith("_") or method.name == "__new__"
            ):
                for argument in [*method.args.args, *method.args.kwonlyargs]:
                    if argument.annotation and "int" in ast.unparse(argument.annotation).replace("|", " ").split():
                        found.add((each.name, method.name, argument.arg))
    return {each for each in found if each[2] not in SKIPPED}


def test_every_parameter_of_the_stub_is_tried() -> None:
    tried = {each for each in declared() if each[0] in {"Client", "Query", "Cache", "Deployment", "Undo"}}
    assert tried == CALLS.keys()


@needs_extra
@pytest.mark.parametrize("name", [*map(" ".join, CALLS), *OTHERS])
def test_integer_that_no_parameter_takes_is_an_error_of_one_line(kit: Kit, name: str) -> None:
    call = OTHERS.get(name) or next(call for names, call in CALLS.items() if " ".join(names) == name)
    sent = kit.service.request_count
    for wrong in WRONG:
        with pytest.raises(cf.ChainframeError) as caught:
            call(kit, wrong)
        assert isinstance(caught.value, cf.InvalidParameterError | cf.ConfigError), str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300
    if name != "verify sample":
        assert kit.service.request_count == sent


@needs_extra
def test_largest_distance_is_one_and_the_next_is_refused(kit: Kit) -> None:
    query = kit.client.blocks()
    for _ in range(2):
        assert query.to_parquet_series(kit.directory / "series", settle=2**32).rows == 0
    for settle in (2**32 + 1, 2**62, 2**63 - 1):
        with pytest.raises(
            cf.InvalidParameterError, match=rf"^settle must be an integer from 1 to 4294967296; got {settle}$"
        ):
            query.to_parquet_series(kit.directory / "other", settle=settle)
    for parameter in ("settle", "rows_per_group", "max_rows_per_file"):
        options: Any = {parameter: 2**63}
        with pytest.raises(
            cf.InvalidParameterError, match=rf"^{parameter} must be an integer from 1 to [0-9^-]+; got 92233"
        ):
            query.to_parquet_series(kit.directory / "other", **options)
    assert not (kit.directory / "other").exists()


def test_index_takes_integers_of_any_size_as_that_of_a_list(kit: Kit) -> None:
    records = kit.client.blocks().collect()
    listed = list(records)
    for start, stop in product((0, 3, -2, -(2**70), 2**70), repeat=2):
        if listed[4] in listed[start:stop]:
            assert records.index(listed[4], start, stop) == 4
        else:
            with pytest.raises(ValueError, match="is not in these records"):
                records.index(listed[4], start, stop)


@needs_extra
def test_integers_of_numpy_are_integers(kit: Kit) -> None:
    numpy = pytest.importorskip("numpy")
    export = kit.client.blocks().to_parquet(
        kit.directory / "e", settle=numpy.int64(3), max_rows_per_file=numpy.int64(50)
    )
    assert export.verify(kit.client, sample=numpy.int64(2)).ok
