"""What a cluster is about, in a few words of its own: decayed term counts, weighed by c-TF-IDF.

    weight(term, cluster) = count in the cluster · log(1 + A / count in the stream)      A = terms per live cluster

Source: Grootendorst 2022, BERTopic, https://arxiv.org/abs/2203.05794, section 3.3. We differ: counts decay, and the
stream's counts stand in for the sum over clusters, so that closing a cluster needs no subtraction.

Terms are words; in scripts written without spaces (Han, Kana, Thai, Lao, Khmer, Burmese, Tibetan) pairs of adjacent
characters, since finding their words needs a dictionary each; a label goes on from a pair as far as the posts share it.
One- and two-letter words of alphabets are left out at once. Letters of Korean and Ethiopic are syllables: two make a
word (산불, ውሃ).

What one post alone says is rare in the stream, so c-TF-IDF pays it like a name; and it sinks function words only where
the stream has much else than this event. So what two posts of a cluster's sample say comes first, function words of
their languages not counted.

Decay is *forward* (Cormode et al. 2009, https://doi.org/10.1109/ICDE.2009.65): a newer post adds 2**(age of the
reference / half-life) instead of every older count being shrunk. Counts compare as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log1p

import numpy as np

from models.clusters.function_words import function_words
from models.clusters.trail import Extent, Segment, Trail

__all__ = ["UNSPACED", "Vocabulary", "heaviest", "label_of", "prune", "terms_of"]

CLUSTER_TERMS = 100  # kept per cluster, pruned at twice that: a label needs four, and snapshots hold them all
STREAM_TERMS = 50_000  # kept for the whole stream, pruned at twice that
FREQUENT = 24  # terms of a cluster that are weighed first for its label
OFTEN_SAID = 0.25  # of a cluster's sample is in a language whose function words are left out
SHARED = 0.6  # of the posts that have a pair of characters: who else must have the next character for it to join
LONGEST = 12  # columns of what is joined; Han and Kana take two, marks none
RESCALE_AT = 200.0  # half-lives between the reference and now; float64 overflows at 1,024

NO_SPACES = "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# \w leaves out combining vowel signs, so it would cut Hindi, Arabic or Dhivehi words in pieces: name them.
MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u07a6-\u07b0\u0900-\u0963\u0966-\u0dff\u200c\u200d"
# An address is looked for where its run begins: if it is not found there, it is nowhere in the run, and to look again
# at each letter would take time that grows with the square of a text without spaces.
_SKIP = re.compile(r"https?://\S+|www\.\S+|(?<!\S)\S+@\S+|@\w+|&\w+;")
_TERM = re.compile(rf"[{NO_SPACES}]+|(?:(?![{NO_SPACES}])[\w{MARKS}])+")
_ASCII_TERM = re.compile(r"\w{3,}", re.ASCII)
_IN_WORD = re.compile(rf"[\w{MARKS}]")
UNSPACED = re.compile(rf"[{NO_SPACES}]")
_SYLLABLES = re.compile("[\u1200-\u137f\uac00-\ud7a3]")
_TOKENS = {"httpurl", "user", "mention", "rt"}  # what cleaning leaves of links, mentions and reposts


def terms_of(text: str) -> list[str]:
    """The terms of one text, folded to lower case, in order, repeats kept. Any string in, never raises."""
    text, found = text.casefold(), []
    if "@" in text or "/" in text or "&" in text or "www" in text:
        text = _SKIP.sub(" ", text)
    if text.isascii():  # most posts: the same terms, in a third of the time
        return [run for run in _ASCII_TERM.findall(text) if not run.isdigit() and run not in _TOKENS]
    for run in _TERM.findall(text):
        if run[0] >= "\u0e00" and UNSPACED.match(run):
            found += [run[i : i + 2] for i in range(len(run) - 1)]
        elif (len(run) > 2 or len(run) == 2 and _SYLLABLES.match(run)) and not run.isdigit() and run not in _TOKENS:
            found.append(run)
    return found


def prune(counts: dict[str, float], keep: int) -> None:
    """Keep the `keep` largest counts once there are twice as many; equal counts by spelling, so that replay agrees."""
    if len(counts) > 2 * keep:
        least = -np.partition(-np.fromiter(counts.values(), np.float64), keep - 1)[keep - 1]
        kept = {term: n for term, n in counts.items() if n > least}
        equal = sorted(term for term, n in counts.items() if n == least)[: keep - len(kept)]
        counts.clear()
        counts.update(kept)
        counts.update(dict.fromkeys(equal, float(least)))


def label_of(
    counts: Mapping[str, float],
    stream: Mapping[str, float],
    mean: float,
    size: int,
    texts: Mapping[str, str] | None = None,
) -> list[str]:
    """The `size` heaviest terms by c-TF-IDF, heaviest first; of pairs of characters, the runs that `texts` share.

    First those that two of the texts say, then those of one. What none says, or all as a function word, stands there
    where no two share anything. A cluster whose counts have faded has the words of its texts.

    counts: the cluster's; stream: the stream's; mean: the A above; texts: some of the cluster's posts, and the language
    of each.
    """
    sample = Sample(texts or {})
    if not any(counts.values()):
        counts, stream, mean = Counter(term for text in sample.texts for term in terms_of(text)), {}, 1.0
    chosen: list[str] = []
    once: list[str] = []  # said by one of the texts
    never: list[str] = []

    def take(term: str) -> None:
        if UNSPACED.match(term):
            if any(term in other or term[0] == other[-1] or term[-1] == other[0] for other in chosen):
                return  # 震发 beside 地震发生, or half outside of it
            term = shared_run(term, sample.texts)
        if len(term) > 1 and not any(term in other or other in term for other in chosen):  # flood, floods
            chosen.append(term)

    for term in heaviest(counts, stream, mean):
        if sample.texts and (times := sample.said(term)) < 2:
            (once if times else never).append(term)
            continue
        take(term)
        if len(chosen) == size:
            return chosen
    for term in (*once, *(() if chosen else never)):
        take(term)
        if len(chosen) == size:
            break
    return chosen


class Sample:
    """Some posts of a cluster: how many say a term?"""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = [*dict.fromkeys("\0".join(texts).casefold().split("\0"))] if texts else []  # each once
        self._all = "\0".join(self.texts)
        told = Counter(texts.values())  # one post in German makes "war" no function word among twelve in English
        self._dull = [function_words(lang) for lang, times in told.items() if OFTEN_SAID * len(texts) <= times]

    def said(self, term: str) -> int:
        """In how many texts a word begins with it, at most 2; a function word of the languages: in none.

        In scripts without spaces it may stand anywhere.
        """
        for dull in self._dull:
            if term in dull:
                return 0
        every, times, start, inside = self._all, 0, 0, UNSPACED.match(term)
        while times < 2 and (at := every.find(term, start)) >= 0:
            if inside or at == 0 or not _IN_WORD.match(every, at - 1):
                times += 1
                start = every.find("\0", at)  # the next text
                if start < 0:
                    break
            else:
                start = at + 1
        return times


def heaviest(counts: Mapping[str, float], stream: Mapping[str, float], mean: float) -> Iterator[str]:
    """Terms by falling weight, equal ones by spelling. Hardly ten of two hundred are asked for: those of most posts are
    weighed first, and hold as far as they weigh more than any of fewer posts could."""

    def weighed(items: Iterable[tuple[str, float]]) -> list[tuple[float, str]]:
        found = []
        for term, n in items:  # a plain loop: it runs for every term of what is told
            if n > 0:
                every = among(term, 0.0)
                found.append((-n * log1p(mean / (every if every > n else n)), term))
        found.sort()
        return found

    among, taken = stream.get, 0
    if len(counts) > 2 * FREQUENT:
        least = sorted(counts.values())[-FREQUENT]
        if least > 0:
            most = least * log1p(mean / least)  # a term of n posts weighs n · log(1 + A / n) at most, rising with n
            for weight, term in weighed(item for item in counts.items() if item[1] >= least):
                if -weight <= most:
                    break
                yield term
                taken += 1
    yield from (term for _, term in weighed(counts.items())[taken:])


def shared_run(pair: str, texts: Sequence[str]) -> str:
    """The run of letters around a pair that most of the texts with the pair share, at least two: 震发 → 地震发生.

    texts: folded, each once. A leading vowel sign or the like is left out: it says nothing without its letter.
    """
    run, texts = pair, [text for text in texts if pair in text]
    enough = max(2.0, SHARED * len(texts))
    while _columns(run) < LONGEST:
        beside = Counter(found for text in texts for found in _beside(run, text))
        longer, number = min(beside.items(), key=lambda item: (-item[1], item[0]), default=("", 0))
        if number < enough:
            break
        run, texts = longer, [text for text in texts if longer in text]
    return run.lstrip("".join(c for c in run if unicodedata.category(c)[0] == "M"))


def _beside(run: str, text: str) -> set[str]:
    """The run with one more letter of the text before or after it, for each place it has there."""
    found, at = set(), text.find(run)
    while at >= 0:
        end = at + len(run)
        found |= {text[at - 1 : end]} if at else set()
        found |= {text[at : end + 1]} if end < len(text) else set()
        at = text.find(run, at + 1)
    return {
        longer
        for longer in found
        if all(UNSPACED.match(c) and unicodedata.category(c)[0] in "LM" for c in (longer[0], longer[-1]))
    }


def _columns(run: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else unicodedata.category(c)[0] != "M" for c in run)


class Vocabulary:
    """The stream's own decayed term counts, and the reference that all counts share."""

    def __init__(self, half_life_s: float) -> None:
        self.half_life_s = half_life_s
        self.since_s: float | None = None  # the reference: a post of this moment counts 1
        self.counts: dict[str, float] = {}
        self.total = 0.0  # sum of the counts
        self.trail = Trail("terms", ages=False, full=2_048)

    def label(
        self, counts: Mapping[str, float], clusters: int, size: int, texts: Mapping[str, str] | None = None
    ) -> str:
        """Name a cluster among this many live ones. texts: some of its posts, and their languages."""
        return " ".join(label_of(counts, self.counts, self.total / max(clusters, 1), size, texts))

    def scale(self, at_s: float) -> float:
        """What one post of this moment counts."""
        if at_s == self.since_s:
            return 1.0
        if self.since_s is None:
            self.since_s = at_s
        counted: float = 2.0 ** max((at_s - self.since_s) / self.half_life_s, -1000.0)
        return counted

    def due(self, at_s: float) -> bool:
        """Must the reference move before a post of this moment can be counted?"""
        return self.since_s is not None and at_s - self.since_s > RESCALE_AT * self.half_life_s

    def rescale(self, at_s: float, clusters: list[dict[str, float]]) -> None:
        """Move the reference to `at_s`, here and in every cluster; counts that decayed to nothing leave."""
        if self.since_s is None:
            self.since_s = at_s
        factor: float = 2.0 ** max((self.since_s - at_s) / self.half_life_s, -1000.0)
        self.since_s = at_s
        for counts in (self.counts, *clusters):
            kept = {t: n * factor for t, n in counts.items() if n * factor > 1e-9}
            counts.clear()
            counts.update(kept)
        self.total = sum(self.counts.values())
        self.trail.renew()

    def add(self, terms: list[str], amount: float, counts: dict[str, float]) -> None:
        """Count one post's terms for its cluster and for the stream."""
        stream = self.counts
        count_here, count_all = counts.get, stream.get
        for term in terms:
            counts[term] = count_here(term, 0.0) + amount
            stream[term] = count_all(term, 0.0) + amount
        self.total += amount * len(terms)
        if self.trail.on:
            self.trail.touch(terms)
        if len(counts) > 2 * CLUSTER_TERMS:
            prune(counts, CLUSTER_TERMS)
        if len(stream) > 2 * STREAM_TERMS:
            prune(stream, STREAM_TERMS)
            self.total = sum(stream.values())
            self.trail.renew()

    def remove(self, terms: list[str], amount: float, counts: dict[str, float]) -> None:
        """Take one post's terms back, and every term that is then gone."""
        self.total = max(self.total - amount * len(terms), 0.0)
        for ledger in (counts, self.counts):
            for term in terms:
                if term in ledger:
                    left = ledger[term] - amount
                    if left > 1e-9 * amount:
                        ledger[term] = left
                    else:
                        del ledger[term]
                        if ledger is self.counts and self.trail.on:
                            self.trail.drop(term)
        if self.trail.on:
            self.trail.touch(term for term in terms if term in self.counts)

    def load(self, span: Extent, segments: Sequence[Segment[float]]) -> None:
        """Take the counts that were saved, in the order in which they came: sums of floats depend on it."""
        for segment in segments:
            for term in segment.gone:
                self.counts.pop(term, None)
            self.counts.update(segment.put)
        self.trail.resume(span, segments)
