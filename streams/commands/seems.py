"""What a file seems to be that holds no posts, and how it becomes lines of posts. Its name comes from who asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from models.records import Reject

__all__ = ["NO_UTF_8", "one_list", "seems"]

NO_UTF_8 = "perhaps Windows-1252 or Latin-1: save it as UTF-8 (iconv -f CP1252 -t UTF-8)"

_list = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*\{").match
_control = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]").search  # these stand in no text


def one_list(head: bytes) -> bool:
    """Is the file one JSON list over many lines, none of which is a post? head: how it begins."""
    first, more, _ = head.partition(b"\n")
    return bool(_list(head) and more) and not first.rstrip().endswith(b"]")  # a list a line is read line by line


def seems(file: Path, head: bytes, refused: Mapping[str, int], first: Reject | None) -> str:
    """What the file seems to be, as the end of a sentence that begins with its name.

    head: how it begins, unpacked. refused: how many lines were refused for which reasons; first: the first of them.
    """
    packed = file.suffix.lower() == ".gz"
    if head.startswith(b"\x1f\x8b"):
        return "is gzip: give it a name that ends in .gz, in small letters"
    if head.startswith(b"PK\x03\x04"):
        return "is a zip file or a spreadsheet: unpack it, or save it as CSV"
    if _control(head):
        return "is no text: JSON lines (a post a line), CSV or TSV are read"
    if _list(head):
        to_lines = f"zcat {file} | jq -c '.[]'" if packed else f"jq -c '.[]' {file}"
        return f"is one JSON list, and a post a line is read: make lines of it (`{to_lines} > posts.jsonl`)"
    if refused.keys() == {"bad_utf8"}:
        return f"is no UTF-8, {NO_UTF_8}"
    example = 'a line is such as {"id": "1", "text": "…"}, or a row of a .csv or .tsv'
    why = f"; the first was refused for {first.reason}: {first.detail}" if first else ""
    return f"holds no post that can be read: {example}{why}"
