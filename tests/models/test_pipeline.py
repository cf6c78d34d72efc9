"""`from models import open_pipeline`: texts in; matches, vectors, clusters out, as the pipeline itself finds them."""

from __future__ import annotations

import doctest
import json

import numpy as np
import pytest

from models import open_pipeline, pipeline
from models.errors import Rejected
from models.posts import parse_post
from streams.commands.replay import replay_file
from streams.config import load_settings
from tests.ingest.conftest import jsonl


def test_the_example_of_its_documentation_runs():
    done = doctest.testmod(pipeline)
    assert done.attempted >= 4 and not done.failed


def test_it_finds_what_a_replay_finds(tmp_path):
    file = jsonl(tmp_path / "p.jsonl", 6)
    replayed = replay_file(load_settings(), file, 1_795_200_000.0, version="own")
    read = open_pipeline("flood").read([f"Water needed at house {i}" for i in range(6)])
    assert read.matches[0] and len(read.posts) == 6
    expected = [replayed.matcher.match(["x"], vector[None], replayed.encoder.version) for vector in read.vectors]
    assert [[m.query_id for m in sorted(found, key=lambda m: -m.score)] for found in expected] == [
        [m.query_id for m in found] for found in read.matches
    ]


def test_clusters_go_on_from_call_to_call_and_posts_are_read_as_a_worker_reads_them():
    opened = open_pipeline("flood")
    first = opened.read(["The bridge in Kirna has collapsed into the river"] * 2)
    second = opened.read(["In Kirna the bridge has collapsed into the river", "call me at 0532 123 45 67", ""])
    assert len({*first.clusters, second.clusters[0]}) == 1
    assert opened.cluster_of(first.posts[0].id) == second.clusters[0]
    assert "0532" not in second.posts[1].text and np.isfinite(second.vectors).all()
    assert opened.read([]).vectors.shape == (0, opened.encoder.dim)
    with pytest.raises(KeyError):
        opened.cluster_of("text/99")


def test_what_is_no_text_is_refused_for_the_reason_that_a_worker_tells_and_one_text_is_not_read_by_its_letters():
    opened = open_pipeline("flood")
    for text, reason in (("a\0b", "nul_byte"), ("water \ud83d", "lone_surrogate"), ("x" * 10_001, "text_too_long")):
        with pytest.raises(Rejected) as told:
            parse_post(json.dumps({"id": "1", "text": text}).encode(), seen_at=0.0, author_key=b"")
        with pytest.raises(Rejected) as refused:
            opened.read(["We need water", text])
        assert refused.value.reason == told.value.reason == reason
    with pytest.raises(TypeError, match=r"'We need water now' is one: read\(\[text\]\)"):
        opened.read("We need water now")


def test_an_error_names_the_text_and_nothing_of_its_call_is_read():
    opened = open_pipeline("flood")
    opened.read(["We need water", "We need food"])
    for text, kind in (("x" * 10_001, "text_too_long"), ("a\0b", "nul_byte"), ("water \ud83d", "lone_surrogate")):
        with pytest.raises(Rejected, match=rf"^{kind}: texts\[1\]"):
            opened.read(["We need water", text])
    for wrong, named in ((b"We need water", "bytes"), (None, "NoneType"), (float("nan"), "float"), (7, "int")):
        with pytest.raises(TypeError, match=rf"texts\[1\] is {named}, not str"):
            opened.read(["We need water", wrong])
    with pytest.raises(TypeError, match="dict has keys"):
        opened.read({"a": "We need water"})
    assert [post.id for post in opened.read(["We need a boat"]).posts] == ["text/2"]


def test_numpy_s_strings_are_texts():
    told = open_pipeline("flood").read(np.array(["We need drinking water in the camp", "football"]))
    assert [post.text for post in told.posts] == ["We need drinking water in the camp", "football"]
    assert told.matches[0][0].query_id == "need.water"


def test_the_package_alone_loads_no_encoder():
    import models

    with pytest.raises(AttributeError, match="no attribute 'open_door'"):
        _ = models.open_door
