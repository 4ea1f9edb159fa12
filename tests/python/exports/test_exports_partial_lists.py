"""Exports that others continue, or that end below the head: of a query that has a part of its list only, refused."""

from __future__ import annotations

import asyncio
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf

EARLIER = "earlier"
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "settle": ("to_parquet", {"settle": 8}),
    "since": ("to_parquet", {"since": EARLIER}),
    "settle and since": ("to_parquet", {"settle": 8, "since": EARLIER}),
    "since of a file": ("to_csv", {"since": EARLIER}),
    "series": ("to_parquet_series", {}),
    "series without settle": ("to_parquet_series", {"settle": None}),
}
KINDS = ("list", "range", "set")
REFUSED_OF_SETS = {"series without settle": "settle must be given", "since of a file": "must be one value"}
"""Ways that no set has."""


def resumed(client: cf.Client, kind: str) -> cf.Query[Any]:
    if kind == "set":
        tokens = [str(record.token_contract_address) for record in client.tokens(max_items=2)]
        query: Any = client.token_transfers(tokens, page_size=1)
    else:
        lowest = client.transactions(max_items=3).collect()[-1].height
        query = client.transactions(start_height=lowest if kind == "range" else None, page_size=1)
    return client.resume(next(iter(query.pages())).cursor)


@pytest.mark.parametrize(("kind", "way"), [*product(KINDS, WAYS)])
def test_rest_of_a_list_is_refused_before_anything_is_created(
    client: cf.Client, tmp_path: Path, kind: str, way: str
) -> None:
    client.transactions().to_parquet(tmp_path / EARLIER)
    method, options = WAYS[way]
    options = {name: tmp_path / value if value == EARLIER else value for name, value in options.items()}
    query = resumed(client, kind)
    target = tmp_path / f"rest{'.csv' if method == 'to_csv' else ''}"
    wanted = REFUSED_OF_SETS.get(way) if kind == "set" else None
    wanted = wanted or r"resumes from a cursor.*need the whole list; make the call again"
    with pytest.raises(cf.InvalidParameterError, match=wanted):
        getattr(query, method)(target, **options)
    with pytest.raises(cf.InvalidParameterError, match=wanted):
        asyncio.run(getattr(query, f"{method}_async")(target, **options))
    assert [path.name for path in tmp_path.iterdir()] == [EARLIER]
