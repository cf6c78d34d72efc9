"""What alerts are measured on beside posts of our own: the demo, and two real streams with their times."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from models.moments import epoch_s
from training.demo import demo_rows
from training.files import read_json, read_rows
from training.posts import HERE, LabelledPost, read_posts

__all__ = [
    "ACTIONABLE",
    "HIGH",
    "Timed",
    "demo_posts",
    "donation_stream",
    "information_type",
    "kind_types",
    "trecis_posts",
]

# TREC-IS: priorities as gains, which one is high, and the information types its track calls actionable
PRIORITY = {"Low": 0.0, "Medium": 1.0, "High": 2.0, "Critical": 3.0}
HIGH = 2.0
ACTIONABLE = {"GoodsServices", "SearchAndRescue", "MovePeople", "EmergingThreats", "NewSubEvent", "ServiceAvailable"}
# which of its types a reading tells; the other needs are goods or services, the other offers services
TYPES = {
    "need.search_rescue": "SearchAndRescue",
    "need.evacuation_transport": "MovePeople",
    "need.money": "Donations",
    "offer.money": "Donations",
    "need.volunteers_labour": "Volunteer",
    "offer.volunteers_labour": "Volunteer",
    "need.missing_people": "InformationWanted",
    "warning.danger": "EmergingThreats",
    "order.evacuation": "MovePeople",
    "report.sub_event": "NewSubEvent",
    "report.damage": "ThirdPartyObservation",
}
# and which the kinds of post do that are no query
KIND_TYPES = {
    "news": "News",
    "opinion": "Sentiment",
    "prayer": "Sentiment",
    "thanks": "Sentiment",
    "met": "ThirdPartyObservation",
    "past": "ContextualInformation",
    "hypothetical": "Discussion",
    "scam_talk": "Advice",
    **dict.fromkeys(("figurative", "advert", "chatter", "ordinary"), "Irrelevant"),
}
RENAMED = {"ContinuingNews": "News", "SignificantEventChange": "NewSubEvent"}  # types of 2018 that later ones replaced


class Timed(Struct, frozen=True):
    """A post of a real stream with its time. `gain`: what seeing it is worth, 0 = nothing."""

    text: str
    event: str
    at_s: float  # epoch seconds, UTC
    gain: float
    types: tuple[str, ...] = ()
    learnt: bool = False  # it, or a copy of it, taught
    taught: bool = False  # something of its event did


def information_type(query_id: str) -> str:
    """The TREC-IS type an alert under this query tells."""
    return TYPES.get(query_id, "GoodsServices" if query_id.startswith("need.") else "ServiceAvailable")


def kind_types(kind: str) -> set[str]:
    """The TREC-IS types of a post that reads as this kind, no query; none where it names none."""
    return {KIND_TYPES[kind]} if kind in KIND_TYPES else set()


def demo_posts() -> list[LabelledPost]:
    """The demo stream's labelled posts, reposts and exact repeats left out as the pipeline folds them."""
    posts: dict[str, LabelledPost] = {}
    for row in demo_rows():
        if not row.get("repost_of"):
            gold = row["gold"] if "." in row["gold"] else "none"
            near = row["gold"] if gold == "none" else None
            post = LabelledPost(row["text"], row["gold_lang"], "demo", gold, None, near, None, "demo", "stream")
            posts.setdefault(row["text"], post)
    return list(posts.values())


def said_in(text: str) -> str:
    """The words of a post, in small letters, without links, handles and RT: what two copies have in common."""
    return " ".join(re.findall(r"\w+", re.sub(r"https?://\S+|@\w+|\brt\b", " ", text.lower())))


def trecis_posts(root: Path) -> list[Timed]:
    """The labelled part of the TREC-IS streams in order of time; `gain` is the priority's. CrisisLexT26, which teaches,
    has some of the same events and posts; and who reposts or copies a post that taught says nothing new."""
    ids = {row["id"] for row in read_rows(HERE / "read.tsv") if row["use"] == "learn"}
    texts = {said_in(post.text) for post in read_posts(root) if not post.judges} - {""}
    rows = list(read_json(root / "trecis-stream" / "stream.jsonl.gz"))
    learnt = {row["id"] for row in rows if str(row["id"]) in ids or said_in(row["text"]) in texts}
    taught = {row["event"] for row in rows if row["id"] in learnt}
    posts = [
        Timed(
            row["text"],
            row["event"],
            epoch_s(row["created_at"]),
            PRIORITY.get(row["labels"].get("priority", ""), 0.0),
            tuple(RENAMED.get(name, name) for name in row["labels"].get("categories", ())),
            row["id"] in learnt,
            row["event"] in taught,
        )
        for row in rows
        if row.get("labels")
    ]
    return sorted(posts, key=lambda post: post.at_s)


def donation_stream(root: Path) -> list[Timed]:
    """CrisisLexT26 in order of time: the events no job learns from, posts that people judged, exact repeats left out.

    `gain` is 1 for "Donations and volunteering", the one type of the set that a need or an offer falls under.
    """
    events = {
        row["event"] for row in read_rows(HERE / "read.tsv") if row["set"] == "crisislex-t26" and row["use"] == "gold"
    }
    posts = []
    for row in read_json(root / "stream-crisis-t26" / "stream.jsonl.gz"):
        judged = not row["related"] or row["type"] not in ("Not labeled", "Not applicable")
        if row["event"] in events and judged and not row.get("dup_of"):
            gain = float(row["type"] == "Donations and volunteering")
            posts.append(Timed(row["text"], row["event"], epoch_s(row["created_at"]), gain))
    return sorted(posts, key=lambda post: post.at_s)
