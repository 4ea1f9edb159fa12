"""Records of another shape: members that identify them, members twice, spellings that differ, broken Unicode."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe import exports
from chainframe._reports import merged_members
from chainframe.testing import LocalService
from reference_client import ENDPOINTS, RECORDS
from strict_server import Request, Response, StrictServer, error, member_of, page_of, query_of, rows_of

if TYPE_CHECKING:
    from pathlib import Path


def collected(server: StrictServer, call: str, records: list[Any], **options: Any) -> cf.Records[Any]:
    server.on(call, rows_of(call, records))
    with server.client(**options) as client:
        return query_of(client, call).collect()


@pytest.mark.parametrize("call", ENDPOINTS)
@pytest.mark.parametrize(
    "record",
    [{}, {"state": "success"}, {"txHash": "0x1", "blockHeight": "3"}, {"TXID": "0x1", "HASH": "0x1", "Id": "0x1"}],
    ids=["nothing", "no identity", "other names", "another case"],
)
def test_record_without_a_member_that_identifies_it_is_an_error(
    server: StrictServer, call: str, record: dict[str, str]
) -> None:
    with pytest.raises(cf.ResponseFormatError) as raised:
        collected(server, call, [record])
    assert raised.value.path is not None
    assert raised.value.path.endswith("[0]")
    assert "expected a" in str(raised.value)
    for name in record or ["no member"]:
        assert name in str(raised.value).partition("found")[2]


def test_record_of_another_shape_after_good_ones_is_named(server: StrictServer) -> None:
    with pytest.raises(
        cf.ResponseFormatError, match=r"blockList|data\[0\].data\[2\]: expected a Block with height or hash"
    ):
        collected(server, "blocks", [{"hash": "0x1"}, {"height": "2"}, {"blockHash": "0x3", "number": "3"}])


def members_of_blocks(*, without: set[str]) -> list[str]:
    return [name for field in RECORDS["Block"]["fields"] if (name := field["wire"][0]) not in without]


def test_members_that_no_record_has_and_unknown_ones_are_reported(server: StrictServer) -> None:
    rows = [{"hash": "0x1", "blockHeight": "2"}, {"hash": "0x2", "blockTime": "", "Miner": "0x3", "blockHeight": "1"}]
    records = collected(server, "blocks", rows)
    report = records.report
    assert report.members_absent == members_of_blocks(without={"hash", "blockTime"})
    assert report.members_unknown == ["blockHeight", "Miner"]
    assert report.complete
    again = pickle.loads(pickle.dumps(report))
    assert (again, again.members_absent, again.members_unknown) == (
        report,
        report.members_absent,
        report.members_unknown,
    )
    assert "blockHeight, Miner" in report._repr_html_()


def blocks_of_two_pages(server: StrictServer, *, fail_at: str | None) -> None:
    """Fifty blocks of an older form and fifty of a newer one; one of the two pages fails."""
    old = [{"hash": f"0x{number}", "blockHeight": f"{number}"} for number in range(150, 100, -1)]
    new = [{"hash": f"0x{number}", "height": f"{number}", "New": ""} for number in range(100, 50, -1)]

    def served(request: Request) -> Response:
        page, size = request.query.get("page", "1"), int(request.query["limit"])
        if page == fail_at:
            return error(500, "50000")
        rows = [*old, *new][(int(page) - 1) * size :][:size]
        return page_of("blocks", rows, page=page, limit=str(size), totalPage=str(-(-100 // size)), total="100")

    server.on("blocks", served)


def test_members_of_a_continued_export_are_those_of_all_runs(server: StrictServer, tmp_path: Path) -> None:
    with server.client(max_retries=0) as client:
        blocks_of_two_pages(server, fail_at="2")
        with pytest.raises(cf.ServiceError):
            client.blocks(page_size=50).to_parquet(tmp_path / "x")
        blocks_of_two_pages(server, fail_at=None)
        export = client.blocks(page_size=50).to_parquet(tmp_path / "x")
    assert export.rows == 100
    for report in (export.report, exports.Export.open(tmp_path / "x").report):
        assert report.members_absent == members_of_blocks(without={"hash", "height"})
        assert report.members_unknown == ["blockHeight", "New"]


def test_members_of_a_scan_are_those_of_its_queries(server: StrictServer) -> None:
    blocks_of_two_pages(server, fail_at=None)
    with server.client() as client:
        dataset = client.blocks(page_size=50).dataset()
        assert dataset.to_table().num_rows == 100
    assert dataset.report.members_absent == members_of_blocks(without={"hash", "height"})
    assert dataset.report.members_unknown == ["blockHeight", "New"]


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize("name", ["Miner", "miner_", "MINER"])
def test_member_that_some_records_have_in_another_spelling_is_a_reason(server: StrictServer, name: str) -> None:
    rows = [{"hash": "0x1", "height": "2", "miner": "0x3"}, {"hash": "0x2", "height": "1", name: "0x3"}]
    records = collected(server, "blocks", rows)
    assert [record.miner for record in records] == ["0x3", None]
    [reason] = records.report.reasons
    assert "the member miner in another spelling" in reason
    both = collected(server, "blocks", [{**row, "miner": "0x3"} for row in rows])
    assert both.report.complete
    server.on("blocks", lambda request: page_of("blocks", [rows[request.query["height"] == "1"]]))
    with server.client() as client:
        lists = client.blocks(height=[1, 2]).collect()
    assert lists.report.reasons == records.report.reasons


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize("absent", [{"txid": None}, {"txid": ""}, {}], ids=["null", "empty", "absent"])
def test_records_without_a_hash_beside_others_with_one_are_a_reason(
    server: StrictServer, absent: dict[str, Any]
) -> None:
    row = {"height": "2", "input": "0xa", "output": "0xb", "amount": "1"}
    records = collected(server, "transactions", [{**row, "txid": "0x1"}, {**row, **absent}])
    assert len(records) == 2
    [reason] = records.report.reasons
    assert "have no tx_id, and others have one" in reason
    assert collected(server, "transactions", [{**row, **absent}]).report.complete


def test_a_token_of_the_chain_itself_has_no_contract(server: StrictServer) -> None:
    tokens = [{"tokenContractAddress": "", "token": "OKB"}, {"tokenContractAddress": "0x1", "token": "T"}]
    assert collected(server, "tokens", tokens).report.complete


@pytest.mark.parametrize(
    ("runs", "absent", "unknown"),
    [
        ([], [], []),
        ([(0, [], [])], [], []),
        ([(0, [], []), (5, ["a", "b"], ["x"])], ["a", "b"], ["x"]),
        ([(5, ["a", "b"], ["x"]), (5, ["b", "c"], ["y", "x"])], ["b"], ["x", "y"]),
        ([(5, ["a"], []), (5, [], [])], [], []),
        ([(5, [], [f"{number}" for number in range(50)]), (5, [], ["z"] * 99 + [*"abc"])], [], 54),
        ([(5, [], [f"{number}" for number in range(90)])], [], 64),
    ],
)
def test_members_of_runs_are_merged(runs: Any, absent: list[str], unknown: Any) -> None:
    merged = merged_members(runs)
    assert merged["members_absent"] == absent
    names = merged["members_unknown"]
    assert (len(names) if isinstance(unknown, int) else names) == unknown


def test_members_of_the_deployment_are_reported_by_its_names(server: StrictServer) -> None:
    report = collected(server, "cross_chain_transactions", [{"id": "0x1"}]).report
    assert {"alphaTxHash", "betaBlockHeight"} <= set(report.members_absent)
    assert collected(server, "cross_chain_transactions", []).report.members_absent == []


def test_a_service_that_sends_all_members_lacks_none() -> None:
    with LocalService(transactions=300, seed=3) as service, service.client() as client:
        for records in (client.blocks().collect(), client.transactions().collect(), client.tokens().collect()):
            assert (records.report.members_absent, records.report.members_unknown) == ([], [])


SPELLINGS = [
    ("transactions", "txfee", "txFee", "tx_fee", "1.5", "2"),
    ("transactions", "isFromContract", "isInputContract", "is_input_contract", True, False),
    ("token_transfers", "transactionSymbol", "symbol", "transaction_symbol", "AAA", "BBB"),
    ("transactions_by_hash", "methodId", "method", "method_id", "0xa9059cbb", "0x23b872dd"),
]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("order", [1, -1])
def test_spellings_of_one_field_agree_in_any_order_or_are_an_error(
    server: StrictServer, spelling: tuple[Any, ...], order: int
) -> None:
    call, first, second, name, value, other = spelling
    identity = {"txid" if call in {"transactions", "token_transfers"} else "txId": "0xa"}

    def read(one: Any, two: Any) -> Any:
        members = dict([*identity.items(), *[(first, one), (second, two)][::order]])
        return collected(server, call, [members])[0].to_dict()[name]

    expected = read(value, value)
    assert str(expected) == str(value)
    assert read(value, "") == read("", value) == read(value, None) == read(None, value) == expected
    with pytest.raises(cf.ResponseFormatError, match="another spelling"):
        read(value, other)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("one", "other"), [("1.50", "1.5"), ("2.625E-6", "0.000002625"), (1, "1.0")])
def test_spellings_with_one_value_written_differently_agree(
    server: StrictServer, one: Any, other: Any, order: int
) -> None:
    members = dict([("txid", "0xa"), *[("txfee", one), ("txFee", other)][::order]])
    assert collected(server, "transactions", [members])[0].tx_fee is not None


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("name", ["transfer", "swap", "add", "0xtransfer"])
@pytest.mark.parametrize("identifier", ["0xa9059cbb", "", None])
def test_a_method_name_is_no_identifier(server: StrictServer, identifier: str | None, name: str, order: int) -> None:
    members = dict([("txId", "0xa"), *[("methodId", identifier), ("method", name)][::order]])
    assert collected(server, "transactions_by_hash", [members])[0].method_id == identifier
    assert collected(server, "transactions_by_hash", [{"txId": "0xa", "method": name}])[0].method_id == name


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b'{"code":"0","data":[],"msg":"","data":[{"totalPage":"1","data":[{"hash":"0x1"}]}]}', "data"),
        (b'{"code":"50011","code":"0","data":[{"totalPage":"1","data":[{"hash":"0x1"}]}]}', "code"),
        (b'{"code":"0","data":[{"totalPage":"1","data":[],"data":[{"hash":"0x1"}]}]}', "data[0].data"),
        (b'{"code":"0","data":[{"totalPage":"1","totalPage":"2","data":[{"hash":"0x1"}]}]}', "data[0].totalPage"),
        (b'{"code":"0","data":[{"totalPage":"1","data":[{"hash":"0x1","hash":"0x2"}]}]}', "data[0].data[0].hash"),
        (b'{"code":"0","data":[{"totalPage":"1","data":[{"hash":"0x1","hash":"0x1"}]}]}', "data[0].data[0].hash"),
        (b'{"code":"0","data":[{"totalPage":"1","data":[{"height":"","hash":"0x1","height":"3"}]}]}', "[0].height"),
    ],
)
def test_member_twice_is_an_error(server: StrictServer, body: bytes, path: str) -> None:
    server.on("blocks", Response(body))
    with server.client() as client, pytest.raises(cf.ResponseFormatError) as raised:
        client.blocks().collect()
    assert raised.value.path is not None
    assert raised.value.path.endswith(path)


def test_member_twice_with_one_value_in_the_page_object_is_read(server: StrictServer) -> None:
    server.on(
        "blocks", Response(b'{"code":"0","data":[{"page":"1","page":1,"totalPage":"1","data":[{"hash":"0x1"}]}]}')
    )
    with server.client() as client:
        assert [block.hash for block in client.blocks()] == ["0x1"]


def broken(call: str, member: str) -> Response:
    record = {"txid": "0xa", "tokenContractAddress": "0xb", "extra": "none", member: "B\ud83d"}
    return rows_of(call, [json.loads(json.dumps(record))])


@pytest.mark.parametrize(("call", "member"), [("token_transfers", "tokenId"), ("tokens", "tokenContractAddress")])
def test_lone_surrogate_in_an_identity_is_an_error(server: StrictServer, call: str, member: str) -> None:
    server.on(call, broken(call, member))
    with server.client() as client, pytest.raises(cf.ResponseFormatError, match="surrogate") as raised:
        query_of(client, call).collect()
    assert raised.value.path is not None
    assert raised.value.path.endswith(f"[0].{member}")


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_lone_surrogate_in_another_text_is_replaced_and_reported(server: StrictServer) -> None:
    server.on("tokens", broken("tokens", "tokenFullName"))
    with server.client() as client:
        records = client.tokens().collect()
    assert [token.token_full_name for token in records] == ["B\ufffd"]
    assert records.report.reasons == ["Some texts are not valid Unicode: characters were replaced by U+FFFD."]
    server.on("tokens", broken("tokens", "extra"))
    with server.client() as client:
        assert client.tokens().collect().report.complete


RENAMED = [{"txid": f"0x{number}", "blockHeight": str(990 - number)} for number in range(3)]


def test_slices_by_height_refuse_records_without_one(server: StrictServer) -> None:
    for rows in (RENAMED, [{"txid": "0x1", "height": ""}], [{"txid": "0x1", "height": "990"}, {"txid": "0x2"}]):
        server.on("transactions", page_of("transactions", rows))
        with server.client() as client:
            with pytest.raises(cf.ResponseFormatError, match="with height"):
                client.transactions(start_height=990, end_height=991).collect()
            assert len(client.transactions().collect()) == len(rows)


@pytest.mark.parametrize("call", ["transactions", "address_transactions", "large_transactions"])
def test_following_refuses_records_without_a_height(server: StrictServer, call: str) -> None:
    rows = [{member_of(call, "tx_id"): f"0x{n}", "blockHeight": str(n)} for n in range(3)]
    server.on(call, page_of(call, rows))
    server.on("transactions", page_of("transactions", RENAMED))
    with server.client() as client, pytest.raises(cf.ResponseFormatError, match="height"):
        list(query_of(client, call).follow(start="beginning", poll=None))


def test_following_waits_for_the_height_of_a_pending_record() -> None:
    with (
        LocalService(transactions=400, seed=3, simulated=True, growth=1, pending=(0.5, 2)) as service,
        service.client() as client,
    ):
        client.large_transactions().collect()
        follow = client.large_transactions().follow(start="beginning", poll=None)
        followed = [record for batch in follow for record in batch]
        assert followed
        assert all(record.height is not None for record in followed)


@pytest.mark.parametrize(("status", "code"), [(200, "50040"), (400, "50044")])
def test_height_without_a_block_is_empty_in_a_range_and_an_error_alone(
    server: StrictServer, status: int, code: str
) -> None:
    def respond(request: Request) -> Response:
        # An estimate counts the list without a height as well.
        heights = [int(request.query["height"])] if "height" in request.query else [14, 12, 10]
        if heights[0] % 2:
            return error(status, code)
        return page_of("transactions", [{"txid": hex(height), "height": height} for height in heights])

    server.on("transactions", respond)
    with server.client() as client:
        records = client.transactions(start_height=10, end_height=15).collect()
        assert [record.height for record in records] == [10, 12, 14]
        assert records.report.complete
        with pytest.raises(cf.NotFoundError):
            client.transactions(height=11).collect()
        least, most = client.transactions(start_height=10, end_height=15).estimate().records_range
        assert least <= 3
        assert most is not None
        assert most >= 3
    server.on("transactions", error(200, "50038"))
    with server.client() as client, pytest.raises(cf.BadRequestError):
        client.transactions(start_height=10, end_height=15).collect()


def test_loaded_records_without_an_identity_are_served_and_read() -> None:
    with LocalService(transactions=0) as service, service.client() as client:
        service.load("tokens", [{"token": "A", "total_market_cap": 2}, {"token": "C", "total_market_cap": 1}])
        tokens = client.tokens().collect()
        assert [(token.token, token.token_contract_address) for token in tokens] == [("A", None), ("C", None)]
