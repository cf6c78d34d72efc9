"""What distillation and its kin learn from: which sources, how often, which half, which files are refused."""

import gzip

import numpy as np
import pytest

from training import distill, robust, shorten
from training.corpus import SOURCE_WEIGHT, Bags, Corpus, capped, pair_weights, without_accents
from training.data import Pairs, in_train_half, training_pairs
from training.files import DataError, read_aligned, read_rows
from training.robust_texts import texts_of
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


def test_interface_strings_and_word_lists_are_drawn_less_than_prose():
    sources = ["debian-games", "debian-docs", "freedict", "humanitarian-l10n", "debian-apps", "software-l10n"]
    chance = pair_weights(["fr"] * 6, sources, 0.4)
    assert chance[0] == chance[1] and all(chance[2:] < 0.4 * chance[0])
    assert chance[4] == chance[5] < 0.1 * chance[0]  # strings of programs


def drawn_by_distillation() -> list[str]:
    corpus = distill.load_corpus(distill.Config(dim=2))
    chosen = np.random.default_rng(1).choice(len(corpus.chance), 300, p=corpus.chance)
    return [corpus.texts[i] for i in corpus.text_id[chosen]]


def drawn_by_shortening() -> list[str]:
    return shorten.material(shorten.Config(pairs=300))[0]


def drawn_by_the_robust_job() -> list[str]:
    return [text.text for text in robust.read_corpus(robust.Config(max_texts=600))]


@pytest.mark.parametrize("job", [drawn_by_distillation, drawn_by_shortening, drawn_by_the_robust_job])
def test_every_job_that_draws_pairs_draws_few_strings_of_programs(job, tmp_path, monkeypatch):
    sides = [[f"{what} {side} {i}" for what in ("button", "prose") for i in range(1000)] for side in ("en", "fr")]
    pairs = Pairs(*sides, ["fr"] * 2000, ["software-l10n"] * 1000 + ["debian-games"] * 1000, "")
    for module in (distill, shorten, robust):
        monkeypatch.setattr(module, "training_pairs", lambda *_: pairs)
    monkeypatch.setattr(distill, "encode_with_teacher", lambda texts: np.ones((len(texts), 2), np.float32))
    monkeypatch.setattr(shorten, "read_posts", lambda root: [])
    monkeypatch.setenv("CRISIS_DATA", str(tmp_path))
    drawn = [text for text in job() if text.startswith(("button", "prose"))]
    assert len(drawn) >= 300 and sum(text.startswith("button") for text in drawn) < 0.15 * len(drawn)


def test_a_text_of_several_sources_weighs_as_in_the_one_that_is_drawn_most():
    given = ["open it", "open it", "help"], ["louvri li", "louvri li", "sekou"], ["ht"] * 3
    pairs = Pairs(*given, ["software-l10n", "tatoeba-train", "debian-apps"], "")
    weights = {(text.text, text.lang): text.weight for text in texts_of(pairs, with_english=False)}
    assert weights[("louvri li", "ht")] == weights[("open it", "en")] == SOURCE_WEIGHT["tatoeba-train"]
    assert weights[("sekou", "ht")] == weights[("help", "en")] == SOURCE_WEIGHT["debian-apps"]
    told = [(text.text, text.english) for text in texts_of(pairs, with_english=True)]
    assert told == [("help", ""), ("louvri li", "open it"), ("open it", ""), ("sekou", "help")]


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
