"""Triggers, rules and foreign keys of tables of PostgreSQL that `sync` keeps."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import chainframe as cf
from chainframe.sinks.postgresql import PostgresqlSink
from sync_places import EVENTS, FINAL, TABLE, execute, stored, synced

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

FUNCTION = (
    "create or replace function keep_out() returns trigger language plpgsql as "
    "$$ begin if new.height % 2 = 0 then return null; end if; return new; end $$"
)
TRIGGER = f'create trigger keep_out before insert on "{TABLE}" for each row execute function keep_out()'
RULE = f'create rule keep as on delete to "{TABLE}" do instead nothing'
NEWS = [*EVENTS[:3], SimpleNamespace(after_height=2, cursor="undone"), *EVENTS[2:]]


@pytest.mark.parametrize("statement", [TRIGGER, RULE])
def test_rows_that_a_trigger_or_rule_keeps_out_or_in_are_an_error(url: str, statement: str) -> None:
    place = ("postgresql", url)
    synced(place, EVENTS[:3])
    before = stored(place)
    execute(url, FUNCTION, statement)
    for _ in range(2):
        with pytest.raises(cf.ExportError, match="a trigger or rule of the table changes what sync stores") as caught:
            synced(place, NEWS)
        assert not caught.value.retryable
    assert stored(place) == before


def test_rows_that_a_rule_keeps_at_a_reset_are_an_error(url: str) -> None:
    place = ("postgresql", url)
    synced(place, EVENTS[:3])
    execute(url, RULE)
    # As many rows are inserted as the run expects to find.
    with pytest.raises(cf.ExportError, match="a trigger or rule of the table changes what sync stores"):
        synced(place, EVENTS[:3], reset=True)
    assert stored(place) == FINAL[:6]


PARTITIONED = [
    f'alter table "{TABLE}" rename to low',
    f'create table "{TABLE}" (like low) partition by range (height)',
    f'alter table "{TABLE}" attach partition low for values from (0) to (4)',
    f'create table high partition of "{TABLE}" for values from (4) to (99)',
]
OF_PARTITION = "create trigger keep_out before insert on high for each row execute function keep_out()"
KEEP = (
    "create or replace function keep() returns trigger language plpgsql as $$ begin return null; end $$",
    f'create trigger keep before delete on "{TABLE}" for each row execute function keep()',
)


@pytest.mark.parametrize("statements", [KEEP, [FUNCTION, *PARTITIONED, OF_PARTITION]])
def test_trigger_that_keeps_rows_is_an_error_at_the_commit_that_it_changes(url: str, statements: list[str]) -> None:
    place = ("postgresql", url)
    synced(place, EVENTS[:3])
    execute(url, *statements)
    with pytest.raises(cf.ExportError, match="a trigger or rule of the table changes what sync stores"):
        synced(place, NEWS, commit_rows=2)
    assert stored(place) == FINAL[:6]


FOREIGN_KEY = [
    f'alter table "{TABLE}" add unique (height, tx_id)',
    f'create table tags (h bigint, id text, foreign key (h, id) references "{TABLE}" (height, tx_id))',
]
PASS_ON = [
    """create or replace function pass_on() returns trigger language plpgsql as
    $$ begin return case when tg_op = 'DELETE' then old else new end; end $$""",
    f'create trigger pass_on before insert or delete on "{TABLE}" for each row execute function pass_on()',
]


@pytest.mark.parametrize("statements", [FOREIGN_KEY, PASS_ON])
@pytest.mark.parametrize("first", [[], PARTITIONED])
def test_table_is_not_counted_at_each_commit_for_triggers_that_change_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch, first: list[str], statements: list[str]
) -> None:
    place = ("postgresql", url)
    synced(place, EVENTS[:3])
    execute(url, *first, *statements)
    original = PostgresqlSink._extent
    counts: list[Any] = []

    def counted(sink: PostgresqlSink, cursor: Any) -> Any:
        counts.append(original(sink, cursor))
        return counts[-1]

    monkeypatch.setattr(PostgresqlSink, "_extent", counted)
    assert synced(place, NEWS, commit_rows=2).commits == 4
    # Before the first request, to find what others have changed.
    assert len(counts) == 1
    assert stored(place) == FINAL


def test_rule_that_changes_no_row_is_no_error(url: str) -> None:
    place = ("postgresql", url)
    synced(place, EVENTS[:3])
    execute(url, f'create rule log as on delete to "{TABLE}" do also notify deleted')
    synced(place, NEWS)
    assert stored(place) == FINAL


NOTHING = "create or replace function nothing() returns trigger language plpgsql as $$ begin return null; end $$"


@pytest.mark.parametrize("event", ["insert", "delete"])
def test_trigger_of_the_positions_stores_neither_rows_nor_position(url: str, event: str) -> None:
    place = ("postgresql", url)
    synced(place, EVENTS[:3])
    execute(url, NOTHING, f"create trigger keep before {event} on _chainframe for each row execute function nothing()")
    for _ in range(2):
        with pytest.raises(cf.ExportError, match="a trigger, rule or policy of _chainframe changes the pos") as caught:
            synced(place)
        assert not caught.value.retryable
    assert stored(place) == FINAL[:6]
    execute(url, "drop trigger keep on _chainframe")
    synced(place)
    assert stored(place) == FINAL


@pytest.mark.parametrize("table", [TABLE, "_chainframe"])
@pytest.mark.parametrize("reset", [False, True])
def test_rows_that_a_policy_hides_are_named_as_such(url: str, table: str, reset: bool) -> None:  # noqa: FBT001
    place = ("postgresql", url.replace("tester", "owner"))
    execute(url, "drop role if exists owner", "create role owner login", "grant all on schema public to owner")
    synced(place, EVENTS[:3])
    execute(
        url,
        f'create policy low on "{table}" using (height < 3)',
        f'alter table "{table}" enable row level security',
        f'alter table "{table}" force row level security',
    )
    with pytest.raises(
        cf.ExportError, match=f"row-level security of {table} applies to the role; use a role that"
    ) as caught:
        synced(place, reset=reset)
    assert not caught.value.retryable
    assert stored(("postgresql", url)) == FINAL[:6]
    synced(("postgresql", url))
    assert stored(("postgresql", url)) == FINAL
