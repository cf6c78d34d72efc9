"""Which posts a query reads at all: `where` of a query. Exact, so a post is never left out by chance.

    where:
      languages: [es, qu]           # of the post, as posts carry them; pt takes pt-BR too, pt-BR only itself
      sources: [bluesky, sms]
      area: [-18.4, -81.4, 0.1, -68.6]     # south, west, north, east; of posts that say where they are, or name a place
      place: Peru                          # what the area is called, to be told
      must: [puente, bridge]        # at least one of them occurs
      must_not: [simulacro*]        # none of them occurs; * at the end takes any ending

A post without coordinates lies in an area if it names a place there (models/places): of several places of one name the
one in the area is meant, but a country or province that is wider than the area is not in it.

Words are compared in any spelling (models/words.py), whole; in scripts written without spaces anywhere in the text.
"""

from __future__ import annotations

import contextlib
from typing import Any
from unicodedata import category

from msgspec import Struct

from models.errors import QueryError
from models.language_tags import language_problem
from models.places.gazetteer import Gazetteer, within
from models.places.mentions import lies_in, named_in
from models.records import Geo, Post
from models.words import any_of, folded

__all__ = ["Where", "area_problem", "check_where", "located", "says_something"]

MOST_WORDS = 200  # of one list: a filter is looked through for every post that fits the query


class Where(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The filter of one query; an empty list asks for nothing."""

    languages: list[str] = []
    sources: list[str] = []
    area: list[float] = []  # south, west, north, east, degrees WGS 84; west > east crosses the date line
    must: list[str] = []
    must_not: list[str] = []
    place: str = ""  # what the area is called, where it was asked for by name

    def refusal(self, post: Post) -> str:
        """Why the query does not read this post, as the end of a sentence; empty if it does."""
        return self.origin_refusal(post.lang, post.source) or self.content_refusal(post)

    def origin_refusal(self, lang: str, source: str) -> str:
        """The part that hangs on language and source alone: the same for all posts that share them."""
        if self.languages and not any(_speaks(lang, wanted) for wanted in self.languages):
            return f"its language is {lang}, the query reads {', '.join(self.languages)}"
        if self.sources and source not in self.sources:
            return f"its source is {source}, the query reads {', '.join(self.sources)}"
        return ""

    def content_refusal(self, post: Post) -> str:
        """The part that needs the post itself."""
        if self.area and (refused := self._area_refusal(post)):
            return refused
        if not (self.must or self.must_not):
            return ""
        text = folded(post.text)
        if self.must and not any_of(tuple(self.must)).search(text):
            return f"it has none of the words {', '.join(self.must)}"
        if self.must_not and (found := any_of(tuple(self.must_not)).search(text)):
            return f"it has the word {found.group()}, which the query leaves out"
        return ""

    def _area_refusal(self, post: Post) -> str:
        asked = f"the query's area{f', {self.place}' if self.place else ''}"
        if post.geo:
            return "" if _inside(self.area, post.geo) else f"it is outside {asked}"
        if lies_in(post.text, self.area, lang=post.lang):
            return ""
        if named := named_in(post.text, most=1, lang=post.lang):
            return f"it names {named[0].place.full_name}, which is outside {asked}"
        return "it does not say where it is, which the query asks"


def located(asked: str) -> dict[str, Any]:
    """`area` and `place` of a filter from what somebody asks for: four numbers, the name of a place, or nothing.

    Raises QueryError where no place, or more than one, is called so.
    """
    parts = [part.strip() for part in asked.split(",") if part.strip()]
    if parts and not any(part[0].isalpha() for part in parts):  # "Nan" is a town
        with contextlib.suppress(ValueError):
            return {"area": [float(part) for part in parts], "place": ""}
    if not parts:
        return {"area": [], "place": ""}
    place, _ = Gazetteer.bundled().choose(asked)
    return {"area": list(place.box), "place": place.full_name}


def area_problem(area: list[float]) -> str:
    """What to change of these numbers, so that they are an area; empty if they are one."""
    south, west, north, east = area if len(area) == 4 else (1, 0, 0, 0)
    if -90 <= south <= north <= 90 and -180 <= west <= 180 and -180 <= east <= 180:
        return ""
    return f"area {area}: write south, west, north, east in degrees, such as 18,-74.5,20,-71.6"


def check_where(where: Where, query_id: str) -> None:
    """Raise QueryError saying what to change."""
    if where.place and not where.area:
        raise QueryError(
            f"query {query_id}: place {where.place!r} without its area: `crisis query edit --area` finds it"
        )
    if where.area and (wrong := area_problem(where.area)):
        raise QueryError(f"query {query_id}: {wrong}")
    if wrong := next(filter(None, map(language_problem, where.languages)), ""):
        raise QueryError(f"query {query_id}: {wrong}")
    for name in ("must", "must_not"):
        words = getattr(where, name)
        if len(words) > MOST_WORDS:
            raise QueryError(f"query {query_id}: {name}: {len(words)} words, at most {MOST_WORDS} are taken")
        if void := [word for word in words if not says_something(word)]:
            raise QueryError(f"query {query_id}: {name}: {void[0]!r} has no letter or digit: write a word")


def says_something(word: str) -> bool:
    """A letter, a digit or a sign such as an emoji: punctuation alone stands in hardly any post by itself."""
    return any(letter.isalnum() or category(letter) == "So" for letter in folded(word))


def _speaks(lang: str, wanted: str) -> bool:
    return lang.lower() == wanted.lower() or lang.lower().startswith(f"{wanted.lower()}-")


def _inside(area: list[float], geo: Geo) -> bool:
    return within(area, geo.lat, geo.lon)
