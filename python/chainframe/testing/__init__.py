"""Testing kit: a local HTTP server of the whole API, and cassettes that record and replay HTTP.

`LocalService` serves synthetic data, or your own. `Cassette` records the responses of a service and replays them. The
pytest plugin `chainframe.testing.plugin` provides both as fixtures.
"""

from chainframe._functions import define_methods, is_testing
from chainframe._native import Cassette
from chainframe.testing._check_sink import check_sink
from chainframe.testing._local_service import LocalService
from chainframe.testing._records import make_records
from chainframe.testing._types import Call, ClientOptions, Fault, LoggedRequest, Quirk

if is_testing():
    define_methods()

__all__ = [
    "Call",
    "Cassette",
    "ClientOptions",
    "Fault",
    "LocalService",
    "LoggedRequest",
    "Quirk",
    "check_sink",
    "make_records",
]
