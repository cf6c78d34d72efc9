"""Settings: one TOML file plus `CRISIS_*` environment variables; each field says what it is for.

Order, first wins: environment (`CRISIS_BROKER__BOOTSTRAP=…`, two underscores between section and field), then the
TOML file (`--config` or `CRISIS_CONFIG`, which must be there; else ./crisis.toml if it is there and ours), then the
defaults below. Unknown keys are refused; what is off by default is off with an empty value too. `deploy/crisis.toml` is
the documented example and a test holds it to these fields.
"""

from __future__ import annotations

import codecs
import contextlib
import difflib
import os
import stat
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, ModelWrapValidatorHandler, PrivateAttr, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from models.clustering import ClusterConfig
from models.encoders.cluster_thresholds import TunedClusters
from models.errors import ConfigError
from models.language_tags import LANGUAGES, language_problem
from models.matching import MatchConfig
from streams.config.checking import leaves, message, plain_section
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


def _read_by_people(match: MatchConfig) -> MatchConfig:
    base = match.reader_language.partition("-")[0]
    if base not in LANGUAGES and (wrong := language_problem(base)):
        raise ValueError(f"reader_language: {wrong}")
    return match


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
    match: Annotated[MatchConfig, plain_section(MatchConfig), AfterValidator(_read_by_people)] = MatchConfig()
    cluster: Annotated[ClusterConfig, plain_section(ClusterConfig)] = ClusterConfig()
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

    variables = _variables()
    _refuse_sections(variables)
    try:
        return FromFile(**overrides)
    except ValidationError as error:
        wrong = {".".join(map(str, e["loc"])): message(e, Settings) for e in error.errors()}
        places = [str(found)] * found.is_file() + [
            name
            for name, setting in variables.items()
            if any(f"{setting}.".startswith(f"{at}.") or at.startswith(f"{setting}.") for at in wrong)
        ]
        where = ", ".join(places) or "environment"
        raise ConfigError(f"settings ({where}): {'; '.join(f'{at}: {told}' for at, told in wrong.items())}") from error
    except ValueError as error:  # not TOML
        marked = found.read_bytes().startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        told = "it begins with a byte-order mark, save it as UTF-8 without one" if marked else error
        raise ConfigError(f"{found} is not valid TOML: {told}") from error


def unknown_variables() -> list[str]:
    """A sentence for each CRISIS_* variable that nothing reads, such as one that lacks an underscore."""
    settings = list(map(_variable, leaves(Settings)))
    told = []
    for name, setting in _variables().items():
        if "." not in setting and setting not in Settings.model_fields and name not in VARIABLES:
            meant = difflib.get_close_matches(name, [*settings, *VARIABLES], 1, 0.8)
            told.append(f"{name} is set and nothing reads it" + (f"; did you mean {meant[0]}?" if meant else ""))
    return told


def _variables() -> dict[str, str]:
    """Our variables that are set, in order, and which setting each would be."""
    ours = sorted(name for name in os.environ if name.upper().startswith("CRISIS_"))
    return {name: name.lower().removeprefix("crisis_").replace("__", ".") for name in ours}


def _variable(setting: str) -> str:
    return f"CRISIS_{setting.replace('.', '__').upper()}"


def _refuse_sections(variables: dict[str, str]) -> None:
    """Raises ConfigError for a variable of a section that is none, and for one in the place of a whole section."""
    sections, settings = Settings.model_fields, list(leaves(Settings))
    if unknown := [name for name, at in variables.items() if "." in at and at.split(".")[0] not in sections]:
        raise ConfigError(f"no such section: {', '.join(unknown)}; sections: {', '.join(sections)}")
    for name, at in variables.items():
        if below := next((setting for setting in settings if setting.startswith(f"{at}.")), None):
            raise ConfigError(f"{name} is a section: set what is in it one by one, such as {_variable(below)}")


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
