"""Objects as files of pyarrow's data sets, which are read when a data set is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from chainframe._objects import read_object

if TYPE_CHECKING:
    from chainframe._objects import ObjectPath


def filesystem_of(objects: dict[str, ObjectPath]) -> fs.PyFileSystem:
    return fs.PyFileSystem(_KnownObjects(objects))


class _KnownObjects(fs.FileSystemHandler):
    """Known objects, under their URLs. Each is read whole: parts are small, and a request is slow."""

    def __init__(self, objects: dict[str, ObjectPath]) -> None:
        self._known = objects

    def get_type_name(self) -> str:
        return "chainframe"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: str | list[str]) -> list[fs.FileInfo]:
        names = [paths] if isinstance(paths, str) else paths
        return [fs.FileInfo(path, fs.FileType.File) for path in names]

    def open_input_file(self, path: str) -> Any:  # noqa: ANN401 - a file of pyarrow
        return pa.BufferReader(read_object(self._known[path]))

    open_input_stream = open_input_file

    def _is_read_only(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - of several methods
        del arguments, options
        raise NotImplementedError

    copy_file = create_dir = delete_dir = delete_dir_contents = delete_file = delete_root_dir_contents = _is_read_only
    get_file_info_selector = move = open_append_stream = open_output_stream = _is_read_only
