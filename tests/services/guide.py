"""deploy/security.md as services are set up by it: the tests hold what people are told, and not a copy of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from streams.config.sections import TOPICS

__all__ = ["Right", "broker_properties", "redis_users", "rights", "rights_of_commands", "users"]

GUIDE = (Path(__file__).parents[2] / "deploy" / "security.md").read_text(encoding="utf-8")
KAFKA = GUIDE.partition("## Kafka\n")[2].partition("\n## ")[0]
ROW = re.compile(r"^\| `(\w+)`[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|$", re.M)
ALL = {"all", "all topics"}


class Right(NamedTuple):
    """What a user may do to a topic or group, by the name that the guide gives it, without a prefix."""

    user: str
    operation: str  # as Kafka calls it: Read, Write …
    kind: str  # "topic" or "group"
    name: str


def broker_properties(etc: Path) -> str:
    """What stands in server.properties, with this folder for /etc/kafka."""
    (block,) = re.findall(r"^```properties\n(.*?)^```", KAFKA, re.M | re.S)
    return block.replace("/etc/kafka", str(etc))


def users() -> list[str]:
    """The users of the table."""
    return [row[0] for row in ROW.findall(KAFKA)]


def rights() -> list[Right]:
    """What the table gives."""
    return [right for row in ROW.findall(KAFKA) for right in _of_row(*row)]


def _of_row(user: str, reads: str, writes: str, more: str) -> Iterator[Right]:
    for operation, cell in (("Read", reads), ("Write", writes)):
        named = TOPICS if cell.strip() in ALL else [t for t in _quoted(cell) if t in TOPICS]
        yield from (Right(user, operation, "topic", topic) for topic in named)
    for part in more.split(";"):
        operations = [word for word in _quoted(part) if word[0].isupper()]
        groups = [word for word in _quoted(part.partition(" group")[2].partition("(")[0])]
        for operation in operations:
            yield from (Right(user, operation, "topic", topic) for topic in TOPICS if "all topics" in part)
            yield from (Right(user, operation, "group", group) for group in groups)


def _quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def rights_of_commands() -> list[Right]:
    """What the shown lines of kafka-acls.sh give."""
    found = []
    for line in re.findall(r"^\$ kafka-acls\.sh (.+)$", KAFKA, re.M):
        words = shlex.split(line)
        given = [(a, b) for a, b in zip(words, words[1:], strict=False) if a.startswith("--")]
        user = dict(given)["--allow-principal"].removeprefix("User:")
        for operation in [value for option, value in given if option == "--operation"]:
            found += [Right(user, operation, o[2:], name) for o, name in given if o in ("--topic", "--group")]
    return found


def redis_users(password: str) -> str:
    """The lines of redis.conf that make the guide's users, each with this password."""
    lines = re.findall(r"^user [\w-]+ on >SECRET .+$", GUIDE, re.M)
    return "\n".join(lines).replace("SECRET", password)
