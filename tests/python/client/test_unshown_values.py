"""Values that a message cannot show in full: of too many digits or characters, or of a class without a `repr`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import chainframe as cf
from chainframe.testing import LocalService, make_records
from conftest import needs_extra


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


SHOWN = {
    "digits beyond those of Python": (10**5_000, "a number of too many digits"),
    "many digits": (10**4_000, "10000"),
    "no repr": (Unprintable(), "a value without a repr"),
}
Call = Callable[[cf.Client, Path, Any], object]
CALLS: dict[str, Call] = {
    "start_height": lambda client, _, value: client.transactions(start_height=value),
    "start_time": lambda client, _, value: client.transactions(start_time=value),
    "min_amount": lambda client, _, value: client.large_transactions(min_amount=value),
    "address": lambda client, _, value: client.address_transactions(value),
    "tx_ids": lambda client, _, value: client.transactions_by_hash(value),
    "tx_ids[0]": lambda client, _, value: client.transactions_by_hash([value]),
    "time": lambda client, _, value: client.height_at(value),
    "start": lambda client, _, value: client.blocks().follow(start=value),
    "max_items": lambda client, _, value: client.blocks(max_items=value),
    "mode": lambda client, path, value: client.blocks().to_parquet(path / "e", mode=value),
    "amount": lambda _, __, value: make_records("transactions", [{"amount": value}]),
    "growth": lambda _, __, value: LocalService(growth=value),
    "simulated": lambda _, __, value: LocalService(simulated=value),
    "call": lambda _, __, value: make_records(value, []),
}


@needs_extra
@pytest.mark.parametrize("kind", SHOWN)
@pytest.mark.parametrize("parameter", CALLS)
def test_message_names_parameter_and_value_in_one_line(
    service: LocalService, tmp_path: Path, parameter: str, kind: str
) -> None:
    value, shown = SHOWN[kind]
    with service.client() as client, pytest.raises((cf.InvalidParameterError, cf.ConfigError)) as caught:
        CALLS[parameter](client, tmp_path, value)
    message = str(caught.value)
    assert f"{parameter} " in message
    assert re.search(rf"(got |\()\"?{shown}", message)
    assert "\n" not in message
    assert len(message) < 330


@needs_extra
def test_name_of_many_characters_is_cut(service: LocalService) -> None:
    with service.client() as client:
        records = client.blocks(max_items=1).collect()
        for call in (
            lambda: records.to_arrow(columns=["x" * 3_000]),
            lambda: service.load(cast("Any", "x" * 3_000), []),
        ):
            with pytest.raises(cf.ChainframeError, match=r"got .x{79,80}") as caught:
                call()
            assert len(str(caught.value)) < 330
