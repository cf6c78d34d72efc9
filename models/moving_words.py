"""Which words of a post moved a reading: how much less likely it is without each of them.

    log-odds of the reading = rest + Σ over its words of (log-odds with the word − without it)

Leaving one word out at a time (Li, Monroe & Jurafsky 2016, Understanding neural networks through representation
erasure, https://arxiv.org/abs/1612.08220) asks the very encoder and head that read the post, whatever they are made of;
`rest` is what no single word moves: the bias, and what words say together. It costs the encoding of as many texts as
there are words, so it is done for one reading that somebody looks at, never for a stream.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from msgspec import Struct

from models.encoders.protocol import Encoder
from models.errors import QueryError
from models.places.names import UNSPACED, words
from models.records import Post
from models.standing import StandingQueries
from models.telling import terms_of

__all__ = ["Moved", "MovingWord", "moving_words", "moving_words_told"]

MOST_WORDS = 60  # of a post; longer ones are asked about in longer pieces
PIECE = 3  # letters asked about at a time in scripts without spaces
TOLD = 3  # words told in a sentence
LEAST = 0.05  # log-odds from which a word is told


class MovingWord(Struct, frozen=True):
    """A word, or a piece of one in a script without spaces."""

    start: int  # characters of the post's text
    end: int
    by: float  # log-odds it adds; less than 0: the reading is likelier without it


class Moved(Struct, frozen=True):
    """What the words of a post do to one reading. Their `by` and `rest` add up to `log_odds`."""

    query_id: str
    log_odds: float
    rest: float
    words: list[MovingWord]


def moving_words(matcher: StandingQueries, encoder: Encoder, post: Post, query_id: str) -> Moved:
    """Leave out each word of the post in turn. Blocking: as many texts are encoded as it has words, at most MOST_WORDS.

    Raises QueryError where there is no such query.
    """
    if query_id not in matcher.place:
        raise QueryError(f"there is no query {query_id} any more")
    index, text = matcher.place[query_id], post.text
    spans = list(_pieces(text))
    without = [text[:start] + " " + text[end:] for start, end in spans]
    vectors = encoder.encode([text, *without])
    odds = _log_odds(matcher, index, [post, *(msgspec.structs.replace(post, text=left) for left in without)], vectors)
    by = [round(float(odds[0] - left), 3) for left in odds[1:]]
    whole = round(float(odds[0]), 3)
    told = [MovingWord(start, end, each) for (start, end), each in zip(spans, by, strict=True)]
    return Moved(query_id, whole, round(whole - sum(by), 3), told)


def moving_words_told(moved: Moved, text: str) -> str:
    """ "roof" +1.20, "boat" +0.80; empty where no word moves it. The text is a stranger's: print it with care."""
    most = sorted(moved.words, key=lambda word: -abs(word.by))[:TOLD]
    told = [
        f"“{text[word.start : word.end]}” {word.by:+.2f}".replace("-", "−") for word in most if abs(word.by) >= LEAST
    ]
    return ", ".join(told)


def _log_odds(matcher: StandingQueries, index: int, posts: list[Post], vectors: np.ndarray) -> np.ndarray:
    """(n,): of one reading, as its terms add up for each of the texts, with what people taught."""
    which = np.full(len(vectors), index)
    scores = matcher.directed(vectors, np.array([index]))[:, 0]
    found = np.array([sum(terms.values()) for terms in terms_of(matcher, vectors, scores, which)])
    added = matcher.added(vectors, posts, np.array([index]))
    return found if added is None else found + added[:, 0]


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Where each word stands; in scripts without spaces pieces of PIECE letters. Of many, neighbours together."""
    found: list[tuple[int, int]] = []
    for start, end in words(text):
        step = PIECE if UNSPACED.search(text, start, end) else end - start
        found += [(at, min(at + step, end)) for at in range(start, end, step)]
    together = -(-len(found) // MOST_WORDS)
    for at in range(0, len(found), max(together, 1)):
        some = found[at : at + together]
        yield some[0][0], some[-1][1]
