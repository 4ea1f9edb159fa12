"""One order of columns in every form of a result, whatever order an earlier version had."""

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import chainframe as cf
from chainframe import exports
from chainframe._native import _declaration
from chainframe.testing import LocalService
from conftest import Sample

RECORDS = {each["name"]: [field["name"] for field in each["fields"]] for each in json.loads(_declaration())["records"]}
ENDPOINTS = {each["name"]: each["record"] for each in json.loads(_declaration())["endpoints"]}
ANOTHER = RECORDS["Block"][::-1]


@pytest.mark.parametrize("call", ENDPOINTS)
@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_every_form_of_a_result_has_the_declared_order(
    client: cf.Client, sample: Sample, call: str, tmp_path: Path
) -> None:
    declared, wanted = RECORDS[ENDPOINTS[call]], sample.query(client, call)
    records = wanted.collect()
    assert records, f"src/service/synthesis/ has no rows of {call}"
    wanted.to_csv(tmp_path / "x.csv")
    forms = {
        "schema": records.schema.names,
        "arrow": records.to_arrow().column_names,
        "pandas": list(records.to_pandas().columns),
        "polars": records.to_polars().columns,
        "export": wanted.to_parquet(tmp_path / "export").to_arrow().column_names,
        "csv": (tmp_path / "x.csv").read_text().splitlines()[0].replace('"', "").split(","),
        "dict": list(records.to_dicts()[0]),
        "class": list(getattr(cf, ENDPOINTS[call]).__match_args__),
    }
    assert forms == dict.fromkeys(forms, declared)
    table = records._repr_html_()
    assert sorted(declared, key=lambda name: table.index(f">{name}<br>")) == declared


@pytest.mark.parametrize("record", RECORDS)
def test_values_come_before_hashes(record: str) -> None:
    names = RECORDS[record]
    hashes = [name for name in names if name.endswith(("hash", "tx_id")) or name == "id"]
    values = {"amount", "value", "token_name", "transaction_time", "block_time", "height", "from_address", "output"}
    first_hash = min((names.index(name) for name in hashes), default=len(names))
    assert all(names.index(name) < first_hash for name in values & {*names})
    # In sight where two addresses fill the width of a notebook.
    first = {"amount", "value", "symbol", "transaction_symbol", "token_name"} & {*names}
    assert first <= {*names[:3]}


def test_command_prints_the_declared_order() -> None:
    with LocalService(transactions=20) as service:
        command = [sys.executable, "-m", "chainframe", "blocks", "--format", "csv", "--max-items", "1"]
        environment = {**os.environ, **service.env}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0].replace('"', "").split(",") == RECORDS["Block"]


def test_export_begun_in_another_order_keeps_it(tmp_path: Path) -> None:
    with LocalService(transactions=300) as service:
        service.faults = [{"kind": "status", "status": 400, "path": "block-list", "every": 3}]
        with service.client(max_retries=0) as client, pytest.raises(cf.ServiceError):
            client.blocks().to_parquet(tmp_path / "a", columns=ANOTHER, max_rows_per_file=50)
        service.faults = []
        with service.client() as client:
            export = client.blocks().to_parquet(tmp_path / "a", max_rows_per_file=50)
            assert (export.rows, export.to_arrow().column_names) == (300, ANOTHER)
            assert client.blocks().to_parquet(tmp_path / "a", max_rows_per_file=50).rows == 300
            with pytest.raises(cf.ExportError, match="columns has its values in another order"):
                client.blocks().to_parquet(tmp_path / "a", columns=ANOTHER[::-1])
            replaced = client.blocks().to_parquet(tmp_path / "a", mode="overwrite")
            assert replaced.to_arrow().column_names == RECORDS["Block"]


@pytest.mark.parametrize("settle", [None, 5])
def test_series_begun_in_another_order_keeps_it(tmp_path: Path, settle: int | None) -> None:
    with LocalService(transactions=200) as service, service.client() as client:
        first = client.blocks().to_parquet(tmp_path / "a", columns=ANOTHER, settle=settle)
        service.growth = 20
        client.blocks(max_items=1).collect()
        service.growth = 0
        second = client.blocks().to_parquet(tmp_path / "b", since=first, settle=settle)
        assert second.rows > 0
        assert second.to_arrow().column_names == ANOTHER
        if settle is not None:
            read = exports.read(tmp_path / "b")
            whole = {block.hash for block in client.blocks()}
            assert len(whole - {row["hash"] for row in read.to_table().to_pylist()}) == settle


def test_table_in_another_order_gets_values_by_name(tmp_path: Path) -> None:
    with LocalService(transactions=50) as service, service.client() as client:
        database = duckdb.connect(str(tmp_path / "x.duckdb"))
        client.blocks().sync(database, table="blocks", settle=2)
        database.execute(f"create table other as select {', '.join(ANOTHER)} from blocks")
        database.execute("drop table blocks; alter table other rename to blocks")
        service.growth = 10
        client.blocks(max_items=1).collect()
        service.growth = 0
        client.blocks().sync(database, table="blocks", settle=2)
        table = database.sql("from blocks order by height")
        assert table.columns == ANOTHER
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()]
        blocks = {block.height: block for block in client.blocks()}
        assert 50 < len(rows) < len(blocks)
        assert all(row["hash"] == blocks[row["height"]].hash for row in rows)
        database.close()
