"""Transactions that the lists of several addresses have in common, and one of the lists lacks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, error, page_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")

Row = dict[str, Any]
WALLETS = [f"0x{index:040x}" for index in range(8)]
HEIGHTS = range(9, 0, -1)
LACK = "may lack a record that another list shows"


def row(height: int, /, **members: str) -> Row:
    return {
        "txId": f"0x{height:064x}",
        "from": WALLETS[0],
        "to": ",".join(WALLETS[1:]),
        "height": str(height),
        "blockHash": f"0x{height}",
        **members,
    }


def served(server: StrictServer, rows_of: Callable[[int], list[Row]]) -> None:
    """Serves the rows of each wallet, by its number."""

    def of_wallet(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        rows = rows_of(WALLETS.index(request.query["address"]))
        shown = rows[(page - 1) * limit : page * limit]
        members = {"page": str(page), "limit": str(limit), "totalPage": str(-(-len(rows) // limit))}
        return page_of("address_transactions", shown, **members)

    server.on("address_transactions", of_wallet)


def read(server: StrictServer, wallets: int, **arguments: Any) -> cf.Report:
    with server.client() as client:
        return client.address_transactions(WALLETS[:wallets], **arguments).collect().report


def lack(report: cf.Report) -> list[str]:
    return [reason for reason in report.reasons if LACK in reason]


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize(
    ("lost", "arguments", "is_missing"),
    [
        ({5}, {}, True),
        ({5}, {"direction": "from"}, False),
        # The other list was read first.
        ({8, 9}, {}, False),
        # The other list begins later.
        ({1, 2}, {}, False),
        (set(), {}, False),
    ],
    ids=["lost", "direction", "grown", "cut", "all"],
)
def test_record_that_the_list_of_one_address_shows_and_that_of_the_other_lacks(
    server: StrictServer, lost: set[int], arguments: dict[str, Any], *, unique: bool, is_missing: bool
) -> None:
    served(server, lambda wallet: [row(height) for height in HEIGHTS if not (wallet == 1 and height in lost)])
    reasons = lack(read(server, 2, unique=unique, **arguments))
    assert reasons == [f"1 of the lists {LACK}: {WALLETS[1]} (height 5); run the query again."] * is_missing


def test_each_list_that_lacks_a_record_is_incomplete_by_its_verdict(server: StrictServer) -> None:
    served(server, lambda wallet: [row(height) for height in HEIGHTS if wallet == 0 or height not in {5, wallet}])
    report = read(server, 8)
    # The first wallet has no records below height 1.
    lowest = {2: 2, 3: 3, 4: 4, 1: 5, 5: 5}
    named = ", ".join(f"{WALLETS[wallet]} (height {height})" for wallet, height in lowest.items())
    assert lack(report) == [f"7 of the lists {LACK}: {named} and 2 more; run the query again."]
    for wallet, verdict in report.by_argument.items():
        reasons = [reason for reason in verdict["reasons"] if LACK in reason]
        assert reasons == lack(report) * (wallet != WALLETS[0])
        assert any("12 months" in reason for reason in verdict["reasons"]), "its other reasons are kept"
        assert not verdict["complete"]


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize(
    "members",
    [
        {"blockHash": ""},
        {"blockHash": "0x0000"},
        {"height": ""},
        {"from": ",".join(WALLETS[1::-1])},
        {"from": ""},
        {"to": f"{WALLETS[1]},0xfe"},
        {"amount": "2"},
        {"txId": f"0x{5:064X}"},
        {"txId": ""},
    ],
    ids=["no-hash", "zeros", "no-height", "order", "no-sender", "receiver", "amount", "case", "no-id"],
)
def test_list_that_shows_a_record_with_other_values_does_not_lack_it(
    server: StrictServer, members: Row, *, unique: bool
) -> None:
    served(
        server, lambda wallet: [row(height, **(members if (wallet, height) == (1, 5) else {})) for height in HEIGHTS]
    )
    assert lack(read(server, 2, unique=unique)) == []


@pytest.mark.parametrize("refused", [0, 1])
def test_list_that_ended_with_an_error_neither_lacks_a_record_nor_proves_one(
    server: StrictServer, refused: int
) -> None:
    def of_wallet(request: Request) -> Response:
        wallet = WALLETS.index(request.query["address"])
        page, limit = int(request.query["page"]), int(request.query["limit"])
        if wallet == refused and page > 3:
            return error(403, "50030", "no permission for this address")
        rows = [row(height) for height in range(40, 0, -1) if not (wallet == 1 and height == 38)]
        shown = rows[(page - 1) * limit : page * limit]
        members = {"page": str(page), "limit": str(limit), "totalPage": str(-(-len(rows) // limit))}
        return page_of("address_transactions", shown, **members)

    server.on("address_transactions", of_wallet)
    report = read(server, 2, page_size=4)
    verdict = report.by_argument[WALLETS[refused]]
    assert verdict["error"]
    assert verdict["records"] > 4
    assert lack(report) == []


def test_list_that_is_continued_within_an_old_block_does_not_lack_its_records(server: StrictServer) -> None:
    """Three records of each block, all of them in both lists."""
    time = str(int(datetime.now(UTC).timestamp() * 1_000) - 10 * 86_400_000)
    rows = [row(height, txId=f"0x{height}{index}", transactionTime=time) for height in HEIGHTS for index in range(3)]
    served(server, lambda _: rows)
    with server.client() as client:
        query = client.address_transactions(WALLETS[:2], page_size=4)
        for returned, _ in enumerate(query, start=1):
            assert query.cursor is not None
            rest = client.resume(query.cursor).collect()
            assert (len(rest), lack(rest.report)) == (2 * len(rows) - returned, [])


def test_transactions_between_chains_do_not_show_their_blocks_and_are_not_compared(
    server: StrictServer,
) -> None:
    def crossing(request: Request) -> Response:
        lost = 5 if request.query["address"] == WALLETS[1] else 0
        rows = [
            {
                "betaTxHash": f"0x{height:064x}",
                "betaBlockHeight": str(height),
                "from": WALLETS[0],
                "to": WALLETS[1],
            }
            for height in HEIGHTS
            if height != lost
        ]
        return page_of("cross_chain_transactions", rows)

    server.on("cross_chain_transactions", crossing)
    with server.client() as client:
        assert lack(client.cross_chain_transactions(address=WALLETS[:2]).collect().report) == []


def heads(request: Request) -> Response:
    page, limit = int(request.query["page"]), int(request.query["limit"])
    rows = [row(height) for height in range(12, 0, -1)]
    members = {"page": str(page), "limit": str(limit), "totalPage": str(-(-len(rows) // limit))}
    return page_of("transactions", rows[(page - 1) * limit : page * limit], **members)


def followed(server: StrictServer, path: Path, how: str) -> cf.Report:
    with server.client() as client:
        query = client.address_transactions(WALLETS[:2])
        if how == "export":
            return query.to_parquet(path / "export", settle=1).report
        options: Any = {"undo": how == "undo"}
        follow = query.follow(start="beginning", poll=None, settle=1, **options)
        assert list(follow)
        return follow.report


@pytest.mark.parametrize("how", ["follow", "undo", "export"])
def test_record_that_another_list_of_a_followed_set_lacks_is_a_reason(
    server: StrictServer, tmp_path: Path, how: str
) -> None:
    server.on("transactions", heads)
    lost: set[int] = set()
    served(server, lambda wallet: [row(height) for height in HEIGHTS if not (wallet == 1 and height in lost)])
    assert lack(followed(server, tmp_path / "whole", how)) == []
    lost.add(5)
    report = followed(server, tmp_path, how)
    # A follower that runs again does not read what it has delivered.
    advice = "follow from an earlier cursor or from the beginning, reset the table, or export to another directory."
    assert lack(report) == [f"1 of the lists {LACK}: {WALLETS[1]} (height 5); {advice}"]
    assert [LACK in str(verdict["reasons"]) for verdict in report.by_argument.values()] == [False, True]


@pytest.mark.parametrize("how", ["follow", "export"])
def test_block_that_another_list_of_a_followed_set_shows_otherwise_is_a_reason(
    server: StrictServer, tmp_path: Path, how: str
) -> None:
    server.on("transactions", heads)
    served(server, lambda wallet: [row(height, blockHash=f"0x{wallet}{height}") for height in HEIGHTS])
    reasons = followed(server, tmp_path, how).reasons
    assert any("are of two blocks" in reason for reason in reasons)


@pytest.mark.parametrize("days", [10, 400])
def test_record_below_a_list_that_has_all_of_its_range_is_a_reason(server: StrictServer, days: int) -> None:
    """A list of more than a year may have lost its oldest records, and gives that reason."""
    now = int(datetime.now(UTC).timestamp() * 1_000)
    times = {height: str(now - days * 86_400_000 - (9 - height) * 12_000) for height in HEIGHTS}
    rows = [row(height, transactionTime=times[height]) for height in HEIGHTS]

    def blocks(request: Request) -> Response:
        wanted = request.query.get("height")
        shown = [row for row in rows if wanted in {None, row["height"]}]
        return page_of("transactions", [{**row, "txid": row["txId"]} for row in shown])

    server.on("transactions", blocks)
    served(server, lambda wallet: [row for row in rows if not (wallet == 1 and int(row["height"]) < 4)])
    report = read(server, 2, start_height=1, end_height=9)
    assert bool(lack(report)) == (days == 10), report.reasons
    assert not report.complete


def of_minutes_ago(minutes: int, lacking: int) -> Callable[[int], list[Row]]:
    """Rows of one time. The list of the second wallet lacks a second record of that height."""
    time = str(int(datetime.now(UTC).timestamp() * 1_000) - minutes * 60_000)
    rows = [row(height, transactionTime=time) for height in HEIGHTS]
    at = HEIGHTS.index(lacking)
    other = {**rows[at], "txId": f"0x{99:064x}"}
    return lambda wallet: rows if wallet == 1 else [*rows[:at], other, *rows[at:]]


@pytest.mark.parametrize("minutes", [30, 90])
def test_record_of_the_highest_block_is_missing_if_it_is_old(server: StrictServer, minutes: int) -> None:
    served(server, of_minutes_ago(minutes, lacking=9))
    assert bool(lack(read(server, 2))) == (minutes == 90)


def test_followed_list_may_get_a_record_of_its_highest_block_late(server: StrictServer, tmp_path: Path) -> None:
    server.on("transactions", heads)
    # Height 9 is not settled.
    served(server, of_minutes_ago(90, lacking=8))
    assert lack(followed(server, tmp_path, "follow")) == []


@pytest.mark.parametrize("lost", [3, 8])
def test_record_that_a_resumed_list_lacks_is_a_reason_below_what_it_shows(server: StrictServer, lost: int) -> None:
    served(server, lambda wallet: [row(height) for height in HEIGHTS if not (wallet == 1 and height == lost)])
    with server.client(concurrency=1) as client:
        query = client.address_transactions(WALLETS[:2], page_size=3)
        cursor = next(page.cursor for page in query.pages() if WALLETS[1] in page.records[0].queried)
        report = client.resume(cursor or "").collect().report
    # A cursor does not hold the records that the earlier run has read.
    assert bool(lack(report)) == (lost == 3)


NONE = "of the lists have no records"
EMPTY = "1 of the lists have no records, although another list shows some of theirs: {wallet}; run the query again."


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("emptied", [1, 99])
def test_empty_list_of_which_another_one_shows_records_is_read_again(
    server: StrictServer, emptied: int, *, unique: bool
) -> None:
    asked = [0] * len(WALLETS)

    def rows(wallet: int) -> list[Row]:
        asked[wallet] += 1
        is_empty = wallet == 1 and asked[wallet] <= emptied
        return [] if is_empty else [row(height) for height in HEIGHTS]

    served(server, rows)
    report = read(server, 2, unique=unique)
    assert [reason for reason in report.reasons if NONE in reason] == (
        [EMPTY.format(wallet=WALLETS[1])] if emptied > 1 else []
    )
    assert asked[1] == 2
    reasons = report.by_argument[WALLETS[1]]["reasons"]
    assert any(NONE in reason for reason in reasons) is (emptied > 1)
    assert report.records == (len(HEIGHTS) if unique or emptied > 1 else 2 * len(HEIGHTS))


@pytest.mark.parametrize("arguments", [{}, {"direction": "from"}])
def test_empty_list_of_which_no_other_one_shows_records_is_read_once(
    server: StrictServer, arguments: dict[str, Any]
) -> None:
    asked = [0] * len(WALLETS)

    def rows(wallet: int) -> list[Row]:
        asked[wallet] += 1
        others = {} if arguments else {"to": WALLETS[2]}
        return [row(height, **others) for height in HEIGHTS] if wallet == 0 else []

    served(server, rows)
    assert not any(NONE in reason for reason in read(server, 2, **arguments).reasons)
    assert asked[1] == 1
