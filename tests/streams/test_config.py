"""Settings: documented, checked, and environment over file over defaults."""

import codecs
import os
import re
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from models.clustering import ClusterConfig
from models.encoders.cluster_thresholds import TunedClusters
from models.errors import ConfigError, ServiceError
from streams import cli
from streams.config import VARIABLES, Settings, load_settings, unknown_variables
from streams.config.secrets import BRIEF, in_brief, redacted
from streams.config.sections import TOPICS
from streams.ingest.lines import oversize_marker
from streams.view.connect import connect
from tests.hostile.test_cost import assert_in_proportion

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "deploy" / "crisis.toml"


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


def test_under_the_example_file_clusters_have_the_thresholds_of_their_encoder_as_without_it():
    tuned = TunedClusters("v1", 0.31, 0.07, ClusterConfig().lexical)
    under = load_settings(EXAMPLE).clusters_under(tuned)
    assert under == Settings().clusters_under(tuned) and (under.t_attach, under.t_merge) == (0.31, 0.07)


def test_the_environment_wins_over_the_file(tmp_path, monkeypatch):
    file = tmp_path / "crisis.toml"
    file.write_text('[broker]\nbootstrap = "file:1"\n[topics]\npartitions = 7\n')
    monkeypatch.setenv("CRISIS_BROKER__BOOTSTRAP", "env:2")
    settings = load_settings(file)
    assert (settings.broker.bootstrap, settings.topics.partitions) == ("env:2", 7)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[broker]\nbootstrp = 'x'\n", r"broker\.bootstrp: no such setting; did you mean bootstrap\?$"),
        ("[brokr]\nbootstrap = 'x'\n", r"brokr: no such setting; did you mean broker\?$"),
        ("[broker]\nzzz = 'x'\n", r"broker\.zzz: no such setting; there are: bootstrap, security, "),
        (
            "[ingest.writer]\nframe_post = 1\n",
            r"ingest\.writer\.frame_post: no such setting; did you mean frame_posts\?",
        ),
        ("[cluster]\nt_atach = 1\n", r"cluster\.t_atach: no such setting; did you mean t_attach\?"),
        ("[topics]\npartitions = 0\n", "topics.partitions"),
        ("not toml", "not valid TOML"),
        ("[worker]\nsnapshot_s = 60.0\n", "worker: snapshot_s is 60, more than half of stall_s .60.*lower snapshot_s"),
        ("[worker]\nstall_s = 9.0\n", "worker: snapshot_s is 5, more than half of stall_s .9.*raise stall_s"),
        ("[worker]\nstall_s = inf\n", "worker.stall_s: .*finite"),
        ("[worker]\nframe_bytes = 2000000\n", "worker.frame_bytes: .*900000"),
        ("[worker]\nweb_port = 70000\n", "worker.web_port: .*65535"),
        ("[topics]\nprefix = 'drill/'\n", "topics.prefix"),
        ("broker = 3\n", r"broker: is a section: write \[broker\], and its settings below$"),
        ("ingest.writer = 3\n", r"ingest\.writer: is a section: write \[ingest\.writer\], and its settings below$"),
        ("[cluster]\nburst_levels = 3\n", r"cluster\.burst_levels: should be a list, such as \[3\.0, 6\.0\]$"),
        ("[cluster]\nburst_levels = [12, 3]\n", r"cluster: burst_levels are \[12\.0, 3\.0\]: .*above the one before"),
        ("[cluster]\nburst_levels = [nan]\n", "cluster: burst_levels are .nan.: each must be"),
        ("[cluster]\nburst_slow_s = nan\n", "cluster: burst_slow_s nan is not above"),
        ("[cluster]\nburst_slow_s = 1\n", r"cluster: burst_slow_s 1\.0 is not above burst_fast_s 600\.0"),
        ("[cluster]\nexamples_shown = -1\n", r"cluster: examples_shown is -1"),
        ("[cluster]\nhalf_life_s = 1e-9\n", r"cluster: half_life_s is 1e-09"),
        ("[cluster]\nmerge_soon_s = inf\n", "cluster: merge_soon_s is inf: not a finite number"),
        ("[cluster]\nannounce_at = true\n", "cluster: announce_at is true and should be a number"),
        ("[match]\ntarget_precision = true\n", "match: target_precision is true and should be a number"),
        ("[match]\nalert_probability = 50\n", "match: alert_probability 50.* probabilities, between 0 and 1"),
        ("[match]\nnotice_suggestion = nan\n", "match: notice_.* probabilities, between 0 and 1"),
        ("[match]\nsuggestion_probability = 0.9\n", "match: suggestion_probability 0.9 is above alert_probability"),
        ("[match]\ncontrast = -1\n", "match: contrast -1.* is not from 0 to 1"),
        ("[match]\nreader_language = 'english'\n", r"match: reader_language: .*'english' .did you mean en\?"),
        ("[match]\nreader_language = ''\n", "match: reader_language: no post has the language ''"),
        ("[topics]\npartitions = true\n", r"topics\.partitions: is true and should be a number"),
    ],
)
def test_a_wrong_settings_file_is_refused_by_name(tmp_path, text, told):
    file = tmp_path / "crisis.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=told):
        load_settings(file)


@pytest.mark.parametrize(
    ("setting", "wrong", "right"),
    [
        ("ingest.writer.frame_posts", [0, 10_001], [1, 10_000]),
        ("ingest.writer.frame_bytes", [999, 1_000_001], [1_000, 1_000_000]),
        ("ingest.writer.linger_s", [-0.1, 61, 1e300], [0, 60]),
        ("ingest.writer.line_bytes", [-1, 0, 20, 1_999, 5_000_000], [2_000, 1_000_000]),
        ("ingest.writer.frames_in_flight", [-1, 0], [1]),
        ("ingest.writer.delivery_timeout_s", [0, 0.5, 1e300], [1, 3_600]),
        ("topics.partitions", [0, 9999999999999999999], [1, 10_000]),
        ("topics.replication", [0, 99_999], [1, 32_767]),
        ("topics.retention_h", [0, 1e-9, 1e300], [0.1, 87_600]),
        ("redis.fold_h", [0, 1e15], [0.1, 87_600]),
        ("privacy.link_h", [0, 1e300], [0.1, 87_600]),
        ("privacy.log_days", [0, 1e300], [0.1, 3_650]),
        ("dashboard.search_h", [0, 1e300], [0.1, 87_600]),
        ("dashboard.shift_h", [0, 1e300], [0.1, 87_600]),
        ("worker.session_s", [0.5, 1e300], [1, 1_800]),
        ("worker.audit_s", [0, 1e300], [1, 86_400]),
    ],
)
def test_a_number_that_no_service_or_timer_can_do_with_is_refused_and_the_outermost_others_are_taken(
    monkeypatch, setting, wrong, right
):
    variable = f"CRISIS_{setting.replace('.', '__').upper()}"
    for value in wrong:
        monkeypatch.setenv(variable, str(value))
        with pytest.raises(ConfigError, match=re.escape(f"settings ({variable}): {setting}: Input should be")):
            load_settings()
    for value in right:
        monkeypatch.setenv(variable, str(value))
        found = load_settings()
        for name in setting.split("."):
            found = getattr(found, name)
        assert found == value


def test_where_no_suggestions_are_wanted_their_probability_bounds_none():
    found = load_settings(match={"suggestions": False, "alert_probability": 0.15})
    assert found.match.alert_probability == 0.15


def test_no_marker_of_a_long_line_is_longer_than_the_shortest_limit():
    longest = max(len(oversize_marker(bytes([byte]) * 5_000, 10**15)) for byte in range(256))
    with pytest.raises(ConfigError, match="line_bytes"):
        load_settings(ingest={"writer": {"line_bytes": longest}})


def test_a_list_may_stand_in_a_variable(monkeypatch):
    monkeypatch.setenv("CRISIS_CLUSTER__BURST_LEVELS", "[2, 4.5]")
    assert load_settings().cluster.burst_levels == (2.0, 4.5)
    for value in ("3,6", "3", "{}"):
        monkeypatch.setenv("CRISIS_CLUSTER__BURST_LEVELS", value)
        with pytest.raises(ConfigError, match=r"cluster\.burst_levels: should be a list, such as \[3\.0, 6\.0\]$"):
            load_settings()


def test_an_empty_value_of_a_setting_that_may_be_none_is_none(tmp_path, monkeypatch):
    file = tmp_path / "crisis.toml"
    file.write_text('[encoder]\nref = ""\n[broker]\nca_file = ""\n')
    monkeypatch.setenv("CRISIS_PRIVACY__VAULT_URL", "")
    assert load_settings(file).model_dump() == Settings().model_dump()


def test_a_refused_setting_is_told_with_the_file_and_the_variables_that_may_have_set_it(tmp_path, monkeypatch):
    file = tmp_path / "crisis.toml"
    file.write_text("")
    monkeypatch.setenv("CRISIS_CLUSTER__T_ATTACH", "5")
    monkeypatch.setenv("CRISIS_TOPICS__PARTITIONS", "3")  # not the one
    with pytest.raises(ConfigError) as told:
        load_settings(file)
    assert str(told.value).startswith(f"settings ({file}, CRISIS_CLUSTER__T_ATTACH): cluster: t_attach is 5.0: a mean")


@pytest.mark.parametrize("value", ["kafka:9092", '{"bootstrap": "kafka:9092"}', ""])
def test_a_variable_in_the_place_of_a_section_is_refused_with_one_of_its_settings(monkeypatch, value):
    for variable, setting in (
        ("CRISIS_BROKER", "CRISIS_BROKER__BOOTSTRAP"),
        ("crisis_broker", "CRISIS_BROKER__BOOTSTRAP"),  # pydantic-settings reads it too
        ("CRISIS_INGEST__WRITER", "CRISIS_INGEST__WRITER__FRAME_POSTS"),
    ):
        with monkeypatch.context() as set_for_now:
            set_for_now.setenv(variable, value)
            assert unknown_variables() == []
            with pytest.raises(ConfigError, match=f"^{variable} is a section: .*, such as {setting}$"):
                load_settings()


@pytest.mark.parametrize("mark", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE])
def test_a_byte_order_mark_is_told_by_its_name(tmp_path, mark):
    file = tmp_path / "crisis.toml"
    file.write_bytes(mark + b"[topics]\n")
    with pytest.raises(ConfigError, match="byte-order mark, save it as UTF-8 without one"):
        load_settings(file)


@pytest.mark.parametrize(
    "url",
    [
        "localhost:6379",
        "127.0.0.1",
        "",
        "http://localhost:6379",
        "redis:localhost",
        "redis://",
        "redis://:6379/0",
        "redis://localhost:port",
        "redis://localhost:99999",
        "redis://localhost:0",
        "redis://localhost:6379/first",
        "redis://[::1:6379",
        "unix://",
    ],
)
def test_an_address_that_is_none_of_redis_is_refused_in_one_sentence_with_an_example(url, monkeypatch):
    monkeypatch.setenv("CRISIS_REDIS__URL", url)
    with pytest.raises(ConfigError, match=r"redis\.url: .*write for example redis://127\.0\.0\.1:6379/0") as told:
        load_settings()
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "url", ["redis://h", "rediss://user:word@h:1/7", "redis://[::1]:6379/0", "unix:///run/redis.sock?db=3"]
)
def test_an_address_that_the_redis_client_reads_is_taken(url):
    settings = load_settings(redis={"url": url})
    assert settings.redis.url == url
    connect(settings.redis)


def test_a_password_in_an_address_is_not_told():
    with pytest.raises(ConfigError) as told:
        load_settings(redis={"url": "rdis://user:hunter2@host:6379/0"})
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize(
    "servers",
    ["kafka", "kafka:", ":9092", "kafka:port", "kafka:0", "kafka:70000", "a:1,,b:2", "a:1,b", "", "kafka://kafka:9092"],
)
def test_a_broker_without_host_or_port_is_refused_in_one_sentence_with_an_example(servers):
    with pytest.raises(ConfigError, match=r"broker\.bootstrap: '.*' is not host:port; write for example kafka-1:9092"):
        load_settings(broker={"bootstrap": servers})


def test_spaces_between_brokers_do_no_harm():
    assert load_settings(broker={"bootstrap": "a:1, [::1]:2"}).broker.bootstrap == "a:1,[::1]:2"


def test_a_missing_settings_file_is_an_error_only_when_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_settings().model_dump() == Settings().model_dump()
    with pytest.raises(ConfigError, match="no settings file"):
        load_settings(tmp_path / "none.toml")


@pytest.mark.parametrize(("by", "variable"), [("--config", None), ("CRISIS_CONFIG", "CRISIS_CONFIG")])
def test_a_file_that_is_named_and_is_not_there_or_is_a_folder_is_refused_with_who_names_it(
    tmp_path, monkeypatch, by, variable
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crisis.toml").write_text("")  # not read in its place
    (tmp_path / "folder.toml").mkdir()  # as Docker makes it where the file to mount is missing
    for name, told in (("none.toml", "no settings file at"), ("folder.toml", "is a folder")):
        file = tmp_path / name
        if variable:
            monkeypatch.setenv(variable, str(file))
        with pytest.raises(ConfigError, match=f"(?=.*{told})(?=.*{re.escape(str(file))}, which {by} names)"):
            load_settings(None if variable else file)


def test_a_variable_that_is_empty_names_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRISIS_CONFIG", "")
    assert load_settings().model_dump() == Settings().model_dump()


def test_a_settings_file_that_somebody_else_put_into_a_shared_folder_is_not_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "crisis.toml"
    file.write_text('[broker]\nbootstrap = "evil.example:9092"\n')
    file.chmod(0o666)
    with pytest.raises(ConfigError, match="everybody may write"):
        load_settings()
    file.chmod(0o644)
    assert load_settings().broker.bootstrap == "evil.example:9092"  # ours
    if os.getuid() == 0:
        os.chown(file, 4242, -1)
    else:
        monkeypatch.setattr("os.getuid", lambda: 4242)
    with pytest.raises(ConfigError, match="belongs to user"):
        load_settings()
    assert load_settings(file).broker.bootstrap == "evil.example:9092"  # named: read whosever it is


def test_topic_names_carry_the_prefix_and_unknown_ones_are_refused():
    topics = load_settings(topics={"prefix": "drill-"}).topics
    assert [topics.name(t) for t in TOPICS] == [f"drill-{t}" for t in TOPICS]
    with pytest.raises(ConfigError, match="no topic 'posts'"):
        topics.name("posts")


def test_a_variable_of_no_section_is_refused_by_its_name(monkeypatch):
    monkeypatch.setenv("CRISIS_REDDIS__URL", "redis://elsewhere")
    with pytest.raises(ConfigError, match="no such section: CRISIS_REDDIS__URL; sections: broker"):
        load_settings()


@pytest.mark.parametrize(
    "told",
    [
        "redis://:hunter2@127.0.0.1:1/0: refused",
        "registry http://bob:hunter2@files.example/a cannot be read",
        "rediss://user:hunter2@a@b.example:1/0",
        "s3://bucket/x?secret=hunter2&part=1",
        "redis://:it's-hunter2@127.0.0.1:1/0",
        'redis://:say"hunter2"@127.0.0.1:1/0: refused',
        "'redis://:it's@hunter2@127.0.0.1:1/0'",
        "redis://:a/hunter2@127.0.0.1:1/0",
        "redis://bob:a?b#hunter2@127.0.0.1:1/0",
        "http://files.example/a?access_token=it's-hunter2&part=1",
        "redis://:it's-hunter2@one.example:1/0,redis://:hunter2'@two.example:1/0",
    ],
)
def test_no_secret_of_an_address_is_shown_and_the_rest_stays(told):
    shown = redacted(told)
    assert "hunter2" not in shown and "bob" not in shown and shown.split("://")[0] == told.split("://")[0]
    assert all(kept in shown for kept in ("127.0.0.1:1/0", "b.example:1/0", "part=1", "two.example") if kept in told)
    assert redacted("no broker at kafka:9092 (mail a@b.example)") == "no broker at kafka:9092 (mail a@b.example)"


@pytest.mark.parametrize("kind", [ServiceError, click.ClickException])
def test_no_command_shows_a_secret_of_an_address_whatever_ends_it(monkeypatch, capsys, kind):
    def ends(**_):
        raise kind("no Redis at redis://:it's-hunter2@127.0.0.1:1/0")

    monkeypatch.setattr(cli, "crisis", ends)
    with pytest.raises(SystemExit):
        cli.main()
    shown = capsys.readouterr().err
    assert "hunter2" not in shown and "no Redis at redis://127.0.0.1:1/0" in shown


def test_an_address_with_a_blank_is_refused_and_not_shown():
    for setting in (
        {"redis": {"url": "redis://:my hunter2@127.0.0.1"}},
        {"privacy": {"vault_url": "redis://:a hunter2@b"}},
    ):
        with pytest.raises(ConfigError) as refused:
            load_settings(**setting)
        assert "hunter2" not in str(refused.value)


def test_what_is_shown_costs_in_proportion_to_its_length():
    for unit in ("a://", "://:", "?a", "://a:b@"):
        assert_in_proportion(redacted, lambda length, unit=unit: unit * (length // len(unit)), 60_000)


def test_of_an_error_that_a_server_worded_a_page_says_the_first_line_without_addresses():
    told = """m.example: HTTPStatusError Client error '429' for url 'https://m.example/api?x=1&access_token=hunter2'
    For more information check: https://developer.example/429"""
    assert in_brief(told) == "m.example: HTTPStatusError Client error '429' for url '…'"
    assert "hunter2" not in redacted(told)


@given(st.text())
def test_what_is_said_in_brief_is_short_printable_and_of_one_line(told):
    said = in_brief(told)
    assert len(said) <= BRIEF and said.isprintable() and in_brief(said) == said
    assert "://" not in in_brief(f"{told} a://{told}")


def test_a_mistyped_variable_of_a_section_is_refused_with_what_was_meant(monkeypatch):
    monkeypatch.setenv("CRISIS_BROKER__BOOTSTAP", "kafka:9092")
    with pytest.raises(
        ConfigError, match=r"settings \(.*\): broker\.bootstap: no such setting; did you mean bootstrap\?"
    ):
        load_settings()


def test_a_variable_that_nothing_reads_is_told_of_and_the_command_goes_on(monkeypatch):
    monkeypatch.setenv("CRISIS_BROKER_BOOTSTRAP", "kafka:9092")
    monkeypatch.setenv("CRISIS_REDIS_PASSWORD_FILE", "/x")
    monkeypatch.setenv("CRISIS_HTTP_TOKN", "x")
    monkeypatch.setenv("CRISIS_UNHEARD", "x")
    done = CliRunner().invoke(cli.crisis, ["query", "test", "water", "--bundled", "--version", "own"])
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines()[:4] == [
        "crisis: CRISIS_BROKER_BOOTSTRAP is set and nothing reads it; did you mean CRISIS_BROKER__BOOTSTRAP?",
        "crisis: CRISIS_HTTP_TOKN is set and nothing reads it; did you mean CRISIS_HTTP_TOKEN?",
        "crisis: CRISIS_REDIS_PASSWORD_FILE is set and nothing reads it; did you mean CRISIS_REDIS__PASSWORD_FILE?",
        "crisis: CRISIS_UNHEARD is set and nothing reads it",
    ]


def test_every_variable_that_is_read_somewhere_is_known():
    read = set()
    for path in [
        p for package in ("models", "streams", "training", "tests", "deploy") for p in (ROOT / package).rglob("*")
    ]:
        if path.suffix in (".py", ".yaml", ".yml", ".toml") and path != Path(__file__):
            read |= set(re.findall(r"\bCRISIS_[A-Z]+(?:_[A-Z]+)*\b(?!__)", path.read_text(encoding="utf-8")))
    read -= {name for name in read if not name.removeprefix("CRISIS_")}
    assert len(read) > 8
    assert read <= VARIABLES | {"CRISIS_SECTION"}
