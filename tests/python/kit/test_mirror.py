"""A mirror serves the queries that its records cover exactly, and raises for all others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.testing import Cassette, LocalService

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Sample

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")


@pytest.fixture(scope="module")
def real() -> Iterator[LocalService]:
    with LocalService(transactions=700, seed=3) as running:
        yield running


@pytest.fixture(scope="module")
def source(real: LocalService) -> Iterator[cf.Client]:
    with real.client() as client:
        yield client


def tx_ids(client: cf.Client) -> list[str]:
    found = [transaction.tx_id or "" for transaction in client.transactions(max_items=45)]
    logged = {log.tx_id for log in client.logs(found)}
    return sorted(found, key=lambda tx_id: tx_id not in logged)


def busiest_token(client: cf.Client) -> str:
    tokens = [one.token_contract_address or "" for one in client.cross_chain_transactions()]
    return max(set(tokens), key=tokens.count)


def heights(client: cf.Client) -> list[int]:
    return sorted({transaction.height or 0 for transaction in client.transactions(max_items=300)})


def busiest_address(client: cf.Client) -> str:
    senders = [one.input or "" for one in client.transactions()]
    return max(set(senders), key=senders.count)


# Mirrored queries, and narrower ones that they cover.
COVERED: dict[str, tuple[Callable[[cf.Client, cf.Client], Any], list[Callable[[cf.Client, cf.Client], Any]]]] = {
    "items, page sizes and heights of the beginning of a list": (
        lambda client, _: client.blocks(max_items=250),
        [
            lambda client, _: client.blocks(max_items=250),
            lambda client, _: client.blocks(max_items=50),
            lambda client, _: client.blocks(max_items=120, page_size=30),
            lambda client, _: client.blocks(height=4_300_699),
            lambda client, _: client.blocks(height=4_300_450),
            lambda client, _: client.blocks(max_items=3, chain="zone_chain"),
        ],
    ),
    "filters of a list read to its end": (
        lambda client, _: client.cross_chain_transactions(),
        [
            lambda client, _: client.cross_chain_transactions(page_size=17),
            lambda client, source: client.cross_chain_transactions(token_contract_address=busiest_token(source)),
            lambda client, _: client.cross_chain_transactions(start_height=4_300_100, end_height=4_300_400),
        ],
    ),
    "some of the hashes": (
        lambda client, source: client.transactions_by_hash(tx_ids(source)),
        [
            lambda client, source: client.transactions_by_hash(tx_ids(source)[7:10]),
            lambda client, source: client.transactions_by_hash(tx_ids(source)[::-1]),
        ],
    ),
    "some of the logs": (
        lambda client, source: client.logs(tx_ids(source)[:5]),
        [
            lambda client, source: client.logs(tx_ids(source)[3]),
            lambda client, source: client.logs(tx_ids(source)[4:1:-1]),
        ],
    ),
    "heights of a range": (
        lambda client, source: client.transactions(start_height=heights(source)[0], end_height=heights(source)[-1]),
        [
            lambda client, source: client.transactions(height=heights(source)[1]),
            lambda client, source: client.transactions(start_height=heights(source)[1], end_height=heights(source)[2]),
        ],
    ),
    "amounts of one token": (
        lambda client, source: client.token_transfers(busiest_token(source)),
        [
            lambda client, source: client.token_transfers(
                busiest_token(source).upper().replace("X", "x"), min_amount=5
            ),
            lambda client, source: client.token_transfers(busiest_token(source), min_amount=1, max_amount=900),
        ],
    ),
    "directions of one address": (
        lambda client, source: client.address_transactions(busiest_address(source)),
        [lambda client, source: client.address_transactions(busiest_address(source), direction="from")],
    ),
    "larger transactions": (
        lambda client, _: client.large_transactions(),
        [lambda client, _: client.large_transactions(min_amount=500)],
    ),
    "tokens in their order": (
        lambda client, _: client.tokens(order_by="transactionAmount24h"),
        [
            lambda client, _: client.tokens(order_by="transactionAmount24h", max_items=60),
            lambda client, _: client.tokens(
                order_by="transactionAmount24h", start_time="2025-10-01T00:00:00Z", end_time="2026-01-10T00:00:00Z"
            ),
        ],
    ),
}


@pytest.mark.parametrize("case", COVERED)
def test_narrower_queries_are_answered_exactly(source: cf.Client, tmp_path: Path, case: str) -> None:
    mirrored, narrower = COVERED[case]
    with LocalService(transactions=5, db=tmp_path / "offline.sqlite") as mirror:
        mirror.mirror(mirrored(source, source))
    with LocalService(transactions=5, db=tmp_path / "offline.sqlite") as mirror, mirror.client() as client:
        for query in [mirrored, *narrower]:
            records = query(client, source).collect()
            assert list(records) == list(query(source, source).collect())
            assert len(records) > 0


def test_what_is_not_covered_raises(source: cf.Client) -> None:
    with LocalService(transactions=0) as mirror, mirror.client() as client:
        mirror.mirror(
            source.blocks(max_items=250),
            source.logs(tx_ids(source)[:2]),
            source.tokens(max_items=50),
            source.transactions(height=heights(source)[2]),
        )
        uncovered: list[Any] = [
            client.blocks(),
            client.blocks(height=4_300_001),
            client.logs(tx_ids(source)[2]),
            client.tokens(order_by="transactionAmount24h"),
            client.tokens(protocol_type="token_721"),
            client.transactions(height=heights(source)[1]),
            client.transactions(),
            client.large_transactions(),
        ]
        for query in uncovered:
            with pytest.raises(cf.NotFoundError, match="not mirrored: ") as caught:
                query.collect()
            assert caught.value.code == "50044"
        with pytest.raises(cf.NotFoundError, match=r"closest: the first 300 records of blocks\?"):
            client.blocks(height=4_300_001).collect()


def test_no_synthetic_data_is_served_beside_mirrored(source: cf.Client) -> None:
    with LocalService(transactions=100) as mirror, mirror.client() as client:
        assert len(client.blocks().collect()) == 100
        mirror.mirror(source.tokens(max_items=10))
        with pytest.raises(cf.NotFoundError, match="no query of blocks"):
            client.blocks().collect()


def test_load_replaces_what_was_mirrored(source: cf.Client, tmp_path: Path) -> None:
    with LocalService(transactions=0, db=tmp_path / "one.sqlite") as mirror, mirror.client() as client:
        mirror.mirror(source.blocks(max_items=3), source.tokens(max_items=3))
        mirror.load("blocks", [cf.Block(height=1)])
        assert list(client.blocks(max_items=3)) == [cf.Block(height=1)]
        assert len(client.tokens(max_items=3).collect()) == 3
        mirror.mirror(source.blocks(max_items=2))
        assert len(client.blocks(max_items=2).collect()) == 2
    with LocalService(transactions=0, db=tmp_path / "one.sqlite") as mirror, mirror.client() as client:
        assert len(client.blocks(max_items=2).collect()) == 2


def test_what_cannot_be_mirrored_is_named(source: cf.Client) -> None:
    with LocalService(transactions=0, main_chain="ELSE") as mirror:
        with pytest.raises(cf.ConfigError, match=r"^main_chain.*MAIN"):
            mirror.mirror(source.tokens(max_items=1))
        with pytest.raises(TypeError, match=r"mirror\(\) takes queries, such as client\.blocks\(\); got Records"):
            mirror.mirror(source.blocks(max_items=1).collect())  # type: ignore[arg-type]
        page = next(iter(source.blocks(page_size=5).pages()))
        with pytest.raises(cf.ConfigError, match="got a resumed query"):
            mirror.mirror(source.resume(page.cursor))
    with (
        LocalService(transactions=0, deployment=cf.Deployment(main="alpha")) as mirror,
        pytest.raises(cf.ConfigError, match="deployment"),
    ):
        mirror.mirror(source.tokens(max_items=1))


def test_a_growing_list_is_mirrored_as_it_was() -> None:
    with (
        LocalService(transactions=400, growth=3) as moving,
        moving.client() as client,
        LocalService(transactions=0) as mirror,
        mirror.client() as offline,
    ):
        mirror.mirror(client.blocks(), client.transactions(max_items=150))
        first = offline.blocks().collect()
        assert len({block.height for block in first}) == len(first) >= 400
        assert list(offline.blocks(max_items=20)) == list(first)[:20]
        assert len(offline.transactions(max_items=150).collect()) == 150


def test_requests_beside_a_loaded_cassette_raise(real: LocalService, tmp_path: Path) -> None:
    with real.client(cassette=Cassette(tmp_path / "one.jsonl")) as client:
        client.blocks(height=4_300_005).collect()
    with LocalService(transactions=50) as service, service.client() as client:
        service.load_cassette(tmp_path / "one.jsonl")
        assert len(client.blocks(height=4_300_005, chain="zone_chain").collect()) == 1
        with pytest.raises(cf.NotFoundError, match=r"not recorded: .*height=4300005 instead of"):
            client.blocks(height=4_300_006).collect()
        with pytest.raises(cf.NotFoundError, match=r"not recorded: .*nothing of that path"):
            client.tokens().collect()


def test_sample_is_mirrored_by_every_call(service: LocalService, sample: Sample) -> None:
    with service.client() as client, LocalService(transactions=0) as mirror, mirror.client() as offline:
        calls = ["tokens", "token_transfers", "blocks", "address_transactions", "transactions_by_hash", "logs"]
        mirror.mirror(*(sample.query(client, call) for call in calls))
        for call in calls:
            assert list(sample.query(offline, call).collect()) == list(sample.query(client, call).collect())
