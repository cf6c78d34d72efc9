"""One cluster's bookkeeping: who is in it, how fast it grows, what its examples are. Vectors live in the kernel."""

from __future__ import annotations

import math
from hashlib import blake2b

import msgspec
from msgspec import Struct

from models.records import Post

__all__ = ["Cluster", "MAX_TEXT", "Member", "Rates", "member_of"]

MAX_TEXT = 1_000  # characters kept of a post: as many as labels and encoders read
MAX_SOURCES = 256  # names that a cluster counts: they come from posts, and whoever invents them does not fill memory
OTHER = "other"  # what the later ones are counted as
MAX_AUTHORS = 64  # latest distinct authors remembered per cluster, to count a flood by one account once


class Member(Struct, frozen=True, gc=False):  # holds no cycles; tens of thousands would slow every collection
    """A post as the clusterer remembers it."""

    post_id: str
    text: str
    lang: str
    source: str
    at: float  # created_at, never later than seen_at, epoch seconds
    queries: tuple[str, ...]  # that it matched
    rank: int  # pseudo-random in what only we know of it: the lowest ranks are the cluster's sample
    vector: bytes  # packed by the lexicon; b"" when it came from an older encoder
    author: str | None = None

    def with_vector(self, vector: bytes) -> Member:
        return msgspec.structs.replace(self, vector=vector)


def member_of(post: Post, queries: tuple[str, ...], vector: bytes) -> Member:
    # Clients choose ids; the fingerprint is keyed (models/posts.py), so nobody can grind an id that ranks low.
    ranked = f"{post.fingerprint}\n{post.id}".encode("utf-8", "surrogatepass")
    rank = int.from_bytes(blake2b(ranked, digest_size=4).digest())
    at = min(post.created_at, post.seen_at)
    return Member(post.id, post.text[:MAX_TEXT], post.lang, post.source, at, queries, rank, vector, post.author)


class Rates(Struct, gc=False):
    """Three decayed counts, brought forward only when touched.

    weight: Σ 2**(−age / half-life) over posts, repeats included. fast, slow: Σ exp(−age / T), so that fast / T is the
    rate in posts/s over the last T seconds, give or take (an exponentially weighted moving average).
    """

    at: float  # the moment the counts are good for, epoch seconds
    weight: float = 0.0
    fast: float = 0.0
    slow: float = 0.0

    def forward(self, now: float, half_life_s: float, fast_s: float, slow_s: float) -> None:
        age = now - self.at
        if age > 0:
            self.weight *= 2.0 ** (-age / half_life_s)
            self.fast *= math.exp(-age / fast_s)
            self.slow *= math.exp(-age / slow_s)
            self.at = now

    def add(self, other: Rates) -> None:
        """Join another's counts; both must have been brought to the same moment."""
        self.weight += other.weight
        self.fast += other.fast
        self.slow += other.slow

    def burst(self, fast_s: float, slow_s: float) -> float:
        """How many standard deviations the fast rate lies above the slow one.

        z = (r_fast − r_slow) / sqrt(r_slow / T_fast + 1 / T_fast²): the deviation of a Poisson count over T_fast, and
        one post as the floor, so that k posts out of nothing score about k.
        """
        fast, slow = self.fast / fast_s, max(self.slow, 0.0) / slow_s
        return (fast - slow) / math.sqrt(slow / fast_s + 1.0 / (fast_s * fast_s))


class Cluster(Struct, gc=False):
    """Everything about a live cluster that is not a vector."""

    id: str
    rates: Rates
    first_at: float
    last_at: float
    touched_post: int  # number of the stream's post that last touched it
    touched_s: float  # the clock then
    posts: int = 0  # repeats included
    terms: dict[str, float] = {}
    examples: list[Member] = []  # lowest ranks first: a uniform sample of its posts, whatever their order
    categories: dict[str, int] = {}
    languages: dict[str, int] = {}
    sources: dict[str, int] = {}
    authors: list[str] = []
    version: int = 0  # of its latest event; 0 = not announced
    step: int = 0  # announce growth at this many posts
    burst_level: int = 0
    event_s: float = 0.0  # clock of its latest event
    label: str = ""
    label_posts: int = 0  # posts when the label was made
    told: tuple[str, ...] = ()  # ids of the posts that its latest event shows; a state of before has none

    def count(self, member: Member) -> None:
        """Count one more post: its number, times, language, source and the queries it matched."""
        self.posts += 1
        if member.at > self.last_at:
            self.last_at = member.at
        elif member.at < self.first_at:
            self.first_at = member.at
        self.languages[member.lang] = self.languages.get(member.lang, 0) + 1
        source = _source(self.sources, member.source)
        self.sources[source] = self.sources.get(source, 0) + 1
        for query in member.queries:
            self.categories[query] = self.categories.get(query, 0) + 1

    def keep_example(self, member: Member, keep: int) -> None:
        """Keep the posts of lowest rank: bottom-k sampling, which is uniform, mergeable and needs no randomness.

        Of one author the lowest alone: who posts more often is not shown more often.
        """
        examples = self.examples
        if member.author is not None:
            mine = next((m for m in examples if m.author == member.author), None)
            if mine is not None and (mine.rank, mine.post_id) <= (member.rank, member.post_id):
                return
            if mine is not None:
                examples.remove(mine)
        if len(examples) < keep:
            examples.append(member)
        elif (member.rank, member.post_id) < (examples[-1].rank, examples[-1].post_id):
            examples[-1] = member
        else:
            return
        if len(examples) > 1 and member.rank <= examples[-2].rank:
            examples.sort(key=lambda m: (m.rank, m.post_id))

    def shows(self, post_id: str) -> bool:
        """Is this post one of its examples, or was it told as one and not taken back yet?"""
        return post_id in self.told or any(m.post_id == post_id for m in self.examples)

    def is_new_author(self, author: str) -> bool:
        """Has this account not posted here lately?"""
        if author in self.authors:
            return False
        self.authors.append(author)
        if len(self.authors) > MAX_AUTHORS:
            del self.authors[0]
        return True

    def absorb(self, other: Cluster, keep: int) -> None:
        """Take over all that was another's; rates must be at the same moment."""
        self.rates.add(other.rates)
        self.posts += other.posts
        self.first_at, self.last_at = min(self.first_at, other.first_at), max(self.last_at, other.last_at)
        self.touched_post = max(self.touched_post, other.touched_post)
        self.touched_s = max(self.touched_s, other.touched_s)
        for mine, theirs in (
            (self.categories, other.categories),
            (self.languages, other.languages),
            (self.sources, other.sources),
        ):
            for key, n in theirs.items():
                name = _source(mine, key) if mine is self.sources else key
                mine[name] = mine.get(name, 0) + n
        for term, amount in other.terms.items():
            self.terms[term] = self.terms.get(term, 0.0) + amount
        self.authors = list(dict.fromkeys(self.authors + other.authors))[-MAX_AUTHORS:]
        for member in other.examples:
            self.keep_example(member, keep)

    def forget(self, member: Member) -> None:
        """Leave no trace of a post in what is shown: examples and the counts by category, language, source."""
        self.examples = [m for m in self.examples if m.post_id != member.post_id]
        for counts, keys in (
            (self.categories, member.queries),
            (self.languages, (member.lang,)),
            (self.sources, (_source(self.sources, member.source),)),
        ):
            for key in keys:
                if counts.get(key, 0) > 1:
                    counts[key] -= 1
                else:
                    counts.pop(key, None)


def _source(counts: dict[str, int], name: str) -> str:
    return name if name in counts or len(counts) < MAX_SOURCES else OTHER
