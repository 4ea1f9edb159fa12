"""`make_records`: results for tests of functions that take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chainframe import ConfigError, Deployment
from chainframe._native import _restore_records, _restore_report
from chainframe.testing import _normalize, _requests

if TYPE_CHECKING:
    from chainframe import Records
    from chainframe.testing._types import Call


def make_records(call: Call, data: Any) -> Records[Any]:  # noqa: ANN401 - any library's table
    """Create the `Records` that a call would return, for tests of functions that take them.

    Parameters
    ----------
    call : str
        Name of a method of `Client`, such as "blocks".
    data : table, iterable or path
        Records, as for `LocalService.load`.

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
    content = _normalize.content(data)
    if isinstance(content, bytes):
        where = data if _normalize.is_file(data) else "data"
        raise ConfigError(f"{where} is a response of the API; pass it to LocalService.load")
    columns, sources = _normalize.columns(call, content, Deployment())
    report = {"complete": True, "records": len(sources)}
    zeros = dict.fromkeys(
        ("requests", "retries", "pages", "duplicates_dropped", "dropped", "moved", "rereads", "bytes"), 0
    )
    members = {**zeros, **report, "reasons": [], "missing": [], "elapsed": 0.0}
    return _restore_records(_requests.record(call), columns, _restore_report(members))
