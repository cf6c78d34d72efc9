"""What becomes of needs and offers that are written in capitals, or as a title.

python -m training.shouted laptop          # the bundled encoder; 800 written posts that judge, in scripts with capitals

Each post is read as it was typed, in capitals and as a title; with what `models.encoders.shouting` makes of it and, to
see what that is worth, without. An alert is right where its query is one of those that the post was written for.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from unittest import mock

from msgspec import Struct

from models.encoders import onnx
from models.encoders.ready import load, ready
from models.queries import load_queries
from models.records import Match, Post
from training.evaluate_clusters import RESULTS
from training.files import hash_rows
from training.jobs import run, write_result
from training.posts import LabelledPost, written_posts

__all__ = ["Config", "PRESETS", "main"]

WAYS: dict[str, Callable[[str], str]] = {"as typed": str, "capitals": str.upper, "title": str.title}


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the job."""

    encoder: str = ""  # a bundle, empty = the bundled one
    needs: int = 500  # posts that ask for or offer something
    others: int = 300  # posts that do not
    seed: int = 5
    out: str = "auto"  # where the JSON goes: auto = results/shouted.json, empty = only printed


PRESETS = {"smoke": Config(needs=20, others=12, out=""), "laptop": Config()}


def cased(post: LabelledPost) -> bool:
    """Is it in a script that has capitals?"""
    letters = [c for c in post.text if c.isalpha()]
    return sum(c.upper() != c.lower() for c in letters) > 0.6 * len(letters) > 0


def main(config: Config) -> dict:
    judges = [post for post in written_posts() if post.judges and cased(post)]
    dice = random.Random(config.seed)
    asking, others = ([p for p in judges if (p.gold == "none") is none] for none in (False, True))
    posts = dice.sample(asking, min(config.needs, len(asking))) + dice.sample(others, min(config.others, len(others)))
    made = ready(load(config.encoder or None), load_queries())

    def first_readings(texts: Sequence[str]) -> dict[int, Match]:
        read = [
            Post(f"{n}", text, 0.0, 0.0, post.lang) for n, (text, post) in enumerate(zip(texts, posts, strict=True))
        ]
        vectors = made.encoder.encode(list(texts))
        found = made.matcher.match_rows([post.id for post in read], vectors, made.encoder.version, read)
        return {row: match for row, match in reversed(found) if match.level == "alert"}

    def figures(way: Callable[[str], str]) -> dict[str, float]:
        alerts = first_readings([way(post.text) for post in posts])
        right = [
            n in alerts and alerts[n].query_id in post.right for n, post in enumerate(posts) if post.gold != "none"
        ]
        wrong = [n in alerts for n, post in enumerate(posts) if post.gold == "none"]
        return {"right_query_alerts": _share(right), "others_that_alert": _share(wrong)}

    result = {name: {"read quietly": figures(way)} for name, way in WAYS.items()}
    with mock.patch.object(onnx, "quieter", str):
        for name, way in WAYS.items():
            result[name]["as they stand"] = figures(way)
    for name, both in result.items():
        print(name, *(f"{how}: {told}" for how, told in both.items()), sep="  ")
    if config.out:
        rows = hash_rows(post.text for post in posts)
        path = RESULTS / "shouted.json" if config.out == "auto" else config.out
        write_result(path, config, rows, config.seed, result | {"posts": len(posts), "encoder": made.encoder.version})
    return result


def _share(told: Sequence[bool]) -> float:
    return round(sum(told) / max(len(told), 1), 3)


if __name__ == "__main__":
    run(main, PRESETS)
