"""Databases and tables that follow a query: rows and position are committed together, so that each row is there once.

`sync` is synchronous only: a run ends when it has caught up, and belongs into a scheduled job.
"""

from chainframe.sinks.base import Synced, sync

__all__ = ["Synced", "sync"]
