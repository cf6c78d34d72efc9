"""How well places are found in posts by name (models/places), and the weights of their confidence.

    python -m training.measure_places all            # measures, writes training/results/places.json
    python -m training.measure_places all fit=true   # also fits WEIGHTS of models/places/mentions.py, and prints them

Fitted on the training part of IDRISI-D (places of English and Arabic posts with their coordinates), measured on its
other part and on that of IDRISI-R (which words are places). A find is right where a person marked a place over it; it
is in place where that person's coordinates lie within the place's reach, or 25 km. Written posts set aside, whose
places are invented, say by language how often a word is taken for a place that is none; so do sentences of FLORES-200
in other languages, by what the same sentence names in English.
"""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from models.places.gazetteer import Gazetteer, Place
from models.places.mentions import LEAST_CONFIDENCE, WEIGHTS, Find, finds, named_in
from models.places.names import fold
from models.places.ordinary import is_ordinary
from training.files import data_dir, read_json, read_lines
from training.jobs import run, write_result
from training.place_words import is_marked
from training.posts import HERE

__all__ = ["Config", "main"]

EARTH_KM = 6371.0
NEAR_KM = 25.0
TOWNS = (
    "city",
    "town",
    "country",
    "state",
    "province",
    "county",
)  # of a marked place's type: what a table of names can know
EACH = 3
OUT = Path("training/results/places.json")


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the job."""

    fit: bool = False  # fit the weights of the confidence first
    out: str = str(OUT)


def rows(name: str, split: str) -> Iterator[dict[str, Any]]:
    """Posts of one IDRISI set with their marked places."""
    for row in read_json(data_dir() / name / "tweets.jsonl.gz"):
        if row["split"] == split:
            marked = [m for m in row.get("location_mentions", []) if m.get("offset_ok", True)]
            yield row | {"location_mentions": marked}


def over(find: Find, marked: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The place a person marked where the find stands."""
    return next((m for m in marked if m["start"] < find.end and find.start < m["end"]), None)


def km_between(place: Place, lat: float, lon: float) -> float:
    """Along a great circle (haversine)."""
    a, b, c, d = map(math.radians, (place.lat, place.lon, lat, lon))
    h = math.sin((c - a) / 2) ** 2 + math.cos(a) * math.cos(c) * math.sin((d - b) / 2) ** 2
    return 2 * EARTH_KM * math.asin(min(1.0, math.sqrt(h)))


def in_place(find: Find, mark: dict[str, Any] | None, gazetteer: Gazetteer) -> bool:
    """Did a person mean this very place?"""
    if mark is None or mark.get("lat") is None:
        return False
    place = gazetteer.place(int(find.places[0]))
    return km_between(place, mark["lat"], mark["lon"]) <= max(NEAR_KM, place.radius_km)


def judged(name: str, split: str, gazetteer: Gazetteer) -> Iterator[tuple[dict[str, Any], Find, bool]]:
    """Each find of the posts, and whether it is in place. Posts of which a place has no coordinates say nothing."""
    for row in rows(name, split):
        for find in finds(row["text"], gazetteer):
            mark = over(find, row["location_mentions"])
            if mark is None or mark.get("lat") is not None:
                yield row, find, in_place(find, mark, gazetteer)


def fit_weights(gazetteer: Gazetteer) -> dict[str, float]:
    """Logistic regression on IDRISI-D, training part."""
    from sklearn.linear_model import LogisticRegression

    found = list(judged("idrisi-lmd", "train", gazetteer))
    x = np.array([[find.features.get(name, 0.0) for name in WEIGHTS] for _, find, _ in found])
    y = np.array([right for _, _, right in found])
    fitted = LogisticRegression(C=10.0, fit_intercept=False, max_iter=1000).fit(x, y)
    return {name: round(float(weight), 2) for name, weight in zip(WEIGHTS, fitted.coef_[0], strict=True)}


def spans(name: str, gazetteer: Gazetteer) -> dict[str, dict[str, float]]:
    """Precision and recall of finds told, by language; recall of towns, provinces and countries apart."""
    count: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows(name, "dev"):
        marked, c = row["location_mentions"], count[row["lang"]]
        text, lang = row["text"], row["lang"]
        sure = (find for find in finds(text, gazetteer) if find.confidence >= LEAST_CONFIDENCE)
        told = [find for find in sure if not is_ordinary(text[find.start : find.end], lang)]
        c["told"] += len(told)
        c["right"] += sum(over(find, marked) is not None for find in told)
        for mark in marked:
            hit = any(over(find, [mark]) for find in told)
            c["marked"], c["found"] = c["marked"] + 1, c["found"] + hit
            if any(kind in mark["type"].lower() for kind in TOWNS):
                c["towns"], c["towns_found"] = c["towns"] + 1, c["towns_found"] + hit
    return {lang: _shares(c) for lang, c in count.items()}


def _shares(c: dict[str, float]) -> dict[str, float]:
    return {
        "precision": round(c["right"] / max(c["told"], 1), 3),
        "recall": round(c["found"] / max(c["marked"], 1), 3),
        "recall_of_towns_and_above": round(c["towns_found"] / max(c["towns"], 1), 3),
        "told": c["told"],
        "marked": c["marked"],
    }


def placed(gazetteer: Gazetteer) -> dict[str, dict[str, float]]:
    """IDRISI-D, the part nothing was fitted on: how many finds told are in place, and is the confidence right?"""
    out = {}
    found = list(judged("idrisi-lmd", "dev", gazetteer))
    for lang in sorted({row["lang"] for row, _, _ in found}):
        own = [(find.confidence, right) for row, find, right in found if row["lang"] == lang]
        told = [right for confidence, right in own if confidence >= LEAST_CONFIDENCE]
        confidence, right = (np.array(column, float) for column in zip(*own, strict=True))
        bins = np.minimum((confidence * 10).astype(int), 9)
        error = sum(abs((confidence - right)[bins == b].sum()) for b in range(10)) / len(own)
        out[lang] = {
            "in_place": round(float(np.mean(told)), 3),
            "calibration_error": round(error, 3),
            "finds": len(own),
        }
    return out


def false_hits(gazetteer: Gazetteer, small: bool = False) -> dict[str, float]:
    """Places told per 100 written posts set aside, outside of the words marked there as places, by language and of all.

    small: of the same posts in small letters, as many write.
    """
    told: dict[str, list[int]] = defaultdict(list)
    for path in sorted((HERE / "written").glob("gold-*.jsonl")):
        for post in read_json(path):
            marked = fold(" ".join(post["places"]))
            text = post["text"].lower() if small else post["text"]
            named = named_in(text, gazetteer, lang=post["lang"])
            told[post["lang"]].append(sum(not is_marked(m.text, marked) for m in named))
    every = [count for counts in told.values() for count in counts]
    shares = {lang: round(100 * float(np.mean(counts)), 1) for lang, counts in sorted(told.items())}
    return {"all": round(100 * float(np.mean(every)), 1)} | shares


def supported(gazetteer: Gazetteer, small: bool = False) -> dict[str, int]:
    """Of the places told of every EACH-th sentence of FLORES-200 in all languages but English: how many the same
    sentence in English names too, and how many it does not. small: with the sentence in small letters."""
    folder = data_dir() / "flores200"
    english = [set(_told(text, "en", gazetteer)) for text in read_lines(folder / "en.txt.gz")[::EACH]]
    count = {"supported": 0, "not": 0}
    for path in sorted(folder.glob("*.txt.gz")):
        if (lang := path.name.removesuffix(".txt.gz")) == "en":
            continue
        for text, names in zip(read_lines(path)[::EACH], english, strict=True):
            for place in _told(text.lower() if small else text, lang, gazetteer):
                count["supported" if place in names else "not"] += 1
    return count


def _told(text: str, lang: str, gazetteer: Gazetteer) -> list[str]:
    return [named.place.full_name for named in named_in(text, gazetteer, most=99, lang=lang)]


def cost_us(gazetteer: Gazetteer) -> dict[str, float]:
    """Processor time of a post, µs, by language."""
    out = {}
    for name in ("idrisi-lmr-en", "idrisi-lmr-ar"):
        texts = [row["text"] for row in rows(name, "dev")][:400]
        begun = time.process_time()
        for text in texts:
            named_in(text, gazetteer)
        out[name[-2:]] = round((time.process_time() - begun) / len(texts) * 1e6)
    return out


def main(config: Config) -> None:
    """Measure, and fit where asked."""
    gazetteer = Gazetteer.bundled()
    if config.fit:
        WEIGHTS.update(fit_weights(gazetteer))
        print("WEIGHTS =", WEIGHTS)
    metrics = {
        "words": spans("idrisi-lmr-en", gazetteer) | spans("idrisi-lmr-ar", gazetteer),
        "in_place": placed(gazetteer),
        "false_hits_per_100_posts": false_hits(gazetteer),
        "false_hits_per_100_posts_in_small_letters": false_hits(gazetteer, small=True),
        "flores": supported(gazetteer),
        "flores_in_small_letters": supported(gazetteer, small=True),
        "us_a_post": cost_us(gazetteer),
        "places": len(gazetteer),
    }
    print(json.dumps(metrics, indent=1))
    write_result(
        Path(config.out), config, "IDRISI-D and IDRISI-R, split dev; written posts set aside; FLORES-200", 0, metrics
    )


PRESETS = {"all": Config()}

if __name__ == "__main__":
    run(main, PRESETS)
