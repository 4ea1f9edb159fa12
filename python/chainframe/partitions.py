"""`Query.partitions`: a result in parts that are read apart, in other processes or on other machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from chainframe import Query, Record, Records

__all__ = ["Partition"]

R_co = TypeVar("R_co", bound="Record", covariant=True)


@dataclass(frozen=True)
class Partition(Generic[R_co]):
    """One part of a query: what it gives is in no other part, and does not move while others are read.

    It pickles without secrets, which are taken from the environment where it is unpickled.

    - `query`: the part as a query of its own. `number`: its place, from 0, of `count`.

    >>> parts = client.cross_chain_transactions().partitions(8)
    >>> with ProcessPoolExecutor() as pool:
    ...     results = list(pool.map(Partition.read, parts))
    """

    query: Query[R_co]
    number: int
    count: int

    def read(self) -> Records[R_co]:
        """The part's records."""
        return self.query.collect()

    def __dask_tokenize__(self) -> tuple[str, ...]:
        """What Dask knows this part by."""
        arguments: Any = self.query.__reduce__()[1]
        return repr(arguments[0]), self.query._stated()  # noqa: SLF001 - of this package
