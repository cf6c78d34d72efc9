"""What a worker has in memory before it says that it is ready."""

import pytest

from models.errors import ConfigError, ServiceError
from models.pseudonyms import Pseudonyms
from streams.config import load_settings
from streams.view.pseudonyms import KEY_ID, check_key
from streams.view.status import WorkerStatus
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


async def test_after_redis_came_back_empty_a_worker_says_again_which_secret_it_uses(redis_url):
    settings = load_settings(redis={"url": redis_url})
    made = Runtime(settings)
    made.pseudonyms = Pseudonyms(b"k" * 40)
    await made.tell(WorkerStatus())
    assert (await made.view.workers())[made.name].message == ""
    with pytest.raises(ConfigError, match="the secret in privacy.key_file is not what"):
        await check_key(made.redis, settings, Pseudonyms(b"l" * 40))
    await check_key(made.redis, settings, made.pseudonyms)
    assert 71 * 3600 < await made.redis.ttl(made.view.key(KEY_ID)) <= 72 * 3600
    await made.stop()


async def test_a_worker_that_finds_the_mark_of_another_secret_tells_it_as_trouble(redis_url):
    settings = load_settings(redis={"url": redis_url})
    made = Runtime(settings)
    made.pseudonyms = Pseudonyms(b"k" * 40)
    await check_key(made.redis, settings, Pseudonyms(b"l" * 40))
    for said, told in (("", "the secret in privacy.key_file is not what"), ("worse", "worse")):
        await made.tell(WorkerStatus(message=said))
        assert (await made.view.workers())[made.name].message.startswith(told)
    await made.stop()
