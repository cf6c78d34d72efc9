"""What somebody typed for a query that there is not: which was likely meant."""

from __future__ import annotations

import difflib
from collections.abc import Collection

__all__ = ["no_query"]


def no_query(query_id: str, known: Collection[str]) -> str:
    """The sentence that says that no query has this id."""
    meant = difflib.get_close_matches(query_id, sorted(known), 1)
    told = f" (did you mean {meant[0]}?)" if meant else ""
    return f"no query {query_id!r}{told}; `crisis query list` shows the {len(known)} active ones"
