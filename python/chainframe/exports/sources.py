"""Files, and objects of a store, as pyarrow opens them."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainframe._objects import ObjectPath, read_object
from chainframe._paths import for_arrow, is_utf8

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chainframe._objects import Location


def arrow_source(path: Location) -> Any:  # noqa: ANN401 - what pyarrow reads from
    """Return what pyarrow opens as a file: the path, or the content of an object or of a path that it cannot take."""
    if isinstance(path, ObjectPath):
        return BytesIO(read_object(path))
    return for_arrow(path) if is_utf8(str(path.absolute())) else BytesIO(path.read_bytes())


def arrow_files(paths: Sequence[Location]) -> dict[str, Any]:
    """Return the arguments with which `pyarrow.dataset.dataset` reads files of one place."""
    names = [for_arrow(path) if isinstance(path, Path) else str(path) for path in paths]
    objects = {str(path): path for path in paths if isinstance(path, ObjectPath)}
    if not objects:
        return {"source": names}
    from chainframe.exports.object_files import filesystem_of  # noqa: PLC0415 - needs pyarrow

    return {"source": names, "filesystem": filesystem_of(objects)}
