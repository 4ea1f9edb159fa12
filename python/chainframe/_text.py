"""Texts of others in output for people: escaped on a terminal, and URLs without secrets."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import BufferedWriter

NOT_PLAIN = re.compile(r"[^\n\t -~]")
USER_PART = re.compile(r"^((?:[a-z][a-z0-9+.-]*:)?//)?.*@", re.IGNORECASE | re.DOTALL)
# `pathlib` makes one slash of two.
USER_PART_IN_TEXT = re.compile(r"([a-z][a-z0-9+.-]+:/{1,2})\S*@", re.IGNORECASE)
# A "?" or "#" before an "@" is part of a password, or the "@" is part of a query: all but the scheme is hidden.
AMBIGUOUS_IN_TEXT = re.compile(r"([a-z][a-z0-9+.-]+:/{1,2})[^\s?#]*[?#]\S*@\S*", re.IGNORECASE)
# A query may hold the signature of a store, or the password of a database.
QUERY_IN_TEXT = re.compile(r"([a-z][a-z0-9+.-]+:/{1,2}[^\s?#]*)[?#][^\s'\")]+", re.IGNORECASE)


class Stream(Protocol):
    def isatty(self) -> bool: ...


def counted(count: int, noun: str) -> str:
    """Return a number of things, such as "1 record" and "2,000 records"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def counted_are(count: int, noun: str) -> str:
    """Return the subject of a sentence with its verb, such as "1 record is" and "2,000 records are"."""
    return f"{counted(count, noun)} {'is' if count == 1 else 'are'}"


def escape(text: str) -> str:
    """Return the text with an escape of JSON for every character that `repr` escapes, except line breaks and tabs.

    Anybody can name a token. A terminal obeys the control characters of a name, and displays what follows a
    bidirectional control in another order.
    """
    return NOT_PLAIN.sub(lambda match: match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1], text)


def shown(text: str, stream: Stream | None) -> str:
    """Return the text as it is written to a stream: escaped on a terminal, exact elsewhere."""
    return escape(text) if stream is not None and stream.isatty() else text


def shown_in(sink: BufferedWriter) -> BufferedWriter:
    """Return a sink of UTF-8 text that escapes what is written if it is a terminal."""
    return cast("BufferedWriter", _Escaping(sink)) if sink.isatty() else sink


class _Escaping:
    """The methods of a sink that writers of text use. Each call writes whole characters."""

    def __init__(self, sink: BufferedWriter) -> None:
        self._sink = sink

    def write(self, data: bytes) -> int:
        self._sink.write(escape(bytes(data).decode()).encode())
        return len(data)

    def writelines(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self._sink.flush()


def without_secrets(url: str) -> str:
    """Return a URL without user name, password, query and fragment."""
    bare = USER_PART.sub(r"\1***@", url)
    end = re.search(r"[?#]", bare)
    return f"{bare[: end.start()]}{end[0]}***" if end else bare


def without_secrets_of_urls(text: str) -> str:
    """Return a text with URLs, such as those of databases and stores, without user names, passwords and queries."""
    text = AMBIGUOUS_IN_TEXT.sub(r"\1***@***", text)
    return QUERY_IN_TEXT.sub(r"\1?***", USER_PART_IN_TEXT.sub(r"\1***@", text))
