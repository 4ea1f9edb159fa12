"""Database tables that follow a query: rows and position are committed together, so that each row is there once.

`Query.sync` brings one up to date.
"""

from chainframe.sinks.base import Synced

__all__ = ["Synced"]
