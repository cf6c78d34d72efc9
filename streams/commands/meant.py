"""What somebody typed for a query or a language: the one it names, or which was likely meant."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from models.language_tags import post_language

__all__ = ["no_query", "post_language"]


def no_query(query_id: str, known: Collection[str]) -> str:
    """The sentence that says that no query has this id."""
    meant = difflib.get_close_matches(query_id, sorted(known), 1)
    told = f" (did you mean {meant[0]}?)" if meant else ""
    return f"no query {query_id!r}{told}; `crisis query list` shows the {len(known)} active ones"
