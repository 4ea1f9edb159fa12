"""Printed records: a table that is as wide as the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import reference_client
from chainframe.testing import make_records

if TYPE_CHECKING:
    import chainframe as cf
    from conftest import Sample


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize("columns", [20, 80, 500])
@pytest.mark.parametrize("call", sorted(reference_client.ENDPOINTS))
def test_printed_records_fit_the_terminal(
    client: cf.Client, sample: Sample, call: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    records = sample.query(client, call).collect()
    assert records, f"src/service/synthesis/ has no rows of {call}"
    lines = str(records).splitlines()
    names, shown = records[0].keys(), lines[0].split()
    assert set(shown) <= set(names)
    assert len(shown) >= (1 if columns < 80 else 3)
    assert columns < 80 or max(map(len, lines)) <= columns
    hidden = len(names) - len(shown)
    assert (f"{hidden} more column" in lines[-2]) == (hidden > 0)
    assert columns < 500 or hidden == 0
    assert lines[-1].startswith(f"{len(records):,} row")
    # The first six rows, a line for those that are left out, and the last four.
    assert len(lines) == 1 + min(len(records), 11) + (hidden > 0) + 1


def test_printed_records_say_if_they_are_complete_and_how_many(client: cf.Client) -> None:
    records = client.blocks(max_items=1_200).collect()
    assert str(records).endswith("\n600 rows of Block, complete")
    assert str(records[:1]).endswith("\n1 row of Block, complete")
    assert str(records[:0]).splitlines()[-1] == "0 rows of Block, complete"
    assert repr(records) == "<Records of Block: 600 rows, complete>"


def test_printed_records_show_no_control_characters() -> None:
    records = make_records("tokens", [{"token": "a\x1b[2J\nb\u202e", "price": None}])
    text = str(records)
    assert len(text.splitlines()) in {3, 4}
    assert not set("\x1b\u202e") & set(text)


def test_ipython_shows_the_printed_records_without_html(client: cf.Client) -> None:
    records = client.blocks(max_items=3).collect()

    class Printer:
        shown = ""

        def text(self, text: str) -> None:
            self.shown += text

    printer = Printer()
    records._repr_pretty_(printer, cycle=False)  # pyright: ignore[reportPrivateUsage]
    assert printer.shown == str(records)
