"""What the versions of a registry read and are asked for."""

from models.queries import Query
from models.records import Frame, Origin, Post

TEXTS = [
    "We have had no drinking water for two days, please send water",
    "we are trapped on the roof",
    "lovely weather for football today",
    "please send doctors, people are hurt",
]
QUERIES = [
    Query(
        id=f"need.{category}",
        kind="need",
        category=category,
        label=category,
        sentences={"en": list(said)},
        threshold=0.3,
    )
    for category, said in {
        "water": ("we have no drinking water, send water please", "no water for days"),
        "rescue": ("we are trapped on the roof, help", "people trapped on a roof"),
        "doctors": ("send doctors please, people are hurt", "we need doctors"),
    }.items()
]


def post(number: int, text: str) -> Post:
    return Post(id=f"p{number}", text=text, created_at=float(number), seen_at=float(number), lang="en")


def frame(number: int, partition: int = 0, texts=TEXTS) -> Frame:
    return Frame(Origin(partition, number), [post(number * 100 + i, t) for i, t in enumerate(texts)])
