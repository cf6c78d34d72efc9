"""Other multilingual encoders stand beside ours in the report, and it says on which split and how many languages."""

from __future__ import annotations

import pytest

from training.evaluate import headline, published
from training.evaluate.relatedness import MTEB_LANGUAGES, PAPER_LANGUAGES, summary
from training.evaluate.report_vectors import matching, relatedness


def related(langs, **spearman: float) -> dict:
    """Figures of SemRel by language: .6, but where one is given."""
    row = {"low": None, "high": None, "overlap": 0.5, "overlap_words": 0.5, "pairs": 100}
    return {lang: {"spearman": spearman.get(lang, 0.6), **row} for lang in langs}


def matched(**accuracy: float) -> dict:
    row = {"low": None, "high": None, "cosine_distance": 0.1, "xsim": 1.0, "sentences": 9, "script": "Latn"}
    by_lang = {lang: {"en_to_xx": a, "xx_to_en": a, "matching": a, **row} for lang, a in accuracy.items()}
    return {"by_language": by_lang, "by_script": {"Latn": {"matching": 0.5, "languages": len(by_lang)}}}


def test_every_peer_has_its_figures_and_a_mean_is_that_of_its_file():
    for peer in published.PEERS:
        assert len(published.find(paper="MTEB", system=peer)) == 3
    # minishlab__potion-multilingual-128M/SemRel24STS.json, test, main_score: afr amh arb arq ary eng hau hin ind kin …
    scores = [0.761834, 0.739858, 0.451331, 0.454603, 0.406049, 0.803374, 0.47492, 0.739034, 0.435359, 0.325767]
    scores += [0.750527, 0.758372]  # mar tel
    (row,) = published.find(paper="MTEB", system="potion-multilingual-128M", metric="spearman")
    assert len(scores) == len(MTEB_LANGUAGES) == 12 and row.value == pytest.approx(sum(scores) / 12, abs=5e-4)


def test_the_peers_stand_under_ntrex_with_their_lowest_language_and_under_no_other_set():
    text = matching({"ntrex128": matched(fr=0.9, am=0.5)})
    assert "| ours | 2 | 0.700 | 0.50 (am) |\n| LaBSE (published) | 52 | 0.984 | 0.43 (ckb) |" in text
    assert all(f"| {peer} (published) | 52 |" in text for peer in published.PEERS)
    assert "bekko" not in matching({"flores200 devtest": matched(fr=0.9)})


def test_the_peers_stand_under_semrel_over_the_same_languages_and_their_split_is_told():
    of = related([*PAPER_LANGUAGES, "pa"], es=0.0, pa=-0.2)
    text = relatedness({"SemRel2024 dev": {**summary(of), "by_language": of}})
    assert "mean of 14 languages 0.500, of the paper's 13 0.554" in text
    assert "| ours | dev | 12 | 0.600 |\n| LaBSE (published) | test | 12 | 0.623 |" in text
    assert "ours is its dev split" in text and "MTEB's result files, also the test split" in text
    few = relatedness({"SemRel2024 dev": {**summary(of := related(["en", "hi"])), "by_language": of}})
    assert "mean of 2 languages" in few and "the paper's 13" not in few and "bekko" not in few
    assert "bekko" not in relatedness({"STS-B test": {**summary(of := related(PAPER_LANGUAGES)), "by_language": of}})


def test_the_mean_of_the_papers_thirteen_languages_stands_beside_that_of_all_where_all_are_there():
    found = summary(related([*PAPER_LANGUAGES, "pa"], pa=-0.2))
    assert found["mean_paper"] == pytest.approx(0.6) and found["mean"] == pytest.approx((13 * 0.6 - 0.2) / 14)
    assert len(PAPER_LANGUAGES) == 13 == len(published.by_part("LaBSE", paper="Ousidhoum 2024", table="12"))
    assert set(PAPER_LANGUAGES) == set(published.by_part("LaBSE", paper="Ousidhoum 2024", table="12"))
    assert summary(related(["en", "pa"]))["mean_paper"] is None
    of_needs = {"originals": 0.3, "translations": 0.4, "ratio": 0.75, "chance": 0.1, "translation_matching": 0.9}
    accuracy = {"set": "x", "languages_paper": 1, "by_language": {"fr": 0.9}}
    accuracy |= dict.fromkeys(("mean_all", "mean_paper", "mean_best_15", "lowest_paper", "below_0.45"), 0.9)
    of = {"set": "SemRel2024 dev", **found, "by_language": related(["en"])}
    told = headline.show({"matching": accuracy, "relatedness": of, "needs": {**of_needs, "by_label": {}}})
    assert "SemRel2024 dev: 14 languages 0.543 (overlap 0.500), the paper's 13 0.600," in told
