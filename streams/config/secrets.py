"""What is secret among the settings: read from files, and kept out of what is shown."""

from __future__ import annotations

import os
import re
from pathlib import Path

from models.errors import ConfigError

__all__ = ["in_brief", "redacted", "secret"]


def secret(path: str | Path | None, variable: str = "", least_chars: int = 1) -> str | None:
    """The first line of a secret's file; without a file the environment variable, if one is named; None without either.

    The one reader of secrets: passwords, tokens, the key of the pseudonyms. Raises ConfigError for a file that cannot
    be read, and for a secret of fewer than `least_chars` characters: a blank line would switch off what it protects.
    """
    if path is None:
        return os.environ.get(variable, "").strip() or None
    try:
        found = next(iter(Path(path).read_text(encoding="utf-8").splitlines()), "").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read a secret from {path}: {error}") from error
    if not found:
        raise ConfigError(f"no secret in {path}: its first line is empty, and should hold it")
    if len(found) < least_chars:
        raise ConfigError(f"the first line of {path} has {len(found)} characters, {least_chars} or more are needed")
    return found


# Up to the last @ of what names the host, whatever signs a password holds; where one holds those that would have to be
# escaped (/, ? and #), up to the last @ of all. Bounded: no text costs the square of its length.
_CREDENTIALS = re.compile(
    r"(?<=://)(?:[^\s/?#]{0,1000}|[^\s/?#@:]{0,200}:\S{0,1000})@"
    r"|(?<=[?&])[\w-]{0,100}(?:password|token|secret|key)=[^&\s]*?(?=['\"]?(?:[&\s]|$))",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\w*://[^\s'\"]*")
BRIEF, LOOKED_AT = 200, 2_000  # characters


def redacted(told: object) -> str:
    """What may be shown of an error or address: without the user name and password of any URL in it."""
    return _CREDENTIALS.sub("", str(told))


def in_brief(told: object) -> str:
    """What a page may say of an error that a server worded: its first line, printable, without URLs, not long."""
    first = next(iter(str(told).strip()[:LOOKED_AT].splitlines()), "")
    shown = _ADDRESS.sub("…", redacted(first))
    return "".join(letter if letter.isprintable() else " " for letter in shown).strip()[:BRIEF].strip()
