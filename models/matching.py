"""Scores posts against queries, and turns scores into matches by calibrated thresholds.

    score(post, query) = max over the query's languages of post · w + b
    with a learnt head (models/reading.py): how likely a responder could act on the post, as far as it is this one

The first is about 1 on the query's own sentences, 0 on what it must not answer to. (w, b) is a direction
(models/query_ridge.py, models/directions.py), fitted on the query's sentences in all languages against fixed material
(models/contrast.py): everyday and news texts, and the bundled sentences of other categories. A query's scores depend
on that query and fixed material alone, so adding one never changes another's scores. Where it alerts, and how likely
a score is: models/levels.py. A post is read once: its likeliest readings, at most three, and never the need and the
offer of one category together.

Of very many queries most say nothing of a post. Those that a head was taught, a calibration measured or people
corrected are scored for every post; of all others, such as users add, only those that `models/screen.py` cannot rule
out: the same matches as by scoring all (models/pairs.py).

Measured with an earlier static encoder: mean average precision by category on the half of the labelled disaster
messages nothing was fitted on (English; Haitian Creole as sent), of needs and offers among the Nepal and Italy posts,
by query on the demo stream; and the recall there where 3 ordinary posts in 1,000 pass
(`training/results/calibrate.json`).

    scoring                               en     ht     need   offer  demo   recall
    nearest sentence                      .182   .214   .044   .252   .421   .49
    mean of the sentences                 .241   .209   .135   .268   .333   .42
    mean − half the nearest background    .235   .214   .146   .277   .345   .45
    ridge                                 .230   .211   .142   .297   .425   .39
    ridge, accents   (a query just added) .225   .219   .133   .288   .494   .52
    + labelled posts, near misses         .303   .246   .213   .282   .429   .55   (the bundled queries)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.errors import VersionMismatch
from models.levels import MatchConfig, Thresholds
from models.pairs import READINGS, Pairs, reached_by_scored, reached_by_screened, readings
from models.records import Match, Post
from models.standing import StandingQueries
from models.telling import tell

__all__ = ["READINGS", "MatchConfig", "Matcher", "Thresholds"]


class Matcher(StandingQueries):
    """The standing queries, and what posts read as by them."""

    def match(
        self,
        post_ids: Sequence[str],
        vectors: np.ndarray,
        encoder_version: str,
        posts: Sequence[Post] | None = None,
    ) -> list[Match]:
        """As `match_rows`, without the rows."""
        return [match for _, match in self.match_rows(post_ids, vectors, encoder_version, posts)]

    def match_rows(
        self,
        post_ids: Sequence[str],
        vectors: np.ndarray,
        encoder_version: str,
        posts: Sequence[Post] | None = None,
    ) -> list[tuple[int, Match]]:
        """The readings of each post in order, each with the row of its post, the likeliest first: at most READINGS, and
        of the need and the offer of one category the likelier alone.

        posts: the posts themselves, row by row, where they are known: what a query leaves out (models/filters.py) is
        then no reading, what people taught counts (it hangs on the language), and the nearest sentence is told
        in their language. Raises VersionMismatch if the vectors come from another encoder version.
        """
        if encoder_version != self.encoder_version:
            raise VersionMismatch(f"vectors of {encoder_version} against queries of {self.encoder_version}")
        self.check_shape(vectors)
        if not len(vectors) or not self.queries:
            return []
        both = reached_by_scored(self, vectors, posts), reached_by_screened(self, vectors, posts)
        pairs = Pairs(*(np.concatenate(columns) for columns in zip(*both, strict=True)))
        pairs = pairs.of(np.lexsort((pairs.which, pairs.rows)))
        if posts is not None and (asking := np.flatnonzero(self._filtered[pairs.which])).size:
            taken = np.ones(len(pairs.rows), bool)
            for at in asking:
                taken[at] = not self.refusal(int(pairs.which[at]), posts[pairs.rows[at]])
            pairs = pairs.of(taken)
        read = pairs.of(readings(self, pairs))
        return list(zip(read.rows.tolist(), tell(self, post_ids, vectors, posts, read), strict=True))
