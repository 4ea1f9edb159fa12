"""Laws that a chain obeys, checked over everything that a local service serves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Any

import reference_client
from chainframe.testing import LocalService

ZERO = "0x" + "0" * 40
PROTOCOLS = ("token_20", "token_721", "token_1155", "token_10")
HASHES = 20

# Sums of amounts of up to 78 digits stay exact.
EXACT = Context(prec=120)

Row = dict[str, Any]


class Chain:
    """All lists of a stable service: what they say is compared without the client."""

    def __init__(self, service: LocalService) -> None:
        self.service = service
        self.transactions = reference_client.whole_list(service, "transactions")[::-1]
        self.blocks = reference_client.whole_list(service, "blocks")[::-1]
        self.crossings = reference_client.whole_list(service, "cross_chain_transactions")[::-1]
        self.tokens = [
            token
            for protocol in PROTOCOLS
            for token in reference_client.whole_list(service, "tokens", protocolType=protocol)
        ]
        self.transfers = {
            address: reference_client.whole_list(service, "token_transfers", tokenContractAddress=address)[::-1]
            for address in (token["tokenContractAddress"] for token in self.tokens)
        }
        hashes = [row["txid"] for row in self.transactions]
        self.details = {
            row["txId"]: row
            for start in range(0, len(hashes), HASHES)
            for row in reference_client.get(
                service, "transactions_by_hash", txId=",".join(hashes[start : start + HASHES])
            )
        }
        self.logs = {hash_: reference_client.get(service, "logs", txId=hash_) for hash_ in hashes}

    def violations(self) -> list[str]:
        """Return what breaks a law, in words."""
        checks = (
            self._nonces,
            self._fees,
            self._blocks,
            self._transfers,
            self._custody,
            self._balances,
            self._log_indexes,
            self._logged_transfers,
            self._crossings,
        )
        return [violation for check in checks for violation in check()]

    def _nonces(self) -> Iterator[str]:
        nonces: dict[str, list[int]] = defaultdict(list)
        for row in self.transactions:
            nonces[row["input"]].append(int(self.details[row["txid"]]["nonce"]))
        for sender, found in nonces.items():
            if found != list(range(len(found))):
                yield f"nonces of {sender} are {found}"

    def _fees(self) -> Iterator[str]:
        for row in self.details.values():
            if EXACT.multiply(Decimal(row["gasUsed"]), Decimal(row["gasPrice"])) != Decimal(row["txFee"]):
                yield f"fee of {row['txId']}: {row['gasUsed']} * {row['gasPrice']} is not {row['txFee']}"
            if int(row["gasUsed"]) > int(row["gasLimit"]):
                yield f"gas of {row['txId']}: {row['gasUsed']} > {row['gasLimit']}"

    def _blocks(self) -> Iterator[str]:
        heights = [int(row["height"]) for row in self.blocks]
        if heights != list(range(heights[0], heights[0] + len(heights))):
            yield "block heights have a gap"
        times = [int(row["blockTime"]) for row in self.blocks]
        if times != sorted(times):
            yield "block times fall"
        counts = Counter(row["zoneBlockHeight"] for row in self.crossings)
        for row in self.blocks:
            if counts[row["height"]] > int(row["transactionCount"]):
                yield f"block {row['height']} has {counts[row['height']]} crossings, counts {row['transactionCount']}"
        hashes: dict[str, set[str]] = defaultdict(set)
        for row in self.transactions:
            hashes[row["height"]].add(row["blockHash"])
        yield from (f"height {height} has {len(found)} hashes" for height, found in hashes.items() if len(found) > 1)

    def _transfers(self) -> Iterator[str]:
        members = ("blockHash", "height", "transactionTime", "state")
        for row in (row for rows in self.transfers.values() for row in rows):
            transaction = self.details.get(row["txid"])
            if transaction is None:
                yield f"transfer of {row['txid']}, which is not listed"
            elif any(row[member] != transaction[member] for member in members):
                yield f"transfer of {row['txid']} differs from its transaction"

    def _custody(self) -> Iterator[str]:
        for token in self.tokens:
            if token["protocolType"] != "ERC721":
                continue
            holders: dict[str, str] = {}
            for row in effective(self.transfers[token["tokenContractAddress"]]):
                if holders.get(row["tokenId"], ZERO) != row["from"]:
                    yield f"{token['token']} {row['tokenId']} leaves {row['from']}, which does not hold it"
                holders[row["tokenId"]] = row["to"]

    def _balances(self) -> Iterator[str]:
        for token in self.tokens:
            balances: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
            supply = Decimal()
            transfers = effective(self.transfers[token["tokenContractAddress"]])
            for row in transfers:
                amount = Decimal(row["amount"])
                for party, change in ((row["from"], -amount), (row["to"], amount)):
                    if party == ZERO:
                        supply = EXACT.subtract(supply, change)
                        continue
                    key = (party, row["tokenId"])
                    balances[key] = EXACT.add(balances[key], change)
                    if balances[key] < 0 and row["from"] != row["to"]:
                        yield f"{token['token']}: {party} holds {balances[key]} after {row['txid']}"
            if not transfers:
                continue
            if supply != Decimal(token["totalSupply"]):
                yield f"{token['token']}: {supply} was minted and not burned, total supply {token['totalSupply']}"
            if Decimal(token["circulatingSupply"]) > supply:
                yield f"{token['token']}: more circulates than there is"
            holders = {party for (party, _), balance in balances.items() if balance > 0}
            if len(holders) != int(token["addressCount"]):
                yield f"{token['token']}: {len(holders)} holders, {token['addressCount']} counted"

    def _log_indexes(self) -> Iterator[str]:
        indexes: dict[str, list[int]] = defaultdict(list)
        pending = {row["height"] for row in self.transactions if row["state"] == "pending"}
        for row in self.transactions:
            indexes[row["height"]] += [int(log["logIndex"]) for log in self.logs[row["txid"]]]
        for height, found in indexes.items():
            # What is pending has logged nothing yet.
            if height not in pending and found != list(range(len(found))):
                yield f"log indexes of block {height} are {found}"

    def _logged_transfers(self) -> Iterator[str]:
        parties: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        for rows in self.transfers.values():
            for row in effective(rows):
                parties[row["txid"]][row["tokenContractAddress"], row["to"]] += 1
        for hash_, logs in self.logs.items():
            transfers = [log for log in logs if len(log["topics"]) > 2 and log["topics"][0].startswith(TRANSFERS)]
            logged = Counter((log["address"], "0x" + log["topics"][position(log)][-40:]) for log in transfers)
            if logged != parties[hash_]:
                yield f"logs of {hash_} are not its transfers"

    def _crossings(self) -> Iterator[str]:
        moved: dict[str, list[Row]] = defaultdict(list)
        for rows in self.transfers.values():
            for row in rows:
                moved[row["txid"]].append(row)
        times = {row["height"]: row["blockTime"] for row in self.blocks}
        for row in self.crossings:
            hash_ = row["mainTxHash"]
            transaction = self.details.get(hash_)
            if transaction is None:
                yield f"crossing of {hash_}, which is not listed"
                continue
            main = (transaction["height"], transaction["transactionTime"])
            if main != (row["mainBlockHeight"], row["mainBlockTime"]):
                yield f"crossing of {hash_} is of another block"
            if times[row["zoneBlockHeight"]] != row["zoneBlockTime"]:
                yield f"crossing of {hash_} has another time than its block"
            inward = row["txType"] == "MainToZone"
            times_of = [int(row["mainBlockTime"]), int(row["zoneBlockTime"])]
            if times_of != sorted(times_of, reverse=not inward):
                yield f"crossing of {hash_} arrives before it leaves"
            side, account = ("from", "sourceAddress") if inward else ("to", "targetAddress")
            if not any(
                transfer["tokenContractAddress"] == row["tokenContractAddress"]
                and transfer["tokenId"] == row["tokenId"]
                and transfer[side] == row[account]
                and Decimal(transfer["amount"]) == Decimal(row["value"])
                for transfer in moved[hash_]
            ):
                yield f"crossing of {hash_} has no transfer"


TRANSFERS = ("0xddf252ad", "0xc3d58168")


def position(log: Row) -> int:
    """Index of the topic that is the receiver."""
    return 3 if log["topics"][0].startswith(TRANSFERS[1]) else 2


def effective(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["state"] == "success"]
