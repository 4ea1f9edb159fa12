"""`Export.verify` and `chainframe verify`: what is wrong in an export is found, and nothing else."""

from __future__ import annotations

import pickle
import random
import shutil
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import chainframe as cf
import reference_client
from chainframe.cli import main
from chainframe.exports import Difference, Export, Verification
from chainframe.testing import LocalService
from conftest import Sample, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def honest() -> Iterator[LocalService]:
    with LocalService(transactions=1_000, seed=9) as running:
        yield running


@pytest.fixture(scope="module")
def rows(honest: LocalService) -> Rows:
    with honest.client() as client:
        return client.transactions().collect().to_dicts()


@pytest.fixture(scope="module")
def wrong() -> Iterator[LocalService]:
    """A service of the same chain, whose list of transactions a test damages."""
    with LocalService(transactions=1_000, seed=9) as running:
        yield running


def damaged(rows: Rows, kind: str, chosen: list[int]) -> Rows:
    """The list with these records omitted, altered or doubled."""
    made = []
    for index, row in enumerate(rows):
        if index not in chosen:
            made.append(row)
        elif kind == "altered":
            made.append({**row, "method_id": "0xdeadbeef"})
        elif kind == "doubled":
            made += [row, row]
    return made


@pytest.mark.parametrize("call", sorted(reference_client.ENDPOINTS))
def test_an_export_of_any_call_has_no_differences(client: cf.Client, sample: Sample, tmp_path: Path, call: str) -> None:
    export = sample.query(client, call).to_parquet(tmp_path, max_rows_per_file=100)
    before = sorted((path.name, path.read_bytes()) for path in tmp_path.iterdir())
    verification = export.verify(sample=25, seed=1)
    assert verification.differences == ()
    assert verification.ok
    assert verification.rows == export.rows
    assert verification.files == len(export.parts)
    assert verification.requests > 0
    assert max(verification.sampled.values()) > min(20, export.rows // 2)
    assert sorted((path.name, path.read_bytes()) for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("numbers", ["decimal", "float", "string"])
def test_columns_and_number_policy_are_those_of_the_export(client: cf.Client, tmp_path: Path, numbers: Any) -> None:
    columns = ["amount", "tx_id", "height"]
    export = client.transactions().to_parquet(tmp_path, columns=columns, numbers=numbers)
    verification = export.verify(sample=10, seed=2)
    assert verification.differences == ()
    assert verification.sampled.keys() == {"heights", "hashes"}
    export = client.transactions().to_parquet(tmp_path / "amounts", columns=["amount"], numbers=numbers)
    verification = export.verify()
    assert (verification.ok, verification.sampled) == (True, {"pages": export.rows})
    export = client.transactions().to_parquet(tmp_path / "states", columns=["state"])
    assert export.verify().sampled == {}


def test_a_range_that_grew_has_no_differences(tmp_path: Path) -> None:
    with LocalService(transactions=400, growth=2) as service, service.client() as client:
        for number, query in enumerate((client.transactions(), client.cross_chain_transactions(), client.blocks())):
            export = query.to_parquet(tmp_path / str(number))
            assert export.verify(sample=20, seed=3).differences == ()


@pytest.mark.parametrize(
    ("kind", "found"), [("omitted", {"missing"}), ("altered", {"changed"}), ("doubled", {"duplicate"})]
)
def test_each_kind_of_wrong_record_is_named(  # noqa: PLR0917 - fixtures
    honest: LocalService, wrong: LocalService, rows: Rows, tmp_path: Path, kind: str, found: set[str]
) -> None:
    chosen = [300, 301, 640]
    wrong.load("transactions", damaged(rows, kind, chosen))
    with wrong.client() as client, honest.client() as other:
        verification = client.transactions().to_parquet(tmp_path).verify(other, sample=1_000, seed=1)
    by_height = [difference for difference in verification.differences if difference.way == "heights"]
    assert {difference.kind for difference in by_height} == found
    ids = {difference.key.partition(",")[0].removeprefix("tx_id=") for difference in by_height}
    assert ids == {rows[index]["tx_id"] for index in chosen}
    if kind == "altered":
        assert {difference.columns for difference in by_height} == {("method_id",)}
    assert str(verification).splitlines()[0].endswith("records, differences: 3")


@pytest.mark.parametrize("kind", ["omitted", "altered", "doubled"])
def test_one_wrong_record_in_a_thousand_is_found_at_the_stated_confidence(
    honest: LocalService, wrong: LocalService, rows: Rows, tmp_path: Path, kind: str
) -> None:
    expected = variance = 0.0
    found = 0
    with wrong.client() as client, honest.client() as other:
        for seed in range(12):
            inner = [index for index, row in enumerate(rows) if rows[0]["height"] > row["height"] > rows[-1]["height"]]
            wrong.load("transactions", damaged(rows, kind, [random.Random(seed).choice(inner)]))
            export = client.transactions().to_parquet(tmp_path / str(seed))
            verification = export.verify(other, sample=12, seed=seed)
            stated = verification.confidence(rate=0.0005)
            expected, variance = expected + stated, variance + stated * (1 - stated)
            found += not verification.ok
    assert 0.2 < expected / 12 < 0.8
    assert found >= expected - 2 * variance**0.5


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        ("blocks", slice(200, 230)),
        ("blocks", slice(200, 300)),
        ("transactions", slice(200, 400)),
        ("cross_chain_transactions", slice(20, 43)),
    ],
)
def test_records_that_are_missing_in_a_row_are_found(tmp_path: Path, call: str, missing: slice) -> None:
    with LocalService(transactions=1_000, seed=9) as whole, whole.client() as client:
        rows = getattr(client, call)().collect().to_dicts()
        with LocalService(transactions=0, data={call: [*rows[: missing.start], *rows[missing.stop :]]}) as partial:
            export = getattr(partial.client(), call)().to_parquet(tmp_path)
        verification = export.verify(client, sample=1, seed=2)
    found = {(difference.way, difference.kind) for difference in verification.differences}
    # A gap of blocks shows by itself, too.
    assert found - {("invariants", "missing")} == {("heights", "missing")}


def test_late_records_of_a_settled_series_leave_no_gap(honest: LocalService, tmp_path: Path) -> None:
    with LocalService(transactions=0) as service, service.client() as client, honest.client() as other:
        rows = other.blocks().collect().to_dicts()
        late = [rows[325], rows[335]]
        service.load("blocks", [row for row in rows[300:] if row not in late])
        first = client.blocks().to_parquet(tmp_path / "1", settle=20)
        service.load("blocks", rows)
        second = client.blocks().to_parquet(tmp_path / "2", since=first, settle=20)
        heights = pq.read_table(second.parts[-1])["height"].to_pylist()
        assert {row["height"] for row in late} <= set(heights)
        assert second.verify(other, sample=1_000).differences == ()


def test_places_that_meet_are_compared_however_far_they_extend(
    honest: LocalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainframe.exports.verify.MAX_GAP", 9)
    with honest.client() as client:
        verification = client.transactions().to_parquet(tmp_path).verify(sample=1_000, seed=1)
    assert verification.sampled["heights"] > 900


def test_altered_list_differs_from_lookups_by_hash(wrong: LocalService, rows: Rows, tmp_path: Path) -> None:
    altered = [{**row, "amount": Decimal(1)} if index == 5 else row for index, row in enumerate(rows)]
    wrong.load("transactions", [{**rows[0], "tx_id": "0x" + "1" * 64}, *altered])
    with wrong.client() as client:
        verification = client.transactions().to_parquet(tmp_path).verify(sample=2_000)
    assert set(verification.differences) == {
        Difference("hashes", "changed", f"tx_id={rows[5]['tx_id']}", ("amount",)),
        Difference("hashes", "unexpected", "tx_id=0x" + "1" * 64),
    }


def test_altered_transfers_differ_from_the_event_logs(sample: Sample, tmp_path: Path) -> None:
    with LocalService(transactions=600, seed=7) as service, service.client() as client:
        transfers = client.token_transfers(sample.token).collect().to_dicts()
        chosen = [index for index, one in enumerate(transfers) if one["state"] == "success"][:3]
        made = [one for index, one in enumerate(transfers) if index != chosen[0]]
        made[made.index(transfers[chosen[1]])] = {**transfers[chosen[1]], "amount": Decimal("123.25")}
        service.load("token_transfers", [*made, transfers[chosen[2]]])
        verification = client.token_transfers(sample.token).to_parquet(tmp_path).verify(sample=500)
    assert {difference.way for difference in verification.differences} == {"logs"}
    found = {difference.key for difference in verification.differences}
    assert found <= {f"tx_id={transfers[index]['tx_id']}" for index in chosen}
    assert {difference.kind for difference in verification.differences} >= {"changed", "unexpected"}


def test_a_pending_transaction_that_is_settled_is_no_difference(
    honest: LocalService, wrong: LocalService, rows: Rows, tmp_path: Path
) -> None:
    height = rows[len(rows) // 2]["height"]
    pending = [{**row, "state": "pending"} if row["height"] == height else row for row in rows]
    wrong.load("transactions", pending)
    with wrong.client() as client, honest.client() as other:
        export = client.transactions().to_parquet(tmp_path)
        assert export.verify(other, sample=1_000).differences == ()


@pytest.mark.parametrize("numbers", ["string", "decimal"])
def test_amounts_that_differ_beyond_28_digits_differ(
    wrong: LocalService, rows: Rows, tmp_path: Path, numbers: Any
) -> None:
    place = 300
    texts = ["1234567890123456789.123456789012345601", "1234567890123456789.123456789012345602"]
    lists = [[*rows[:place], {**rows[place], "amount": text}, *rows[place + 1 :]] for text in texts]
    wrong.load("transactions", lists[0])
    with wrong.client() as client:
        export = client.transactions().to_parquet(tmp_path, numbers=numbers)
        for served, kinds in zip(lists, [set(), {"missing", "unexpected"}], strict=True):
            wrong.load("transactions", served)
            # Lookups by hash have the amounts of before.
            found = [each for each in export.verify(client, sample=1_000, seed=1).differences if each.way == "heights"]
            assert {difference.kind for difference in found} == kinds


def test_damaged_and_missing_files_are_named_and_nothing_is_sent(client: cf.Client, tmp_path: Path) -> None:
    export = client.blocks(max_items=90).to_parquet(tmp_path, max_rows_per_file=30)
    first, second, _ = export.parts
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 1
    first.write_bytes(content)
    second.unlink()
    verification = export.verify()
    assert verification.differences == (
        Difference("files", "damaged", first.name),
        Difference("files", "damaged", second.name),
    )
    assert (verification.requests, verification.sampled) == (0, {})


def test_files_of_a_whole_series_are_compared(client: cf.Client, tmp_path: Path) -> None:
    first = client.blocks().to_parquet_series(tmp_path, max_rows_per_file=100)
    newest = client.blocks().to_parquet_series(tmp_path)
    assert newest.rows == 0
    assert newest.verify().files == len(first.parts) + 1
    first.parts[1].write_bytes(first.parts[1].read_bytes()[:-1])
    name = f"{first.path.name}/{first.parts[1].name}"
    assert Export.open(tmp_path).verify(client).differences == (Difference("files", "damaged", name),)
    (first.path / "_manifest.json").write_text("{")
    (difference,) = newest.verify(client).differences
    assert difference.key == f"{first.path.name}/_manifest.json"
    shutil.rmtree(first.path)
    assert newest.verify(client).ok


def test_seed_repeats_the_selection(honest: LocalService, tmp_path: Path) -> None:
    with honest.client() as client:
        export = client.transactions().to_parquet(tmp_path)

        def requests(seed: int) -> list[str]:
            honest.reset_request_log()
            export.verify(sample=5, seed=seed)
            return sorted(request["query"] for request in honest.request_log)

        assert requests(1) == requests(1) != requests(2)


def test_confidence_is_that_of_a_sample_without_replacement() -> None:
    def stated(rows: int, sampled: int, rate: float) -> float:
        return Verification(rows, 1, {"heights": sampled}, 0, ()).confidence(rate)

    assert stated(1_000, 250, 0.001) == pytest.approx(0.25)
    assert stated(1_000, 250, 0.002) == pytest.approx(1 - 0.75 * 749 / 999)
    assert stated(10, 10, 0.1) == 1
    assert stated(10, 0, 0.1) == 0
    # Lookups of a record's hash do not show that it is a duplicate.
    assert Verification(1_000, 1, {"heights": 250, "hashes": 900}, 0, ()).confidence(0.001) == pytest.approx(0.25)
    assert stated(0, 0, 0.1) == 0
    assert stated(1_000_000, 3_000, 0.001) == pytest.approx(1 - 0.999**3_000, abs=0.01)


def test_only_a_finished_export_in_a_directory_is_verified(client: cf.Client, tmp_path: Path) -> None:
    export = client.blocks(max_items=9).to_parquet(tmp_path / "blocks.parquet")
    with pytest.raises(cf.ContextError, match=r"blocks.parquet is a single file without a manifest"):
        export.verify()
    with pytest.raises(
        cf.ExportError, match=r"^directory \(.*\): .*blocks.parquet is not a directory; name another path$"
    ):
        Export.open(export.path)
    with pytest.raises(cf.ExportError, match="holds no export"):
        Export.open(tmp_path)
    export = client.blocks(max_items=9).to_parquet(tmp_path / "blocks")
    with pytest.raises(cf.InvalidParameterError, match=r"sample must be an integer from 1 to .*; got 0$"):
        export.verify(sample=0)
    opened = Export.open(str(export.path))
    assert opened == export
    assert pickle.loads(pickle.dumps(opened)) == export
    manifest = export.path / "_manifest.json"
    manifest.write_text(manifest.read_text().replace('"finished": true', '"finished": false'))
    with pytest.raises(cf.ExportError, match="is not finished; run that export again first"):
        Export.open(export.path)


def test_an_empty_export_has_nothing_to_compare(tmp_path: Path) -> None:
    with LocalService(transactions=0) as service, service.client() as client:
        verification = client.blocks().to_parquet(tmp_path).verify()
    assert verification == Verification(0, 1, {}, 0, ())
    assert str(verification) == "1 file and 0 records, differences: no\ncompared: none, in 0 requests"


def test_command_prints_the_comparison_and_exits_by_it(  # noqa: PLR0917 - fixtures
    honest: LocalService,
    wrong: LocalService,
    rows: Rows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrong.load("transactions", damaged(rows, "omitted", [500]))
    for name, value in environment(honest).items():
        monkeypatch.setenv(name, value)
    with honest.client() as client, wrong.client() as other:
        client.transactions().to_parquet(tmp_path / "right")
        other.transactions().to_parquet(tmp_path / "wrong")
    assert main(["verify", str(tmp_path / "right"), "--sample", "9"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "1 file and 1,000 records, differences: no"
    assert "by heights, 9 by hashes" in out[1]
    assert out[2].startswith("an error in 1 of 1,000 records is found with ")
    assert main(["verify", str(tmp_path / "wrong"), "--sample", "1000", "--seed", "1"]) == 8
    assert f"heights: missing: tx_id={rows[500]['tx_id']}" in capsys.readouterr().out
    assert main(["verify", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"chainframe: {tmp_path} holds no export\n"
    assert pq.read_table(tmp_path / "right").num_rows == 1_000


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_record_that_is_missing_everywhere_breaks_an_invariant(tmp_path: Path) -> None:
    with LocalService(transactions=1_000, seed=9) as whole, whole.client() as client:
        busiest = Counter(str(row.input) for row in client.transactions()).most_common(1)[0][0]
        query = client.address_transactions(busiest, direction="from")
        assert query.to_parquet(tmp_path / "whole").verify(sample=5, seed=1).sampled["invariants"] > 20
        rows = query.to_dicts()
        gone = rows.pop(len(rows) // 2)
        data: dict[Any, Any] = {"address_transactions": rows, "transactions_by_hash": rows}
        with LocalService(transactions=0, data=data) as partial:
            query = partial.client().address_transactions(busiest, direction="from")
            verification = query.to_parquet(tmp_path / "partial").verify(sample=5, seed=1)
    expected = f"invariants: missing: nonces: no record has nonce {gone['nonce']}"
    assert [str(difference) for difference in verification.differences] == [expected]


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_export_that_ends_before_its_list_has_no_balances(tmp_path: Path) -> None:
    token = f"0x{8:040x}"
    rows = [
        {
            "height": 9 - number,
            "from_address": f"0x{old:0>40}",
            "to_address": f"0x{new:0>40}",
            "amount": Decimal(5),
            "state": "success",
            "token_contract_address": token,
            "protocol_type": "ERC1155",
            "token_id": "1",
            "tx_id": f"0x{number:064x}",
        }
        for number, (old, new) in enumerate([("a", "b"), ("0", "a")])
    ]
    with LocalService(transactions=0) as service:
        service.load("token_transfers", rows)
        client = service.client()
        for name, max_items, sampled in (("whole", None, 2), ("cut", 1, None)):
            export = client.token_transfers(token, max_items=max_items).to_parquet(tmp_path / name)
            verification = export.verify(sample=5, seed=1)
            assert verification.sampled.get("invariants") == sampled
            assert not [one for one in verification.differences if one.way == "invariants"]


def test_reasons_of_the_second_reading_are_part_of_the_verification(tmp_path: Path) -> None:
    with (
        LocalService(transactions=3_000, seed=7, max_result_window=100) as service,
        service.client(rate_limit=None) as client,
    ):
        verification = client.tokens().to_parquet(tmp_path / "tokens").verify()
        assert any("can be paged through" in reason for reason in verification.reasons)
        assert f"may be incomplete: {verification.reasons[0]}" in str(verification)
        assert client.blocks(max_items=20).to_parquet(tmp_path / "blocks").verify().reasons == ()


def test_each_list_of_a_verification_says_how_many_it_leaves_out() -> None:
    differences = tuple(Difference("missing", "heights", str(number)) for number in range(11))
    reasons = tuple(f"reason {number}" for number in range(12))
    found = Verification(rows=1, files=1, sampled={"heights": 1}, requests=1, differences=differences, reasons=reasons)
    lines = str(found).splitlines()
    assert lines[0] == "1 file and 1 record, differences: 11"
    assert [line for line in lines if line.startswith("and ")] == ["and 2 more", "and 1 more"]
    assert lines.index("and 2 more") == lines.index("what was requested may be incomplete: reason 9") + 1
    whole = Verification(1, 1, {"heights": 1}, 1, differences[:10], reasons[:10])
    assert "more" not in str(whole)
