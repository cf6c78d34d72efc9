"""What a query asks for, how sure a match is, how soon help must come: closed lists, each a type and a tuple."""

from __future__ import annotations

from typing import Literal, get_args

__all__ = ["AID", "Aid", "KINDS", "Kind", "Level", "NOTICES", "Notice", "PRIORITIES", "Priority", "is_notice"]

Aid = Literal["need", "offer"]
Notice = Literal["warning", "order", "report"]  # of danger; to leave; of damage and of what has just happened
Kind = Literal[Aid, Notice]
AID: tuple[Aid, ...] = get_args(Aid)
NOTICES: tuple[Notice, ...] = get_args(Notice)
KINDS: tuple[Kind, ...] = (*AID, *NOTICES)
Priority = Literal["urgent", "soon", "routine"]  # lives hang on the next hours; today or tomorrow; neither
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
Level = Literal["alert", "suggestion"]


def is_notice(query_id: str) -> bool:
    """Is a query of this id (kind, dot, category) a notice, and no need or offer?"""
    return query_id.partition(".")[0] in NOTICES
