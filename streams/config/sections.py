"""The sections of the settings file, a class each: what can be set, its bounds and its default."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from models.errors import ConfigError
from streams.config.checking import as_meant, plain_section

__all__ = [
    "Broker",
    "Dashboard",
    "EncoderSettings",
    "Ingest",
    "Privacy",
    "Redis",
    "TOPICS",
    "Topics",
    "Worker",
    "WriterConfig",
]

TOPICS = (
    "posts.raw",
    "posts.clean",
    "posts.waiting",
    "posts.embedded",
    "posts.matched",
    "posts.rejected",
    "alerts",
    "clusters",
    "queries",
    "encoders",
    "labels",
)


# Longer ones the services refuse, or no timer can wait for: ten years, and a day.
Hours = Annotated[float, Field(gt=0, le=87_600)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _as_meant(cls, value: object, told: ValidationInfo) -> object:
        return as_meant(value, cls.model_fields[told.field_name or ""].annotation)


class Broker(Section):
    """Where Kafka is."""

    bootstrap: Annotated[str, Field(description="host:port of one or more brokers, comma separated")] = "127.0.0.1:9092"
    security: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"], Field(description="Kafka security protocol")
    ] = "PLAINTEXT"
    ca_file: Annotated[Path | None, Field(description="PEM file of the CA that signed the brokers' certificates")] = (
        None
    )
    cert_file: Annotated[
        Path | None, Field(description="PEM file of our own certificate, where the brokers ask clients for one")
    ] = None
    key_file: Annotated[Path | None, Field(description="PEM file of its key; none = it is in cert_file")] = None
    sasl_mechanism: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"], Field(description="used with SASL_*")
    ] = "SCRAM-SHA-512"
    username: Annotated[str | None, Field(description="SASL user name")] = None
    password_file: Annotated[Path | None, Field(description="file holding the SASL password")] = None

    @field_validator("bootstrap")
    @classmethod
    def _host_and_port(cls, value: str) -> str:
        servers = [server.strip() for server in value.split(",")]
        for server in servers:
            host, _, port = server.rpartition(":")
            if not host or "/" in host or not (port.isdecimal() and 1 <= int(port) <= 65535):
                raise ValueError(f"{server!r} is not host:port; write for example kafka-1:9092,kafka-2:9092")
        return ",".join(servers)


class Topics(Section):
    """How the topics are made (`crisis topics`)."""

    prefix: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9._-]{0,200}$",
            description="put before every topic name, the consumer group and every Redis key",
        ),
    ] = ""
    partitions: Annotated[
        int, Field(ge=1, le=10_000, description="of the posts.* topics: the most workers that can share them")
    ] = 4
    replication: Annotated[int, Field(ge=1, le=32_767, description="copies of each partition; 3 in production")] = 1
    retention_h: Annotated[Hours, Field(ge=0.1, description="how long posts and alerts stay on the broker")] = 72.0

    def name(self, topic: str) -> str:
        """The topic's name on the broker. Raises ConfigError for a name that is not one of ours."""
        if topic not in TOPICS:
            raise ConfigError(f"no topic {topic!r}; known: {', '.join(TOPICS)}")
        return self.prefix + topic


class Redis(Section):
    """Where the live view is kept."""

    url: Annotated[str, Field(description="redis://[user@]host:port/db; the password may come from password_file")] = (
        "redis://127.0.0.1:6379/0"
    )
    password_file: Annotated[Path | None, Field(description="file holding the Redis password")] = None
    prefix: Annotated[
        str,
        Field(
            description="put before every key, after topics.prefix; deployments that share a Redis need one of the two"
            " to differ"
        ),
    ] = "crisis:"
    fold_h: Annotated[Hours, Field(description="how long an exact repeat is folded into its original")] = 24.0
    recent_alerts: Annotated[
        int, Field(ge=10, description="alerts listed on the dashboard at the most; a quarter fewer after it was full")
    ] = 2000

    @field_validator("url")
    @classmethod
    def _address(cls, value: str) -> str:
        return _redis_address(value)


def _redis_address(value: str) -> str:
    """As it was given. Raises ValueError for what is none."""
    told = "write for example redis://127.0.0.1:6379/0 (rediss:// for TLS, unix:///path for a socket)"
    try:
        parts = urlsplit(value)
        host, port, database = parts.hostname, parts.port, parts.path.strip("/")
    except ValueError as error:
        raise ValueError(f"has a host or port that is none; {told}") from error
    known, socket = parts.scheme in ("redis", "rediss"), parts.scheme == "unix" and database
    wrong = not known or not host or port == 0 or (database and not database.isdecimal())
    if not socket and wrong or any(letter.isspace() for letter in value):
        raise ValueError(f"is not the address of a Redis; {told}")  # it may hold a password: not shown
    return value


class EncoderSettings(Section):
    """Which encoder."""

    ref: Annotated[
        str | None,
        Field(description='"reader" or "flood" (bundled), a bundle, a model directory or a hub id; none = reader'),
    ] = None
    registry: Annotated[
        str | None, Field(description="directory or fsspec URL that holds published encoder versions")
    ] = None


class Worker(Section):
    """One `crisis worker` process."""

    web_host: Annotated[str, Field(description="where /metrics, /healthz and /readyz listen")] = "127.0.0.1"
    web_port: Annotated[int, Field(ge=0, le=65535, description="0 = any free port")] = 6066
    metrics_token_file: Annotated[
        Path | None, Field(description="file holding the token that /metrics asks for, 16 characters or more")
    ] = None
    allowed_hosts: Annotated[
        str,
        Field(
            min_length=1,
            description="names a worker may be asked for by, comma separated, beside its own address; others get 400",
        ),
    ] = "localhost, 127.0.0.1, [::1]"
    frames_in_flight: Annotated[
        int,
        Field(ge=1, description="records taken at a time by one agent; of large ones fewer (256 kB to 2 MB)"),
    ] = 200
    frame_posts: Annotated[int, Field(ge=1, description="posts in one inner frame at the most")] = 200
    frame_bytes: Annotated[
        int, Field(ge=200_000, le=900_000, description="bytes in one inner frame at the most; longer ones are split")
    ] = 800_000  # within the producer's 1,000,000; from twice what a post of 10,000 four-byte characters takes
    native_threads: Annotated[
        int,
        Field(
            ge=1, description="threads of each native pool (BLAS, OpenMP, tokenizer); for more cores start more workers"
        ),
    ] = 1  # more spin while they wait: measured, see deploy/performance.md
    stall_s: Annotated[Seconds, Field(description="lag without progress for so long ends the process")] = 60.0
    session_s: Annotated[
        Seconds,
        Field(
            ge=1,
            description="silent for so long a worker counts as dead and others get its partitions; Kafka allows 6 and"
            " more (group.min.session.timeout.ms)",
        ),
    ] = 10.0
    snapshot_s: Annotated[
        Seconds, Field(description="how often clusters are saved, 6 to 30 MB a time; at most half of stall_s")
    ] = 5.0
    context_within_s: Annotated[
        Seconds,
        Field(
            description="within this lag every post is read in context as it comes; each further so much halves"
            " what is, and the others wait",
        ),
    ] = 5.0
    audit_s: Annotated[Seconds, Field(description="how often HDBSCAN looks for clusters that should be one")] = 300.0

    @model_validator(mode="after")
    def _saved_before_it_counts_as_stalled(self) -> Worker:
        # Frames are acknowledged with the snapshot that holds them: until then the watchdog sees no progress. Half
        # leaves room for a frame that just missed one, and for the saving itself.
        if self.snapshot_s > self.stall_s / 2:
            raise ValueError(
                f"snapshot_s is {self.snapshot_s:g}, more than half of stall_s ({self.stall_s:g}): the "
                "watchdog would end"
                " the worker before its clusters are saved, again and again; lower snapshot_s or raise stall_s"
            )
        return self


class Privacy(Section):
    """What is kept of the people who post (deploy/privacy.md)."""

    key_file: Annotated[
        Path | None,
        Field(
            description="file with the secret of the pseudonyms, 32 characters or more, the same for all workers and"
            " for who types ids of posts; `crisis key FILE` makes one"
        ),
    ] = None
    keep_ids: Annotated[
        bool, Field(description="leave post ids, links and mentions as platforms write them, in all topics and Redis")
    ] = False
    vault_url: Annotated[
        str | None,
        Field(
            description="Redis that keeps the original ids and links apart, a database or server of its own; none ="
            " they are kept nowhere, and nobody can open a post"
        ),
    ] = None
    vault_password_file: Annotated[Path | None, Field(description="file holding the password of that Redis")] = None
    link_h: Annotated[
        Hours,
        Field(description="how long the link of a post is kept that gave no alert; the others: retention_h"),
    ] = 6.0
    log_days: Annotated[float, Field(gt=0, le=3_650, description="how long it is known who opened which post")] = 90.0

    @field_validator("vault_url")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        return value if value is None else _redis_address(value)

    @property
    def vault(self) -> Redis | None:
        """How to reach the vault."""
        return self.vault_url and Redis(url=self.vault_url, password_file=self.vault_password_file) or None


class Dashboard(Section):
    """The live page."""

    host: Annotated[str, Field(description="0.0.0.0 to serve other machines")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, description="0 = any free port")] = 8080
    search_h: Annotated[Hours, Field(description="how far back search reaches")] = 24.0
    shift_h: Annotated[
        Hours, Field(description="how far back verdicts on alerts count for the precision the page shows")
    ] = 12.0
    token_file: Annotated[
        Path | None,
        Field(
            description="who may see the page: lines of 'name role token' (`crisis token NAME`), or one word, a token"
        ),
    ] = None
    access_log: Annotated[
        Path | None, Field(description="file for who asked for what, without texts; none = standard error")
    ] = None
    allowed_hosts: Annotated[
        str, Field(min_length=1, description="names the page may be asked for by, comma separated; others get 400")
    ] = "localhost, 127.0.0.1, [::1]"


@dataclass(frozen=True)
class WriterConfig:
    """How posts are packed into frames."""

    # above 100 nothing gets faster (155 to 211 k posts/s through an agent)
    frame_posts: Annotated[int, Field(ge=1, le=10_000)] = 100
    frame_bytes: Annotated[int, Field(ge=1_000, le=1_000_000)] = 262_144
    linger_s: Annotated[float, Field(ge=0, le=60)] = 0.05  # the longest a post waits for company
    # a longer line is replaced by a marker, of up to 1,500 bytes: brokers refuse records over 1 MiB
    line_bytes: Annotated[int, Field(ge=2_000, le=1_000_000)] = 900_000
    frames_in_flight: Annotated[int, Field(ge=1, le=10_000)] = 64  # unacknowledged; beyond, writing waits
    delivery_timeout_s: Annotated[float, Field(ge=1, le=3_600)] = 120.0  # then the broker counts as gone
    compression: Literal["none", "gzip", "lz4"] = "lz4"


class Ingest(Section):
    """The HTTP source and the live sources."""

    http_host: Annotated[str, Field(description="where POST /posts listens")] = "127.0.0.1"
    http_port: Annotated[int, Field(ge=0, le=65535)] = 8090
    http_allowed_hosts: Annotated[
        str, Field(min_length=1, description="names POST /posts may be asked for by, comma separated; others get 400")
    ] = "localhost, 127.0.0.1, [::1]"
    writer: Annotated[
        WriterConfig, plain_section(WriterConfig), Field(description="how posts are packed into frames")
    ] = WriterConfig()
