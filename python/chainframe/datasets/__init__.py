"""Queries as `pyarrow.dataset.Dataset`, whose filters become arguments of the requests."""

from chainframe.datasets.dataset import Dataset

__all__ = ["Dataset"]
