"""Records: frozen, hashable, comparable, picklable and typed."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

import chainframe as cf
import reference_client
from strict_server import StrictServer, page_of

NAMES = sorted(reference_client.RECORDS)
VALUES: dict[str, Any] = {
    "int": 2**62,
    "Decimal": Decimal("0.150851832900380503"),
    "datetime": datetime(2026, 1, 31, 9, 8, 57, 715_000, UTC),
    "bool": True,
    "str": "0xabc",
    "list[str]": ["0x1", "0x2"],
}


def fields(name: str) -> dict[str, Any]:
    return {field["name"]: VALUES[field["python"]] for field in reference_client.RECORDS[name]["fields"]}


def make(name: str, **changes: object) -> Any:
    return getattr(cf, name)(**{**fields(name), **changes})


@pytest.mark.parametrize("name", NAMES)
def test_record_has_attributes_and_a_dictionary(name: str) -> None:
    record = make(name)
    assert record.to_dict() == fields(name)
    assert {field: getattr(record, field) for field in fields(name)} == fields(name)
    assert {type(value) for value in record.to_dict().values()} == {type(value) for value in fields(name).values()}


@pytest.mark.parametrize("name", NAMES)
def test_record_is_a_mapping_for_dict_and_indexing(name: str) -> None:
    record = make(name)
    assert dict(record) == record.to_dict() == {**record}
    assert all(field in record for field in fields(name))
    assert "qqq" not in record
    assert 3 not in record
    assert {field: record[field] for field in record.keys()} == fields(name)  # noqa: SIM118 - a record is no dictionary


def test_index_that_is_no_field_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"Block has no field .*hight.*did you mean.*height"):
        cf.Block(height=3)["hight"]
    with pytest.raises(TypeError, match="indexed by the name of a field; got 0"):
        cf.Block(height=3)[0]  # type: ignore[index] # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", NAMES)
def test_omitted_fields_are_none(name: str) -> None:
    empty = getattr(cf, name)()
    assert set(empty.to_dict().values()) == {None}


@pytest.mark.parametrize("name", NAMES)
def test_records_are_frozen(name: str) -> None:
    record = make(name)
    field = next(iter(fields(name)))
    with pytest.raises(AttributeError):
        setattr(record, field, None)
    with pytest.raises(AttributeError):
        record.another = 1
    with pytest.raises(AttributeError):
        delattr(record, field)
    assert record == make(name)


@pytest.mark.parametrize("name", NAMES)
def test_records_are_equal_by_class_and_fields(name: str) -> None:
    record = make(name)
    assert record == make(name)
    assert hash(record) == hash(make(name))
    assert {record, make(name)} == {record}
    for field in fields(name):
        assert record != make(name, **{field: None}), field
    assert record != fields(name)
    assert record != make("Block" if name != "Block" else "Token")


def test_equal_numbers_are_equal_however_they_are_written() -> None:
    short, long = cf.TokenTransfer(amount=Decimal("1.5")), cf.TokenTransfer(amount=Decimal("1.500"))
    assert short == long
    assert hash(short) == hash(long)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_records_pickle(name: str, protocol: int) -> None:
    for record in (make(name), getattr(cf, name)()):
        again = pickle.loads(pickle.dumps(record, protocol))
        assert again == record
        assert type(again) is type(record)
        assert again.to_dict() == record.to_dict()


@pytest.mark.parametrize("name", NAMES)
def test_records_copy(name: str) -> None:
    assert copy.copy(make(name)) == make(name)
    assert copy.deepcopy(make(name)) == make(name)


@pytest.mark.parametrize("name", NAMES)
def test_repr_names_the_class_and_the_first_fields(name: str) -> None:
    text = repr(make(name))
    shown = [field for field in fields(name) if f" {field}=" in text]
    assert text.startswith(f"<{name}: ")
    assert 0 < min(4, len(fields(name))) <= len(shown) <= 5
    assert text.endswith(f", … {len(fields(name)) - len(shown)} more>") == (len(fields(name)) > len(shown))
    assert "\n" not in text
    assert len(text) < 250


def test_repr_shows_time_parties_and_amount_and_no_missing_values() -> None:
    at, sender = datetime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC), "0x" + "0123456789" * 4
    made = cf.TokenTransfer(tx_id="0x1", transaction_time=at, from_address=sender, amount=Decimal("1.50"), height=7)
    assert repr(made) == (
        "<TokenTransfer: transaction_time=2026-01-02 03:04:05.600, amount=1.50, from_address=0x0123456789…123456789, "
        "height=7, tx_id=0x1>"
    )
    assert repr(cf.Block()) == "<Block: no values>"
    assert repr(cf.Token(token="a\n\u202eb")) == "<Token: token=a\ufffd\ufffdb>"


def test_records_are_made_of_records() -> None:
    blocks = [make("Block"), cf.Block(height=2)]
    records = cf.Records.from_records(iter(blocks))
    assert list(records) == blocks
    assert repr(records) == "<Records of Block: 2 rows, possibly incomplete>"
    assert (records.report.records, records.report.complete) == (2, False)
    assert records.report.reasons == ["The records were selected by the caller; they may be a part of a result."]
    assert list(cf.Records.from_records(records[1:])) == blocks[1:]
    log = cf.EventLog(topics=["0x1", "0x2"], log_index=3)
    assert cf.Records.from_records([log])[0] == log
    rejected: list[tuple[Any, str]] = [
        ([], "must not be empty; chainframe.testing.make_records"),
        ([cf.Block(), cf.Token()], "must be of one class; got Block and Token"),
        ([1], "must be records; got <class 'int'>"),
        (7, "must be an iterable of records"),
    ]
    for given, problem in rejected:
        with pytest.raises(cf.InvalidParameterError, match=f"records {problem}"):
            cf.Records.from_records(given)


@pytest.mark.parametrize("name", NAMES)
def test_dictionary_of_a_record_for_json(name: str) -> None:
    record = make(name)
    assert record.to_dict(json=True) == cf.Records.from_records([record]).to_dicts(json=True)[0]
    json.dumps(record.to_dict(json=True))
    with pytest.raises(TypeError, match="did you mean 'json'"):
        record.to_dict(jsn=True)


def test_a_record_takes_declared_fields_by_keyword_only() -> None:
    with pytest.raises(TypeError):
        cf.Block("0x1")  # type: ignore[call-arg, arg-type]
    with pytest.raises(TypeError, match="hight"):
        cf.Block(hight=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="height"):
        cf.Block(height="1")  # type: ignore[arg-type]


def test_raw_integers_have_all_their_digits() -> None:
    most = 2**256 - 1
    assert cf.CrossChainTransaction(value_raw=most).value_raw == most


def test_returned_lists_do_not_change_the_record() -> None:
    log = cf.EventLog(topics=["0x1"])
    topics = log.topics
    assert topics is not None
    topics.append("0x2")
    assert log.topics == ["0x1"]


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        (-62_135_596_800_000, datetime(1, 1, 1, tzinfo=UTC)),
        (-1_000_000_000_001, datetime(1938, 4, 24, 22, 13, 19, 999_000, tzinfo=UTC)),
        (951_782_400_000, datetime(2000, 2, 29, tzinfo=UTC)),
        (1_769_850_537_715, datetime(2026, 1, 31, 9, 8, 57, 715_000, tzinfo=UTC)),
        (253_402_300_799_999, datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
    ],
)
def test_times_of_all_years_are_exact(server: StrictServer, milliseconds: int, expected: datetime) -> None:
    server.on("blocks", page_of("blocks", [{"hash": "0xa", "blockTime": str(milliseconds)}]))
    with server.client() as client:
        block = client.blocks().first()
    assert block is not None
    assert block.block_time == expected
