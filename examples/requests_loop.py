"""A plain loop over the pages of the API, next to chainframe, against the local server.

The loop signs its requests and follows `totalPage`, as a first script does. Each section creates one condition that
occurs in production and prints what both return. The figures are the same on every run.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from chainframe.testing import LocalService

if TYPE_CHECKING:
    from collections.abc import Iterator

TRANSFERS = "/api/v5/main/token/transaction-list"
TRANSACTIONS = "/api/v5/main/transaction/transaction-list"


def get(service: LocalService, path: str, **parameters: object) -> dict[str, Any]:
    target = f"{path}?{urlencode({'chainShortName': 'MAIN', 'limit': 50, **parameters})}"
    timestamp = f"{datetime.now(UTC).isoformat(timespec='milliseconds')[:-6]}Z"
    digest = hmac.digest(service.secret_key.encode(), f"{timestamp}GET{target}".encode(), hashlib.sha256)
    headers = {
        "SVC-ACCESS-KEY": service.api_key,
        "SVC-ACCESS-PASSPHRASE": service.passphrase,
        "SVC-ACCESS-TIMESTAMP": timestamp,
        "SVC-ACCESS-SIGN": base64.b64encode(digest).decode(),
    }
    with urlopen(Request(service.url + target, headers=headers)) as response:  # noqa: S310 - loopback
        page: dict[str, Any] = json.load(response)["data"][0]
    return page


def loop(service: LocalService, path: str, **parameters: object) -> Iterator[dict[str, Any]]:
    number, last = 1, 1
    while number <= last:
        page = get(service, path, page=number, **parameters)
        yield from page["transactionList"]
        number, last = number + 1, int(page["totalPage"])


def growing_list() -> None:
    with LocalService() as service, service.client() as client:
        token = client.tokens().first()
        assert token is not None
        assert token.token_contract_address is not None
    # Each side has a server of its own, so that neither sees the growth that the other causes.
    with LocalService(growth=2) as service:
        rows = list(loop(service, TRANSFERS, tokenContractAddress=token.token_contract_address))
    with LocalService(growth=2) as service, service.client(rate_limit=None) as client:
        exact = client.token_transfers(token.token_contract_address).collect()
    unique = {json.dumps(row, sort_keys=True) for row in rows}
    print("A list that grows by 2 records per request")
    print(f"  loop:       {len(rows):,} rows, {len(rows) - len(unique)} of them duplicates")
    print(f"  chainframe: {len(exact):,} rows, complete={exact.report.complete}")


def exact_amounts() -> None:
    with LocalService() as service, service.client(rate_limit=None) as client:
        token = client.tokens().first()
        assert token is not None
        assert token.token_contract_address is not None
        rows = list(loop(service, TRANSFERS, tokenContractAddress=token.token_contract_address))
        frame = client.token_transfers(token.token_contract_address).to_pandas()
    amounts = [row["amount"] for row in rows]
    changed = sum(Decimal(repr(float(amount))) != Decimal(amount) for amount in amounts if amount)
    total = sum(map(float, amounts))
    print("Amounts with up to 18 decimals")
    print(f"  loop:       {changed:,} of {len(amounts):,} amounts lose digits in float(); sum {total!r}")
    print(f"  chainframe: 0 lose digits; sum {frame.amount.sum()}")


def result_window() -> None:
    with LocalService(transactions=12_000) as service, service.client(rate_limit=None) as client:
        rows = list(loop(service, TRANSACTIONS))
        newest, oldest = 18_000_900, 18_000_000
        exact = client.transactions(start_height=oldest, end_height=newest).collect()
    print("A list of 12,000 transactions, of which the API returns 10,000")
    print(f"  loop:       {len(rows):,} rows, no error")
    print(f"  chainframe: {len(exact):,} rows by a range of heights, complete={exact.report.complete}")


def failing_server() -> None:
    with LocalService() as service, service.client(rate_limit=None) as client:
        service.faults = [{"kind": "status", "status": 503, "code": "50001", "every": 10}]
        rows: list[dict[str, Any]] = []
        try:
            for row in loop(service, TRANSACTIONS):
                rows.append(row)  # noqa: PERF402 - keeps what came before the error
            error = "no error"
        except HTTPError as failure:
            error = f"HTTPError {failure.code}"
        service.faults = [{"kind": "status", "status": 503, "code": "50001", "every": 10}]
        exact = client.blocks(max_items=10_000).collect()
    print("A server that fails every tenth request")
    print(f"  loop:       {len(rows):,} rows, then {error}")
    print(f"  chainframe: {len(exact):,} rows, {exact.report.retries} retries")


if __name__ == "__main__":
    growing_list()
    exact_amounts()
    result_window()
    failing_server()
