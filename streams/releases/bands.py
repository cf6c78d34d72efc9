"""When a canary must end: pure figures in, a reason out.

Both arms (current and staged version) serve different partitions of one stream. What a partition gets is chance, so a
difference counts only if it is large enough to matter *and* too large for chance. There is a look every second and one
per language, so chance gets many tries: hence 5 standard errors (the test simulates good versions and ends none).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct

__all__ = ["Arm", "Bands", "judge_all", "read_arm"]


class Bands(Struct, frozen=True):
    """How far a canary may be from the current version."""

    least_posts: int = 200  # of each arm before anything is judged; in a language, for its alert rate
    errors: float = 0.01  # share of posts the staged version failed on, above the current one's
    latency_ratio: float = 4.0  # mean encode time of a post against the current one's
    latency_ms: float = 5.0  # a slow-down below this many ms a post never matters
    alert_ratio: float = 3.0  # alert rate of a language may be so many times the current one's, or so little of it
    alert_rate: float = 0.02  # a smaller difference of two alert rates never matters
    z: float = 5.0  # standard errors a difference must have


class Arm(Struct):
    """What was counted of one version."""

    posts: int = 0
    errors: int = 0
    encode_ms: float = 0.0  # sum over its posts
    lang_posts: dict[str, int] = {}
    lang_alerts: dict[str, int] = {}  # posts with at least one alert

    @property
    def ms_per_post(self) -> float:
        return self.encode_ms / self.posts if self.posts else 0.0

    @property
    def error_rate(self) -> float:
        return self.errors / self.posts if self.posts else 0.0

    def alert_rate(self, lang: str) -> float:
        """Share of a language's posts that alerted."""
        posts = self.lang_posts.get(lang, 0)
        return self.lang_alerts.get(lang, 0) / posts if posts else 0.0


def read_arm(counts: Mapping[str, int], name: str) -> Arm:
    """One arm out of the flat counters `<name>:posts`, `<name>:posts:<lang>`, … (times in microseconds)."""
    arm = Arm(lang_posts={}, lang_alerts={})
    for field, n in counts.items():
        owner, what, *lang = field.split(":", 2)
        if owner != name:
            continue
        if lang:
            (arm.lang_posts if what == "posts" else arm.lang_alerts)[lang[0]] = n
        elif what == "encode_us":
            arm.encode_ms = n / 1000
        elif what in ("posts", "errors"):
            setattr(arm, what, n)
    return arm


def too_far(a: int, of_a: int, b: int, of_b: int, z: float) -> bool:
    """Are the shares a/of_a and b/of_b more than z standard errors apart? (pooled two-proportion test)"""
    pooled = (a + b) / (of_a + of_b)
    error = math.sqrt(pooled * (1 - pooled) * (1 / of_a + 1 / of_b))
    return abs(a / of_a - b / of_b) > z * error


def judge(current: Arm, staged: Arm, bands: Bands) -> str | None:
    """Why the staged version must go, with its figures; None while it stays within its bands."""
    if staged.posts < bands.least_posts:
        # A version that fails on nearly everything need not fail on a thousand posts to be known as bad.
        few = max(20, bands.least_posts // 10)
        if staged.posts >= few and staged.error_rate > 0.5:
            return f"errors on {staged.errors} of its first {staged.posts} posts"
        return None
    if current.posts < bands.least_posts:
        return None
    if staged.error_rate - current.error_rate > bands.errors and too_far(
        staged.errors, staged.posts, current.errors, current.posts, bands.z
    ):
        return (
            f"errors on {staged.error_rate:.1%} of {staged.posts} posts, "
            f"the current version on {current.error_rate:.1%}"
        )
    slower = staged.ms_per_post - current.ms_per_post
    if slower > bands.latency_ms and staged.ms_per_post > bands.latency_ratio * current.ms_per_post:
        return f"{staged.ms_per_post:.2f} ms a post, the current version {current.ms_per_post:.2f} ms"
    for lang in sorted(staged.lang_posts, key=staged.lang_posts.__getitem__, reverse=True):
        if reason := _judge_language(lang, current, staged, bands):
            return reason
    return None


def _judge_language(lang: str, current: Arm, staged: Arm, bands: Bands) -> str | None:
    of_staged, of_current = staged.lang_posts[lang], current.lang_posts.get(lang, 0)
    if min(of_staged, of_current) < bands.least_posts:
        return None
    mine, theirs = staged.alert_rate(lang), current.alert_rate(lang)
    low, high = sorted((mine, theirs))
    if high - low <= bands.alert_rate or high <= bands.alert_ratio * low:
        return None
    a, b = staged.lang_alerts.get(lang, 0), current.lang_alerts.get(lang, 0)
    if not too_far(a, of_staged, b, of_current, bands.z):
        return None
    return f"alerts on {mine:.1%} of {of_staged} {lang} posts, the current version on {theirs:.1%} of {of_current}"


def judge_all(counts: Mapping[str, int], bands: Bands) -> str | None:
    """`judge` over the flat counters of both arms."""
    return judge(read_arm(counts, "current"), read_arm(counts, "staged"), bands)
