"""Values that a filter can accept, of more values than Arrow compares with a range."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from chainframe.datasets.values import MAX_COMPARED, Range, Solver
from chainframe.testing import LocalService

MANY = MAX_COMPARED + 10
text, number = pc.field("text"), pc.field("number")
TYPES: dict[str, pa.DataType] = {"text": pa.string(), "other": pa.string(), "number": pa.int64()}
SCHEMA = pa.schema(TYPES)
TEXTS = [f"0x{value:03}" for value in range(MANY)]
NUMBERS = list(range(100, 100 + 2 * MANY, 2))

LISTED = {
    "alone": text.isin(TEXTS),
    "with a neighbor": text.isin([*TEXTS[1:], "0x000", "0x000\0"]),
    "and": text.isin(TEXTS) & (number > 3),
    "or": text.isin(TEXTS[:-1]) | (text == TEXTS[-1]),
}
UNLISTED = {
    "not": ~text.isin(TEXTS),
    "another column": text.isin(TEXTS) | (number > 3),
    "two columns": text.isin(TEXTS) | (text == pc.field("other")),
    "null": text.isin([*TEXTS, None]),
    "range": text.isin(TEXTS) | (text < "0x"),
    "prefix": text.isin(TEXTS) | pc.starts_with(text, "0x"),
}


@pytest.mark.parametrize("name", LISTED)
def test_many_strings_are_listed(name: str) -> None:
    points = Solver(SCHEMA, LISTED[name]).points("text")
    assert points is not None
    assert set(points) - {"0x000\0"} == set(TEXTS)


@pytest.mark.parametrize("name", UNLISTED)
def test_filter_that_accepts_strings_between_those_of_a_long_list_lists_none(name: str) -> None:
    assert Solver(SCHEMA, UNLISTED[name]).points("text") is None


def test_many_numbers_are_single_values() -> None:
    among = number.isin(NUMBERS)
    assert Solver(SCHEMA, among).ranges("number") == [Range(each, each) for each in NUMBERS]
    assert Solver(SCHEMA, among & (number > NUMBERS[-3])).ranges("number") == [
        Range(each, each) for each in NUMBERS[-2:]
    ]
    assert Solver(SCHEMA, among | (number > NUMBERS[-2])).ranges("number") == [
        *(Range(each, each) for each in NUMBERS[:-2]),
        Range(NUMBERS[-2], None),
    ]


def test_scan_looks_up_more_hashes_than_arrow_compares() -> None:
    with LocalService(seed=3) as service, service.client() as client:
        records = client.transactions(max_items=200).collect()
        hashes = [record.tx_id for record in records[:MANY]]
        service.reset_request_log()
        found = client.transactions().dataset().to_table(filter=pc.field("tx_id").isin(hashes))
        heights = {record.height for record in records[:MANY]}
        assert found.num_rows == MANY
        assert service.request_count <= MANY / 20 + 2 * len(heights)


def test_many_values_are_not_listed_if_the_functions_of_the_filter_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    # Another release of Arrow may name them in another way.
    monkeypatch.setattr("chainframe.datasets.values._functions", lambda _expression: set())
    solver = Solver(SCHEMA, LISTED["alone"])
    # Arrow 20 compares the values of a list of any length, and so needs no names.
    assert solver.points("text") == (None if solver.accepts(text < "0x") else TEXTS)
