"""What a version learnt is not measured on it, and what is held out is not learnt."""

import gzip
import json

import pytest

from training import labels, posts
from training.data import in_train_half
from training.evaluate import alert_material
from training.evaluate.needs import need_messages
from training.files import read_rows
from training.labels import disaster_messages, ordinary, read_half
from training.posts import FILES, HERE, MESSAGES, learnt_ids, read_posts

TEACHING, HELD = ([f"m{i}" for i in range(40) if in_train_half(f"m{i}") == half][:4] for half in (True, False))
COLUMNS = "set id event stratum weight reading use gold second near urgency sure".split()


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A data folder of invented posts, and the labels of those that were read: of each set its first row and, of the
    messages, two of each half."""
    sets = {place: [row(name, i) for i in range(4)] for name, place in FILES.items()}
    sets[FILES[MESSAGES]] = [
        {"text": f"M ap chèche dlo {i}", "text_en": "I look for water", "lang": "ht", "genre": "direct", "id": i}
        | {"labels": ["request", "water"]}
        for i in (*TEACHING, *HELD)
    ]
    sets["crisislex-t26/tweets.jsonl.gz"] = [row("crisislex-t26", i) for i in range(4)]
    for place, rows in sets.items():
        write(tmp_path / place, "\n".join(json.dumps(r) for r in rows))
    write(tmp_path / "tatoeba-train" / "fr.tsv.gz", "en\txx\n")
    for folder in ("ntrex128", "flores200"):
        write(tmp_path / folder / "en.txt.gz", "A sentence.\n")
    read = [(name, f"{name}-0", "learn") for name in FILES if name not in (MESSAGES, "humaid")]
    read += [(MESSAGES, i, "learn") for i in (*TEACHING[:2], *HELD[:2])] + [("humaid", "humaid-0", "gold")]
    lines = [f"{name}\t{i}\te\trandom\t1\t1\t{use}\tnone\t\tchatter\t\t1" for name, i, use in read]
    (tmp_path / "read.tsv").write_text("\n".join(["\t".join(COLUMNS), *lines, ""]))
    for module in (posts, alert_material):
        monkeypatch.setattr(module, "HERE", tmp_path)
    return tmp_path


def row(name: str, i: int) -> dict:
    labels = {"type": "Not related", "informativeness": "Not related"}
    told = {"crisislex-t6": "off-topic", "humaid": "not_humanitarian", "need-offer-nepal-italy": ["need"]}
    times = {"event": "e", "split": "test", "created_at": "2013-01-01T00:00:00Z"}
    return {"id": f"{name}-{i}", "text": f"{name} says {i}", "lang": "en", "labels": told.get(name, labels)} | times


def write(path, text: str) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(text)


def test_held_out_messages_that_were_learnt_are_measured_nowhere_and_the_rest_of_them_is(root):
    assert [m["id"] for m in read_half(root, train_half=False)] == HELD[2:]
    assert [m["id"] for m in need_messages(root)] == HELD[2:]
    measured = disaster_messages(root, train_half=False)
    assert measured.texts == [text for i in HELD[2:] for text in (f"M ap chèche dlo {i}", "I look for water")]
    assert [m["id"] for m in need_messages(root, train_half=True)] == TEACHING  # they teach whether read or not


def test_no_held_out_message_is_learnt_however_it_was_read(root):
    read = [post.text for post in read_posts(root) if post.origin == MESSAGES]
    assert read == [f"M ap chèche dlo {i}" for i in TEACHING[:2]]


def test_chatter_and_labelled_sets_hold_no_post_that_was_learnt(root):
    found = ordinary(root, 3, 9, 1)
    chatter = [t for t, group in zip(found.texts, found.groups, strict=True) if group.startswith("chatter")]
    wanted = [f"{name} says {i}" for name in ("crisislex-t6", "crisislex-t26") for i in (1, 2, 3)]
    assert chatter == [*wanted, *(f"humaid says {i}" for i in range(4))]  # humaid's was read to judge
    assert [len(found.texts) for found in labels.test_sets(root)] == [3, 4, 3]


def test_a_post_of_a_stream_that_copies_one_that_was_learnt_was_learnt_too(root):
    said = ["RT @Someone: CrisisLex-T6 says 0! https://t.co/x", "crisislex-t6 says 7", "https://t.co/x @A", "trecis 0"]
    rows = [row("trecis-stream", i) | {"text": text, "event": f"e{i}"} for i, text in enumerate(said, 1)]
    write(root / FILES["trecis-stream"], "\n".join(json.dumps(r) for r in [row("trecis-stream", 0), *rows]))
    found = alert_material.trecis_posts(root)
    assert [post.text for post in found if post.learnt] == ["trecis-stream says 0", said[0]]
    assert [post.event for post in found if post.taught] == ["e", "e1"]


def test_the_labels_as_they_are_hold_what_must_be_left_out():
    """Where they hold it no more, what leaves it out can go."""
    rows = [r for r in read_rows(HERE / "read.tsv") if r["set"] == MESSAGES and r["reading"] == "1"]
    held = {r["id"] for r in rows if not in_train_half(r["id"])}
    assert len(held) == 443 and held <= learnt_ids(MESSAGES)
    assert not learnt_ids("humaid") and len(learnt_ids("crisislex-t26")) > 4_000


@pytest.mark.data
def test_nothing_that_is_measured_was_learnt_and_nothing_held_out_will_be(data_dir):
    learnt = learnt_ids(MESSAGES)
    held = read_half(data_dir, train_half=False)
    assert len(held) == 7_465 and not learnt & {m["id"] for m in held}
    texts = {m["text"] for m in held} - {m["text"] for m in read_half(data_dir, train_half=True)}
    assert not texts & {post.text for post in read_posts(data_dir)}
