"""No input costs more than its length: what a stranger may write grows the work in proportion, whatever it says.

The costliest inputs, in µs a byte: `python -m tests.hostile`.
"""

import time

import numpy as np
import pytest

from models.errors import Rejected
from models.posts import MAX_TEXT_CHARS, parse_post
from models.records import Frame, Origin, Post
from models.text import MOST_MARKS, READ_CHARS, clean, mask, repair
from streams.pipeline import stages
from tests.hostile.inputs import LINES, TEXTS, line


def seconds(work, argument):
    """CPU of this thread, the best of three: a busy machine makes no input dear."""
    best = float("inf")
    for _ in range(3):
        begun = time.thread_time()
        work(argument)
        best = min(best, time.thread_time() - begun)
    return best


def assert_in_proportion(work, make, length):
    """Sixteen times the length may cost eighty times as much: 16 is the law, 256 is the square, 20 ms are anybody's.

    Measured up to three times: a neighbour who fills the caches makes an input dear once, a square is one each time.
    """
    for _ in range(3):
        short, long = seconds(work, make(length // 16)), seconds(work, make(length))
        if long < 80 * short + 0.02:
            return
    pytest.fail(f"{length // 16}: {short * 1e3:.1f} ms, {length}: {long * 1e3:.1f} ms")


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("work", [clean, repair, mask])
def test_a_text_costs_in_proportion_to_its_length(work, name):
    assert_in_proportion(work, TEXTS[name], MAX_TEXT_CHARS)


def refused(record):
    for part in record.split(b"\n"):
        try:
            parse_post(part, seen_at=1.7e9, author_key=b"k")
        except Rejected:
            pass


@pytest.mark.parametrize("name", LINES)
def test_a_line_costs_in_proportion_to_its_length(name):
    assert_in_proportion(refused, LINES[name], 200_000)


def test_a_repeated_key_in_a_line_of_full_length_is_found():
    record = LINES["a key twice, at the end"](880_000)
    with pytest.raises(Rejected, match="stands there twice"):
        parse_post(record, seen_at=1.7e9, author_key=b"k")  # it took minutes, beyond any test's time limit


@pytest.mark.parametrize("name", TEXTS)
def test_an_encoder_reads_so_many_characters_and_no_more_whatever_they_unfold_to(name):
    once = clean(TEXTS[name](MAX_TEXT_CHARS))
    assert len(once) <= READ_CHARS and clean(once) == once
    import unicodedata

    assert len(unicodedata.normalize("NFKC", once)) <= 2 * READ_CHARS


def test_what_is_cut_for_the_encoder_is_cut_between_words():
    text = "we need water and bread " * 400
    assert text.startswith(clean(text) + " ") and len(clean(text)) > READ_CHARS - 10


def test_marks_beyond_what_any_script_stacks_are_left_out_and_fewer_stay():
    import unicodedata

    stacked = "a" + "\u0323" * (MOST_MARKS - 5)
    assert repair(stacked) == unicodedata.normalize("NFC", stacked)
    assert len(repair("a" + "\u0301\u0323" * 2000)) <= MOST_MARKS + 1


def test_one_encoder_call_is_bounded_by_characters_however_many_posts_come_together():
    calls = []

    class Counting:
        version, dim = "v", 4

        def encode(self, texts):
            calls.append(sum(min(len(t), READ_CHARS) for t in texts))
            return np.ones((len(texts), 4), np.float32) / 2

    frames = [Frame(Origin(0, n), [Post(f"{n}/{i}", "x" * 9_000, 1.0, 1.0) for i in range(100)]) for n in range(8)]
    embedded = stages.embed_many(frames, Counting())
    assert max(calls) <= stages.CALL_CHARS and sum(calls) == 800 * READ_CHARS
    assert [len(frame.vectors) for frame in embedded] == [100 * 4 * 2] * 8


def test_a_post_of_ordinary_length_is_parsed_as_ever():
    assert (
        parse_post(line("We need water at the bridge"), seen_at=1.7e9, author_key=b"k").text
        == "We need water at the bridge"
    )
