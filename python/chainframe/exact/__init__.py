"""Exact amounts in pandas: the dtype of the columns that `to_pandas()` returns by default. Needs pandas and pyarrow."""

from chainframe.exact.array import ExactArray
from chainframe.exact.dtype import ExactDtype

__all__ = ["ExactArray", "ExactDtype"]
