"""Hard negatives of English sentences by rule, for xSIM++: almost the same words, another meaning.

Source: Chen et al. 2023 (https://arxiv.org/abs/2306.12907): causality (antonyms, negation), numbers, entities. Theirs
come from WordNet, parsers and NER; ours from the lists and patterns below, so that they can be made anywhere. Entities
are capitalised names that occur inside a sentence of the corpus, replaced by others from it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from msgspec import Struct

__all__ = ["KINDS", "HardNegative", "collect_entities", "hard_negatives"]

KINDS = ("causality", "number", "entity")
_TRIES = 6  # draws per variant wanted, before a sentence is taken to have no more


class HardNegative(Struct, frozen=True):
    """A sentence that says something else than sentence `of`."""

    of: int  # index of the sentence it was made from
    kind: str  # one of KINDS
    text: str


# Pairs swap both ways; written for this project.
_OPPOSITE_PAIRS = (
    "good bad;big small;large small;high low;higher lower;highest lowest;old young;older younger;new old;hot cold;warm cool;"
    "early late;earlier later;first last;long short;longer shorter;strong weak;stronger weaker;fast slow;faster slower;"
    "rich poor;full empty;open closed;safe dangerous;possible impossible;likely unlikely;legal illegal;public private;"
    "near far;many few;more less;most least;major minor;positive negative;major minor;same different;similar different;"
    "easy difficult;simple complex;common rare;heavy light;deep shallow;wide narrow;clean dirty;dry wet;hard soft;"
    "happy sad;alive dead;male female;northern southern;eastern western;north south;east west;left right;up down;"
    "increase decrease;increased decreased;increases decreases;increasing decreasing;rise fall;rose fell;rising falling;"
    "win lose;won lost;winning losing;begin end;began ended;start stop;started stopped;accept reject;accepted rejected;"
    "allow forbid;allowed forbidden;support oppose;supported opposed;agree disagree;agreed disagreed;confirm deny;"
    "confirmed denied;arrive leave;arrived left;buy sell;bought sold;remember forget;succeed fail;succeeded failed;"
    "success failure;before after;above below;inside outside;with without;always never;often rarely;usually rarely;"
    "all none;everyone nobody;everything nothing;both neither;morning evening;day night;summer winter;spring autumn;"
    "father mother;son daughter;brother sister;man woman;men women;boy girl;king queen;war peace;friend enemy;"
    "teacher student;attack defend;attacked defended;victory defeat;life death;born killed;advantage disadvantage;"
    "because although;due despite;therefore however;maximum minimum;modern ancient;normal unusual;popular unpopular;"
    "important unimportant;known unknown;able unable;expensive cheap;famous unknown;healthy sick;domestic foreign;"
    "local foreign;natural artificial;rural urban;temporary permanent;true false;visible invisible;complete partial;"
    "directly indirectly;quickly slowly;rapidly slowly;significantly slightly;well badly;better worse;best worst;"
    "found lost;include exclude;included excluded;including excluding;entered left;joined left;upper lower;internal external;"
    "caused prevented;cause prevent;causes prevents;improve worsen;improved worsened;gain loss;majority minority"
)
_OPPOSITE: dict[str, list[str]] = {}
for _pair in _OPPOSITE_PAIRS.split(";"):
    _a, _b = _pair.split(" ")
    _OPPOSITE.setdefault(_a, []).append(_b)
    _OPPOSITE.setdefault(_b, []).append(_a)

_CARDINALS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen twenty thirty forty fifty".split()
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
_SCALES = ["hundred", "thousand", "million", "billion"]
_SAME_SORT = {word: sort for sort in (_CARDINALS, _ORDINALS, _SCALES) for word in sort}

_WORD = re.compile(r"[A-Za-z]+")
_DIGITS = re.compile(r"\d+")
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|will|would|can|could|should|has|have|had|may|might|must|do|does|did)\b(?!n't)( not\b)?"
)
_CONTRACTED = re.compile(r"\b(is|are|was|were|would|could|should|has|have|had|must|do|does|did)n't\b")
# A name: capitalised words that do not open the sentence, with "of the" and the like between them.
_NAME = re.compile(r"(?<![.!?:\"“] )(?<!^)(?<![\w\"“(])[A-Z][\w'’-]+(?: (?:of |the |de |and )?[A-Z][\w'’-]+)*")
_NO_NAMES = frozenset("I I'm I've I'd I'll Mr Mrs Ms Dr The A An It He She They We You This That In On At".split())


def collect_entities(sentences: Sequence[str]) -> list[str]:
    """Names that stand inside the sentences, in order of first use, each once."""
    return list(
        dict.fromkeys(m.group() for text in sentences for m in _NAME.finditer(text) if m.group() not in _NO_NAMES)
    )


def hard_negatives(
    sentences: Sequence[str], seed: int, per_kind: int = 15, entities: Sequence[str] | None = None
) -> list[HardNegative]:
    """Up to `per_kind` different hard negatives of each kind for every sentence; one that offers no place gets none.

    None equals a sentence of the corpus. Each sentence has its own generator: adding one does not change the others.
    """
    names = list(entities) if entities is not None else collect_entities(sentences)
    known = frozenset(sentences)
    makers: dict[str, Callable[[str, random.Random], str | None]] = {
        "causality": _turn,
        "number": _recount,
        "entity": lambda text, rng: _rename(text, names, rng),
    }
    made = []
    for index, text in enumerate(sentences):
        for kind, make in makers.items():
            rng = random.Random(f"{seed} {kind} {text}")
            variants: dict[str, None] = {}
            for _ in range(per_kind * _TRIES):
                variant = make(text, rng)
                if variant is None or len(variants) == per_kind:
                    break
                if variant not in known:
                    variants[variant] = None
            made.extend(HardNegative(index, kind, variant) for variant in variants)
    return made


def _turn(text: str, rng: random.Random) -> str | None:
    """One or two words by their opposites, or a negation put in or taken out; not both, "not hot" is still cold."""
    opposites = [(m.span(), _opposite(m.group(), rng)) for m in _WORD.finditer(text) if m.group().lower() in _OPPOSITE]
    negations = [(m.span(), m.group(1) if m.group(2) else f"{m.group(1)} not") for m in _AUXILIARY.finditer(text)]
    negations += [(m.span(), m.group(1)) for m in _CONTRACTED.finditer(text)]
    if not opposites and not negations:
        return None
    if rng.randrange(len(opposites) + len(negations)) >= len(opposites):
        return _put(text, [rng.choice(negations)])
    return _put(text, rng.sample(opposites, min(len(opposites), rng.choice((1, 1, 2)))))


def _recount(text: str, rng: random.Random) -> str | None:
    """Some of the numbers by others of the same length or sort."""
    places = [(m.span(), _other_number(m.group(), rng)) for m in _DIGITS.finditer(text)]
    for m in _WORD.finditer(text):
        sort = _SAME_SORT.get(m.group().lower())
        if sort:
            other = rng.choice([w for w in sort if w != m.group().lower()])
            places.append((m.span(), other.capitalize() if m.group()[0].isupper() else other))
    if not places:
        return None
    return _put(text, rng.sample(places, rng.randint(1, len(places))))


def _rename(text: str, names: list[str], rng: random.Random) -> str | None:
    """One or two of the names by others of the corpus."""
    found = [m for m in _NAME.finditer(text) if m.group() not in _NO_NAMES]
    others = [name for name in (rng.choice(names) for _ in range(4)) if name not in text] if names else []
    if not found or not others:
        return None if not found or len(names) < 2 else text
    chosen = rng.sample(found, min(len(found), rng.choice((1, 1, 2))))
    return _put(text, [(m.span(), rng.choice(others)) for m in chosen])


def _opposite(word: str, rng: random.Random) -> str:
    other = rng.choice(_OPPOSITE[word.lower()])
    return other.capitalize() if word[0].isupper() else other


def _other_number(digits: str, rng: random.Random) -> str:
    low, high = (10 ** (len(digits) - 1) if len(digits) > 1 else 0), 10 ** len(digits) - 1
    while (other := str(rng.randint(low, high))) == digits:
        pass
    return other


def _put(text: str, places: list[tuple[tuple[int, int], str]]) -> str:
    for (start, end), new in sorted(places, reverse=True):
        text = text[:start] + new + text[end:]
    return text
