"""Posts that can be searched, sent as workers send them."""

from __future__ import annotations

import time

from aiokafka import AIOKafkaProducer

from models.encoders.ready import Loaded
from models.encoders.registry import OWN
from models.records import Post
from streams.config import Settings
from tests.dashboard.serving import TinyEncoder

NOW = time.time()


def post(post_id: str, text: str, lang: str = "en", ago_s: float = 0.0) -> Post:
    return Post(post_id, text, NOW - ago_s, NOW - ago_s, lang, "sms", url=f"https://example.org/{post_id}")


POSTS = [
    post("roof", "people trapped under a collapsed roof"),
    post("sun", "what a lovely sunny morning", ago_s=7200),
    post("toit", "des gens trapped sous le toit", "fr"),
]


async def send(settings: Settings, *values: bytes, partition: int = 0, at: float | None = None) -> None:
    async with AIOKafkaProducer(bootstrap_servers=settings.broker.bootstrap) as producer:
        for value in values:
            topic = settings.topics.name("posts.embedded")
            await producer.send_and_wait(topic, value, partition=partition, timestamp_ms=int(at * 1000) if at else None)


def load_tiny(settings: Settings, name: str) -> Loaded:
    """The worker's own encoder is tiny-1; other names are versions of their own."""
    return Loaded(name, TinyEncoder("tiny-1" if name == OWN else name))
