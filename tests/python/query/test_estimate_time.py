"""The time that `Query.estimate` expects of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chainframe.testing import LocalService
from strict_server import page_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import chainframe as cf
    from chainframe.testing import Fault
    from strict_server import StrictServer


def test_rate_limit_determines_the_estimated_time(server: StrictServer) -> None:
    server.on("blocks", page_of("blocks", [{"hash": "0x1"}] * 100, totalPage="50", total="5000", limit="100"))
    estimate = server.client(rate_limit=0.5).blocks().estimate()
    assert estimate.requests == 51
    assert estimate.estimated_seconds == pytest.approx(102, rel=0.01)
    assert len(server.requests) == 1


@pytest.mark.parametrize("rate_limit", ["auto", None, 30.0])
def test_time_is_within_a_factor_of_two_in_virtual_time(rate_limit: Any) -> None:
    faults: list[Fault] = [{"kind": "delay", "seconds": 0.05}]
    with (
        LocalService(transactions=3_000, seed=7, simulated=True, faults=faults) as service,
        service.client(rate_limit=None) as client,
    ):
        token = client.tokens(max_items=1).collect()[0].token_contract_address
        newest = client.transactions(max_items=1).collect()[0].height
        assert token is not None
        assert newest is not None
        calls: list[Callable[[cf.Client], cf.Query[Any]]] = [
            lambda client: client.blocks(),
            lambda client: client.token_transfers(token),
            lambda client: client.cross_chain_transactions(),
            lambda client: client.tokens(start_time="2022-01-01T00:00Z"),
            lambda client: client.transactions(),
            lambda client: client.transactions(start_height=newest - 50),
            lambda client: client.blocks(max_items=5),
        ]
        for call in calls:
            query = call(client.with_options(rate_limit=rate_limit))
            estimate = query.estimate().estimated_seconds
            elapsed = query.collect().report.elapsed
            assert elapsed / 2 <= estimate <= elapsed * 2, (query, estimate, elapsed)
