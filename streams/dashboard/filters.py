"""What a viewer asks to see, and which alerts fit. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from models.areas import Area, area_of, lies_there
from models.records import Alert, AlertPost
from models.words import JOINER, folded
from streams.dashboard.readings import Said, readings

__all__ = ["Filter", "fold", "folded_text"]

SEARCHED_CHARS, MOST_WORDS = 2_000, 8  # of a text, and of what is searched for in it


class Filter(Struct, frozen=True, omit_defaults=True):
    """What a viewer asked for; "" = all. It is the query string of the page's address."""

    kind: str = ""
    category: str = ""
    level: str = ""
    lang: str = ""
    source: str = ""
    cluster: str = ""
    priority: str = ""
    area: str = ""  # a place's name, or south,west,north,east in degrees; nothing fits what is neither (`area_of`)
    q: str = ""  # words that must occur in the text, in any spelling (models/words.py)

    @classmethod
    def of(cls, params: Mapping[str, str]) -> Filter:
        """From query parameters; others are ignored, long ones cut."""
        return cls(**{f: params[f].strip()[:200] for f in cls.__struct_fields__ if f in params})

    def accepts(self, alert: Alert, folded: str | None = None, said: Said | None = None) -> bool:
        """Is it an active alert that fits, as it was read or as what somebody said it is instead? Where a category is
        asked for, it may be what the post says beside that. folded: `folded_text` of its post, where it is known.
        """
        post = alert.post
        return (
            alert.status == "active"
            and _fits(
                (self.lang, self.source, self.cluster, self.priority),
                (post.lang, post.source, alert.cluster_id, alert.priority),
            )
            and (not self.area or _there(self.area, post))
            and (self._reads(alert.query_id, alert.level) or self.stands(alert, said or {}))
            and (not self.q or _holds(folded_text(post.text) if folded is None else folded, _words(self.q)))
        )

    def stands(self, alert: Alert, said: Said) -> bool:
        """Does an alert that fits count, after all that people said: not where what fits is not so, or handled."""
        now = readings(alert, said)
        beside = now.beside.items() if self.category else ()
        return (now.main != "" and self._reads(now.main, alert.level)) or any(self._reads(*one) for one in beside)

    def _reads(self, query_id: str, level: str) -> bool:
        kind, _, category = query_id.partition(".")
        return _fits((self.kind, self.category, self.level), (kind, category, level))


def _fits(wanted: Iterable[str], found: Iterable[str | None]) -> bool:
    return all(not w or w == f for w, f in zip(wanted, found, strict=True))


def _there(asked: str, post: AlertPost) -> bool:
    area = area_of(asked)
    return isinstance(area, Area) and lies_there(area, post)


def fold(text: str) -> str:
    """The text as words are compared. Parts of words are looked for here, so the joiners between them go too."""
    return folded(text).replace(JOINER, "")


def folded_text(text: str) -> str:
    """What a search for words looks at. Folding may unfold one character to 18: made once for an alert, and bounded."""
    return fold(text[:SEARCHED_CHARS])[: 2 * SEARCHED_CHARS]


@lru_cache(maxsize=256)
def _words(q: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fold(q).split()))[:MOST_WORDS]


def _holds(folded: str, words: Sequence[str]) -> bool:
    return all(word in folded for word in words)
