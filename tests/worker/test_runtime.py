"""What a worker has in memory before it says that it is ready."""

import pytest

from models.errors import ServiceError
from streams.config import load_settings
from streams.worker import runtime
from streams.worker.runtime import Runtime


@pytest.mark.parametrize("reads_posts", [True, False])
async def test_who_reads_posts_reads_the_models_of_languages_first_and_nobody_else_does(monkeypatch, reads_posts):
    read = []

    def no_broker(_: object) -> None:
        raise ServiceError("no broker")

    monkeypatch.setattr(runtime, "read_models", lambda: read.append(1))
    monkeypatch.setattr(runtime, "require_topics", no_broker)
    made = Runtime(load_settings(), reads_posts)
    with pytest.raises(ServiceError):
        await made.start()
    await made.stop()
    assert len(read) == reads_posts
