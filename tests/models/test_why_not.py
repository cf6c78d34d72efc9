"""Why a post gave no alert: one sentence, with the numbers the matcher has."""

import re

import msgspec
import numpy as np
import pytest

from models.filters import Where
from models.records import Post
from models.why_not import why_not
from tests.models.test_reading import DIM, FOOD, NEED, OFFER, head, matcher

SURE = np.eye(DIM, dtype=np.float32)[0]  # of need.water
POST = Post("p", "we have no water", 0.0, 0.0, lang="en")


IN_CREOLE = msgspec.structs.replace(NEED, where=Where(languages=["ht"]))
ENDED = msgspec.structs.replace(NEED, expires="1970-01-01T00:00:00Z")
STRICT, LENIENT = msgspec.structs.replace(NEED, probability=0.9), msgspec.structs.replace(OFFER, probability=0.3)
BETWEEN = np.array([0.5, 0.45, 0, 0], np.float32)


@pytest.mark.parametrize(
    "queries, vector, said",
    [
        ([], SURE, "There is no query"),
        ([IN_CREOLE, FOOD], SURE, r"need\.water at 100 % leaves it out: its language is en, the query reads ht\.$"),
        ([ENDED, FOOD], SURE, "leaves it out: the query ended at"),
        ([NEED, FOOD], np.eye(DIM, dtype=np.float32)[3], r"need\.\w+ at 0 %, 50 points below .*; it reads as news\.$"),
        ([STRICT, LENIENT], BETWEEN, r"offer\.water .* would alert, but need\.water at \d+ % is .* from 90 % on\.$"),
        ([NEED, FOOD], SURE, r"It does alert, read now: need\.water at 100 %"),
    ],
)
def test_the_sentence_names_the_query_and_what_kept_it_back(queries, vector, said):
    assert re.search(said, why_not(matcher(*queries), POST, vector))


def test_the_threshold_of_the_moment_counts_where_the_pipeline_gave_one():
    made = matcher(NEED, learnt=head())
    vector = np.array([0.1, 0, 0, 0], np.float32)
    (given,) = matcher(msgspec.structs.replace(NEED, threshold=0.95)).match(["p"], vector[None] * 5, "axes")
    told = why_not(made, POST, vector * 5, [given])
    assert "below the 95 %" in told and told.endswith("It was shown as a suggestion.")
