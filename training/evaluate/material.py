"""What is measured on: the research sets of CRISIS_DATA, or sentences that come with the project.

The bundled ones are there so that the `smoke` preset runs anywhere; figures on them say that the measure works and
little about the encoder, which was made with such sentences at hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from msgspec import Struct

from models.queries import load_queries
from training.data import data_dir, read_lines, read_rows
from training.evaluate.matching import aligned_set
from training.evaluate.relatedness import SETS, Pairs, scored_pairs
from training.tables import bundled_posts
from training.whiten import bundled_pairs

__all__ = ["standard_english"]

PARALLEL = ("flores200 devtest", "ntrex128", "tico19 test")
# Our name of a labelled set: its folder, the name of its twin in the CrisisTransformers papers (other rows, other
# cleaning)
LABELLED = {
    "crisislex-t26": "CrisisLex",
    "crisisnlp-crowdflower": "CrisisNLP",
    "covid-vaccine-stance": "COVID-19 stance",
    "sad-stressors": "SAD Stressor",
    "humaid": "",
    "crisislex-t6": "",
    "icwsm2018-nepal-queensland": "",
}
CLASSIFIED = tuple(name for name in LABELLED if name != "crisislex-t26")  # a class in one column


class Posts(Struct, frozen=True):
    """Labelled posts of one set; `twin` is the papers' name of the set that is most like it, "" for none."""

    texts: list[str]
    labels: list[str]
    twin: str = ""


def parallel(material: str, names: Sequence[str] = PARALLEL) -> dict[str, Mapping[str, Sequence[str]]]:
    """By set and language, line-aligned sentences. Bundled: each query's sentences of a language, as one text."""
    if material == "research":
        return {name: aligned_set(data_dir(), name) for name in names}
    queries = load_queries()
    langs = sorted({lang for query in queries for lang in query.sentences})
    return {"bundled queries": {lang: [" ".join(query.sentences.get(lang, ())) for query in queries] for lang in langs}}


def scored(material: str, seed: int) -> dict[str, Pairs]:
    """By set and language, pairs of texts with the score people gave them (bundled: 1, ½ or 0 by their queries)."""
    return (
        {name: scored_pairs(data_dir(), name) for name in SETS}
        if material == "research"
        else {"bundled": bundled_pairs(seed)["dev"]}
    )


def labelled(material: str) -> dict[str, Posts]:
    """By set, posts with one class each. Bundled: the English query sentences by query."""
    if material != "research":
        own = [post for post in bundled_posts() if post.lang == "en"]
        return {"bundled queries": Posts([post.text for post in own], [post.query for post in own])}
    found = {}
    for name, twin in LABELLED.items():
        file = "messages" if name == "sad-stressors" else "tweets"
        rows = [json.loads(line) for line in read_lines(data_dir() / name / f"{file}.jsonl.gz")]
        if name == "crisislex-t26":  # what a post is about; posts nobody labelled have no class
            rows = [{**row, "labels": row["labels"]["type"]} for row in rows]
            rows = [row for row in rows if row["labels"] not in ("Not labeled", "Not applicable")]
        if name == "covid-vaccine-stance":  # the papers' set is Poddar et al.'s
            rows = [row for row in rows if row["origin"] == "poddar2022"]
        found[name] = Posts([row["text"] for row in rows], [row["labels"] for row in rows], twin)
    return found


def classified_file(name: str) -> str:
    """Path of a labelled set as `training.classify` reads it."""
    return str(data_dir() / name / f"{'messages' if name == 'sad-stressors' else 'tweets'}.jsonl.gz")


def standard_english(material: str, most: int) -> list[str]:
    """English sentences to be noised: FLORES devtest, or the bundled queries'. most: 0 = all."""
    if material != "research":
        return [post.text for post in bundled_posts() if post.lang == "en"][: most or None]
    split = [row["split"] for row in read_rows(data_dir() / "flores200" / "meta.tsv.gz")]
    lines = read_lines(data_dir() / "flores200" / "en.txt.gz")
    return [line for line, part in zip(lines, split, strict=True) if part == "devtest"][: most or None]
