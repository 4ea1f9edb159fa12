"""Results and files of chainframe, loaded into the local server exactly."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService

FORMS: dict[str, Callable[[Any, Path], Any]] = {
    "records": lambda query, _: query.collect(),
    "dicts": lambda query, _: query.collect().to_dicts(),
    "pandas": lambda query, _: query.to_pandas(),
    "polars": lambda query, _: query.to_polars(),
    "arrow": lambda query, _: query.to_arrow(),
    "directory": lambda query, path: query.to_parquet(path / "d").path,
    "settled directory": lambda query, path: query.to_parquet(path / "d", settle=1).path,
    "parquet": lambda query, path: query.to_parquet(path / "f.parquet").path,
    "csv": lambda query, path: query.to_csv(path / "f.csv").path,
    "jsonl": lambda query, path: query.to_json(path / "f.jsonl").path,
}


@pytest.fixture
def own() -> Any:
    with LocalService(transactions=0) as service:
        yield service


def ordered(records: Any) -> list[dict[str, Any]]:
    return sorted(
        records.to_dicts(), key=lambda row: (row["tx_id"], row["from_address"], row["to_address"], row["amount"])
    )


@pytest.mark.parametrize("form", FORMS)
def test_result_of_a_set_is_loaded_without_the_column_of_its_values(
    own: LocalService, client: cf.Client, tmp_path: Path, form: str
) -> None:
    tokens = [str(token.token_contract_address) for token in client.tokens(max_items=2)]
    query = client.token_transfers(tokens)
    own.load("token_transfers", FORMS[form](query, tmp_path))
    with own.client() as ask:
        loaded = ask.token_transfers(tokens).collect()
    assert loaded
    if form != "settled directory":
        # The lists of a set are written as they arrive.
        assert ordered(loaded) == ordered(query.collect())


TEXTS = [
    "",
    None,
    "0x" + "f" * 200_000,
    'a "quoted", text',
    "two\nlines\r\nor more",
    '""',
    ",",
    "\r",
    "\n",
    " ",
    "[]",
    "é",
]


@pytest.mark.parametrize("form", [form for form in FORMS if form != "settled directory"])
def test_texts_are_loaded_exactly(own: LocalService, tmp_path: Path, form: str) -> None:
    rows = [{"tx_id": "0x1", "log_index": number, "data": text} for number, text in enumerate(TEXTS)]
    with LocalService(data={"logs": rows}) as first, first.client() as client:
        own.load("logs", FORMS[form](client.logs("0x1"), tmp_path))
    with own.client() as ask:
        assert [log.data for log in ask.logs("0x1")] == TEXTS


@pytest.mark.parametrize("lines", ["\n", "\r\n", "\r"])
def test_csv_of_other_programs_is_read_as_the_csv_module_reads_it(
    own: LocalService, tmp_path: Path, lines: str
) -> None:
    text = f'tx_id,data,topics{lines}0x1,a"b,{lines}{lines}0x1,"a"b,"[""c"",""d""]"{lines}"0x1",,'
    path = tmp_path / "logs.csv"
    path.write_bytes(text.encode())
    own.load("logs", path)
    with path.open(newline="") as file:
        expected = [row for row in csv.reader(file) if row][1:]
    with own.client() as ask:
        logs = ask.logs("0x1").collect()
    assert [log.data or "" for log in logs] == [row[1] for row in expected] == ['a"b', "ab", ""]
    assert logs[1].topics == ["c", "d"]


def test_line_of_a_csv_row_is_the_last_of_its_text(own: LocalService, tmp_path: Path) -> None:
    path = tmp_path / "logs.csv"
    for text, line in (
        ('tx_id,data\n0x1,"a\n\nb"\n\n0x1\n', 6),
        ('tx_id,data\n0x1,"a', 2),
        ("tx_id,data\n\n0x1,b,c", 3),
    ):
        path.write_text(text)
        if line == 2:
            own.load("logs", path)
            continue
        with pytest.raises(cf.ConfigError, match=rf"logs\.csv line {line} is not a row of the table: it has"):
            own.load("logs", path)
    path.write_bytes(b"tx_id,data\n0x1,\xff\n")
    with pytest.raises(cf.ConfigError, match=r"logs\.csv is not UTF-8"):
        own.load("logs", path)
