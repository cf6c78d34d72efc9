"""Settings: one TOML file plus `CRISIS_*` environment variables; each field says what it is for.

Order, first wins: environment (`CRISIS_BROKER__BOOTSTRAP=…`, two underscores between section and field), then the
TOML file (`--config` or `CRISIS_CONFIG`, which must be there; else ./crisis.toml if it is there and ours), then the
defaults below. Unknown keys are refused. `deploy/crisis.toml` is the documented example and a test holds it to these
fields.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import stat
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Self, get_type_hints

from pydantic import ModelWrapValidatorHandler, PrivateAttr, ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from models.clustering import ClusterConfig
from models.encoders.cluster_thresholds import TunedClusters
from models.errors import ConfigError
from models.matching import MatchConfig
from streams.config.sections import Broker, Dashboard, EncoderSettings, Ingest, Privacy, Redis, Topics, Worker

__all__ = ["VARIABLES", "Settings", "load_settings", "unknown_variables"]

# What else is read from the environment, by us, by compose.yaml and by our tests: no settings.
VARIABLES = frozenset(
    f"CRISIS_{name}"
    for name in (
        *("CONFIG", "HTTP_TOKEN", "MASTODON_TOKEN", "CACHE", "DATA", "DEBUG"),
        *("DASHBOARD_TOKEN", "EXTRAS", "REDIS_MAXMEMORY", "VAULT_MAXMEMORY"),
        *("REQUIRE_SERVICES", "TEST_BROKER", "TESTS_KAFKA", "CHAOS_LOGS", "DATA_DIR"),
    )
)


class Settings(BaseSettings):
    """Everything one can set."""

    model_config = SettingsConfigDict(
        env_prefix="CRISIS_", env_nested_delimiter="__", extra="forbid", frozen=True, toml_file=None
    )

    broker: Broker = Broker()
    topics: Topics = Topics()
    redis: Redis = Redis()
    encoder: EncoderSettings = EncoderSettings()
    worker: Worker = Worker()
    match: MatchConfig = MatchConfig()
    cluster: ClusterConfig = ClusterConfig()
    privacy: Privacy = Privacy()
    dashboard: Dashboard = Dashboard()
    ingest: Ingest = Ingest()
    _clusters_given: frozenset[str] = PrivateAttr(frozenset())  # fields of `cluster` that somebody set

    @model_validator(mode="wrap")
    @classmethod
    def _remember_what_was_given(cls, given: Any, build: ModelWrapValidatorHandler[Self]) -> Self:
        settings = build(given)
        clusters = given.get("cluster", {}) if isinstance(given, dict) else {}
        fields = clusters if isinstance(clusters, dict) else ClusterConfig.__dataclass_fields__
        settings._clusters_given = frozenset(fields)
        return settings

    def clusters_under(self, tuned: TunedClusters | None) -> ClusterConfig:
        """The clusterer's settings with the thresholds of an encoder version, where these settings name none."""
        return self.cluster if tuned is None else tuned.fit(self.cluster, self._clusters_given)

    @property
    def key_prefix(self) -> str:
        """What every Redis key begins with. The topics' prefix comes first: two deployments on one broker and one Redis
        share no key, and forgetting all keys of one (`crisis topics --reset-view`) touches none of the other."""
        return self.topics.prefix + self.redis.prefix

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def load_settings(path: str | Path | None = None, **overrides: dict) -> Settings:
    """Read the settings, environment over file over defaults.

    Raises ConfigError naming the file and every key that is unknown or out of range, or who names a file that is none.
    """
    by, named = ("--config", path) if path is not None else ("CRISIS_CONFIG", os.environ.get("CRISIS_CONFIG") or None)
    found = Path("crisis.toml" if named is None else named)
    if named is None:
        _refuse_a_strangers(found)
    elif found.is_dir():
        raise ConfigError(
            f"{found}, which {by} names, is a folder: Docker makes one where the file to mount is missing"
        )
    elif not found.is_file():
        raise ConfigError(f"no settings file at {found}, which {by} names; deploy/crisis.toml is an example")

    class FromFile(Settings):
        model_config = SettingsConfigDict(toml_file=found if found.is_file() else None)

    typed = {name for name in os.environ if name.startswith("CRISIS_") and "__" in name}
    if unknown := sorted(
        n for n in typed if n.removeprefix("CRISIS_").split("__")[0].lower() not in Settings.model_fields
    ):
        raise ConfigError(f"no such section: {', '.join(unknown)}; sections: {', '.join(Settings.model_fields)}")
    try:
        return FromFile(**overrides)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {_message(e)}" for e in error.errors())
        raise ConfigError(f"settings ({found if found.is_file() else 'environment'}): {wrong}") from error
    except ValueError as error:  # not TOML
        raise ConfigError(f"{found} is not valid TOML: {error}") from error


def unknown_variables() -> list[str]:
    """A sentence for each CRISIS_* variable that nothing reads, such as one that lacks an underscore."""
    settings = [f"CRISIS_{name}".upper() for name in _leaves(Settings)]
    told = []
    for name in sorted(os.environ):
        if name.startswith("CRISIS_") and "__" not in name and name not in VARIABLES:
            meant = difflib.get_close_matches(name, [*settings, *VARIABLES], 1, 0.8)
            told.append(f"{name} is set and nothing reads it" + (f"; did you mean {meant[0]}?" if meant else ""))
    return told


def _message(error: ErrorDetails) -> str:
    """What is wrong with one setting, in our words where pydantic's are those of a programmer."""
    if error["type"] not in ("extra_forbidden", "unexpected_keyword_argument"):
        return error["msg"].removeprefix("Value error, ")
    *sections, name = map(str, error["loc"])
    inside: Any = Settings
    for section in sections:
        inside = _fields(inside)[section]
    meant = difflib.get_close_matches(name, _fields(inside), 1)
    return "no such setting; " + (f"did you mean {meant[0]}?" if meant else f"there are: {', '.join(_fields(inside))}")


def _fields(section: Any) -> dict[str, Any]:
    """The settings of a section and what each is, in either of the two ways a section is written."""
    if is_dataclass(section):
        return get_type_hints(section)
    return {name: field.annotation for name, field in getattr(section, "model_fields", {}).items()}


def _leaves(section: Any) -> Iterator[str]:
    for name, kind in _fields(section).items():
        yield from ([f"{name}__{below}" for below in _leaves(kind)] or [name])


def _refuse_a_strangers(path: Path) -> None:
    """A file that merely lies in the current folder is read where it is ours: in a shared folder anybody could send our
    posts to his broker. Raises ConfigError otherwise; a file that is named is read whosever it is."""
    with contextlib.suppress(FileNotFoundError, AttributeError):  # Windows knows no owner
        told = path.stat()
        if told.st_uid not in (os.getuid(), 0) or told.st_mode & stat.S_IWOTH:
            whose = "everybody may write" if told.st_mode & stat.S_IWOTH else f"belongs to user {told.st_uid}"
            raise ConfigError(
                f"{path.resolve()} {whose}: it is not read unless you name it (--config, CRISIS_CONFIG); "
                "chown or chmod it if it is yours"
            )
