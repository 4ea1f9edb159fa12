"""The types of columns in files, as docs/stability.md promises them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import pyarrow.parquet as pq
import pytest

from chainframe._declared import ENDPOINTS, record_of
from chainframe.testing import make_records
from repository import ROOT

if TYPE_CHECKING:
    from chainframe.testing import Call

KINDS = {
    "string": "text, address, hash",
    "integer": "integer",
    "time": "time",
    "boolean": "True or False",
    "amount": "amount",
    "estimate": "estimate: prices, supplies",
    "raw integer": "integer of any size",
    "list of strings": "list of texts, `queried` of a set",
}
VALUES: dict[str, tuple[Any, str, Any]] = {
    "string": ("NA", '"NA"', "NA"),
    "integer": (5, "5", 5),
    "time": ("2026-01-31T00:00:00.5Z", '"2026-01-31T00:00:00.500Z"', "2026-01-31T00:00:00.500Z"),
    "boolean": (True, "true", True),
    "amount": ("1e2", '"100"', "100"),
    "estimate": ("0E-18", '"0"', "0"),
    "raw integer": (2**100, f'"{2**100}"', str(2**100)),
    "list of strings": (["0x1"], '"[""0x1""]"', ["0x1"]),
}
NUMBERS: tuple[Literal["decimal", "float", "string"], ...] = ("decimal", "float", "string")


def documented() -> dict[str, dict[str, str]]:
    """Arrow types by name of a kind in the table, and by `numbers`."""
    lines = (ROOT / "docs/stability.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")][1:]
    found = {}
    for name, types, *_ in rows:
        default = types.split("`")[1]
        others = dict(re.findall(r'`([^`]+)` with `numbers="(\w+)"`', types))
        found[name] = dict.fromkeys(NUMBERS, default) | {numbers: kind for kind, numbers in others.items()}
    return found


@pytest.mark.parametrize("call", ENDPOINTS)
def test_types_are_those_of_the_documentation(tmp_path: Path, call: str) -> None:
    types = documented()
    assert types.keys() == set(KINDS.values())
    fields = record_of(call)["fields"]
    records = make_records(cast("Call", call), [{field["name"]: VALUES[field["kind"]][0] for field in fields}])
    for numbers in NUMBERS:
        records.to_parquet(tmp_path / "a.parquet", numbers=numbers)
        schema = pq.read_schema(tmp_path / "a.parquet")
        for field in fields:
            stored = re.sub(r"<\w+: ", "<", str(schema.field(field["name"]).type))
            assert stored == types[KINDS[field["kind"]]][numbers]
    records.to_csv(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()[1] == ",".join(
        VALUES[field["kind"]][1] for field in fields
    )
    records.to_json(tmp_path / "a.jsonl")
    line = json.loads((tmp_path / "a.jsonl").read_text(encoding="utf-8"))
    assert line == {field["name"]: VALUES[field["kind"]][2] for field in fields}
