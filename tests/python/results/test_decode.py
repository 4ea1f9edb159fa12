"""Decoding of event logs, against `eth-abi` and the token transfers of the local server."""

from __future__ import annotations

import pickle
import random
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError
from eth_hash.auto import keccak

import chainframe as cf
from chainframe import _native
from chainframe.testing import LocalService

TRANSFER = cf.Event.named("ERC20.Transfer")
LOG_COLUMNS = ["height", "transaction_time", "tx_id", "log_index", "address"]
ADDRESS = "0x" + "12" * 20
UINT256_MAX = 2**256 - 1


def logs(*made: tuple[list[str], str | None]) -> cf.Records[cf.EventLog]:
    """Event logs with these topics and data."""
    columns = {
        "height": list(range(len(made))),
        "tx_id": [f"0x{index:064x}" for index in range(len(made))],
        "log_index": [0] * len(made),
        "address": [ADDRESS] * len(made),
        "topics": [topics for topics, _ in made],
        "data": [data for _, data in made],
        "transaction_time": [None] * len(made),
        "block_hash": [None] * len(made),
        "method_id": [None] * len(made),
    }
    return _native._restore_records("EventLog", columns, REPORT)


with LocalService(transactions=0) as _service:
    REPORT = _service.client().blocks().collect().report


def word(value: int) -> str:
    return f"0x{value % 2**256:064x}"


def transfer(value: str | None, topics: int = 3) -> tuple[list[str], str | None]:
    words: list[str] = [word(7)] * (topics - 1)
    return [str(TRANSFER.topic), *words], value


class Generator:
    """Random types and values of the ABI."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def type(self, depth: int = 2) -> str:
        kind = self.random.randrange(12 if depth else 8)
        bits = 8 * self.random.randint(1, 32)
        if kind in {8, 9}:
            size = self.random.choice(["", "", str(self.random.randint(1, 3))])
            return f"{self.type(depth - 1)}[{size}]"
        if kind >= 10:
            members = [self.type(depth - 1) for _ in range(self.random.randint(1, 3))]
            return f"({','.join(members)})"
        return ["bool", "address", "bytes", "string", f"bytes{bits // 8}", f"int{bits}", f"uint{bits}", "uint256"][kind]

    def value(self, type_: str) -> Any:  # noqa: PLR0911 - one for each kind of type
        """A value as `eth-abi` takes it."""
        random = self.random
        if type_.endswith("]"):
            item, _, size = type_[:-1].rpartition("[")
            count = int(size) if size else random.randint(0, 3)
            return [self.value(item) for _ in range(count)]
        if type_.startswith("("):
            return tuple(self.value(member) for member in members_of(type_))
        if type_ == "bool":
            return random.random() < 0.5
        if type_ == "address":
            return "0x" + random.randbytes(20).hex()
        if type_ == "bytes":
            return random.randbytes(random.choice([0, 1, 31, 32, 33, 70]))
        if type_ == "string":
            return "".join(random.choice("aß€\U0001f600 \n") for _ in range(random.choice([0, 1, 12, 32, 40])))
        if type_.startswith("bytes"):
            return random.randbytes(int(type_[5:]))
        bits = int(type_.lstrip("uint"))
        low, high = (0, 2**bits - 1) if type_.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return random.choice([low, high, 0, random.randint(low, high), max(low, min(high, random.randint(-9, 9)))])


def members_of(type_: str) -> list[str]:
    """The types in `(a,(b,c)[])`."""
    members, depth, start = [], 0, 1
    for index, char in enumerate(type_[:-1]):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 1:
            members.append(type_[start:index])
            start = index + 1
    return [*members, type_[start:-1]]


def expected(type_: str, value: Any) -> Any:
    """The value as `to_dicts` has it."""
    if type_.endswith("]"):
        return [expected(type_[:-1].rpartition("[")[0], item) for item in value]
    if type_.startswith("("):
        return {f"arg{index}": expected(*pair) for index, pair in enumerate(zip(members_of(type_), value, strict=True))}
    return "0x" + value.hex() if isinstance(value, bytes) else value


def in_column(type_: str, value: Any) -> Any:
    """The value of `to_dicts` as the column has it with `numbers="string"`."""
    if isinstance(value, list):
        return [in_column(type_[:-1].rpartition("[")[0], item) for item in value]
    if isinstance(value, dict):
        types = members_of(type_)
        return {name: in_column(member, item) for member, (name, item) in zip(types, value.items(), strict=True)}
    if type(value) is int and int(type_.lstrip("uint")) > 64:
        return str(value)
    return value


def is_hashed(type_: str) -> bool:
    return type_ in {"bytes", "string"} or type_[-1] in ")]"


@pytest.mark.parametrize("seed", range(10))
def test_a_thousand_generated_events_are_decoded_as_eth_abi_encodes_them(seed: int) -> None:
    generator = Generator(seed)
    for _ in range(1_000):
        types = [generator.type() for _ in range(generator.random.randint(0, 5))]
        indexed = {index for index in range(len(types)) if generator.random.random() < 0.4}
        indexed = set(sorted(indexed)[:3])
        values = [generator.value(type_) for type_ in types]
        signature = f"Ev({','.join(types)})"
        topics, body, wanted = ["0x" + keccak(signature.encode()).hex()], [], {}
        for index, (type_, value) in enumerate(zip(types, values, strict=True)):
            wanted[f"p{index}"] = expected(type_, value)
            if index not in indexed:
                body.append(index)
            elif is_hashed(type_):
                wanted[f"p{index}"] = "0x" + generator.random.randbytes(32).hex()
                topics.append(wanted[f"p{index}"])
            else:
                topics.append("0x" + encode([type_], [value]).hex())
        data = "0x" + encode([types[index] for index in body], [values[index] for index in body]).hex()
        declared = (f"{type_}{' indexed' * (index in indexed)} p{index}" for index, type_ in enumerate(types))
        event = cf.Event(f"Ev({', '.join(declared)})")
        assert event.signature == signature
        assert event.columns == list(wanted)

        cut = data[: -2 * generator.random.randint(1, 32)] if body else data
        decoded = logs((topics, data), (topics, cut)).decode(event)
        first, second = ({name: row[name] for name in wanted} for row in decoded.to_dicts())
        assert first == wanted
        columns = {
            name: value if index in indexed and is_hashed(types[index]) else in_column(types[index], value)
            for index, (name, value) in enumerate(wanted.items())
        }
        assert decoded.to_arrow().select(list(wanted)).to_pylist()[0] == columns
        if body and not any(is_padded(types[index]) for index in body):
            # Data that breaks off.
            assert len(decoded.malformed) == 1
            assert second == {
                f"p{index}": wanted[f"p{index}"] if index in indexed else None for index in range(len(types))
            }
        assert len(decoded.unmatched) == 0


def is_padded(type_: str) -> bool:
    """True if the data may end in padding, which may be absent."""
    return "bytes" in type_ or "string" in type_


def test_a_value_outside_its_type_is_null_as_eth_abi_rejects_it() -> None:
    generator = Generator(5)
    counts = {True: 0, False: 0}
    for _ in range(2_000):
        type_ = generator.random.choice(["bool", "address", "bytes3", "uint8", "int16", "uint64", "int64", "int256"])
        body = encode([type_], [generator.value(type_)])
        bit = generator.random.randrange(256)
        damaged = (int.from_bytes(body) ^ (1 << bit)).to_bytes(32)
        try:
            (value,) = decode([type_], damaged)
        except DecodingError:
            value = None
        event = cf.Event(f"Ev({type_} p)")
        decoded = logs(([str(event.topic)], "0x" + damaged.hex())).decode(event)
        assert decoded.to_dicts()[0]["p"] == (None if value is None else expected(type_, value))
        assert len(decoded.malformed) == (value is None)
        counts[value is None] += 1
    assert min(counts.values()) > 400


def test_logs_of_the_local_server_are_its_token_transfers() -> None:
    with LocalService(transactions=1_500, seed=3) as service, service.client() as client:
        transactions = [transaction for transaction in client.transactions() if transaction.state == "success"]
        records = client.logs([str(transaction.tx_id) for transaction in transactions]).collect()
        protocols: tuple[Any, ...] = ("token_20", "token_721", "token_1155", "token_10")
        tokens = [token for protocol in protocols for token in client.tokens(protocol_type=protocol)]
        found: dict[str | None, list[tuple[Any, ...]]] = {token.token_contract_address: [] for token in tokens}
        precision = {token.token_contract_address: token.precision or 0 for token in tokens}
        for name in ("ERC20.Transfer", "ERC721.Transfer", "ERC1155.TransferSingle"):
            for row in records.decode(cf.Event.named(name)).to_dicts():
                amount = Decimal(row.get("value", 1)).scaleb(-precision[row["address"]])
                token_id = row.get("tokenId", row.get("id", ""))
                found[row["address"]].append((row["tx_id"], amount, str(token_id)))
        for contract in map(str, found):
            transfers = [one for one in client.token_transfers(contract) if one.state == "success"]
            wanted = sorted((one.tx_id, one.amount or Decimal(), one.token_id) for one in transfers)
            assert sorted(found[contract]) == wanted
        assert sum(map(len, found.values())) > 1_000
        # The other logs are those of four more events, and anonymous ones.
        names = ("Deposit(address,uint256)", "Withdrawal(address,uint256)", "Sync(uint112,uint112)")
        topics = {cf.Event.named(name).topic for name in ("ERC20.Transfer", "ERC20.Approval", "ERC1155.TransferSingle")}
        topics |= {cf.Event(name).topic for name in names}
        assert {log.topics[0] for log in records if log.topics} == topics


def test_transfers_of_two_standards_differ_by_their_topics() -> None:
    erc721 = cf.Event.named("ERC721.Transfer")
    assert TRANSFER.topic == erc721.topic
    records = logs(transfer(word(5)), transfer("0x", topics=4), transfer(word(5), topics=2), ([], None))
    fungible, unique = records.decode(TRANSFER), records.decode(erc721)
    assert [row["value"] for row in fungible.to_dicts()] == [5]
    assert [row["tokenId"] for row in unique.to_dicts()] == [7]
    assert [log.height for log in fungible.unmatched] == [1, 2, 3]
    assert [log.height for log in fungible.unmatched.decode(erc721).matched] == [1]


def test_schema_is_that_of_the_event_when_nothing_matches() -> None:
    event = cf.Event("Ev(uint64 a, uint256 b, int128[] c, (bool,string) d, int8 e)")
    empty, other = logs().decode(event), logs(transfer(word(1))).decode(event)
    full = logs(([str(event.topic)], "0x")).decode(event)
    for numbers, wide in (("string", pa.string()), ("decimal", pa.decimal128(38, 0)), ("float", pa.float64())):
        fields = [
            ("a", pa.uint64()),
            ("b", wide),
            ("c", pa.list_(wide)),
            ("d", pa.struct([("arg0", pa.bool_()), ("arg1", pa.string())])),
            ("e", pa.int64()),
        ]
        for decoded in (empty, other, full):
            schema = decoded.to_arrow(numbers).schema  # type: ignore[arg-type]
            assert schema.names == decoded.columns == LOG_COLUMNS + event.columns
            assert [schema.field(name).type for name, _ in fields] == [type_ for _, type_ in fields]
    schema_of: Any = empty
    assert pa.schema(schema_of) == empty.to_arrow().schema
    assert pa.table(full).num_rows == 1
    assert full.to_arrow().select(event.columns).to_pylist() == [dict.fromkeys(event.columns)]


def test_wide_integers_follow_the_number_policy() -> None:
    decoded = logs(transfer(word(10**38 - 1)), transfer(word(3)), transfer("0x")).decode(TRANSFER)
    assert decoded.to_arrow()["value"].to_pylist() == [str(10**38 - 1), "3", None]
    assert decoded.to_arrow("decimal")["value"].to_pylist() == [Decimal(10**38 - 1), Decimal(3), None]
    assert decoded.to_arrow("float")["value"].to_pylist() == [1e38, 3.0, None]
    assert decoded.to_polars("decimal")["value"].to_list() == [Decimal(10**38 - 1), Decimal(3), None]
    frame = decoded.to_pandas("decimal")
    assert frame["value"][0] == Decimal(10**38 - 1)
    assert frame["value"].isna().tolist() == [False, False, True]

    unlimited = logs(transfer(word(1)), transfer(word(UINT256_MAX))).decode(TRANSFER)
    assert unlimited.to_dicts()[1]["value"] == UINT256_MAX
    assert unlimited.to_polars()["value"][1] == str(UINT256_MAX)
    with pytest.raises(cf.NumericOverflowError, match=r"value: 1157.* in row 1 does not fit exactly") as caught:
        unlimited.to_arrow("decimal")
    assert (caught.value.column, caught.value.row, caught.value.text) == ("value", 1, str(UINT256_MAX))


def test_frames_have_integers_of_64_bits() -> None:
    event = cf.Event("Ev(uint64 a, int64 b)")
    data = "0x" + encode(["uint64", "int64"], [2**64 - 1, -(2**63)]).hex()
    decoded = logs(([str(event.topic)], data), ([str(event.topic)], None)).decode(event)
    frame = decoded.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert (frame["a"][0], frame["b"][0]) == (2**64 - 1, -(2**63))
    assert frame["a"].isna().tolist() == [False, True]
    polars = decoded.to_polars()
    assert isinstance(polars, pl.DataFrame)
    assert polars.select("a", "b").row(0) == (2**64 - 1, -(2**63))


def test_data_that_is_no_abi_is_null_and_kept() -> None:
    broken = [transfer(data) for data in (None, "", "0x", "0x1", "zz", word(1)[:-2], word(1))]
    decoded = logs(*broken).decode(TRANSFER)
    assert [row["value"] for row in decoded.to_dicts()] == [None] * 6 + [1]
    assert [row["from_"] for row in decoded.to_dicts()] == [f"0x{7:040x}"] * 7
    assert [log.height for log in decoded.malformed] == [0, 1, 2, 3, 4, 5]
    assert repr(decoded) == "<DecodedLogs of Transfer: 7 logs, 6 malformed; 0 other logs>"
    event = cf.Event("Ev(string s)")
    data = encode(["bytes"], [b"\xff\xfe"]).hex()
    assert logs(([str(event.topic)], data)).decode(event).to_dicts()[0]["s"] is None


def test_indexed_values_that_exceed_a_topic_are_hashes() -> None:
    event = cf.Event("Ev(string indexed s, uint8[2] indexed a)")
    decoded = logs(([str(event.topic), word(1), word(2)], "0x")).decode(event)
    assert decoded.to_arrow().select(["s", "a"]).to_pylist() == [{"s": word(1), "a": word(2)}]


def test_an_anonymous_event_matches_by_the_number_of_topics() -> None:
    event = cf.Event("event Ev(address indexed who, uint256 value) anonymous;")
    assert event.topic is None
    decoded = logs(([word(9)], word(4)), ([word(9), word(9)], word(4))).decode(event)
    assert [(row["who"], row["value"]) for row in decoded.to_dicts()] == [(f"0x{9:040x}", 4)]


def test_columns_do_not_collide() -> None:
    event = cf.Event("Ev(uint256 from, uint256 height, uint256 a, uint256 a, uint256, uint256 arg4)")
    assert event.columns == ["from_", "height_", "a", "a_", "arg4", "arg4_"]


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("ERC20.Transfer", "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"),
        ("ERC20.Approval", "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"),
        ("ERC721.ApprovalForAll", "0x17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31"),
        ("ERC1155.TransferSingle", "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62"),
        ("ERC1155.TransferBatch", "0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb"),
        ("ERC1155.URI", "0x6bb7ff708619ba0610cba295a58592e0451dee2622938c8755667688daf3529b"),
    ],
)
def test_events_of_the_standards_have_their_known_topics(name: str, topic: str) -> None:
    event = cf.Event.named(name)
    assert event.topic == topic
    assert event.name == name.partition(".")[2]


@pytest.mark.parametrize(
    ("declaration", "problem"),
    [
        ("Transfer", "parser error"),
        ("Ev(uint7 a)", "invalid size for type: uint7"),
        ("Ev(uint256[0] a)", "parser error"),
        ("Ev(Token a)", "Token"),
        ("Ev(bool indexed a, bool indexed b, bool indexed c, bool indexed d)", "4 parameters are indexed; at most 3"),
    ],
)
def test_invalid_declaration_raises(declaration: str, problem: str) -> None:
    with pytest.raises(cf.InvalidParameterError, match=r"^declaration must be an event like .*") as caught:
        cf.Event(declaration)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_name_raises_with_the_known_ones() -> None:
    with pytest.raises(cf.InvalidParameterError, match=r'^name must be one of ERC20.Transfer, .*; got "Transfer"$'):
        cf.Event.named("Transfer")


def test_records_without_logs_raise(client: cf.Client) -> None:
    blocks: Any = client.blocks(max_items=1).collect()
    with pytest.raises(cf.ContextError, match="only event logs can be decoded; these are records of Block"):
        blocks.decode(TRANSFER)
    with pytest.raises(cf.InvalidParameterError, match=r"event must be an Event, .*; got 'Transfer\(address\)'"):
        logs().decode("Transfer(address)")  # type: ignore[arg-type]


def test_selected_columns_are_decoded(client: cf.Client, sample: Any) -> None:
    (some,) = client.logs(sample.tx_ids).batches(columns=["topics", "data", "address"])
    decoded = some.decode(TRANSFER)
    assert decoded.columns == ["address", "from_", "to", "value"]
    assert decoded.to_arrow().num_rows == len(decoded)
    (some,) = client.logs(sample.tx_ids).batches(columns=["address"])
    with pytest.raises(cf.ContextError, match='the records have no column "topics"'):
        some.decode(TRANSFER)


def test_events_and_results_pickle_and_compare() -> None:
    event = cf.Event("event  Transfer( address  indexed from,address indexed to,uint value );")
    assert event == TRANSFER
    assert hash(event) == hash(TRANSFER)
    assert event != cf.Event.named("ERC721.Transfer")
    assert event != "Transfer"
    assert pickle.loads(pickle.dumps(event)) == event
    assert repr(event) == 'Event("Transfer(address indexed from, address indexed to, uint256 value)")'
    decoded = logs(transfer(word(1)), ([], None)).decode(event)
    again = pickle.loads(pickle.dumps(decoded))
    assert again.to_dicts() == decoded.to_dicts()
    assert (again.event, len(again.unmatched)) == (event, 1)
    assert decoded.report.complete
