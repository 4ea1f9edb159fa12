"""Object store in memory with the semantics of three stores, and faults at any request."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, cast

from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError

from chainframe._objects import ObjectPath

STORES = ("s3", "gs", "az")
Metas = list[dict[str, Any]]
RUN = re.compile(r'(?:(?<=-)|(?<="run": "))[0-9a-f]{12}(?=[."])')
"""Name of a run, in those of its objects and in the manifest."""
FAULTS = ("killed before", "killed after", "refused", "lost", "repeated", "late", "down")


class Killed(BaseException):
    """Ends a run at once. Whatever it sends afterwards changes nothing."""


@dataclass
class Stored:
    data: bytes
    e_tag: str
    version: str | None


@dataclass
class Found:
    stored: Stored
    path: str

    @property
    def meta(self) -> dict[str, Any]:
        stored = self.stored
        return {"path": self.path, "size": len(stored.data), "e_tag": stored.e_tag, "version": stored.version}

    def bytes(self) -> bytes:
        return self.stored.data


class Turns:
    """Two runs in threads, of which one sends requests at a time: the first some, the second some, then the rest."""

    def __init__(self, first: int, second: int, *, is_killed: bool) -> None:
        self._left = [first, second]
        self._is_killed = is_killed
        """True if the second run is killed after its requests."""
        self._turn = 0
        self._ended = [False, False]
        self._changed = threading.Condition()
        self._local = threading.local()

    def run(self, runs: Sequence[Callable[[], object]]) -> None:
        with ThreadPoolExecutor(len(runs)) as pool:
            for ended in [pool.submit(self._run, number, run) for number, run in enumerate(runs)]:
                ended.result()

    def _run(self, number: int, run: Callable[[], object]) -> None:
        self._local.number = number
        try:
            run()
        finally:
            with self._changed:
                self._ended[number] = True
                self._pass(number)

    def _pass(self, number: int) -> None:
        """Lets the other run send requests, if it has not ended."""
        self._left[number] = -1
        self._turn = number if self._ended[1 - number] else 1 - number
        self._changed.notify_all()

    def wait(self) -> None:
        number: int = self._local.number
        with self._changed:
            self._changed.wait_for(lambda: self._turn == number or self._ended[1 - number])
            if self._left[number] == 0:
                self._pass(number)
                if number == 1 and self._is_killed:
                    raise Killed
                self._changed.wait_for(lambda: self._turn == number or self._ended[1 - number])
            elif self._left[number] > 0:
                self._left[number] -= 1


class Writer:
    """Object that is put when it is closed."""

    def __init__(self, double: Double, path: str) -> None:
        self._double, self._path, self._data = double, path, b""

    def write(self, data: bytes) -> None:
        self._data += data

    def close(self) -> None:
        self._double.put(self._path, self._data)


@dataclass
class Double:
    """Requests that obstore sends, with `fault` at request number `step` of the current run."""

    kind: str = "s3"
    """s3: versions are checksums. gs: generations; a missing object cannot be removed. az: versions are unique; as gs.
    lax: conditions are ignored. half: only If-None-Match is honored."""
    objects: dict[str, Stored] = field(default_factory=dict)
    step: int = 0
    fault: str = ""
    sent: int = 0
    puts: list[tuple[int, str]] = field(default_factory=list)
    """Numbers and paths of the puts of the current run."""
    turns: Turns | None = None
    late: list[Callable[[], object]] = field(default_factory=list)
    _writes: int = 0

    def path(self, key: str) -> ObjectPath:
        return ObjectPath(f"{self.kind}://bucket", key, self)

    def fork(self) -> Double:
        """Another store with the same objects."""
        return replace(self, objects=dict(self.objects), puts=[], late=[])

    def begin(self, step: int = 0, fault: str = "") -> None:
        self.sent, self.step, self.fault = 0, step, fault
        self.puts.clear()

    def land(self) -> None:
        """Applies the puts that were under way."""
        pending, self.late = self.late, []
        for put in pending:
            try:
                put()
            except (AlreadyExistsError, PreconditionError, FileNotFoundError):
                continue

    def state(self) -> tuple[object, ...]:
        """Objects that the next run finds, without durations; names of runs and versions are numbered."""
        numbers: dict[str | None, int] = {}

        def number(name: str | None) -> int:
            return numbers.setdefault(name, len(numbers))

        def without_runs(text: str) -> str:
            return RUN.sub(lambda name: f"#{number(name[0])}", text)

        found: list[object] = [self.kind]
        for path, stored in sorted(self.objects.items()):
            data: object = stored.data
            if path.endswith("/_manifest.json"):
                manifest = json.loads(stored.data)
                manifest["report"].pop("elapsed", None)
                manifest["e_tags"] = {name: number(tag) for name, tag in manifest["e_tags"].items()}
                data = without_runs(json.dumps(manifest))
            found += [without_runs(path), data, number(stored.e_tag), number(stored.version)]
        return tuple(found)

    # Requests of obstore.

    def put(self, path: str, file: bytes, *, mode: Any = "overwrite", use_multipart: bool = False) -> dict[str, Any]:
        del use_multipart
        self.puts.append((self.sent + 1, path))
        return cast("dict[str, Any]", self._request(lambda: self._put(path, bytes(file), mode)))

    def get(self, path: str) -> Found:
        return cast("Found", self._request(lambda: Found(self._at(path), path)))

    def head(self, path: str) -> dict[str, Any]:
        return cast("dict[str, Any]", self._request(lambda: Found(self._at(path), path).meta))

    def copy(self, from_: str, to: str) -> None:
        self._request(lambda: self._put(to, self._at(from_).data, "overwrite"))

    def delete(self, paths: str | Sequence[str]) -> None:
        self._request(lambda: self._delete([paths] if isinstance(paths, str) else paths))

    def list_with_delimiter(self, prefix: str) -> dict[str, Any]:
        return cast("dict[str, Any]", self._request(lambda: self._list(prefix.rstrip("/") + "/")))

    def list(self, prefix: str) -> Sequence[Metas]:
        return cast("Sequence[Metas]", self._request(lambda: [self._below(f"{prefix.rstrip('/')}/")]))

    def open_writer(self, path: str, **options: Any) -> Writer:
        del options
        return Writer(self, path)

    # What they do.

    def _at(self, path: str) -> Stored:
        if path not in self.objects:
            raise FileNotFoundError(f"Object at location {path} not found")
        return self.objects[path]

    def _put(self, path: str, data: bytes, mode: Any) -> dict[str, Any]:
        found = self.objects.get(path)
        if mode == "create" and found is not None and self.kind != "lax":
            raise AlreadyExistsError(f"Server returned non-2xx status code: 409: secret {path}")
        if isinstance(mode, dict) and self.kind not in {"lax", "half"}:
            name = "version" if self.kind == "gs" else "e_tag"
            if found is None or getattr(found, name) != mode[name]:
                raise PreconditionError(f"Server returned non-2xx status code: 412: secret {path}")
        self._writes += 1
        unique = f'"{self._writes}"'
        e_tag = unique if self.kind == "az" else f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
        self.objects[path] = Stored(data, e_tag, str(10**15 + self._writes) if self.kind == "gs" else None)
        return {"e_tag": e_tag, "version": self.objects[path].version}

    def _delete(self, paths: Sequence[str]) -> None:
        missing = [path for path in paths if path not in self.objects]
        for path in paths:
            self.objects.pop(path, None)
        if missing and self.kind in {"gs", "az"}:
            raise FileNotFoundError(f"Object at location {missing[0]} not found")

    def _list(self, prefix: str) -> dict[str, Any]:
        below = self._below(prefix)
        names = [meta["path"][len(prefix) :] for meta in below]
        deeper = {prefix + name.split("/")[0] for name in names if "/" in name}
        direct = [meta for meta, name in zip(below, names, strict=True) if "/" not in name]
        return {"objects": direct, "common_prefixes": sorted(deeper)}

    def _below(self, prefix: str) -> Metas:
        return [Found(self.objects[path], path).meta for path in sorted(self.objects) if path.startswith(prefix)]

    # What happens to them.

    def _request(self, request: Callable[[], Any]) -> Any:
        if self.turns is not None:
            self.turns.wait()
        self.sent += 1
        fault = self.fault if self.step == self.sent else ""
        if self.step and self.sent > self.step and self.fault in {"killed before", "killed after", "down"}:
            fault = {"down": "down"}.get(self.fault, "killed before")
        if fault == "killed before":
            raise Killed
        if fault in {"refused", "down"}:
            raise GenericError("Server returned non-2xx status code: 503: <Code>SlowDown</Code> secret")
        if fault == "late":
            self.late.append(request)
            raise GenericError("HTTP error: error sending request for secret")
        if self.late and not fault and self.sent == self.step + 3:
            self.land()
        result = request()
        if fault == "killed after":
            raise Killed
        if fault == "lost":
            raise GenericError("HTTP error: error sending request for secret")
        # obstore itself has sent the request again, since the first response was lost.
        return request() if fault == "repeated" else result
