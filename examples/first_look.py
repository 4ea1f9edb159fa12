"""Tokens, transfers and cross-chain transactions from the local server, printed and drawn.

`make demo` runs it. For the real service, replace the first line of `main` by `with cf.Client() as client:`.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import chainframe as cf
from chainframe.testing import LocalService

BLUE, ORANGE = "#2f6f9f", "#d9822b"
CHART = Path("demo") / "first_look.png"
# Sender of the mint, which is as large as the whole supply.
ZERO_ADDRESS = "0x" + "0" * 40


def main() -> None:
    with LocalService(transactions=10_000, seed=7) as service, service.client() as client:
        print(f"{client}\n")
        tokens = client.tokens().collect()
        print_tokens(tokens)
        transfers = busiest_token(client, tokens)
        print_transfers(transfers)
        cross_chain = client.cross_chain_transactions().collect()
        print_cross_chain(cross_chain)
        draw(transfers.to_pandas(), cross_chain.to_pandas())


def print_tokens(tokens: cf.Records[cf.Token]) -> None:
    print(f"The ten largest of {len(tokens)} tokens, by market capitalization")
    for token in tokens[:10]:
        cap = "-" if token.total_market_cap is None else f"{token.total_market_cap:,.0f}"
        print(f"  {token.token or '?':<8} {cap:>22} USD  {token.token_full_name}")


def busiest_token(client: cf.Client, tokens: cf.Records[cf.Token]) -> cf.Records[cf.TokenTransfer]:
    """Return the transfers of the most active of the three largest tokens."""
    addresses = [token.token_contract_address for token in tokens[:3] if token.token_contract_address]
    return max((client.token_transfers(address).collect() for address in addresses), key=len)


def print_transfers(transfers: cf.Records[cf.TokenTransfer]) -> None:
    frame = transfers.to_pandas()
    shown = ["transaction_time", "from_address", "to_address", "amount", "state"]
    print(f"\n{len(frame)} transfers of {transfers[0].transaction_symbol}, as a DataFrame")
    print(frame[shown].head().to_string(max_colwidth=32))

    succeeded = frame[frame.state == "success"]
    senders = succeeded.groupby("from_address").amount.agg(["count", "sum"]).sort_values("count", ascending=False)
    print("\nThe senders with most successful transfers, and the exact sum of what they sent")
    print(senders.head().to_string())


def print_cross_chain(cross_chain: cf.Records[cf.CrossChainTransaction]) -> None:
    print(f"\n{len(cross_chain)} cross-chain transactions, from {cross_chain.report.requests} requests")
    flow = cross_chain.to_pandas().groupby(["tx_type", "token_name"], dropna=False).value.agg(["count", "sum"])
    print(flow.sort_values(["tx_type", "count"], ascending=[True, False]).groupby("tx_type").head(4).to_string())


def draw(transfers: pd.DataFrame, cross_chain: pd.DataFrame) -> None:
    try:
        from matplotlib import pyplot as plt  # noqa: PLC0415 - optional
    except ImportError:
        return
    plt.rcParams["date.converter"] = "concise"
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")

    moved = transfers[transfers.from_address != ZERO_ADDRESS].dropna(subset=["transaction_time", "amount"])
    left.hist(moved.transaction_time.tolist(), weights=moved.amount.astype(float), bins=48, color=BLUE)
    left.set_title(f"{moved.transaction_symbol.iloc[0]} volume, {len(moved):,} transfers", loc="left")
    left.set_ylabel(moved.transaction_symbol.iloc[0])

    dated = cross_chain.dropna(subset=["zone_block_time"])
    edges = pd.date_range(dated.zone_block_time.min(), dated.zone_block_time.max(), 49).to_pydatetime()
    for direction, sign, color in (("MainToZone", 1, BLUE), ("ZoneToMain", -1, ORANGE)):
        times = dated[dated.tx_type == direction].zone_block_time.tolist()
        right.hist(times, weights=[sign] * len(times), bins=edges, color=color, label=f"{direction} ({len(times):,})")
    right.axhline(0, color="black", linewidth=0.8)
    right.set_title(f"{len(dated):,} cross-chain transactions", loc="left")
    right.margins(y=0.2)
    right.legend(frameon=False, ncols=2, loc="upper left")

    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):,.0f}")
    CHART.parent.mkdir(exist_ok=True)
    figure.savefig(CHART, dpi=150)
    print(f"\nSaved a chart of both: {CHART}")


if __name__ == "__main__":
    main()
