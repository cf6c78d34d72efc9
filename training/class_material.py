"""What classes of posts are learnt from: rows of text, class and weight, for the head and for its words; and of the
needs and offers among them everything that each asks for or offers.

The query packs, the written posts and the real posts that were read (training/posts), asking messages of the learning
half of disaster-messages-multilingual where its annotators agree (water, food, shelter, clothing, medical help,
medicine: .40 to .82; the other categories 0 to .26), and everyday sentences, which ask for nothing. Of the sets that
were read only those whose terms allow it; of the other half of disaster messages nothing (training.labels).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from models.queries import aid_queries, background_texts, load_queries
from training.data import in_train_half, read_messages
from training.files import data_dir
from training.labels import everyday
from training.posts import LabelledPost, read_posts, written_posts
from training.taught import classes_taught, read_taught

__all__ = ["MAY_LEARN", "Asked", "Shares", "Taught", "asked", "material", "read_material"]

MAY_LEARN = frozenset(
    ("crisislex-t26", "crisislex-t6", "disaster-messages-multilingual", "idrisi-lmr-ar", "need-offer-nepal-italy")
)
AGREED = {
    "water": "water",
    "food": "food",
    "shelter": "shelter",
    "clothing": "clothing_blankets",
    "medical_help": "medical_help",
    "medical_products": "medicine",
}


class Shares(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Knobs: what of each source is learnt, and how much a row of it weighs against 1 of a written post."""

    labels: str = ""  # what people taught, as `crisis label export` printed it
    said: float = 1.5  # of a post they labelled
    read: float = 1.5  # of a post that was read
    unsure: float = 0.5  # share of it where the reader was not sure
    packs: float = 0.7
    messages: float = 0.7  # of a disaster message
    everyday: int = 130  # sentences of each language that are learnt as asking for nothing
    everyday_weight: float = 0.5  # of one of them
    most: int = 0  # posts, and messages, of all that there are, at even steps: for a quick look; 0 = all
    none: float = 0.6  # share of the disaster messages that ask for nothing which are learnt as chatter or news
    seed: int = 1


class Taught(Struct, frozen=True):
    """Rows to learn from."""

    texts: list[str]
    labels: list[str]
    weights: list[float]


class Asked(Struct, frozen=True):
    """Needs and offers, each with all the queries it is a right reading of."""

    texts: list[str]
    queries: list[frozenset[str]]
    known: list[frozenset[str] | None]  # queries that the labels tell of; None = all
    weights: list[float]


def material(
    config: Shares, posts: Sequence[LabelledPost], messages: Sequence[dict], sentences: Sequence[str] = ()
) -> Taught:
    """Everything the head learns from: the posts that do not judge, the packs, the background, the messages,
    everyday sentences, and what people taught at work."""
    rows: list[tuple[str, str, float]] = []
    rows += [(text, "ordinary", config.everyday_weight) for text in sentences]
    for post in posts:
        if post.judges or post.use == "several" or (post.use == "read" and post.origin not in MAY_LEARN):
            continue  # under one name, posts made to say several things taught classes to be mistaken for each other
        weight = 1.0 if post.use != "read" else config.read * (1.0 if post.sure else config.unsure)
        rows.append((post.text, post.label, weight))
    rows += [(text, query.id, config.packs) for query in aid_queries() for _, text in query.texts()]
    rows += [(text, "ordinary", config.packs) for text in background_texts()]
    drawn = np.random.default_rng(config.seed)
    for message in messages:
        found = [AGREED[name] for name in message["labels"] if name in AGREED]
        asks = "request" in message["labels"]
        if (asks or message.get("genre") == "direct") and 1 <= len(found) <= 2:
            rows += [(message["text"], f"need.{name}", config.messages / len(found)) for name in found]
        elif message.get("related") == "no" and drawn.random() < config.none:
            rows.append((message["text"], "chatter", config.messages))
        elif message.get("genre") == "news" and not asks and drawn.random() < config.none:
            rows.append((message["text"], "news", config.messages))
    if config.labels:
        names = {query.id for query in load_queries()} | {"chatter"}
        said = classes_taught(read_taught(Path(config.labels)), names)
        rows += [(text, name, config.said) for text, name in said]
    texts, labels, weights = map(list, zip(*rows, strict=True))
    return Taught(texts, labels, weights)


def asked(config: Shares, posts: Sequence[LabelledPost], messages: Sequence[dict]) -> Asked:
    """What the needs and offers of the same sources ask for and offer, several at once among them.

    A message tells of the agreed categories alone.
    """
    rows: list[tuple[str, frozenset[str], frozenset[str] | None, float]] = []
    aid = frozenset(query.id for query in aid_queries())
    for post in posts:
        if not post.judges and (post.use != "read" or post.origin in MAY_LEARN) and (right := post.right & aid):
            rows.append((post.text, right, None, config.read if post.use == "read" else 1.0))
    rows += [(text, frozenset((query.id,)), None, config.packs) for query in aid_queries() for _, text in query.texts()]
    agreed = frozenset(f"need.{name}" for name in AGREED.values())
    for message in messages:
        found = frozenset(f"need.{AGREED[name]}" for name in message["labels"] if name in AGREED)
        if found and ("request" in message["labels"] or message.get("genre") == "direct"):
            rows.append((message["text"], found, agreed, config.messages))
    return Asked(*map(list, zip(*rows, strict=True)))


def read_material(config: Shares) -> tuple[Taught, Asked, list[LabelledPost]]:
    """All of it, and every labelled post, those that judge too. Raises DataError if a set is not there."""
    root = data_dir()
    posts = written_posts() + read_posts(root)
    messages = [m for m in read_messages(root) if in_train_half(str(m["id"]))]
    if config.most:
        posts, messages = (rows[:: max(1, len(rows) // config.most)] for rows in (posts, messages))
    taught = material(config, posts, messages, everyday(root, config.everyday, config.seed))
    return taught, asked(config, posts, messages), posts
