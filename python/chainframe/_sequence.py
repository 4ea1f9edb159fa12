"""Sequence patterns for `Records`: `match records: case [first, *_]`."""

from __future__ import annotations

from abc import ABCMeta

from chainframe._native import Records


class SequencePattern(metaclass=ABCMeta):  # noqa: B024 - only its flag matters
    """Marks the classes registered with it as sequences for pattern matching, and for nothing else.

    `collections.abc.Sequence` would mark them too. But polars and pandas take any of its instances apart into Python
    objects, and `pl.DataFrame(records)` would be a column of objects in place of the Arrow columns.
    """

    __abc_tpflags__ = 1 << 5  # Py_TPFLAGS_SEQUENCE


SequencePattern.register(Records)
