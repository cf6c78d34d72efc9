"""Which labelled set says what about which query, and the ordinary posts in which no query should find anything.

disaster-messages-multilingual (CC BY 4.0) is the only set with categories that may shape what is shipped: its train
half gives directions, thresholds and probabilities, its other half tests. Of the 7,908 messages of that half 443 were
read for training/posts by mistake, and the encoder 0258e73575fb learnt them: nothing is measured on them, and no later
version learns them. 211 of the 7,908 (of 20 letters or more, case and punctuation aside) were sent twice and are in the
train half too; without them average precision is .0005 higher in English and .003 lower in Haitian Creole.

need-offer-nepal-italy, HumAID and CrisisLexT26 label needs, offers or donations without a category: these labels of
theirs only test. Thresholds (never the encoder) are also set by what HumAID and CrisisLexT26 call unrelated, and by
lines of FLORES and NTREX, as ordinary posts in which nothing should be found. Posts of these sets that were read and
learnt are left out of all of it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from msgspec import Struct

from training.data import in_train_half, read_messages
from training.files import files_of, read_aligned, read_json, read_rows
from training.posts import MESSAGES, learnt_ids

__all__ = [
    "Labelled",
    "Messages",
    "Ordinary",
    "disaster_messages",
    "everyday",
    "fold",
    "ordinary",
    "read_half",
    "test_sets",
]

# label of disaster-messages-multilingual → category of the need; the other labels name no single need
DISASTER_LABELS = {
    "water": "water",
    "food": "food",
    "shelter": "shelter",
    "clothing": "clothing_blankets",
    "medical_help": "medical_help",
    "medical_products": "medicine",
    "money": "money",
    "missing_people": "missing_people",
    "search_and_rescue": "search_rescue",
    "transport": "evacuation_transport",
    "electricity": "electricity_fuel",
    "security": "safety_looting",
    "tools": "heavy_equipment",
}


class Messages(Struct, frozen=True):
    """Columns of disaster-messages-multilingual; a message not written in English is there twice, as sent and as
    translated."""

    texts: list[str]
    langs: np.ndarray  # of the text: "ht", "en", …; "en*" for a translation
    fold: np.ndarray  # int8: 0 or 1, of the message, so that original and translation stay together
    asks: np.ndarray  # bool: sent by the people concerned, or labelled a request; the rest are news and reports
    requests: np.ndarray  # bool: labelled a request
    labels: dict[str, np.ndarray]  # query id → bool: what the message is about, asked for or reported


class Labelled(Struct, frozen=True):
    """A set that tells needs or offers apart without naming the category."""

    name: str
    texts: list[str]
    need: np.ndarray | None  # bool, None where the set does not say
    offer: np.ndarray | None


class Ordinary(Struct, frozen=True):
    """Posts and sentences in which no query should find anything. `groups` are languages and sets of chatter."""

    texts: list[str]
    groups: np.ndarray
    shapes: np.ndarray  # bool: half of tatoeba-train (CC BY), which may shape directions; only the rest measures


def disaster_messages(root: Path, train_half: bool) -> Messages:
    """One half of disaster-messages-multilingual: the one whose texts the encoder was trained on, or the other, without
    what was learnt of it."""
    texts, langs, used = [], [], []
    for message in read_half(root, train_half):
        texts.append(message["text"])
        langs.append(message["lang"])
        used.append(message)
        if message["lang"] != "en" and message.get("text_en"):
            texts.append(message["text_en"])
            langs.append("en*")
            used.append(message)
    requests = np.array(["request" in m["labels"] for m in used])
    return Messages(
        texts=texts,
        langs=np.array(langs),
        fold=np.array([fold(m["id"]) for m in used], np.int8),
        asks=requests | np.array([m["genre"] == "direct" for m in used]),
        requests=requests,
        labels={
            f"need.{category}": np.array([label in m["labels"] for m in used])
            for label, category in DISASTER_LABELS.items()
        },
    )


def read_half(root: Path, train_half: bool) -> list[dict]:
    """The messages of one half; of the half that judges those alone that nothing was learnt from."""
    learnt = frozenset() if train_half else learnt_ids(MESSAGES)
    messages = read_messages(root)
    return [m for m in messages if in_train_half(m["id"]) == train_half and m["id"] not in learnt]


def fold(key: str) -> int:
    """0 or 1, apart from `in_train_half`, which uses the first byte of the same hash."""
    return hashlib.sha256(key.encode()).digest()[1] & 1


def test_sets(root: Path) -> list[Labelled]:
    """Sets used to test only."""
    nepal = _posts(root, "need-offer-nepal-italy")
    humaid = [p for p in _posts(root, "humaid") if p["split"] == "test"]
    t26 = _posts(root, "crisislex-t26")
    donations = np.array([p["labels"]["type"] == "Donations and volunteering" for p in t26])
    return [
        Labelled(
            "need-offer-nepal-italy",
            [p["text"] for p in nepal],
            np.array(["need" in p["labels"] for p in nepal]),
            np.array(["availability" in p["labels"] for p in nepal]),
        ),
        Labelled(
            "humaid test",
            [p["text"] for p in humaid],
            np.array([p["labels"] == "requests_or_urgent_needs" for p in humaid]),
            np.array([p["labels"] == "rescue_volunteering_or_donation_effort" for p in humaid]),
        ),
        Labelled("crisislex-t26", [p["text"] for p in t26], None, donations),
    ]


def ordinary(root: Path, per_language: int, per_chatter: int, seed: int) -> Ordinary:
    """Short sentences and news in many languages, and posts that people labelled as having nothing to do with a crisis.

    Everyday sentences do ask for water now and then, so a rate measured here is a little too high, never too low.
    """
    rng = np.random.default_rng(seed)
    texts: list[str] = []
    groups: list[str] = []
    shapes: list[bool] = []

    def add(group: str, found: list[str], most: int, shaping: bool = False) -> None:
        kept = [t for t in found if t.strip()]
        chosen = [kept[i] for i in np.sort(rng.permutation(len(kept))[:most])]
        texts.extend(chosen)
        groups.extend([group] * len(chosen))
        shapes.extend(shaping and fold(text) == 0 for text in chosen)

    english: list[str] = []
    for path in files_of(root / "tatoeba-train", "*.tsv.gz"):
        pairs = list(read_rows(path))
        english += [p["en"] for p in pairs]
        add(path.name.removesuffix(".tsv.gz"), [p["xx"] for p in pairs], per_language, True)
    add("en", sorted(set(english)), per_language, True)
    for folder in ("ntrex128", "flores200"):
        for lang, lines in sorted(read_aligned(root / folder).items()):
            if lang != "my-Zawgyi":  # what normalise has turned into Unicode before a query sees it
                add(lang, lines, per_language // 3)
    add(
        "chatter crisislex-t6",
        [p["text"] for p in _posts(root, "crisislex-t6") if p["labels"] == "off-topic"],
        per_chatter,
    )
    add(
        "chatter crisislex-t26",
        [p["text"] for p in _posts(root, "crisislex-t26") if p["labels"]["informativeness"] == "Not related"],
        per_chatter,
    )
    add("chatter humaid", [p["text"] for p in _posts(root, "humaid") if p["labels"] == "not_humanitarian"], per_chatter)
    return Ordinary(texts, np.array(groups), np.array(shapes))


def everyday(root: Path, per_language: int, seed: int) -> list[str]:
    """Sentences of tatoeba-train, at most so many of a language, of the half that may shape; `ordinary` measures by the
    other half. They ask for water now and then: to learn from them as asking for nothing they must be drawn by chance.
    """
    rng = np.random.default_rng(seed)
    texts: list[str] = []
    for path in files_of(root / "tatoeba-train", "*.tsv.gz"):
        found = [p["xx"] for p in read_rows(path) if p["xx"].strip() and fold(p["xx"]) == 0]
        texts.extend(found[i] for i in np.sort(rng.permutation(len(found))[:per_language]))
    return texts


def _posts(root: Path, folder: str) -> list[dict]:
    """The posts of a labelled set that taught nothing."""
    learnt = learnt_ids(folder)
    return [post for post in read_json(root / folder / "tweets.jsonl.gz") if str(post["id"]) not in learnt]
