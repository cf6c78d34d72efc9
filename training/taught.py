"""What people taught at work, for the jobs that measure and learn: a file that `crisis label export` wrote.

`labels=FILE` of training.calibrate takes them beside the labelled messages (half of them teach, half judge, by post),
of training.head beside the posts it learns from. A label says whether a post answers one query: "wrong" says of no
other what it is, so the head, which needs to know what a post is, leaves it out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
import numpy as np

from models.errors import LabelError, Rejected
from models.feedback.records import Label, read_label
from training.data import in_train_half
from training.files import numbered_lines
from training.labels import Messages, fold

__all__ = ["classes_taught", "read_taught", "with_taught"]


def read_taught(path: Path) -> list[Label]:
    """The labels of a file, of two about one reading the later. Raises LabelError naming the line at fault."""
    found: dict[str, Label] = {}
    for number, line in numbered_lines(path):
        if line.strip():
            try:
                said = read_label(line.encode())
            except (msgspec.MsgspecError, LabelError, Rejected) as error:
                raise LabelError(f"{path}, line {number}: {error}") from error
            if said.key not in found or found[said.key].at <= said.at:
                found[said.key] = said
    return list(found.values())


def with_taught(messages: Messages, labels: Sequence[Label], names: Collection[str], train_half: bool) -> Messages:
    """The messages and, behind them, the posts people labelled that fall into the same half.

    A post is about a query of `names` where a label says right, or names it instead; about no other.
    """
    mine = [said for said in labels if in_train_half(said.post_id) == train_half]
    posts = {said.post_id: said for said in mine}
    place = {post_id: len(messages.texts) + i for i, post_id in enumerate(posts)}
    about = {name: np.append(column, np.zeros(len(posts), bool)) for name, column in messages.labels.items()}
    for said in labels:  # of both halves, so that both have the same queries
        answered = said.query_id if said.confirms else said.instead
        if answered in names:
            column = about.setdefault(answered, np.zeros(len(messages.texts) + len(posts), bool))
            if said.post_id in place:
                column[place[said.post_id]] = True
    asks = np.zeros(len(posts), bool)
    for said in mine:
        asks[place[said.post_id] - len(messages.texts)] |= said.confirms or bool(said.instead)
    return Messages(
        texts=[*messages.texts, *(said.text for said in posts.values())],
        langs=np.append(messages.langs, [said.lang for said in posts.values()]),
        fold=np.append(messages.fold, np.array([fold(post_id) for post_id in posts], np.int8)),
        asks=np.append(messages.asks, asks),
        requests=np.append(messages.requests, asks),
        labels=about,
    )


def classes_taught(labels: Sequence[Label], names: Collection[str]) -> list[tuple[str, str]]:
    """(text, class) of what labels say a post is: a query of `names`, or chatter where it is no need and no offer."""
    found = []
    for said in labels:
        answered = said.query_id if said.confirms else {"none": "chatter"}.get(said.verdict, said.instead)
        if answered in names:
            found.append((said.text, answered))
    return found
