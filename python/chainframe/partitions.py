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

    Partitions pickle without secrets, which are read from the environment where they are unpickled.

    Attributes
    ----------
    query : Query
        The part as a query of its own.
    index : int
        Position of the part, from 0.
    num_partitions : int
        Number of parts.

    Examples
    --------
    >>> parts = client.cross_chain_transactions().partitions(8)
    >>> with ProcessPoolExecutor() as pool:
    ...     results = list(pool.map(Partition.collect, parts))
    """

    query: Query[R_co]
    index: int
    num_partitions: int

    def collect(self) -> Records[R_co]:
        """Fetch the records of the part.

        Returns
        -------
        Records

        Examples
        --------
        >>> records = query.partitions(8)[0].collect()
        """
        return self.query.collect()

    def __dask_tokenize__(self) -> tuple[str, ...]:
        """Deterministic token of the part for Dask."""
        arguments: Any = self.query.__reduce__()[1]
        return repr(arguments[0]), self.query._stated()  # noqa: SLF001 - of this package
