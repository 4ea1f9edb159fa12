"""The synthetic chain obeys the laws of a chain, also while it grows and is reorganized."""

from __future__ import annotations

from pathlib import Path

import pytest

import reference_client
from chain_laws import Chain
from chainframe.testing import LocalService


def violations(service: LocalService) -> list[str]:
    """Violations of a stable chain, with every late record listed."""
    service.reorg = service.late = None
    service.growth = 1
    reference_client.get(service, "blocks", limit="1")
    service.growth = 0
    return Chain(service).violations()


@pytest.mark.parametrize(("transactions", "seed"), [(1, 1), (40, 2), (300, 7), (600, 3), (600, 11)])
def test_chain_obeys_its_laws(transactions: int, seed: int) -> None:
    with LocalService(transactions=transactions, seed=seed) as service:
        assert Chain(service).violations() == []
        # Growth mints and moves what the first lists have not.
        assert violations(service) == []


@pytest.mark.parametrize(
    ("growth", "reorg", "late", "pending"),
    [
        (3, None, None, None),
        (5, (3, 2), None, None),
        (2, (2, 6), None, None),
        (4, None, (0.4, 2), (0.5, 2)),
        (5, (4, 3), (0.3, 3), (0.3, 3)),
        (3, (5, 30), (0.5, 1), (1.0, 4)),
    ],
)
def test_chain_that_changes_obeys_its_laws(
    growth: int, reorg: tuple[int, int] | None, late: tuple[float, int] | None, pending: tuple[float, int] | None
) -> None:
    with LocalService(transactions=200, seed=5, growth=growth, reorg=reorg, late=late, pending=pending) as service:
        tokens = [
            reference_client.whole_list(service, "tokens", protocolType=protocol)[index]["tokenContractAddress"]
            for protocol, index in (("token_20", 0), ("token_20", 3), ("token_721", 0), ("token_1155", 20))
        ]
        sender = reference_client.whole_list(service, "transactions")[0]["input"]
        for _ in range(4):
            for token in tokens:
                reference_client.get(service, "token_transfers", tokenContractAddress=token)
            reference_client.get(service, "address_transactions", address=sender)
        assert violations(service) == []


def test_chain_in_a_file_obeys_its_laws_again(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        with LocalService(transactions=60, seed=4, growth=2, db=tmp_path / "chain.db") as service:
            for token in reference_client.whole_list(service, "tokens", protocolType="token_721")[:40:4]:
                reference_client.get(service, "token_transfers", tokenContractAddress=token["tokenContractAddress"])
            found.append(violations(service))
    assert found == [[], []]
