"""Queries as `pyarrow.dataset.Dataset`, whose filters become arguments of the requests."""

from chainframe.datasets.dataset import Dataset
from chainframe.datasets.shared import SharedDataset

__all__ = ["Dataset", "SharedDataset"]
