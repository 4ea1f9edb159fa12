"""Queries of several values: exports, partitions, estimates and the command."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import chainframe as cf
from chainframe.cli import main
from chainframe.testing import LocalService
from conftest import environment, needs_extra
from interrupted_writes import written_in_spite_of_interrupts
from sets.test_sets import PAGE, Wallets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from strict_server import StrictServer

pytestmark = needs_extra


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=1_500, seed=45) as running:
        yield running


def tokens(service: LocalService, count: int) -> list[str]:
    return [token.token_contract_address or "" for token in service.client().tokens(max_items=count)]


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True, default=str) for row in rows)


@pytest.mark.parametrize("seed", range(4))
def test_export_interrupted_at_any_time_has_each_record_once_and_a_verdict_on_each_value(
    server: StrictServer, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    lengths = [chance.choice([0, 1, 2, 3, 4, 7, 25]) for _ in range(40)]
    wallets = Wallets(lengths, frozenset(chance.sample(range(40), 3)))
    server.on("address_transactions", wallets)

    def query() -> cf.Query[Any]:
        return server.client().address_transactions(wallets.names, page_size=PAGE)

    export = written_in_spite_of_interrupts(query, tmp_path / "export", chance, 0.3, monkeypatch)
    rows = [(row["queried"][0], row["height"]) for row in export.to_arrow().to_pylist()]
    assert len(rows) == len(set(rows))
    assert set(rows) == wallets.keys(lengths)
    verdicts = export.report.by_argument
    assert {name for name, verdict in verdicts.items() if verdict["error"]} == wallets.refused
    expected = {
        name: 0 if name in wallets.refused else length for name, length in zip(wallets.names, lengths, strict=True)
    }
    assert {name: verdict["records"] for name, verdict in verdicts.items()} == expected
    # An address has older transactions, which the API does not return.
    limited = {name for name, length in zip(wallets.names, lengths, strict=True) if length}
    assert {name for name, verdict in verdicts.items() if not verdict["complete"]} == limited | wallets.refused
    # Thousands of values share a few outcomes, however often the export was interrupted.
    stored = json.loads((tmp_path / "export" / "_manifest.json").read_text())["report"]["verdicts"]
    assert len(stored["outcomes"]) == len({json.dumps(verdict) for verdict in map(outcome, verdicts.values())})
    assert stored["argument"] == list(verdicts)


def outcome(verdict: dict[str, Any]) -> dict[str, Any]:
    return {name: verdict[name] for name in ("complete", "reasons", "error")}


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", "directory"])
def test_every_form_of_export_has_the_records_of_the_query(service: LocalService, tmp_path: Path, form: str) -> None:
    from chainframe.exports import read  # noqa: PLC0415 - an extra

    query = service.client().token_transfers(tokens(service, 5))
    expected = query.collect()
    if form == "directory":
        export = query.to_parquet(tmp_path / "export")
        assert counted(export.to_arrow().to_pylist()) == counted(expected.to_arrow().to_pylist())
        assert counted(read(export).to_table().to_pylist()) == counted(expected.to_arrow().to_pylist())
        assert export.verify(sample=5).ok
    else:
        export = getattr(query, {"parquet": "to_parquet", "csv": "to_csv", "jsonl": "to_json"}[form])(
            tmp_path / f"export.{form}"
        )
    assert export.rows == len(expected)
    assert export.complete
    assert {name: verdict["records"] for name, verdict in export.report.by_argument.items()} == {
        name: verdict["records"] for name, verdict in expected.report.by_argument.items()
    }
    if form == "jsonl":
        lines = [json.loads(line) for line in export.path.read_text().splitlines()]
        assert Counter((line["queried"][0], line["tx_id"]) for line in lines) == Counter(
            (record.queried[0], record.tx_id) for record in expected
        )


def test_finished_export_of_the_same_values_in_another_order_sends_nothing(
    service: LocalService, tmp_path: Path
) -> None:
    client, values = service.client(), tokens(service, 4)
    first = client.token_transfers(values).to_parquet(tmp_path)
    before = service.request_count
    assert client.token_transfers(values[::-1]).to_parquet(tmp_path).rows == first.rows
    assert service.request_count == before
    with pytest.raises(
        cf.ExportError, match=f"an export of another query: token_contract_address has {values[0]!r} there and not here"
    ):
        client.token_transfers(values[1:]).to_parquet(tmp_path)


@pytest.mark.parametrize("parts", [1, 3, 5, 50])
def test_partitions_have_each_value_once(service: LocalService, parts: int) -> None:
    values = tokens(service, 7)
    query = service.client().token_transfers(values)
    before = service.request_count
    found = query.partitions(parts)
    assert service.request_count == before
    assert len(found) == min(parts, 7)
    rows = [row for part in found for row in part.collect().to_dicts()]
    assert counted(rows) == counted(query.collect().to_dicts())


def test_estimate_of_few_lists_is_their_sum(service: LocalService) -> None:
    query = service.client(concurrency=1).token_transfers(tokens(service, 6))
    estimate = query.estimate()
    records = query.collect()
    assert (estimate.records, estimate.requests) == (len(records), records.report.requests)
    assert estimate.is_exact
    assert estimate.num_slices == 6


def test_estimate_of_many_lists_measures_some_of_them(server: StrictServer) -> None:
    wallets = Wallets([4] * 200, frozenset({99}))
    server.on("address_transactions", wallets)
    query: cf.Query[Any] = server.client().address_transactions(wallets.names, page_size=PAGE)
    estimate = query.estimate()
    assert len(server.requests) <= 32
    low, high = estimate.records_range
    assert high is not None
    assert low <= 199 * 4 <= high
    assert not estimate.is_exact


def test_command_takes_values_of_repeated_options_and_of_a_file(
    at_service: LocalService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = tokens(at_service, 3)
    file = tmp_path / "tokens.txt"
    file.write_text("\n".join(values) + "\n")
    expected = len(at_service.client().token_transfers(values).collect())
    repeated = [word for value in values for word in ("--token-contract-address", value)]
    for options in (["--token-contract-address", f"@{file}"], repeated):
        assert main(["token-transfers", *options, "--columns", "queried,tx_id"]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert len(rows) == expected
        assert {row["queried"][0] for row in rows} == set(values)
    assert main(["token-transfers", "--token-contract-address", values[0]]) == 0
    assert "queried" not in json.loads(capsys.readouterr().out.splitlines()[0])
    assert main(["token-transfers", "--token-contract-address", f"@{tmp_path}/none.txt"]) == 2
    assert capsys.readouterr().err.endswith("none.txt cannot be read: No such file or directory\n")


def test_file_of_one_value_is_a_set_like_a_file_of_several(
    at_service: LocalService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (value,) = tokens(at_service, 1)
    (tmp_path / "tokens.txt").write_text(f"\n {value} \n")
    assert main(["token-transfers", "--token-contract-address", f"@{tmp_path}/tokens.txt"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["queried"] == [value]


@pytest.mark.parametrize(
    ("call", "option"), [("token-transfers", "--token-contract-address"), ("transactions-by-hash", "--tx-ids")]
)
def test_line_of_a_file_is_one_value_and_never_two(
    at_service: LocalService, tmp_path: Path, capsys: pytest.CaptureFixture[str], call: str, option: str
) -> None:
    (tmp_path / "values.txt").write_text(f"0x{'1' * 40}\n0x{'2' * 20} {'2' * 20}\n")
    before = at_service.request_count
    assert main([call, option, f"@{tmp_path}/values.txt"]) == 2
    assert "has white space (U+0020)" in capsys.readouterr().err
    assert at_service.request_count == before


def test_command_says_what_became_of_refused_values(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(request: Any) -> Any:
        is_refused = request["params"].get("address") == "0x2"
        return {"status": 403, "json": {"code": "50030", "msg": "no plan", "data": []}} if is_refused else None

    with LocalService(transactions=50, respond=refuse) as service:
        for name, value in environment(service).items():
            monkeypatch.setenv(name, value)
        for strict in ([], ["--strict"]):
            assert main(["address-transactions", "--address", "0x1", "--address", "0x2", *strict]) == 6
            reason, error = capsys.readouterr().err.splitlines()
            assert reason.endswith(
                "of the values of --address are missing, since their lists could not be read: 0x2; errors follow."
            )
            assert error.startswith("chainframe: 0x2: address_transactions: the API responded with status 403")


def test_settled_export_is_written_in_groups_that_take_little_memory(tmp_path: Path) -> None:
    with LocalService(transactions=4_000, seed=7) as service, service.client() as client:
        tokens = [str(token.token_contract_address) for token in client.tokens(max_items=2)]
        export = client.token_transfers(tokens).to_parquet(tmp_path / "e", settle=3)
    written = pq.read_metadata(tmp_path / "e" / "part-000000.parquet")
    groups = [written.row_group(index).num_rows for index in range(written.num_row_groups)]
    assert groups == [1_024, export.rows - 1_024]
