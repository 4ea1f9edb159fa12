"""Optional libraries that are not installed."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import chainframe as cf
from chainframe import frames
from chainframe.testing import LocalService
from conftest import needs_extra

CASES = [
    ("to_pandas", "pandas", "pandas"),
    ("to_pandas", "pyarrow", "pandas"),
    ("to_polars", "polars", "polars"),
    ("to_arrow", "pyarrow", "arrow"),
]


@needs_extra
@pytest.mark.parametrize(("convert", "library", "extra"), CASES)
def test_missing_library_is_named_with_its_install_command(
    client: cf.Client,
    monkeypatch: pytest.MonkeyPatch,
    convert: str,
    library: str,
    extra: str,
) -> None:
    records: Any = client.blocks(max_items=3).collect()
    # pandas imports pyarrow when it is loaded; other tests need both.
    importlib.import_module("pandas")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"{library}.*pip install 'chainframe\[{extra}\]'") as caught:
        getattr(records, convert)()
    assert caught.value.name == library


@pytest.mark.parametrize("case", CASES)
def test_missing_library_is_detected_before_a_request(
    service: LocalService,
    client: cf.Client,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[str, str, str],
) -> None:
    convert, library, extra = case
    monkeypatch.setitem(sys.modules, library, None)
    before = service.request_count
    with pytest.raises(ImportError, match=rf"chainframe\[{extra}\]"):
        getattr(client.blocks(), convert)()
    assert service.request_count == before


@pytest.mark.parametrize(
    "case",
    [
        ("x.duckdb", "duckdb", "duckdb pyarrow"),
        ("table", "deltalake", "deltalake pyarrow"),
        ("postgresql://host/db", "adbc_driver_postgresql", "adbc-driver-postgresql pyarrow"),
        ("iceberg://catalog", "pyiceberg", "'chainframe[iceberg]'"),
    ],
)
def test_missing_library_of_a_target_is_named_before_a_request(
    service: LocalService, client: cf.Client, monkeypatch: pytest.MonkeyPatch, case: tuple[str, str, str]
) -> None:
    target, library, packages = case
    for name in [name for name in sys.modules if name.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    before = service.request_count
    table = None if target == "table" else "blocks"
    with pytest.raises(ModuleNotFoundError, match=f"^{library} is not installed; run: pip install ") as caught:
        client.blocks().sync(target, table=table)
    assert str(caught.value).endswith(f"run: pip install {packages}")
    assert (service.request_count, caught.value.__cause__) == (before, None)


def test_missing_library_of_object_stores_is_named(client: cf.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "obstore"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"^obstore is not installed; run: pip install 'chainframe\[stores\]'$"
    ):
        client.blocks().to_parquet("s3://bucket/blocks")


@needs_extra
@pytest.mark.parametrize(("convert", "extra"), [("to_pandas", "pandas"), ("to_arrow", "arrow")])
def test_library_that_is_too_old_is_named_with_its_install_command(
    service: LocalService, client: cf.Client, monkeypatch: pytest.MonkeyPatch, convert: str, extra: str
) -> None:
    old = SimpleNamespace(__version__="14.0.2", RecordBatchReader=object)
    importlib.import_module("pandas")
    monkeypatch.setitem(sys.modules, "pyarrow", old)
    before = service.request_count
    with pytest.raises(ImportError, match=rf"pyarrow 14.0.2 is too old; run: pip install 'chainframe\[{extra}\]'"):
        getattr(client.blocks(), convert)()
    assert service.request_count == before


def test_import_error_inside_a_library_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise ModuleNotFoundError(f"{name} lacks a part", name="part")

    monkeypatch.setattr("importlib.import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="lacks a part"):
        frames.load("pandas", extra="pandas")


def test_records_work_without_optional_libraries(
    client: cf.Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for library in ("pandas", "polars", "pyarrow", "numpy"):
        monkeypatch.setitem(sys.modules, library, None)
    rows = client.blocks(max_items=3).to_dicts()
    assert len(rows) == 3
    assert rows[0]["height"] > 0
