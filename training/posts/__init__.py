"""Posts to learn from: invented streams in many languages, and labels of real posts that were read. See README.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from models.records import is_notice
from training.data import in_train_half
from training.files import DataError, numbered_lines, read_json, read_rows

__all__ = ["HERE", "MESSAGES", "LabelledPost", "classes", "learnt_ids", "read_posts", "written_posts"]

HERE = Path(__file__).parent
MESSAGES = "disaster-messages-multilingual"  # one half of it teaches, the other judges
NEAR = (
    "met", "negated", "past", "news", "hypothetical", "figurative", "opinion", "thanks", "prayer", "refused",
    "scam_talk", "advert", "chatter", "warning", "evacuation_order", "damage",
)  # fmt: skip
READS_AS = {"warning": "warning.danger", "evacuation_order": "order.evacuation", "damage": "report.damage"}
# where a set that was read keeps its posts under CRISIS_DATA
FILES = {
    "crisislex-t26": "stream-crisis-t26/stream.jsonl.gz",
    "crisislex-t6": "crisislex-t6/tweets.jsonl.gz",
    "crisisnlp-crowdflower": "crisisnlp-crowdflower/tweets.jsonl.gz",
    "crisisnlp-volunteers": "crisisnlp-volunteers/tweets.jsonl.gz",
    MESSAGES: f"{MESSAGES}/messages.jsonl.gz",
    "humaid": "humaid/tweets.jsonl.gz",
    "idrisi-lmr-ar": "idrisi-lmr-ar/tweets.jsonl.gz",
    "need-offer-nepal-italy": "need-offer-nepal-italy/tweets.jsonl.gz",
    "trecis-stream": "trecis-stream/stream.jsonl.gz",
}


class LabelledPost(Struct, frozen=True):
    """A post and what it is."""

    text: str
    lang: str
    event: str
    gold: str  # query id, or "none"
    second: str | None
    near: str | None  # of NEAR, where gold is "none"
    urgency: str | None  # "urgent" | "soon" | "routine"
    origin: str  # "written", or the set it was read in
    use: str  # written: "stream", "needs and offers", "near misses", "several"; read: "read"
    weight: float = 1.0  # posts of its stream that it stands for
    sure: bool = True
    judges: bool = False  # gold: no weight may be fitted on it; it may set the scale of probabilities
    also: tuple[str, ...] = ()  # query ids beside `gold` and `second`: what else it asks for or offers

    @property
    def right(self) -> frozenset[str]:
        """Every query that it is a right reading of; of a notice the notice's."""
        return frozenset((self.label, self.second or self.label, *self.also))

    @property
    def label(self) -> str:
        """The class a head learns: a query id, a notice's too, or the kind of post that is no query."""
        return self.gold if self.gold != "none" else READS_AS.get(self.near or "", self.near or "chatter")


class _Written(Struct):
    event: str
    at: int
    author: str
    text: str
    lang: str
    gold: str
    use: str
    second: str | None = None
    near: str | None = None
    urgency: str | None = None
    places: list[str] = []
    also: tuple[str, ...] = ()


def written_posts(folder: Path = HERE / "written") -> list[LabelledPost]:
    """Every invented post, by event and in its order. Raises DataError naming the line at fault."""
    posts = []
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in numbered_lines(path):
            try:
                row = msgspec.json.decode(line, type=_Written)
            except msgspec.MsgspecError as error:
                raise DataError(f"{path}, line {number}: {error}") from None
            posts.append(
                LabelledPost(
                    row.text,
                    row.lang,
                    row.event,
                    row.gold,
                    row.second,
                    row.near,
                    row.urgency,
                    "written",
                    row.use,
                    judges=path.name.startswith("gold-"),
                    also=row.also,
                )
            )
    return posts


def read_posts(root: Path, reading: int = 1) -> list[LabelledPost]:
    """The real posts that were read, with texts from CRISIS_DATA. Raises DataError for a post that is not there.

    Disaster messages of the half that judges are left out: 443 were read by mistake, and 0258e73575fb learnt them.
    """
    rows = [row for row in read_rows(HERE / "read.tsv") if int(row["reading"]) == reading]
    rows = [row for row in rows if row["set"] != MESSAGES or in_train_half(row["id"])]
    texts = {name: _texts(root, name, {row["id"] for row in rows if row["set"] == name}) for name in FILES}
    posts = []
    for row in rows:
        if row["id"] not in texts[row["set"]]:
            raise DataError(f"{row['set']} has no post {row['id']}, which training/posts/read.tsv labels")
        text, lang = texts[row["set"]][row["id"]]
        posts.append(
            LabelledPost(
                text,
                lang,
                row["event"],
                row["gold"],
                row["second"] or None,
                row["near"] or None,
                row["urgency"] or None,
                row["set"],
                "read",
                float(row["weight"]),
                row["sure"] == "1",
                row["use"] == "gold",
            )
        )
    return posts


def learnt_ids(name: str) -> frozenset[str]:
    """Ids of a set's posts that were read to be learnt from, those of the wrong half too: what they say of a version
    that learnt them is no measure."""
    rows = read_rows(HERE / "read.tsv")
    return frozenset(row["id"] for row in rows if row["set"] == name and row["use"] == "learn")


def _texts(root: Path, name: str, wanted: set[str]) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for row in read_json(root / FILES[name]):
        if str(row["id"]) in wanted:
            found.setdefault(str(row["id"]), (row["text"], row.get("lang", "und")))
    return found


def classes(posts: Sequence[LabelledPost], query_ids: Sequence[str]) -> list[str]:
    """The classes of a head: every need and offer, then every kind of post that is none, in NEAR's order, "ordinary"
    last. A notice that posts are labelled with is the class of its kind; one that none is has no class."""
    aid = [query for query in query_ids if not is_notice(query)]
    kinds = [READS_AS.get(near, near) for near in NEAR]
    unknown = {post.label for post in posts} - set(aid) - set(kinds)
    if unknown:
        raise DataError(f"labels that are neither a query nor a kind of post: {', '.join(sorted(unknown))}")
    return [*aid, *kinds, "ordinary"]
