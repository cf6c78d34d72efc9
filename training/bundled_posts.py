"""A small set of posts that is always there: the sentences of the bundled query packs and of the background."""

from __future__ import annotations

from msgspec import Struct

from models.queries import aid_queries, background_texts

__all__ = ["bundled_posts"]


class BundledPost(Struct, frozen=True):
    """A sentence of the bundled query packs or of the background: invented, so that smoke presets need no data."""

    text: str
    lang: str  # "" for the background
    query: str  # the query's id, "background" for the rest


def bundled_posts() -> list[BundledPost]:
    """About 2,700 sentences of needs and offers of the query packs and 375 of the background, in file order."""
    asked = [BundledPost(text, lang, query.id) for query in aid_queries() for lang, text in query.texts()]
    return asked + [BundledPost(text, "", "background") for text in background_texts()]
