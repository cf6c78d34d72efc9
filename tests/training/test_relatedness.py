"""Best–worst scores by hand, and reliability where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from training import relatedness
from training.evaluate.relatedness import lexical_overlap, whole_word_overlap
from training.files import DataError
from training.jobs import run
from training.relatedness import (
    Judgements,
    best_worst_scores,
    read_judgements,
    split_half_reliability,
    to_unit,
)

HEADER = "item1\titem2\titem3\titem4\tbest\tworst\n"


def judged(rng: np.random.Generator, items: int, tuples: int, times: int, noise: float) -> Judgements:
    """People who see a hidden order through noise."""
    truth = np.arange(items) / items
    chosen = np.repeat([rng.choice(items, 4, replace=False) for _ in range(tuples)], times, axis=0)
    seen = truth[chosen] + noise * rng.normal(size=chosen.shape)
    rows = np.arange(len(chosen))
    return Judgements(
        [str(i) for i in range(items)], chosen, chosen[rows, seen.argmax(1)], chosen[rows, seen.argmin(1)]
    )


def test_scores_are_the_share_as_best_minus_the_share_as_worst():
    tuples = np.array([[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 4, 2]])
    found = best_worst_scores(Judgements(list("abcdef"), tuples, np.array([0, 0, 1]), np.array([3, 2, 4])))
    np.testing.assert_allclose(found, [2 / 3, 1 / 3, -1 / 3, -1 / 2, -1, np.nan])
    np.testing.assert_allclose(to_unit(np.array([-1.0, 0, 1])), [0, 0.5, 1])


def test_scores_recover_the_order_people_see():
    judgements = judged(np.random.default_rng(0), items=40, tuples=400, times=1, noise=0.0)
    scores = best_worst_scores(judgements)
    assert np.corrcoef(scores, np.arange(40))[0, 1] > 0.95


def test_agreeing_people_are_reliable_and_guessing_ones_are_not():
    rng = np.random.default_rng(1)
    agreeing = split_half_reliability(judged(rng, 40, 80, 4, 0.0), seed=1, repeats=50)
    slack = split_half_reliability(judged(rng, 40, 80, 4, 0.3), seed=1, repeats=50)
    guessing = split_half_reliability(judged(rng, 40, 80, 4, 100.0), seed=1, repeats=50)
    assert agreeing == pytest.approx(1.0)  # both halves hold the same answers
    assert 0.6 < slack < 1 and abs(guessing) < 0.25
    judgements = judged(rng, 20, 60, 1, 0.0)  # every tuple judged once: the tuples are halved
    assert 0.7 < split_half_reliability(judgements, seed=1, repeats=20) < 1
    assert split_half_reliability(judgements, 1, 5) == split_half_reliability(judgements, 1, 5)


def test_split_half_reliability_by_hand():
    """One tuple, judged twice: each half is one judgement, whichever it is. Best a then best b, worst d both times:
    scores 1 0 0 −1 and 0 1 0 −1, ranks 4 2½ 2½ 1 and 2½ 4 2½ 1, correlation (1½ · 1½) / (2 · 1½²) = ½."""
    tuples = np.array([[0, 1, 2, 3], [0, 1, 2, 3]])
    judgements = Judgements(list("abcd"), tuples, np.array([0, 1]), np.array([3, 3]))
    assert split_half_reliability(judgements, seed=1, repeats=7) == pytest.approx(0.5)


def test_a_file_gives_judgements_and_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "bws.tsv"
    path.write_text(HEADER + "a\tb\tc\td\ta\td\nb\ta\te\tc\te\tb\n")
    judgements = read_judgements(path)
    assert judgements.items == ["a", "b", "c", "d", "e"]
    np.testing.assert_allclose(best_worst_scores(judgements), [0.5, -0.5, 0, -1, 1])
    for row, message in {
        "a\tb\tc\ta\ta\tb": "line 2: wanted four different items",
        "a\tb\tc\td\tx\tb": "line 2: best 'x' and worst 'b'",
        "a\tb\tc\td\ta\ta": "line 2: best 'a' and worst 'a'",
    }.items():
        path.write_text(HEADER + row + "\n")
        with pytest.raises(DataError, match=message):
            read_judgements(path)
    path.write_text("a\tb\n")
    with pytest.raises(DataError, match="line 1: the header"):
        read_judgements(path)
    with pytest.raises(DataError, match="missing data file"):
        read_judgements(tmp_path / "none.tsv")
    path.write_bytes(HEADER.encode() + b"\xff\n")
    with pytest.raises(DataError, match=f"damaged data file .*byte 0xff in position {len(HEADER)}"):
        read_judgements(path)


def test_the_command_prints_scores_and_tells_its_usage_and_what_is_wrong(tmp_path, capsys):
    path = tmp_path / "bws.tsv"
    path.write_text(HEADER + "a\tb\tc\td\ta\td\n" * 2)

    def command(*words: str) -> None:
        run(relatedness.main, {"FILE": relatedness.Config("FILE")}, words, read=relatedness.read_words)

    command(str(path))
    told = capsys.readouterr()
    assert told.out == "a\t1.0000\nb\t0.5000\nc\t0.5000\nd\t0.0000\n" and told.err == "# split-half reliability 1.000\n"
    for words, status in (["--help"], 0), ([], 2):
        with pytest.raises(SystemExit) as asked:
            command(*words)
        told = capsys.readouterr().out
        assert asked.value.code == status and "python -m training.relatedness" in told
        assert "item1 item2 item3 item4 best worst" in told and "seed=1" in told
    with pytest.raises(SystemExit, match="^error: name the judgements first"):
        command("seed=2")
    with pytest.raises(SystemExit, match="^error: unknown knob 'more'"):
        command(str(path), "more")
    with pytest.raises(SystemExit, match="^error: missing data file .*none.tsv"):
        command(str(tmp_path / "none.tsv"))


def test_the_lexical_overlap_baseline_is_dice():
    assert lexical_overlap("the river rose", "The river fell fast") == pytest.approx(2 * 2 / (3 + 4))
    assert lexical_overlap("a b", "a b") == 1 and lexical_overlap("a", "b") == 0


def test_whole_words_keep_their_vowel_signs_and_apostrophes():
    r"""Hindi "ki" and "ka" are one letter and two signs: `\w` sees the letter alone."""
    assert lexical_overlap("कि", "का") == 1 and whole_word_overlap("कि", "का") == 0
    assert whole_word_overlap("पानी नहीं", "पानी है") == pytest.approx(2 / 4)
    assert whole_word_overlap("ba'a 'yan' gudu", "ba’a yan zo") == pytest.approx(2 * 1 / 6)  # two kinds of apostrophe
    assert whole_word_overlap("The river rose.", "the RIVER, fell fast") == pytest.approx(2 * 2 / (3 + 4))
    assert whole_word_overlap("", "…") == 0
