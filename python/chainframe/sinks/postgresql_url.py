"""URLs of PostgreSQL in messages, without users and passwords."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

SECRETS = {"user", "password", "sslpassword"}


def redacted(text: str, url: str) -> str:
    """Return a message of the library without the user and the passwords of the URL."""
    try:
        split = urlsplit(url)
        values = split.netloc.rpartition("@")[0].split(":", 1)
        values += [value for name, value in parse_qsl(split.query) if name in SECRETS]
    except ValueError:
        return "the URL is not valid"
    if "@" in url.removeprefix(f"{split.scheme}://{split.netloc}"):
        # The library takes parts of a password with such characters for the host, the port or the database.
        values += re.split("[:/?#@&=]", url.partition("://")[2].rpartition("@")[0])
    spellings = {spelling for value in values for spelling in (value, unquote(value)) if spelling}
    for spelling in sorted(spellings, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(spelling)}(?!\w)", "***", text)
    return text
