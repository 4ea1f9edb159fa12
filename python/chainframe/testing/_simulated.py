"""Settings that a simulated service does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chainframe import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

NETWORK = ("base_url", "proxy", "ca_bundle")


def reject_network(given: Mapping[str, object]) -> None:
    """Raise if a setting of the network is given."""
    for name, value in given.items():
        if value is not None:
            raise ConfigError(f"{name} cannot be combined with simulated=True, which has no network; omit it")
