"""`make_records`: results for tests of functions that take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chainframe import Deployment
from chainframe._declared import ENDPOINTS
from chainframe._native import _decode_response, _restore_records, _restore_report
from chainframe.testing import _normalize, _requests, _sources

if TYPE_CHECKING:
    from chainframe import Records, Report
    from chainframe.testing._types import Call


def make_records(call: Call, data: Any) -> Records[Any]:  # noqa: ANN401 - any library's table
    """Create the `Records` that a call would return, for tests of functions that take them.

    Parameters
    ----------
    call : str
        Name of a method of `Client`, such as "blocks".
    data : table, iterable or path
        Records or a response of the API, as for `LocalService.load`.

    Returns
    -------
    Records
        The records, with the report of a complete result.

    Raises
    ------
    ConfigError
        A file cannot be read, or a field or value is invalid. The message names the line or row.

    Examples
    --------
    >>> make_records("blocks", [{"height": 2}, {"height": 1}])
    <Records of Block: 2 rows, complete>
    """
    _requests.endpoint(call)
    content = _sources.content(data)
    if isinstance(content, bytes):
        return _decode_response(call, content, _sources.response_name(data), Deployment(), _complete(0))
    columns, sources = _normalize.columns(call, content, Deployment())
    return _restore_records(ENDPOINTS[call]["record"], columns, _complete(len(sources)))


def _complete(records: int) -> Report:
    """Return the report of a complete result."""
    zeros = dict.fromkeys(
        ("requests", "retries", "pages", "duplicates_dropped", "dropped", "moved", "rereads", "bytes"), 0
    )
    members = {**zeros, "complete": True, "records": records, "reasons": [], "missing": [], "elapsed": 0.0}
    return _restore_report(members)
