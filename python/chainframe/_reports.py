"""Members of the records of a result that several runs read together."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from chainframe._declared import meaning

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chainframe._native import Report

MAX_UNKNOWN = 64
"""Most unknown members that a report lists, as in the core."""

MAX_LISTED = 20
"""Most entries of a list of `described`: pandas copies the attributes of a frame with every operation on it."""


def described(report: Report) -> dict[str, Any]:
    """Return the members of a report as values that JSON has.

    `shortened` has the lengths of the lists that are longer than here. Of several arguments, the incomplete ones come
    first.
    """
    kind: Any = type(report)
    names = [name for name, member in vars(kind).items() if not name.startswith("_") and not callable(member)]
    members: dict[str, Any] = {name: getattr(report, name) for name in names}
    arguments = sorted(members["by_argument"].items(), key=lambda verdict: verdict[1]["complete"])
    members["by_argument"] = dict(arguments[:MAX_LISTED])
    shortened = {"by_argument": len(arguments)} if len(arguments) > MAX_LISTED else {}
    for name, value in members.items():
        if isinstance(value, list) and len(value) > MAX_LISTED:
            shortened[name] = len(value)
            members[name] = value[:MAX_LISTED]
    for verdict in members["by_argument"].values():
        verdict["reasons"] = verdict["reasons"][:MAX_LISTED]
    return {**members, "shortened": shortened}


def merged_members(runs: Iterable[tuple[int, list[str], list[str]]]) -> dict[str, list[str]]:
    """Return the absent and unknown members of the records of all runs.

    Each run is given by its number of records, its absent and its unknown members. A run without records says nothing
    of absent members.
    """
    absent: list[str] | None = None
    unknown: dict[str, None] = {}
    for records, run_absent, run_unknown in runs:
        unknown.update(dict.fromkeys(run_unknown))
        if records or run_absent:
            absent = [name for name in run_absent if absent is None or name in absent]
    return {"members_absent": absent or [], "members_unknown": list(unknown)[:MAX_UNKNOWN]}


def merged_verdicts(runs: Iterable[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    """Return the verdicts on the values of a set over several runs: sums of their counts, and the latest outcomes.

    Verdicts are columns: `argument`, `records`, `requests`, and `outcome`, the index of one of the `outcomes`. A run
    that was resumed has verdicts on the values that were left.
    """
    verdicts: dict[str, tuple[int, int, str]] = {}
    # A later run may be given a value in another letter case.
    spelt: dict[str, str] = {}
    for run in runs:
        texts = [json.dumps(each) for each in run["outcomes"]]
        columns = (run[name] for name in ("argument", "records", "requests", "outcome"))
        for given, num_records, num_requests, index in zip(*columns, strict=True):
            argument = spelt.setdefault(meaning(given), given)
            records, requests, _ = verdicts.get(argument, (0, 0, ""))
            verdicts[argument] = records + num_records, requests + num_requests, texts[index]
    indices = {text: index for index, text in enumerate(dict.fromkeys(text for *_, text in verdicts.values()))}
    return {
        "argument": list(verdicts),
        "records": [records for records, *_ in verdicts.values()],
        "requests": [requests for _, requests, _ in verdicts.values()],
        "outcome": [indices[text] for *_, text in verdicts.values()],
        "outcomes": [json.loads(text) for text in indices],
    }
