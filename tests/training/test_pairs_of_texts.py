"""What distillation and its kin learn from: which sources, how often, which half, which files are refused."""

import gzip

import numpy as np
import pytest

from training.corpus import SOURCE_WEIGHT, Bags, Corpus, capped, pair_weights, without_accents
from training.data import Pairs, in_train_half, training_pairs
from training.files import DataError, read_aligned, read_rows
from training.shorten import UI_STRINGS
from training.students import set_aside


def test_a_source_that_may_not_be_shipped_is_refused_with_its_reason(tmp_path):
    with pytest.raises(DataError, match="NC"):
        training_pairs(tmp_path, ("lafand-mt",))


def test_free_software_texts_are_read_without_those_that_state_no_licence(tmp_path):
    rows = {
        "debian-games": ["wesnoth-1.16-data\tfr\tWe must cross tonight.\tIl faut traverser ce soir."],
        "debian-docs": ["gnome-user-docs\tru\tOpen it.\tОткройте.", "ddtp\tru\tThis package.\tЭтот пакет."],
        "debian-apps": ["atril-common\taf\tCancel print\tKanselleer druk"],
        "freedict": ["freedict-afr-eng\taf\tabacus\tabakus"],
    }
    for name, lines in rows.items():
        (tmp_path / name).mkdir()
        with gzip.open(tmp_path / name / f"{name.replace('-', '_')}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(["source\tlang\ten\txx", *lines, ""]))
    pairs = training_pairs(tmp_path, tuple(rows))
    assert list(zip(pairs.source, pairs.lang, pairs.english, strict=True)) == [
        ("debian-games", "fr", "We must cross tonight."),
        ("debian-docs", "ru", "Open it."),
        ("debian-apps", "af", "Cancel print"),
        ("freedict", "af", "abacus"),
    ]
    with pytest.raises(DataError, match="no licence stated"):
        training_pairs(tmp_path, ("ddtp",))


@pytest.mark.parametrize("weights", [SOURCE_WEIGHT, {**SOURCE_WEIGHT, **UI_STRINGS}])
def test_interface_strings_and_word_lists_are_drawn_less_than_prose(weights):
    sources = ["debian-games", "debian-docs", "debian-apps", "freedict"]
    chance = pair_weights(["fr"] * 4, sources, 0.4, weights)
    assert chance[0] == chance[1] and all(chance[2:] < 0.4 * chance[0])
    if "software-l10n" in weights:
        assert weights["debian-apps"] == weights["software-l10n"]


def test_missing_damaged_and_misaligned_files_are_named_with_count_and_line(tmp_path):
    with pytest.raises(DataError, match="missing"):
        list(read_rows(tmp_path / "x.tsv.gz"))
    (tmp_path / "x.tsv.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match="damaged"):
        list(read_rows(tmp_path / "x.tsv.gz"))
    with gzip.open(tmp_path / "x.tsv.gz", "wt") as file:
        file.write("a\tb\n1\t2\n3\n")
    with pytest.raises(DataError, match="line 3: 1 columns"):
        list(read_rows(tmp_path / "x.tsv.gz"))
    for lang, lines in (("en", "a\nb\nc\n"), ("fr", "a\nb\n")):
        with gzip.open(tmp_path / f"{lang}.txt.gz", "wt") as file:
            file.write(lines)
    with pytest.raises(DataError, match="2 lines, en.txt.gz 3.*line 3"):
        read_aligned(tmp_path)


def test_the_halves_of_the_messages_are_halves_and_stay_so():
    halves = [in_train_half(f"f8-{i}") for i in range(4000)]
    assert 0.47 < np.mean(halves) < 0.53
    assert [in_train_half(f"f8-{i}") for i in (1, 2, 3, 4)] == halves[1:5]


def test_thin_languages_are_seen_more_often_than_their_share():
    weights = pair_weights(["fr"] * 90 + ["ht"] * 10, ["a"] * 100, 0.5, {})
    assert weights.sum() == pytest.approx(1)
    assert weights[90:].sum() == pytest.approx(10**0.5 / (10**0.5 + 90**0.5))


def test_bags_come_back_end_to_end():
    bags = Bags(np.arange(6, dtype=np.int32), np.array([0, 2, 2, 6]))
    pieces, offsets = bags.take(np.array([2, 0, 1]))
    assert pieces.tolist() == [2, 3, 4, 5, 0, 1]
    assert offsets.tolist() == [0, 4, 6]


def test_accents_go_from_latin_letters_only():
    assert without_accents("dlo nan lekòl la, số nhà") == "dlo nan lekol la, so nha"
    assert without_accents("पानी الماء") == "पानी الماء"


def test_no_source_gives_more_than_its_cap_of_one_language():
    pairs = Pairs(["e"] * 10, ["t"] * 10, ["fr"] * 6 + ["ht"] * 4, ["a"] * 5 + ["b"] * 5, "")
    kept = capped(pairs, 3, seed=1)
    assert [pairs.lang[i] + pairs.source[i] for i in kept] == ["fra"] * 3 + ["frb"] + ["htb"] * 3
    assert capped(pairs, 100, seed=1).tolist() == list(range(10))


def test_no_english_sentence_that_validates_is_learnt_and_each_counts_once():
    english_id = np.repeat(np.arange(100), 3)
    corpus = Corpus(
        [f"e{i}" for i in range(100)],
        [f"t{i}" for i in range(300)],
        english_id,
        np.arange(300),
        np.full(300, 1 / 300),
        np.zeros((100, 2), np.float32),
        "",
        {},
    )
    held, chance = set_aside(corpus, 7, seed=1)
    assert len(held) == len(set(english_id[held])) == 7
    assert set(english_id[chance == 0]) == set(english_id[held]) and (chance == 0).sum() == 21
    assert len(set_aside(corpus, 5_000, seed=1)[0]) == 10 and len(set_aside(corpus, 0, seed=1)[0]) == 1  # a tenth; one
