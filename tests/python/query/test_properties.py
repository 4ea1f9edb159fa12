"""Properties of decoding from response bytes to records and columns, with generated responses."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import chainframe as cf
from strict_server import Response, StrictServer

if TYPE_CHECKING:
    from collections.abc import Iterator

# The same examples in every run, and no limit of time: machines differ.
EXAMPLES = settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
# 20 digits before the point and 18 after it are what a column holds exactly.
AMOUNTS = st.decimals(-(10**20) + 1, 10**20 - 1, places=18, allow_nan=False) | st.integers(0, 10**19).map(Decimal)
TIMES = st.integers(100_000_000_000, 4_102_444_800_000)
NUMBERS = {"height": "height", "nonce": "nonce", "gasUsed": "gas_used", "transactionType": "transaction_type"}
QUANTITIES = {"amount": "amount", "txFee": "tx_fee", "gasPrice": "gas_price"}
TEXTS = {"txId": "tx_id", "from": "from_address", "methodId": "method_id", "state": "state"}


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """Members of a record as JSON texts in some order, and the values that they stand for."""
    members: list[tuple[str, str]] = []
    expected: dict[str, Any] = {}
    for wire, name in NUMBERS.items():
        number = draw(INTEGERS)
        members.append((wire, draw(st.sampled_from([f"{number}", f'"{number}"', f'"{number}.0"', f"{number}.00"]))))
        expected[name] = number
    for wire, name in QUANTITIES.items():
        amount = draw(AMOUNTS)
        members.append((wire, draw(st.sampled_from([f"{amount:f}", f'"{amount:f}"', f'"{amount:E}"']))))
        expected[name] = amount
    for wire, name in TEXTS.items():
        text = draw(TEXT)
        members.append((wire, json.dumps(text, ensure_ascii=draw(st.booleans()))))
        expected[name] = text
    time = draw(TIMES)
    members.append(("transactionTime", draw(st.sampled_from([f"{time}", f'"{time}"']))))
    expected["transaction_time"] = time
    flag = draw(st.booleans())
    members.append(("isFromContract", json.dumps(flag)))
    expected["is_from_contract"] = flag
    left = draw(st.permutations(members))[draw(st.integers(0, 3)) :]
    known = {
        **NUMBERS,
        **QUANTITIES,
        **TEXTS,
        "transactionTime": "transaction_time",
        "isFromContract": "is_from_contract",
    }
    shown = {known[wire] for wire, _ in left}
    unknown = [
        ("x" + draw(TEXT), draw(st.sampled_from(["null", "[{}]", '{"a":[1e9]}', '"\\u0000"']))) for _ in range(2)
    ]
    return draw(st.permutations(left + unknown)), {name: expected[name] if name in shown else None for name in expected}


def instant(milliseconds: int | None) -> datetime | None:
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds // 1000, UTC).replace(microsecond=milliseconds % 1000 * 1000)


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[StrictServer, cf.Client]]:
    with StrictServer() as server, server.client() as client:
        yield server, client
    assert server.rejections == []


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@EXAMPLES
@given(st.lists(rows(), max_size=4))
def test_records_and_columns_hold_what_was_sent(
    shared: tuple[StrictServer, cf.Client], given_rows: list[tuple[list[tuple[str, str]], dict[str, Any]]]
) -> None:
    server, client = shared
    objects = [",".join(f"{json.dumps(name)}: {text}" for name, text in members) for members, _ in given_rows]
    listed = ",".join(f"{{{members}}}" for members in objects)
    body = f'{{"msg":"","data":[{{"totalPage":"1","transactionList":[{listed}]}}],"code":"0"}}'
    server.on("address_transactions", Response(body.encode()))
    records = client.address_transactions("0xa").collect()
    assert len(records) == len(given_rows)
    columns = records.to_arrow().to_pylist()
    for record, column, (_, expected) in zip(records, columns, given_rows, strict=True):
        for name, value in expected.items():
            wanted = instant(value) if name == "transaction_time" else value
            assert getattr(record, name) == wanted, name
            assert column[name] == wanted, name


@EXAMPLES
@given(
    st.binary(max_size=200)
    | TEXT.map(str.encode)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["code", "data", "transactionList", "x"]), inner)
        ),
    ).map(lambda value: json.dumps(value).encode()),
    st.sampled_from([200, 200, 400, 503]),
)
def test_invalid_responses_raise_typed_errors_only(
    shared: tuple[StrictServer, cf.Client], body: bytes, status: int
) -> None:
    server, client = shared
    server.on("transactions", Response(body, status))
    try:
        found = len(client.transactions().collect().to_dicts())
    except cf.ChainframeError as error:
        message = str(error)
    else:
        message = f"{found} records"
        assert status == 200
    assert message
    assert "\n" not in message
    assert "internal error" not in message
