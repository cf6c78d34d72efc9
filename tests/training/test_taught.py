"""Labels that people made at work enter the jobs that measure and learn."""

import numpy as np
import pytest

from models.errors import LabelError
from models.feedback.records import Label
from training.class_material import Shares as Config
from training.class_material import material
from training.data import in_train_half
from training.labels import Messages
from training.taught import classes_taught, read_taught, with_taught

LINE = (
    '{"post_id":"x:a/%d","query_id":"%s","verdict":"%s","by":"Ada","at":"2026-11-20T06:00:0%d.000Z","text":"post %d"%s}'
)
MESSAGES = Messages(
    ["old"],
    np.array(["ht"]),
    np.array([1], np.int8),
    np.array([True]),
    np.array([True]),
    {"need.water": np.array([True])},
)


def written(tmp_path, *lines):
    path = tmp_path / "labels.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_file_of_labels_is_what_export_prints_and_of_two_words_the_later_counts(tmp_path):
    path = written(
        tmp_path,
        LINE % (1, "need.water", "wrong", 1, 1, ""),
        LINE % (1, "need.water", "right", 2, 1, ""),
        LINE % (2, "need.water", "other", 1, 2, ',"instead":"offer.water"'),
    )
    found = {(said.post_id, said.query_id): said.verdict for said in read_taught(path)}
    assert found == {("x:a/1", "need.water"): "right", ("x:a/2", "need.water"): "other"}
    with pytest.raises(LabelError, match="line 2"):
        read_taught(written(tmp_path, LINE % (1, "need.water", "right", 1, 1, ""), '{"post_id": "x"}'))


def test_labelled_posts_stand_behind_the_messages_in_one_half_each():
    labels = [
        Label(f"x:a/{n}", "need.water", verdict, "Ada", 1.0, f"post {n}", "es", instead=instead)
        for n, (verdict, instead) in enumerate(
            [(word, "") for word in ("right", "handled", "wrong", "none")] * 8
            + [("other", "offer.water"), ("other", "need.unknown")] * 8
        )
    ]
    names = {"need.water", "offer.water"}
    halves = {half: with_taught(MESSAGES, labels, names, half) for half in (True, False)}
    assert sum(len(half.texts) - 1 for half in halves.values()) == len(labels)
    for train_half, found in halves.items():
        assert found.texts[0] == "old" and found.labels["need.water"][0] and set(found.labels) == names
        assert len(found.fold) == len(found.langs) == len(found.asks) == len(found.texts)
        said = {f"post {n}": label for n, label in enumerate(labels)}
        for row, text in enumerate(found.texts[1:], 1):
            label = said[text]
            assert in_train_half(label.post_id) == train_half and found.langs[row] == "es"
            assert found.labels["need.water"][row] == (label.verdict in ("right", "handled"))
            assert found.labels["offer.water"][row] == (label.instead == "offer.water")
            assert found.asks[row] == (label.verdict in ("right", "handled") or bool(label.instead))


def test_what_a_label_says_a_post_is_becomes_a_class_and_wrong_alone_says_nothing(tmp_path):
    path = written(
        tmp_path,
        LINE % (1, "need.water", "right", 1, 1, ""),
        LINE % (2, "need.water", "wrong", 1, 2, ""),
        LINE % (3, "need.water", "none", 1, 3, ""),
        LINE % (4, "need.water", "other", 1, 4, ',"instead":"offer.water"'),
        LINE % (5, "need.users_own", "right", 1, 5, ""),
        LINE % (6, "offer.water", "handled", 1, 6, ""),
    )
    names = {"need.water", "offer.water", "chatter"}
    found = classes_taught(read_taught(path), names)
    assert found == [
        ("post 1", "need.water"),
        ("post 3", "chatter"),
        ("post 4", "offer.water"),
        ("post 6", "offer.water"),
    ]
    plain, taught = material(Config(), [], []), material(Config(labels=str(path), said=2.0), [], [])
    more = list(zip(taught.texts, taught.labels, taught.weights, strict=True))[len(plain.texts) :]
    assert more == [(text, name, 2.0) for text, name in found]
