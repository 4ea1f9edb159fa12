"""`Query.partitions`: parts of a result for parallel reads, in other processes or on other machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from chainframe import Query, Record, Records

__all__ = ["Partition"]

R_co = TypeVar("R_co", bound="Record", covariant=True)


@dataclass(frozen=True)
class Partition(Generic[R_co]):
    """One part of a query. Its records are in no other part, and do not change while other parts are read.

    It pickles without secrets; where it is unpickled they are read from the environment.

    - `query`: the part as a query of its own. `index`: its position, from 0 to `num_partitions` - 1.

    >>> parts = client.cross_chain_transactions().partitions(8)
    >>> with ProcessPoolExecutor() as pool:
    ...     results = list(pool.map(Partition.collect, parts))
    """

    query: Query[R_co]
    index: int
    num_partitions: int

    def collect(self) -> Records[R_co]:
        """The part's records."""
        return self.query.collect()

    def __dask_tokenize__(self) -> tuple[str, ...]:
        """Deterministic token of the part for Dask."""
        arguments: Any = self.query.__reduce__()[1]
        return repr(arguments[0]), self.query._stated()  # noqa: SLF001 - of this package
