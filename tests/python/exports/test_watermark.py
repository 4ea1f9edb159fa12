"""`WatermarkMatcher`: where the records of an earlier export begin in a list."""

from __future__ import annotations

import pytest

import chainframe as cf
from chainframe.exports.watermark import Absent, WatermarkMatcher


def pairs(keys: list[str]) -> list[tuple[str, int | None]]:
    return [(key, None) for key in keys]


@pytest.mark.parametrize("vanished", [0, 1, 40, 79, 95])
def test_watermark_is_met_wherever_pages_end(vanished: int) -> None:
    known = [f"{number}" for number in range(100)]
    whole = [*(f"new {number}" for number in range(33)), *known[vanished:], *(f"old {number}" for number in range(50))]
    for size in range(1, 60):
        matcher = WatermarkMatcher(pairs(known))
        for start in range(0, len(whole), size):
            matcher.push(pairs(whole[start : start + size]))
            assert matcher.num_new <= 33
            if matcher.met:
                break
        assert (matcher.end, matcher.repeated()) == (33, [])
        assert bool(matcher.findings()) == bool(vanished)


def test_watermark_of_duplicates_needs_a_longer_run() -> None:
    matcher = WatermarkMatcher(pairs(["a"] * 40 + ["b"]))
    matcher.push(pairs(["a"] * 47))
    assert (matcher.met, matcher.num_new) == (None, 0)
    matcher.push(pairs(["b", "c"]))
    assert matcher.end == 7
    with pytest.raises(cf.ExportError, match="newest 100 records are duplicates"):
        WatermarkMatcher(pairs(["a", "b"] * 50))


def test_equal_records_elsewhere_are_new() -> None:
    known = [f"{number}" for number in range(100)]
    matcher = WatermarkMatcher(pairs(known))
    matcher.push(pairs(["50", "51", "new", *known]))
    assert (matcher.end, matcher.repeated(), matcher.findings()) == (3, [], [])


def test_absent_records_above_many_new_ones_are_not_exported_again() -> None:
    known = [f"{number}" for number in range(100)]
    absent = [Absent("back", 7, is_reported=True)]
    matcher = WatermarkMatcher(pairs(known), absent)
    matcher.push(pairs(["0", "back", *(f"new {number}" for number in range(6_000))]))
    assert list(matcher.returned) == [0, 1]
    matcher.push(pairs(known[1:]))
    assert (matcher.end, matcher.absent(), matcher.findings()) == (6_002, [], [])


@pytest.mark.parametrize("count", [10, 6_000])
def test_record_that_moved_above_many_new_ones_is_not_exported_again(count: int) -> None:
    known = [f"{number}" for number in range(100)]
    matcher = WatermarkMatcher(pairs(known))
    matcher.push(pairs(["new", "3", *(f"new {number}" for number in range(count))]))
    matcher.push(pairs([*known[:3], *known[4:]]))
    assert [*matcher.returned, *matcher.repeated()][:1] == [1]
    assert (matcher.absent(), matcher.findings()) == ([], [])


def test_record_equal_to_a_known_one_above_many_new_ones_is_reported() -> None:
    known = [f"{number}" for number in range(100)]
    matcher = WatermarkMatcher(pairs(known))
    matcher.push(pairs(["3", *(f"new {number}" for number in range(6_000))]))
    matcher.push(pairs(known))
    assert (list(matcher.returned), matcher.num_equal()) == ([0], 1)
    assert matcher.findings() == [
        "The list has records twice that the earlier export has once (1); export without since."
    ]


def at(height: int, *keys: str) -> list[tuple[str, int | None]]:
    return [(key, height) for key in keys]


@pytest.mark.parametrize(
    ("below", "inserted"),
    [
        ([*at(6, "b"), *at(5, "c"), *at(4, "d")], 0),
        # A record of this height may be forgotten.
        (at(9, "x"), 0),
        (at(10, "x", "y"), 2),
        ([*at(6, "b"), *at(5, "x", "c"), *at(4, "d")], 1),
        ([*at(5, "c"), *at(4, "d"), *at(4, "x")], 0),
    ],
)
def test_records_that_the_series_lacks_below_known_ones_are_counted(
    below: list[tuple[str, int | None]], inserted: int
) -> None:
    head = [(f"{number}", 9) for number in range(20)]
    matcher = WatermarkMatcher([*head, *at(6, "b"), *at(5, "c")])
    matcher.push([*at(11, "new"), *head, *below])
    assert matcher.end == 1
    assert len(matcher.inserted) == inserted
    assert bool(matcher.findings()) == (inserted > 0)


def test_record_that_comes_back_below_known_ones_is_none_that_the_series_lacks() -> None:
    head = [(f"{number}", 9) for number in range(20)]
    matcher = WatermarkMatcher([*head, *at(6, "b")], absent=[Absent("x", 7, is_reported=False)])
    matcher.push([*head, *at(7, "x"), *at(6, "b")])
    assert (matcher.inserted, matcher.findings()) == ([], [])


def test_forgotten_records_of_the_highest_block_are_no_new_ones() -> None:
    head = [(f"{number}", 9) for number in range(100)]
    matcher = WatermarkMatcher(head)
    matcher.push([*head, *at(9, "forgotten"), *at(8, "older")])
    assert (matcher.inserted, matcher.findings()) == ([], [])


def test_record_that_gets_its_height_below_known_ones_is_none_that_the_series_lacks() -> None:
    head = [(f"{number}", 9) for number in range(20)]
    below = at(11, "confirmed")
    for keeps_heights in (False, True):
        matcher = WatermarkMatcher(head, keeps_heights=keeps_heights)
        matcher.push([*at(12, "new"), *head, *below])
        assert bool(matcher.findings()) == keeps_heights


def test_forgotten_records_of_a_shortened_watermark_are_no_new_ones() -> None:
    # The newest 60 of 300 records of a block were replaced, so that the watermark has 40 of them.
    head = [(f"{number}", 9) for number in range(40)]
    matcher = WatermarkMatcher(head)
    matcher.push([*at(9, "a", "b"), *head, *at(9, *[f"forgotten {number}" for number in range(200)])])
    assert (matcher.end, matcher.findings()) == (2, [])
