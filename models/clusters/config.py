"""The clusterer's settings."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from models.errors import ConfigError

__all__ = ["ClusterConfig"]


@dataclass(frozen=True)
class ClusterConfig:
    """How clusters form, live, speak and are remembered. Thresholds belong to an encoder: measure them for yours."""

    lexical: float = 0.6  # share of the words in a similarity; 0 = meaning alone
    t_attach: float = 0.22  # mean similarity to join; both measured on one stream of tweets for the bundled encoder
    t_merge: float = 0.12  # average similarity to merge; below t_attach: two averages are safer than one post
    merge_every_posts: int = 1_000  # fewer are less evidence: of the tweets 500 cost .006 B³, 300 .011, 100 .024
    merge_soon_s: float = 1.0  # on a stream that takes longer for them: after this much stream time and at least
    merge_soon_posts: int = 300  # so many posts
    merge_every_s: float = 1_800.0  # on a slow stream: after this much stream time and at least
    merge_least_posts: int = 100  # so many posts
    settle_every_posts: int = 200  # between merges, join what is nearer than t_attach and announce: arrival ids
    settle_soon_s: float = 0.5  # gain, final ones lose nothing; or after this much stream time and at least
    settle_soon_posts: int = 50  # so many posts
    settle_every_s: float = 10.0  # or after this much stream time
    ttl_posts: int = 4_000  # a cluster ends when it got nothing for this many posts and this long:
    ttl_s: float = 6 * 3600.0  # posts alone end it within seconds on a fast stream, time alone never on a still one
    ttl_single_posts: int = 1_000  # the same for a single post: most never get a second (250 to 4,000: same B³)
    ttl_single_s: float = 600.0
    ttl_most_s: float = 7 * 24 * 3600.0  # or nothing for longer than this, however few posts came: else, on a slow
    # stream, incidents months apart are one (26 crises: B³ F1 .645 → .702; 3 days .665, 14 days .686)
    max_clusters: int = 8_192  # the cost of a post follows the live clusters: beyond this the stalest singles go
    half_life_s: float = 6 * 3600.0  # of weights and of label terms
    announce_at: int = 3  # posts, repeats included, counted after a merge: ids given at arrival are often short-lived
    examples_kept: int = 12  # a uniform sample of posts: the medoid is chosen from it, an encoder swap re-reads it
    examples_shown: int = 3  # beside the medoid
    label_terms: int = 4
    burst_fast_s: float = 600.0  # the two rates a burst compares
    burst_slow_s: float = 6 * 3600.0
    burst_levels: tuple[float, ...] = (3.0, 6.0, 12.0)  # deviations; passing one, either way, is worth an event
    quiet_s: float = 120.0  # least stream time between two burst or label events of one cluster
    remember_posts: int = 100_000  # post → cluster; repeats and deletions of older posts are counted as unplaced
    remember_members: int = 5_000  # posts kept whole, to take a deleted one out exactly: most of a snapshot's bytes
    remember_ids: int = 100_000  # redirects, and expired ids
    salt: str = ""  # ids of two deployments over the same posts differ if their salts do

    def __post_init__(self) -> None:
        for name in ("t_attach", "t_merge"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ConfigError(f"{name} is {getattr(self, name)}: a mean cosine between 0 and 1, exclusive")
        if not 0.0 <= self.lexical < 1.0:
            raise ConfigError(f"lexical is {self.lexical}: a share between 0 and 1, below 1")
        if self.t_merge > self.t_attach:
            raise ConfigError(f"t_merge {self.t_merge} is above t_attach {self.t_attach}: it must not be")
        for name in (
            "merge_every_posts",
            "merge_soon_posts",
            "merge_every_s",
            "settle_every_posts",
            "settle_soon_posts",
            "settle_every_s",
            "max_clusters",
            "announce_at",
            "examples_kept",
            "label_terms",
            "remember_posts",
            "remember_members",
            "remember_ids",
        ):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}: must be above 0")
        least = ("ttl_posts", "ttl_s", "ttl_single_posts", "ttl_single_s", "ttl_most_s", "quiet_s", "examples_shown")
        for name in (*least, "merge_least_posts", "merge_soon_s", "settle_soon_s"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} is {getattr(self, name)}: must not be negative")
        for name in ("half_life_s", "burst_fast_s"):
            if not getattr(self, name) >= 0.1:
                raise ConfigError(f"{name} is {getattr(self, name)}: below 0.1 all is forgotten before the next post")
        if not self.burst_slow_s > self.burst_fast_s:
            raise ConfigError(
                f"burst_slow_s {self.burst_slow_s} is not above burst_fast_s {self.burst_fast_s}: a burst is what the "
                "fast rate has above the slow one"
            )
        if not all(low < high for low, high in pairwise((0.0, *self.burst_levels))):
            raise ConfigError(
                f"burst_levels are {list(self.burst_levels)}: each must be above the one before, and above 0"
            )
