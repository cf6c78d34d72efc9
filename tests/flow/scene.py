"""A broker, a Redis and posts that wait: what a worker and its peers are measured on, each on topics of its own."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.request import urlopen

import click
import msgspec
import psutil
import redis
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from msgspec import Struct

from models.queries import Query, load_queries
from streams.broker.queries import publish_queries
from streams.broker.topics import AGENTS
from streams.commands.bench_queries import LANGUAGES
from streams.commands.bench_scenarios import START, invented_texts, real_texts
from streams.commands.key import make_key
from streams.commands.topics import prepare
from streams.config import Settings, load_settings
from streams.embedded.child import Child
from streams.pipeline.outcomes import MATCHED, through
from tests.chaos.machines import RedisNode
from tests.services.kafka import Node, free_ports
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
ALL = ",".join(AGENTS)
NORMALISE, EMBED, MATCH, CLUSTER = AGENTS
PAIR = [f"{NORMALISE},{EMBED},{MATCH}", CLUSTER]  # one that reads, one that clusters
TRIO = [f"{NORMALISE},{EMBED}", MATCH, CLUSTER]  # each has a third of the work, about
AUTHORS = 5_000
CLUSTERED = re.compile(r'^crisis_posts_total\{outcome="clustered",stage="cluster"\} (\S+)$', re.MULTILINE)


class Mark(Struct, frozen=True):
    """CPU seconds used so far, by process; at: seconds of `time.monotonic`."""

    at: float
    cpu_s: dict[str, float]


class Services:
    """Apache Kafka and redis-server of our own. Made by `services()`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kafka, self.redis = folder, Node(folder), RedisNode(folder)
        make_key(folder / "key")

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds of both since they began."""
        return {"broker": cpu_s(self.kafka.child.pid), "redis": cpu_s(self.redis.child.pid)}


@contextlib.contextmanager
def services() -> Iterator[Services]:
    """Both up. Raises Missing."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="crisis-flow-", ignore_cleanup_errors=True))
        made = Services(Path(folder))
        made.kafka.format()
        for node in (made.kafka, made.redis):
            stack.callback(node.stop)
            node.start()
        yield made


def cpu_s(pid: int) -> float:
    """CPU seconds of a process and all it started."""
    used = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in (one := psutil.Process(pid), *one.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                told = process.cpu_times()
                used += told.user + told.system
    return used


def posts(number: int, invented: bool = False) -> list[bytes]:
    """Raw posts as sources send them: real texts where CRISIS_DATA holds streams, invented ones else.

    Raises click.UsageError where there are fewer real ones: invented posts nearly all alert, which costs twice as much.
    """
    texts = [] if invented else list(itertools.islice(real_texts(), number))
    if 0 < len(texts) < number:
        raise click.UsageError(f"CRISIS_DATA holds {len(texts):,} posts: --posts at most that, or --invented")
    texts = texts or list(itertools.islice(invented_texts(), number))
    return [
        msgspec.json.encode(
            {
                "id": f"mast:{n * 7919 % AUTHORS}/{n}",
                "text": text,
                "created_at": START + n / 500,
                "author": f"user{n * 7919 % AUTHORS}",
                "source": "mastodon",
                "url": f"https://social.example/@user{n * 7919 % AUTHORS}/{n}",
            }
        )
        for n, text in enumerate(texts)
    ]


def renamed(lines: Sequence[bytes], first: int, number: int) -> list[bytes]:
    """So many posts whose ids were not used: the lines from `first` on, and round again, a time after one another."""
    made = []
    for n in range(first, first + number):
        post = msgspec.json.decode(lines[n % len(lines)])
        new = {"id": f"{post['id']}x{n}", "text": f"{post['text']} {n}", "created_at": START + n / 500}
        made.append(msgspec.json.encode(post | new))
    return made


def more_queries(count: int) -> list[Query]:
    """So many queries beside the bundled ones, one sentence each, half of them for one language alone."""
    from models.filters import Where

    texts = itertools.islice(invented_texts(), count)
    return [
        Query(
            f"need.user{n}",
            "need",
            f"user{n}",
            "User",
            {(lang := LANGUAGES[n % len(LANGUAGES)]): [text]},
            where=Where(languages=[lang]) if n % 2 else None,
        )
        for n, text in enumerate(texts)
    ]


class Deployment:
    """Topics under a prefix of their own, all queries published. queries: how many in all, at least the bundled."""

    def __init__(
        self, at: Services, queries: int = 0, partitions: int = 4, encoder: str = "flood", keep_ids: bool = False
    ) -> None:
        self.services, self.prefix = at, f"f{uuid.uuid4().hex[:8]}."
        self.settings: Settings = load_settings(
            broker={"bootstrap": at.kafka.bootstrap},
            redis={"url": at.redis.url},
            topics={"prefix": self.prefix, "partitions": partitions},
            privacy={"key_file": at.folder / "key", "keep_ids": keep_ids},
            encoder={"ref": encoder},
            worker={"web_port": 0},
        )
        self._redis = redis.Redis.from_url(at.redis.url)
        self._forget_earlier_ones()
        prepare(self.settings)
        bundled = load_queries()
        if queries > len(bundled):
            publish_queries(self.settings, {q.id: q for q in more_queries(queries - len(bundled))})
        self._started = 0
        self._ports: list[int] = []  # of the workers' metrics

    def _forget_earlier_ones(self) -> None:
        """Empty Redis and its log: whenever the log has doubled, all there is would be written anew, theirs too."""

        def written() -> bool:
            return not self._redis.info("persistence")["aof_rewrite_in_progress"]

        self._redis.flushall()
        wait_until(written)
        self._redis.bgrewriteaof()
        wait_until(written)

    def command(self, *args: str) -> list[str]:
        """A command line that has our settings."""
        s = self.settings
        env = {
            "CRISIS_BROKER__BOOTSTRAP": s.broker.bootstrap,
            "CRISIS_REDIS__URL": s.redis.url,
            "CRISIS_TOPICS__PREFIX": s.topics.prefix,
            "CRISIS_TOPICS__PARTITIONS": str(s.topics.partitions),
            "CRISIS_PRIVACY__KEY_FILE": str(s.privacy.key_file),
            "CRISIS_PRIVACY__KEEP_IDS": str(s.privacy.keep_ids),
            "CRISIS_ENCODER__REF": str(s.encoder.ref),
            "CRISIS_WORKER__WEB_PORT": "0",
            "PYTHONPATH": str(ROOT),
        }
        return ["env", *(f"{name}={value}" for name, value in env.items()), sys.executable, "-m", *args]

    @contextlib.contextmanager
    def running(self, *args: str) -> Iterator[Child]:
        """A process of ours, ended with the block."""
        self._started += 1
        child = Child(self.command(*args), self.services.folder / f"{self.prefix}{self._started}.log")
        try:
            yield child
        finally:
            child.stop()

    def write(self, lines: Sequence[bytes], frame_posts: int, rate: float = math.inf) -> None:
        """Put posts on posts.raw, so many to a record, the partitions in turn; returns once the broker has them.

        rate: so many posts a second.
        """
        producer = KafkaProducer(bootstrap_servers=self.settings.broker.bootstrap, compression_type="lz4")
        began = time.monotonic()
        for n, start in enumerate(range(0, len(lines), frame_posts)):
            time.sleep(max(0.0, began + start / rate - time.monotonic()))
            producer.send(
                self.settings.topics.name("posts.raw"),
                value=b"\n".join(lines[start : start + frame_posts]),
                partition=n % self.settings.topics.partitions,
            )
        producer.flush()
        producer.close()

    def counts(self) -> dict[str, int]:
        """The worker's counters."""
        return {k.decode(): int(v) for k, v in self._redis.hgetall(f"{self.settings.key_prefix}counts").items()}

    def told(self) -> int:
        """Posts that have their outcome: an alert is at its subscribers."""
        return through(self.counts())

    def through(self) -> int:
        """Posts that every stage is done with: they have an outcome, and those that were matched are in a cluster."""
        counts = self.counts()
        matched = sum(counts.get(outcome, 0) for outcome in MATCHED)
        return through(counts) - max(0, matched - self.clustered())

    def clustered(self) -> int:
        """Posts that were put into clusters, by the metrics of all workers."""
        found, asked = 0, "metrics?name[]=crisis_posts_total"
        for port in self._ports:
            with contextlib.suppress(OSError), urlopen(f"http://127.0.0.1:{port}/{asked}", timeout=10) as told:
                found += sum(map(int, map(float, CLUSTERED.findall(told.read().decode()))))
        return found

    def begun(self) -> int:
        """Posts that the first stage has read."""
        return self.counts().get("read", 0)

    @contextlib.contextmanager
    def workers(self, agents: Sequence[str]) -> Iterator[list[Child]]:
        """One with each of these lists of agents, all of which have told that they are ready, ended with the block."""
        with contextlib.ExitStack() as stack:
            self._ports = free_ports(len(agents))
            started = [
                self.running("streams.cli", "worker", "--agents", names, "--web-port", str(port))
                for names, port in zip(agents, self._ports, strict=True)
            ]
            children = [stack.enter_context(one) for one in started]
            wait_until(
                lambda: (
                    self._redis.hlen(f"{self.settings.key_prefix}workers") >= len(agents)
                    or any(child.ended() for child in children)
                ),
                lambda: "\n".join(child.last_words(20) for child in children),
            )
            yield children

    def lag(self) -> int:
        """Records between what the group committed and the end, of all topics between the stages."""
        s = self.settings
        consumer = KafkaConsumer(
            bootstrap_servers=s.broker.bootstrap, group_id=f"{s.topics.prefix}crisis", enable_auto_commit=False
        )
        try:
            names = [s.topics.name(f"posts.{t}") for t in ("raw", "clean", "embedded", "matched")]
            parts = [TopicPartition(name, p) for name in names for p in consumer.partitions_for_topic(name) or ()]
            ends = consumer.end_offsets(parts)
            return sum(ends[part] - (consumer.committed(part) or 0) for part in parts)
        finally:
            consumer.close()


def measured(
    deployment: Deployment,
    children: Sequence[Child],
    through: Callable[[], int],
    warm: int,
    number: int,
    begun: Callable[[], int] | None = None,
) -> tuple[Mark, Mark]:
    """What was used when `warm` posts were through, and when `number` were.

    begun: counts the warm ones instead, where stages run ahead of one another: what the first did beyond them by the
    time they are through would cost nothing.
    """

    def mark() -> Mark:
        used = deployment.services.cpu_s() | {"worker": sum(cpu_s(child.pid) for child in children)}
        return Mark(time.monotonic(), used)

    def until(posts: int, done: Callable[[], int]) -> Mark:
        wait_until(
            lambda: done() >= posts or any(child.ended() for child in children),
            lambda: f"{done()} of {posts}\n" + "\n".join(child.last_words(20) for child in children),
        )
        assert done() >= posts, "\n".join(child.last_words(200) for child in children)
        return mark()

    return until(warm, begun or through), until(number, through)


def cost(marks: tuple[Mark, Mark], posts: int) -> dict[str, float]:
    """Microseconds a post: of the clock (`wall`), and of CPU by process."""
    before, after = marks
    spent = {name: after.cpu_s[name] - before.cpu_s[name] for name in after.cpu_s}
    return {name: value / posts * 1e6 for name, value in ({"wall": after.at - before.at} | spent).items()}
