"""Database tables that follow a query: rows and position are committed together, so that each row is there once.

`Query.sync` brings one up to date. `Sink` is what it asks of a target, for stores of your own.
"""

from chainframe.sinks.contract import Change, Clear, Extent, Position, Sink
from chainframe.sinks.sync import Synced

__all__ = ["Change", "Clear", "Extent", "Position", "Sink", "Synced"]
