"""Types of arguments and results of the testing kit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    from os import PathLike

    from chainframe import Deployment
    from chainframe._native import Cassette

Call: TypeAlias = Literal[
    "tokens",
    "token_transfers",
    "cross_chain_transactions",
    "blocks",
    "address_transactions",
    "large_transactions",
    "transactions",
    "transactions_by_hash",
    "logs",
]
"""A method of `chainframe.Client` that makes a query."""


class ClientOptions(TypedDict, total=False):
    """Arguments of `chainframe.Client`."""

    base_url: str
    api_key: str
    secret_key: str
    passphrase: str
    main_chain: str
    zone_chain: str
    deployment: Deployment
    timeout: float
    deadline: float | None
    max_retries: int
    rate_limit: Literal["auto"] | float | None
    concurrency: int
    strict: bool
    max_response_bytes: int
    proxy: str | None
    ca_bundle: str | PathLike[str] | None
    cassette: Cassette | None
    progress: Literal["auto"] | bool
