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


LIMITED = msgspec.structs.replace(NEED, alerts_per_hour=5.0)
RIGHT = msgspec.structs.replace(NEED, target_precision=0.8)
IN_DOUBT = np.array([0.35, 0.3, 0.3, 0], np.float32)  # of need.water, below one half and above a suggestion


@pytest.mark.parametrize(
    "queries, vector, said",
    [
        (
            [LIMITED],
            SURE,
            r"^It alerts, read now, unless its limit of 5 alerts an hour .* not known here: need\.water at 100 %",
        ),
        ([LIMITED], IN_DOUBT, r"^No query is likely enough: nearest is need\.water at .* below the 50 %"),
        ([LIMITED, OFFER], np.eye(DIM, dtype=np.float32)[1], r"^It does alert, read now: offer\.water"),
        ([RIGHT], SURE, r"^It may alert, read now: need\.water at 100 %; its bar .* 80 % of its alerts .* not known"),
        ([RIGHT], IN_DOUBT, r"^It may alert, read now: need\.water at"),
        ([FOOD], SURE, r"nearest is need\.food at 0 %, .*; it reads as need\.water, which no query listens for\.$"),
        ([IN_CREOLE, OFFER], SURE, r"^need\.water at 100 % leaves it out"),
    ],
)
def test_where_the_bar_follows_the_stream_it_says_no_more_than_is_known(queries, vector, said):
    assert re.search(said, why_not(matcher(*queries), POST, vector))


def test_what_a_budget_held_back_is_told_so_and_what_is_urgent_alerts_beside_it():
    made = matcher(LIMITED)
    (read,) = made.match(["p"], SURE[None], "axes", [POST])
    held = msgspec.structs.replace(read, level="suggestion", threshold=0.9999)
    told = why_not(made, POST, SURE, [held])
    assert told.startswith("need.water at 100 % is held back by its limit of 5 alerts an hour: when it came")
    urgent = matcher(LIMITED, learnt=head(priority=[0.0] * DIM + [5.0, 5.0]))
    assert why_not(urgent, POST, SURE).startswith("It does alert, read now: need.water at 100 %")


def test_a_language_moves_what_is_said_as_it_moves_the_match():
    made = matcher(NEED, FOOD, learnt=head(languages={"ht": -1.0, "ar": 2.0}))
    vector = np.array([0.1, 0, 0, 0], np.float32)
    for lang in ("ht", "en", "ar"):
        post = msgspec.structs.replace(POST, lang=lang)
        first = made.match(["p"], vector[None], "axes", [post])[0]
        told = why_not(made, post, vector)
        assert f"need.water at {100 * first.score:.0f} %" in told, told
        assert told.startswith("It does alert") == (first.level == "alert") == (lang == "ar")


def test_the_threshold_of_the_moment_counts_where_the_pipeline_gave_one():
    made = matcher(NEED, learnt=head())
    vector = np.array([0.1, 0, 0, 0], np.float32)
    (given,) = matcher(msgspec.structs.replace(NEED, threshold=0.95)).match(["p"], vector[None] * 5, "axes")
    told = why_not(made, POST, vector * 5, [given])
    assert "below the 95 %" in told and told.endswith("It was shown as a suggestion.")
