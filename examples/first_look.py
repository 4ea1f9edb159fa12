"""A first look at the data of a chain, against the local service: made-up data, real requests.

`make demo` runs it. With a real service only the first two lines of `main` change: `with cf.Client() as client:`.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import chainframe as cf
from chainframe.testing import LocalService

if TYPE_CHECKING:
    import pandas as pd

PICTURE = Path("demo") / "first_look.png"


def main() -> None:
    with LocalService(transactions=10_000, seed=7) as service, service.client() as client:
        print(f"{client}\n")
        tokens = client.tokens().collect()
        print_tokens(tokens)
        transfers = busiest_token(client, tokens)
        print_transfers(transfers)
        crossings = client.cross_chain_transactions().collect()
        print_crossings(crossings)
        draw(transfers.to_pandas(), crossings.to_pandas())


def print_tokens(tokens: cf.Records[cf.Token]) -> None:
    print(f"The ten largest of {len(tokens)} tokens, by market capitalisation")
    for token in tokens[:10]:
        cap = "-" if token.total_market_cap is None else f"{token.total_market_cap:,.0f}"
        print(f"  {token.token or '?':<8} {cap:>22} USD  {token.token_full_name}")


def busiest_token(client: cf.Client, tokens: cf.Records[cf.Token]) -> cf.Records[cf.TokenTransfer]:
    """The transfers of that one of the three largest tokens that has most of them."""
    addresses = [token.token_contract_address for token in tokens[:3] if token.token_contract_address]
    return max((client.token_transfers(address).collect() for address in addresses), key=len)


def print_transfers(transfers: cf.Records[cf.TokenTransfer]) -> None:
    frame = transfers.to_pandas()
    print(f"\n{len(frame)} transfers of {transfers[0].transaction_symbol}, as a DataFrame")
    print(
        frame[["transaction_time", "from_address", "to_address", "amount", "state"]].head().to_string(max_colwidth=28)
    )

    sent: Counter[str] = Counter()
    total: dict[str, Decimal] = {}
    for transfer in transfers:
        sender = transfer.from_address or "?"
        sent[sender] += 1
        total[sender] = total.get(sender, Decimal()) + (transfer.amount or Decimal())
    print("\nIts busiest senders, and what they sent to the last digit")
    for sender, count in sent.most_common(5):
        print(f"  {sender}  {count:>5}  {total[sender]:>44,}")


def print_crossings(crossings: cf.Records[cf.CrossChainTransaction]) -> None:
    print(f"\n{len(crossings)} transactions crossed the chains; {crossings.report.requests} requests told so")
    flow = crossings.to_pandas().groupby(["tx_type", "token_name"], dropna=False).value.agg(["count", "sum"])
    print(flow.sort_values(["tx_type", "count"], ascending=[True, False]).groupby("tx_type").head(4).to_string())


def draw(transfers: pd.DataFrame, crossings: pd.DataFrame) -> None:
    try:
        from matplotlib import pyplot as plt  # noqa: PLC0415 - the picture is an extra
    except ImportError:
        return
    figure, axes = plt.subplots(1, 2, figsize=(12, 4))
    figure.savefig(PICTURE)


if __name__ == "__main__":
    main()
