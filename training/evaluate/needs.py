"""Need/offer matching: average precision of query sentences over labelled messages, originals against translations.

Messages: the held-out half of disaster-messages-multilingual that was not written in English (Haitian Creole, French,
Latin-script Urdu, accents lost at the source), but for those that were learnt all the same (training.labels). The same
messages are ranked twice: as sent, and as people translated them. The queries are English. An encoder that is blind to
the language loses nothing between the two.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from models.encoders.protocol import Encoder
from models.queries import aid_queries
from training.bundled_posts import bundled_posts
from training.evaluate.matching import matching_accuracy
from training.labels import read_half
from training.metrics import bootstrap

__all__ = ["average_precision", "need_messages", "need_precision", "pack_precision", "summary", "translation_matching"]

# label of the set: what a person in that need writes
QUERIES: dict[str, tuple[str, ...]] = {
    "water": (
        "We have had no drinking water for two days, please send water",
        "There is no clean water in our neighbourhood, we are thirsty",
        "We need drinking water for the families here",
    ),
    "food": (
        "We have nothing to eat, please send food",
        "The children are hungry, we need food for the families here",
        "We are starving, nobody has brought us any food",
    ),
    "shelter": (
        "Our house is destroyed, we sleep in the street and need a tent",
        "We need tents and tarpaulins, we have nowhere to sleep",
        "We lost our home and need shelter",
    ),
    "medical_help": (
        "There are many injured people here, we need a doctor",
        "Please send medical help, someone is badly hurt",
        "The sick have no care, we need doctors and nurses",
    ),
    "medical_products": (
        "We need medicine for the sick and the injured",
        "Please send medicines and bandages, there is nothing at the clinic",
        "We have no medicine left for the children",
    ),
    "clothing": (
        "We have no clothes, please send clothes and blankets",
        "The children have nothing to wear, we lost our clothes",
    ),
    "money": (
        "We have no money, please help us with some money",
        "How can I get money to buy food for my family",
    ),
    "search_and_rescue": (
        "People are trapped under the rubble, please send rescuers",
        "There are survivors under the collapsed building, come and rescue them",
    ),
    "missing_people": (
        "I am looking for my brother, he is missing since the earthquake",
        "Does anybody have news of my family, we cannot find them",
    ),
}


def average_precision(scores: np.ndarray, positive: np.ndarray) -> float:
    """Mean of the precision at each positive, ranked by score (ties in input order). Both (n,)."""
    ranked = positive[np.argsort(-scores, kind="stable")]
    at = np.flatnonzero(ranked) + 1
    return float(np.mean(np.arange(1, len(at) + 1) / at)) if len(at) else float("nan")


def need_messages(root: Path, train_half: bool = False) -> list[dict]:
    """Messages of one half that were not written in English and were translated."""
    return [m for m in read_half(root, train_half) if m.get("text_en") and m["lang"] != "en"]


def need_precision(encoder: Encoder, root: Path, seed: int = 1, repeats: int = 0) -> dict[str, dict[str, float]]:
    """By label: AP over originals and translations, the share of positives (what chance gives), and positives.

    repeats > 0 adds `low` and `high` of the originals' AP, over as many draws of the messages.
    """
    messages = need_messages(root)
    originals = encoder.encode([m["text"] for m in messages])
    translations = encoder.encode([m["text_en"] for m in messages])
    result = {}
    for label, sentences in QUERIES.items():
        positive = np.array([label in m["labels"] for m in messages])
        centroid = encoder.encode(list(sentences)).mean(0)
        result[label] = {
            "originals": average_precision(originals @ centroid, positive),
            "translations": average_precision(translations @ centroid, positive),
            "chance": float(positive.mean()),
            "positives": int(positive.sum()),
        }
        if repeats:
            scores = originals @ centroid
            low, high = bootstrap(
                lambda drawn, s=scores, p=positive: average_precision(s[drawn], p[drawn]), len(messages), seed, repeats
            )
            result[label] |= {"low": low, "high": high}
    return result


def pack_precision(encoder: Encoder) -> dict[str, dict[str, float]]:
    """By query of the packs: AP of its English sentences over all sentences in other languages, and chance."""
    posts = [post for post in bundled_posts() if post.lang != "en"]
    vectors = encoder.encode([post.text for post in posts])
    result = {}
    for query in aid_queries():
        positive = np.array([post.query == query.id for post in posts])
        centroid = encoder.encode(list(query.sentences["en"])).mean(0)
        result[query.id] = {
            "originals": average_precision(vectors @ centroid, positive),
            "chance": float(positive.mean()),
            "positives": int(positive.sum()),
        }
    return result


def translation_matching(encoder: Encoder, root: Path) -> float:
    """Sentence matching of held-out messages with their translations, mean of both directions."""
    messages = need_messages(root)
    return float(
        np.mean(
            matching_accuracy(
                encoder.encode([m["text"] for m in messages]), encoder.encode([m["text_en"] for m in messages])
            )
        )
    )


def summary(by_label: dict[str, dict[str, float]]) -> dict[str, float]:
    """Means over the labels, and how much of the translations' precision the originals keep."""
    originals = float(np.mean([f["originals"] for f in by_label.values()]))
    translations = float(np.mean([f["translations"] for f in by_label.values()]))
    return {
        "originals": originals,
        "translations": translations,
        "ratio": originals / translations,
        "chance": float(np.mean([f["chance"] for f in by_label.values()])),
    }
