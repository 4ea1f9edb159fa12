"""Heights by time, against the blocks and transactions of a server."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Literal

import pytest

import chainframe as cf
from chainframe.cli import main
from chainframe.testing import LocalService
from conftest import needs_extra
from strict_server import Request, Response, StrictServer, page_of

MILLISECOND = timedelta(milliseconds=1)


def test_heights_of_the_zone_chain(client: cf.Client) -> None:
    blocks = sorted(client.blocks().collect(), key=lambda block: block.height or 0)
    for block in blocks[:: len(blocks) // 7]:
        assert block.block_time is not None
        assert client.height_at(block.block_time, chain="zone") == block.height
        assert client.height_at(block.block_time + MILLISECOND, chain="zone") == block.height
    assert client.height_at(datetime.now(UTC) + timedelta(days=9), chain="zone") == blocks[-1].height
    with pytest.raises(cf.InvalidParameterError, match=r"time.* before the first block"):
        client.height_at("1999-01-01T00:00Z", chain="zone")


def test_chain_may_have_its_short_name() -> None:
    with LocalService(transactions=200, main_chain="ONE", zone_chain="TWO") as service, service.client() as client:
        newest: Any = client.blocks().first()
        for role, name in (("main", "ONE"), ("zone", "TWO")):
            assert client.height_at(newest.block_time, chain=name) == client.height_at(newest.block_time, chain=role)


def test_heights_of_the_main_chain(client: cf.Client) -> None:
    newest = client.transactions(max_items=300).collect()
    times = {record.height: record.transaction_time for record in newest}
    heights = sorted(height for height in times if height is not None)
    for height, following in list(pairwise(heights))[:: len(heights) // 4]:
        time, later = times[height], times[following]
        assert time is not None
        assert later is not None
        assert client.height_at(time) == height
        assert client.height_at(later - MILLISECOND) == height
        assert asyncio.run(client.height_at_async(time, chain="main")) == height


@pytest.mark.parametrize("chain", ["main", "zone"])
def test_about_six_requests_find_a_height(chain: Literal["main", "zone"]) -> None:
    with LocalService(seed=3) as service, service.client() as client:
        if chain == "zone":
            times = {block.height: block.block_time for block in client.blocks()}
        else:
            times = {each.height: each.transaction_time for each in client.transactions(max_items=5_000)}
        heights = sorted(height for height in times if height is not None)[1:-1]
        heights = heights[:: len(heights) // 20]
        before = service.request_count
        for height in heights:
            time = times[height]
            assert time is not None
            assert client.height_at(time, chain=chain) == height
        assert (service.request_count - before) / len(heights) <= 6.5


@needs_extra
def test_command_prints_a_height(capsys: pytest.CaptureFixture[str], at_service: LocalService) -> None:
    with at_service.client() as client:
        height = client.height_at("2026-01-20T00:00Z", chain="zone")
    assert main(["height-at", "--time", "2026-01-20T00:00Z", "--chain", "zone"]) == 0
    assert capsys.readouterr().out == f"{height}\n"
    assert main(["height-at", "--time", "2026-01-20"]) == 2
    assert 'chainframe: --time must have a UTC offset: Z, or one such as +02:00; got "2026-01-20"' in (
        capsys.readouterr().err
    )


def test_empty_blocks_are_passed_over(server: StrictServer) -> None:
    def respond(request: Request) -> Response:
        height = int(request.query.get("height", 99))
        time = str(1_700_000_000_000 + height * 1_000)
        rows: list[Any] = [{"txid": f"0x{height}", "height": str(height), "transactionTime": time}]
        return page_of("transactions", rows if height % 3 == 0 else [], limit="1", totalPage="1")

    server.on("transactions", respond)
    client = server.client()
    found = [client.height_at(1_700_000_000_999 + second * 1_000) for second in range(0, 99, 4)]
    assert found == [second // 3 * 3 for second in range(0, 99, 4)]


@pytest.mark.parametrize("lacks_heights", [False, True])
def test_height_below_a_block_that_a_response_showed_is_an_error(server: StrictServer, *, lacks_heights: bool) -> None:
    """A service may know its blocks in the list, and none by their heights."""

    def time_of(height: int) -> int:
        return 1_767_225_600_000 + height * 12_000

    blocks = [
        {"hash": f"0x{height}", "height": str(height), "blockTime": str(time_of(height))} for height in range(120)
    ]

    def respond(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        wanted = request.query.get("height")
        rows = [
            block for block in reversed(blocks) if wanted is None or (wanted == block["height"] and not lacks_heights)
        ]
        members = {
            "page": str(page),
            "limit": str(limit),
            "total": str(len(rows)),
            "totalPage": str(-(-len(rows) // limit)),
        }
        return page_of("blocks", rows[(page - 1) * limit : page * limit], **members)

    server.on("blocks", respond)
    client = server.client()
    errors = []
    for height in range(1, 119, 3):
        try:
            assert client.height_at(time_of(height), chain="zone") == height
        except cf.ResponseFormatError as error:
            errors.append(str(error))
    assert bool(errors) == lacks_heights
    assert all("but the requests by height found none above" in error for error in errors), errors


def test_invalid_arguments_are_rejected(server: StrictServer) -> None:
    client = server.client()
    names = rf"chain must be one of main, zone, {client.main_chain}, {client.zone_chain}; got \"ELSEWHERE\"$"
    with pytest.raises(cf.InvalidParameterError, match=names):
        client.height_at("2024-01-01T00:00Z", chain="ELSEWHERE")
    other = server.client(main_chain="BOTH", zone_chain="BOTH")
    with pytest.raises(cf.InvalidParameterError, match="chain must be one of main, zone, BOTH; got"):
        other.height_at("2024-01-01T00:00Z", chain="ELSEWHERE")
    with pytest.raises(cf.InvalidParameterError, match=r"^chain must be one of main, .*; got None$"):
        client.height_at("2024-01-01T00:00Z", chain=None)  # type: ignore[arg-type]
    for time, problem in (
        ("soon", 'with a UTC offset, or an integer of Unix seconds or milliseconds; got "soon"$'),
        ("2026-01-01", r'must have a UTC offset: Z, or one such as \+02:00; got "2026-01-01"$'),
        (2020, "too small for epoch seconds.*; got 2020$"),
        (-1, "must be within the years 1970 to 9999; got -1$"),
    ):
        with pytest.raises(cf.InvalidParameterError, match=f"^time .*{problem}"):
            client.height_at(time)
    assert server.requests == []


def test_block_of_another_height_is_no_drift() -> None:
    with LocalService(transactions=2_000, quirks=[{"kind": "filter_ignored", "filter": "height"}]) as service:
        oldest = list(service.client().transactions(max_items=1_000))[-1].transaction_time
        with pytest.raises(cf.ResponseFormatError, match="expected height") as raised:
            service.client().height_at(oldest or 0)
        assert not raised.value.retryable
