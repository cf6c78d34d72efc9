"""What a file seems to be of which every line was refused, and how it becomes lines of posts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from models.records import Reject

__all__ = ["seems"]

HEAD_BYTES = 4096

_list = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*\{").match
_control = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]").search  # these stand in no text


def seems(path: Path, rejects: Sequence[Reject]) -> str:
    """What the file seems to be, as the end of a sentence that begins with its name. rejects: all, at least one."""
    packed = path.suffix == ".gz"
    with path.open("rb") as file:
        head = rejects[0].raw[:HEAD_BYTES] if packed else file.read(HEAD_BYTES)
    if head.startswith(b"\x1f\x8b"):
        return "is gzip: give it a name that ends in .gz"
    if head.startswith(b"PK\x03\x04"):
        return "is a zip file or a spreadsheet: unpack it, or save it as CSV"
    if _control(head):
        return "is no text: JSON lines (a post a line), CSV or TSV are read"
    if _list(head):
        to_lines = f"zcat {path} | jq -c '.[]'" if packed else f"jq -c '.[]' {path}"
        return f"is one JSON list, and a post a line is read: make lines of it (`{to_lines} > posts.jsonl`)"
    if {reject.reason for reject in rejects} == {"bad_utf8"}:
        return "is no UTF-8, perhaps Latin-1: save it as UTF-8 (iconv -f LATIN1 -t UTF-8)"
    return 'holds no post that can be read: a line is such as {"id": "1", "text": "…"}, or a row of a .csv or .tsv'
