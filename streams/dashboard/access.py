"""Who may do what at the page, and the record of who did.

The token file (`dashboard.token_file`) has a line for each person: `name role token`, where the token may stand as
`sha256:…` (`crisis token` makes such lines). Roles: `look` sees the page; `label` also says what is right and opens
posts; `administer` also reads the record. A file of one word lets whoever has it do everything, as "anybody".
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from models.errors import ConfigError
from models.moments import rfc3339

__all__ = [
    "ANYBODY",
    "KEPT",
    "NOBODY",
    "ROLES",
    "AccessLog",
    "People",
    "Person",
    "Role",
    "access_logger",
    "check_name",
    "hash_of",
]

Role = Literal["look", "label", "administer"]
ROLES: tuple[Role, ...] = get_args(Role)
LEAST_CHARS = 16
KEPT = 1000  # entries that /api/access shows; the log has all
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,30}")
OF_NAMES = "a-z, 0-9, - and _"
_HASH = re.compile(r"sha256:([0-9a-f]{64})")
_LOOKED = ("/static/", "/healthz", "/readyz", "/livez", "/metrics")  # says nothing of anybody
# What is asked for is told by these alone: what people search for may be a name.
_TOLD = ("kind", "category", "level", "lang", "source", "cluster", "priority", "post", "n", "k", "before", "last_s")


@dataclass(frozen=True)
class Person:
    """Somebody with a token. `secret`: its hash; sessions are signed with it."""

    name: str
    role: Role
    secret: str = ""

    def may(self, role: Role) -> bool:
        """Whether this role, or a greater one, is theirs."""
        return ROLES.index(self.role) >= ROLES.index(role)


ANYBODY = "anybody"  # who has the one token of a file that names nobody
NOBODY = Person("local", "administer")  # without tokens only this machine reaches the page


class People:
    """Those of a token file."""

    def __init__(self, people: Sequence[Person]) -> None:
        self._by_name = {person.name: person for person in people}

    @classmethod
    def read(cls, path: Path | None) -> People | None:
        """None without a file. Raises ConfigError for one that is blank, and for lines that are none."""
        if path is None:
            return None
        try:
            lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read a secret from {path}: {error}") from error
        given = [words for words in lines if words and not words[0].startswith("#")]
        if not given or not lines[0]:
            raise ConfigError(
                f"{path} begins with no token: `crisis token NAME` makes one, {LEAST_CHARS} or more are needed"
            )
        if len(given) == 1 and len(given[0]) == 1:  # more words are a mistyped line
            return cls([_person(path, ANYBODY, "administer", given[0][0])])
        found: dict[str, Person] = {}
        for words in given:
            name, role, token = words if len(words) == 3 else ("", "", "")
            if not _NAME.fullmatch(name) or role not in ROLES or name in found:
                raise ConfigError(
                    f"{path}: a line is 'name role token', each name once, of {OF_NAMES}; roles: {', '.join(ROLES)}. "
                    "Or one token alone, without blanks, for whoever has it"
                )
            found[name] = _person(path, name, role, token)
        return cls(list(found.values()))

    def of(self, token: str) -> Person | None:
        """Whose token this is. Takes the same time for any wrong one."""
        hashed, found = hash_of(token), None
        for person in self._by_name.values():
            if hmac.compare_digest(person.secret, hashed):
                found = person
        return found

    def named(self, name: str) -> Person | None:
        """The person of this name."""
        return self._by_name.get(name)


def check_name(name: str) -> None:
    """Raise ConfigError for a name that no line of a token file can hold."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is no name for a token: of {OF_NAMES}, 31 at most, the first a letter or a digit")


def _person(path: Path, name: str, role: Role, token: str) -> Person:
    known = _HASH.fullmatch(token)
    if not known and len(token) < LEAST_CHARS:
        raise ConfigError(
            f"the token of {name} in {path} has {len(token)} characters, {LEAST_CHARS} or more are needed"
        )
    return Person(name, role, known.group(1) if known else hash_of(token))


def hash_of(token: str) -> str:
    """What a token file may hold instead of the token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class AccessLog:
    """Writes down who asked for what: a line of JSON each, without any text, to the log and for /api/access."""

    def __init__(self, app: ASGIApp, newest: deque[Mapping[str, object]], log: logging.Logger) -> None:
        self.app, self._newest, self._log = app, newest, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(_LOOKED):
            await self.app(scope, receive, send)
            return

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":  # when it begins: an event stream goes on for a shift
                self._write(scope, message["status"])
            await send(message)

        await self.app(scope, receive, noting)

    def _write(self, scope: Scope, status: int) -> None:
        person: Person | None = scope.get("state", {}).get("person")
        asked = parse_qsl(scope.get("query_string", b"").decode("latin-1"))
        entry = {
            "at": rfc3339(time.time()),
            "who": person.name if person else "",
            "role": person.role if person else "",
            "from": (scope.get("client") or [""])[0],
            "did": f"{scope['method']} {scope['path'][:100]}",
            "asked": {name: value[:80] for name, value in asked if name in _TOLD},
            "status": status,
            "agent": Headers(scope=scope).get("user-agent", "")[:80],
        }
        self._newest.appendleft(entry)
        self._log.info(json.dumps(entry))


def access_logger(path: Path | None) -> logging.Logger:
    """Where the record goes: a file that only we read, looked for anew when it was rotated; standard error without one.

    Raises ConfigError where the file cannot be written.
    """
    log = logging.getLogger(f"crisis.access.{path or 'stderr'}")
    log.propagate = False
    log.setLevel(logging.INFO)
    if not log.handlers:
        try:
            if path is not None:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
            log.addHandler(WatchedFileHandler(path, encoding="utf-8") if path else logging.StreamHandler())
        except OSError as error:
            raise ConfigError(f"cannot write the access log {path}: {error.strerror}") from error
    return log
