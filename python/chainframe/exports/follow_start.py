"""Position of a follower that starts after an export."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from chainframe._checks import short
from chainframe.errors import InvalidParameterError
from chainframe.exports.differences import differing, shown
from chainframe.exports.export import Export
from chainframe.exports.watermark import height_of

if TYPE_CHECKING:
    from chainframe import Query

FORM = 'must be "now", "beginning", an Export, or the cursor of a follower'


def known(export: object, query: Query[Any]) -> tuple[list[tuple[int, int]], int | None, int | None]:
    """Return the keys and heights of the newest records of an export, and the height above which they are all of them.

    That height is the second item if nothing is below it in the export, and the third if something may be. A settled
    export has all records up to its highest height, and none of their keys.
    """
    if not isinstance(export, Export):
        raise InvalidParameterError(f"{FORM}; got {short(export)}", parameter="start")
    manifest = export._current()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    if manifest is None:
        message = f"({str(export.path)!r}) must be a finished export to a directory; a single file has no keys"
        raise InvalidParameterError(message, parameter="start")
    ours = _request(json.loads(query._stated()))  # noqa: SLF001 - of this package
    theirs = _request(manifest.query)
    for name in differing(theirs, ours):
        difference = shown(name, theirs.get(name), ours.get(name))
        message = f"({str(export.path)!r}) is an export of another query: {difference}"
        raise InvalidParameterError(message, parameter="start")
    if manifest.settled is not None:
        return [], None, manifest.settled.end_height
    newest = [(int(key, 16), height) for key, height in manifest.watermark if height is not None]
    if manifest.watermark and not newest:
        message = f'({str(export.path)!r}) must have heights; start at "beginning" or "now" instead'
        raise InvalidParameterError(message, parameter="start")
    if not newest:
        return [], None, None
    lowest = min(height for _, height in newest)
    is_cut = manifest.since is not None or manifest.query["max_items"] is not None
    if manifest.rows <= len(manifest.watermark) and not is_cut:
        return newest, lowest - 1, None
    # The watermark of a range is its highest block; that of a list ends anywhere within a block.
    is_whole = lowest == height_of(manifest.watermark) and query._growth_order() == "by_height"  # noqa: SLF001
    return newest, None, lowest - is_whole


def _request(query: dict[str, Any]) -> dict[str, Any]:
    """Return what is followed, by names."""
    return {"call": query["call"], "chain": query["chain"], **query["arguments"]}
