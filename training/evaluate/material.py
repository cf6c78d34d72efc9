"""What is measured on: the research sets of CRISIS_DATA, or sentences that come with the project.

The bundled ones are there so that the `smoke` preset runs anywhere; figures on them say that the measure works and
little about the encoder, which was made with such sentences at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from models.queries import aid_queries
from training.bundled_posts import bundled_posts
from training.evaluate.matching import aligned_set
from training.evaluate.relatedness import SETS, Pairs, scored_pairs
from training.files import DataError, data_dir, read_json, read_lines, read_rows
from training.whiten import bundled_pairs

__all__ = ["CLASSIFIED", "LABELLED", "PARALLEL", "classified", "labelled", "parallel", "scored", "standard_english"]

PARALLEL = ("flores200 devtest", "ntrex128", "tico19 test")


class Source(Struct, frozen=True):
    """Where a labelled set is: a file of CRISIS_DATA, the column with its classes, and which of its rows it has."""

    file: str
    twin: str = ""  # its twin in the CrisisTransformers papers (other rows, other cleaning)
    label: str = "labels"
    only: str = ""  # COLUMN=VALUE, where the file holds several sets


_STANCE, _SAD = "covid-vaccine-stance/tweets", "sad-stressors/messages"
# Ours of the papers' eighteen sets are those with a twin.
LABELLED = {
    "crisislex-t26": Source("crisislex-t26/tweets", "CrisisLex", label="type"),
    "crisisnlp-crowdflower": Source("crisisnlp-crowdflower/tweets", "CrisisNLP"),
    "covid-vaccine-stance": Source(_STANCE, "COVID-19 stance", only="origin=poddar2022"),
    "vaccination-opinions": Source(_STANCE, "Vaccination opinions", only="origin=cotfas2021"),
    "sad-stressors": Source(_SAD, "SAD Stressor"),
    "sad-stress": Source(_SAD, "SAD Stress", label="is_stressor"),
    "sad-covid": Source(_SAD, "SAD COVID", label="is_covid"),
    "humaid": Source("humaid/tweets"),
    "crisislex-t6": Source("crisislex-t6/tweets"),
    "icwsm2018-nepal-queensland": Source("icwsm2018-nepal-queensland/tweets"),
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
    queries = aid_queries()
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
    for name, source in LABELLED.items():
        rows = list(read_json(data_dir() / f"{source.file}.jsonl.gz"))
        if name == "crisislex-t26":  # what a post is about; posts nobody labelled have no class
            rows = [{**row, **row["labels"]} for row in rows]
            rows = [row for row in rows if row["type"] not in ("Not labeled", "Not applicable")]
        column, _, value = source.only.partition("=")
        rows = [row for row in rows if not column or row[column] == value]
        rows = [row for row in rows if row.get(source.label)]
        found[name] = Posts([row["text"] for row in rows], [row[source.label] for row in rows], source.twin)
    return found


def classified(name: str) -> dict[str, str]:
    """The knobs of `training.classify` that read a labelled set: its file, its classes and its rows alone."""
    source = LABELLED[name]
    return {"file": str(data_dir() / f"{source.file}.jsonl.gz"), "label": source.label, "only": source.only}


def standard_english(material: str, most: int, split: str = "devtest") -> list[str]:
    """English sentences to be noised: of FLORES (devtest, or "dev(sib)" as its dev split is stored), or the bundled
    queries'. most: 0 = all. Raises DataError for a split without sentences.
    """
    if material != "research":
        return [post.text for post in bundled_posts() if post.lang == "en"][: most or None]
    parts = [row["split"] for row in read_rows(data_dir() / "flores200" / "meta.tsv.gz")]
    lines = read_lines(data_dir() / "flores200" / "en.txt.gz")
    if split not in parts:
        raise DataError(f"flores200 has no split {split!r}: {', '.join(sorted(set(parts)))}")
    return [line for line, part in zip(lines, parts, strict=True) if part == split][: most or None]
