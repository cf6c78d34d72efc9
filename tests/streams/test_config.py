"""Settings: documented, checked, and environment over file over defaults."""

import tomllib
from pathlib import Path

import pytest

from models.errors import ConfigError
from streams.config import TOPICS, Settings, load_settings

EXAMPLE = Path(__file__).parents[2] / "deploy" / "crisis.toml"


def fields(model, prefix=""):
    """Every leaf setting as a dotted name."""
    import dataclasses

    names = set()
    inside = (
        {f.name: f.type for f in dataclasses.fields(model)}
        if dataclasses.is_dataclass(model)
        else {n: f.annotation for n, f in model.model_fields.items()}
    )
    for name, kind in inside.items():
        if hasattr(kind, "model_fields") or dataclasses.is_dataclass(kind):
            names |= fields(kind, f"{prefix}{name}.")
        else:
            names.add(prefix + name)
    return names


def keys(table, prefix=""):
    names = set()
    for name, value in table.items():
        names |= keys(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name}
    return names


def test_the_example_file_documents_every_setting_and_no_other():
    text = EXAMPLE.read_text(encoding="utf-8")
    shown = "\n".join(line.removeprefix("#= ") for line in text.splitlines())  # "#= " marks optional settings
    assert keys(tomllib.loads(shown)) == fields(Settings)


def test_the_example_file_is_the_defaults():
    assert load_settings(EXAMPLE).model_dump() == Settings().model_dump()


def test_the_environment_wins_over_the_file(tmp_path, monkeypatch):
    file = tmp_path / "crisis.toml"
    file.write_text('[broker]\nbootstrap = "file:1"\n[topics]\npartitions = 7\n')
    monkeypatch.setenv("CRISIS_BROKER__BOOTSTRAP", "env:2")
    settings = load_settings(file)
    assert (settings.broker.bootstrap, settings.topics.partitions) == ("env:2", 7)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[broker]\nbootstrp = 'x'\n", "broker.bootstrp"),
        ("[topics]\npartitions = 0\n", "topics.partitions"),
        ("[cluster]\nt_atach = 1\n", "cluster"),
        ("not toml", "not valid TOML"),
    ],
)
def test_a_wrong_settings_file_is_refused_by_name(tmp_path, text, told):
    file = tmp_path / "crisis.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=told):
        load_settings(file)


def test_a_missing_settings_file_is_an_error_only_when_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_settings().model_dump() == Settings().model_dump()
    with pytest.raises(ConfigError, match="no settings file"):
        load_settings(tmp_path / "none.toml")


def test_topic_names_carry_the_prefix_and_unknown_ones_are_refused():
    topics = load_settings(topics={"prefix": "drill-"}).topics
    assert [topics.name(t) for t in TOPICS] == [f"drill-{t}" for t in TOPICS]
    with pytest.raises(ConfigError, match="no topic 'posts'"):
        topics.name("posts")


def test_a_variable_of_no_section_is_refused_by_its_name(monkeypatch):
    monkeypatch.setenv("CRISIS_REDDIS__URL", "redis://elsewhere")
    with pytest.raises(ConfigError, match="no such section: CRISIS_REDDIS__URL; sections: broker"):
        load_settings()
