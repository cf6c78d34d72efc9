"""The alert benchmark, from the command to the JSON."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest

from models.encoders.load import load_encoder
from models.encoders.ready import load
from models.errors import ConfigError
from models.matching import MatchConfig, Matcher
from models.queries import background_texts, load_queries
from models.reading import Head, Terms
from models.several import Several
from training.evaluate import __main__ as command
from training.evaluate import ablation, alert_figures, alert_material, alert_reading, alert_table, alerts, curve
from training.evaluate.figure import Drawing, Figure
from training.keeping import KeepingEncoder
from training.labels import Labelled, Messages, Ordinary
from training.metrics.alerting import Told
from training.posts import LabelledPost, written_posts


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """One cache for the module: the queries' sentences are encoded once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path, cache):
    monkeypatch.setenv("CRISIS_CACHE", str(cache))
    monkeypatch.setenv("CRISIS_DATA", str(tmp_path / "no such folder"))


@pytest.fixture(scope="module")
def reader(cache):
    loaded = load("flood")
    encoder = KeepingEncoder(loaded.encoder, cache / "alerts")
    return alert_reading.Reader(
        Matcher(MatchConfig(), load_queries(), encoder, background_texts(), loaded.calibration), encoder
    )


def test_each_text_is_encoded_once_over_runs_and_by_version(tmp_path):
    inner = load_encoder("flood")
    asked: list[str] = []

    class Counting:
        version, dim, cleaning = inner.version, inner.dim, inner.cleaning

        def encode(self, texts):
            asked.extend(texts)
            return inner.encode(texts)

    texts = ["we need water", "", "we need water", "the bridge is closed"]
    first = KeepingEncoder(Counting(), tmp_path).encode(texts)
    assert np.array_equal(first, inner.encode(texts)) and len(asked) == 3
    again = KeepingEncoder(Counting(), tmp_path)
    assert np.array_equal(again.encode(texts), first) and len(asked) == 3
    other = Counting()
    other.version = "another"
    KeepingEncoder(other, tmp_path).encode(texts[:1])
    assert len(asked) == 4 and again.encode([]).shape == (0, inner.dim)


def test_the_demo_is_read_as_the_pipeline_folds_it():
    posts = alert_material.demo_posts()
    assert len({post.text for post in posts}) == len(posts) > 500
    assert sum(post.gold == "need.search_rescue" for post in posts) >= 25
    assert {post.near for post in posts if post.gold == "none"} == {"news", "chatter"}


ASKING = ["please send drinking water, the children are thirsty", "nice sunset today", "we are hungry, send food"]


def test_a_reader_tells_what_the_matcher_tells(reader):
    read = reader.read(ASKING)
    vectors = reader.encoder.encode(ASKING)
    found = reader.matcher.match(["0", "1", "2"], vectors, reader.encoder.version)
    for place in range(3):
        mine = [match for match in found if match.post_id == str(place)]
        assert read.shown[place] == tuple(match.query_id for match in mine)
        assert bool(read.alert[place]) == bool(mine and mine[0].level == "alert")
    assert read.first[0] == "need.water" and read.scores.shape == (3, len(reader.ids))


def test_with_a_learnt_head_every_post_has_a_probability_and_an_urgency(reader):
    ids, dim = reader.ids, reader.encoder.dim
    head = Head(
        [*ids, "news"], [[0.0] * dim] * (len(ids) + 1), [0.0] * (len(ids) + 1), Terms(8.0, bias=-3.0), Terms(1.0)
    )
    head = msgspec.structs.replace(head, urgency=[*reader.encoder.encode(["trapped, help"])[0].tolist(), 0.0])
    calibration = msgspec.structs.replace(load("flood").calibration, head=head)
    matcher = Matcher(MatchConfig(), load_queries(), reader.encoder, background_texts(), calibration)
    learnt = alert_reading.Reader(matcher, reader.encoder)
    read = learnt.read(ASKING)
    assert np.allclose(read.standing, read.scores.max(axis=1)) and read.likeliest == read.first
    told = {
        m.post_id: m.probability
        for m in reversed(matcher.match(["0", "1", "2"], reader.encoder.encode(ASKING), matcher.encoder_version))
    }
    assert all(abs(read.probability[int(post)] - p) < 1e-3 for post, p in told.items())  # what the alert tells
    assert read.urgent is not None and read.urgent.shape == (3,)
    assert [bool(query) for query in read.alert] == (read.standing >= 0.5).tolist()
    timed = [alert_material.Timed(text, "flood", 60.0 * i, 3.0 * (i == 0)) for i, text in enumerate(ASKING)]
    found = alert_figures.trecis_figures(learnt, timed, Drawing(1, 0))[0] + alert_figures.ranked(read.urgent, timed)
    names = {figure.name for figure in found}
    assert {name for part, name in alert_table.ASKED if part == "trecis"} <= names


def test_calibration_is_told_of_all_posts_of_those_shown_and_of_languages_with_enough():
    n = alert_figures.ENOUGH
    post = alerts.LabelledPost("x", "en", "e", "need.water", None, None, None, "written", "stream")
    posts = [post] * n + [msgspec.structs.replace(post, lang="es")] * 10
    p = np.repeat([0.9, 0.1], [n, 10])
    p[0] = np.nan  # no probability, not counted
    told = [Told("need.water")] * len(posts)
    judged = alert_reading.Judged(posts, told, p, np.ones(len(p), bool), p, p, p > 0.5, [()] * len(p), [""] * len(p))
    found, tables = alert_figures.calibration_figures(judged)
    figures = {f.name: (f.value, f.n) for f in found}
    assert figures["calibration_error"] == (pytest.approx(((n - 1) * 0.1 + 10 * 0.9) / (n + 9)), n + 9)
    assert figures["calibration_error_of_shown"] == (pytest.approx(0.1), n - 1)
    assert "calibration_error en" not in figures and "calibration_error es" not in figures  # 199 and 10
    p[0] = 0.9
    again = {f.name: f.n for f in alert_figures.calibration_figures(judged)[0]}
    assert again["calibration_error en"] == n and len(tables["reliability"]) == 2


def test_sets_of_others_are_measured_without_their_files(reader):
    draw = Drawing(1, 10)
    asks = np.array([True, False, True])
    labels = {f"need.{c}": np.array([c == "water", False, c == "food"]) for c in alert_figures.GOOD_SIX}
    messages = Messages(ASKING, np.array(["en"] * 3), np.zeros(3, np.int8), asks, asks, labels)
    found = {f.name: f for f in alert_figures.disaster_figures(reader, messages, np.arange(3), draw)}
    assert found["water_ap"].value == 1.0 and found["medicine_ap"].value is None and found["water_ap"].n == 1
    posts = Ordinary(ASKING, np.array(["en", "chatter x", "en"]), np.zeros(3, bool))
    ordinary, details = alert_figures.ordinary_figures(reader, posts)
    assert {f.name: f.n for f in ordinary}["chatter_alerted"] == 1 and details["by_group"]["en"]["n"] == 2
    humaid = Labelled("humaid test", ASKING, asks, ~asks)
    assert {f.name: f.value for f in alert_figures.humaid_figures(reader, humaid, np.arange(3), draw)}[
        "ap_requests"
    ] == 1
    timed = [
        alert_material.Timed(text, "flood", 60.0 * i, gain, ("GoodsServices",))
        for i, (text, gain) in enumerate(zip(ASKING, (3.0, 0.0, 2.0), strict=True))
    ]
    trecis, worth = alert_figures.trecis_figures(reader, timed, draw)
    figures = {f.name: f.value for f in trecis}
    assert figures["ap_high_by_best_need"] == 1 and figures["ndcg100_by_best_need"] == pytest.approx(1, abs=0.15)
    assert figures["worth_high_by_no_alert_at_all"] == -1 and -0.5 <= figures["worth_all_by_no_alert_at_all"] <= 0
    assert set(worth["worth_by_alerts"]) == {"flood"}
    budget = {f.name: f.value for f in alert_figures.budget_figures(reader, timed)}
    assert {f"gain_minus_pain_{b}_an_hour" for b in alert_figures.BUDGETS} <= set(budget)


def test_every_figure_that_is_asked_for_is_measured(reader, tmp_path):
    words = ["smoke", "encoder=flood", f"out={tmp_path / 'alerts.json'}", "sample=40", "repeats=5"]
    out = alerts.main(command.read_job("alerts", words))
    record = json.loads(out.read_text("utf-8"), parse_constant=pytest.fail)  # strict JSON: no NaN
    assert {"command", "commit", "machine", "data_hash", "seed", "metrics"} <= set(record)
    metrics = record["metrics"]
    assert metrics["encoder"] == reader.encoder.version and metrics["learnt_head"] == bool(reader.matcher.head)
    parts = metrics["figures"]
    assert {"written", "written: stream", "demo"} <= set(parts)
    for part, name in alert_table.ASKED:
        if part in parts:
            assert name in parts[part], f"{part}: nothing measures {name}"
            assert parts[part][name]["met"] in (True, False, None)
    assert parts["written"]["own_query"]["n"] + parts["written"]["others_alerted"]["n"] == 40
    assert sum(row["posts"] for row in metrics["details"]["demo"]["reliability"]) <= 40


def test_the_command_takes_no_preset_a_preset_and_knobs_and_only_known_sets():
    assert command.read_job("alerts", []) == command.read_job("alerts", ["laptop"]) == alerts.Config()
    assert command.read_job("alerts", ["sets=demo,written", "sample=5"]).sets == ("demo", "written")
    with pytest.raises(ConfigError, match="samples"):
        command.read_job("alerts", ["samples=5"])
    with pytest.raises(ConfigError, match="choose from written"):
        alerts.main(msgspec.structs.replace(alerts.Config(), sets=("tweets",)))


def test_only_a_whole_run_of_the_bundled_encoder_replaces_the_kept_result():
    assert alerts.result_path(alerts.Config(), "v") == alerts.RESULT
    assert alerts.result_path(alerts.Config(sample=100), "v").name == "alerts-v.json"
    assert alerts.result_path(alerts.Config(encoder="x"), "org/v").name == "alerts-org_v.json"


def test_what_is_asked_for_is_met_from_its_bounds_on():
    assert alert_table.met("written", Figure("own_query", 0.60, 9)) and not alert_table.met(
        "written", Figure("own_query", 0.59, 9)
    )
    assert not alert_table.met("trecis", Figure("worth_all_by_alerts", 0.0, 9))  # "> 0"
    assert alert_table.met("ordinary", Figure("ordinary_alerted", 0.0, 9)) is True
    assert not alert_table.met("calibration", Figure("calibration_error es", 0.06, 9))
    assert alert_table.met("calibration", Figure("calibration_error", 0.06, 9)) is None
    assert alert_table.met("written", Figure("rescue", None, 0)) is None


def test_a_share_of_the_posts_is_of_whole_events_and_all_that_judges_stays():
    post = LabelledPost("x", "en", "e", "need.water", None, None, None, "written", "stream")
    events = [msgspec.structs.replace(post, event=f"{i}", text=f"{i} {j}") for i in range(8) for j in range(3)]
    real = [msgspec.structs.replace(p, origin="t26", use="read") for p in events]
    gold = [msgspec.structs.replace(p, judges=True, event=f"gold {p.event}") for p in events]
    kept = curve.drawn([*events, *real, *gold], 0.25, seed=1)
    assert [p for p in kept if p.judges] == gold
    for own in ([p for p in kept if p.use == "read"], [p for p in kept if p.use != "read" and not p.judges]):
        assert len(own) == 6 and len({p.event for p in own}) == 2
    assert curve.mean([{"a": {"x": 1.0}}, {"a": {"x": 2.0}}]) == {"a": {"x": 1.5}}


def test_an_ablation_leaves_out_each_term_of_the_score_and_each_source():
    whole = ablation.PARTS["whole"]
    assert whole == ablation.Without(posts=whole.posts, head=whole.head)
    sources = {"packs", "everyday", "messages"}
    assert sources <= {knob for without in ablation.PARTS.values() for knob in without.knobs}
    terms = Terms(query=2.0, head=1.0), Terms(query=1.0)
    beside = {"several": Several(["need.water"], [[1.0]], [0.0]), "languages": {"so": 0.5}}
    head = Head(["need.water"], [[1.0]], [0.0], *terms, actionable=Terms(query=0.0), clear_offer=1.1, **beside)
    changed = {name: without.head(head) for name, without in ablation.PARTS.items() if without.head(head) != head}
    assert changed["no directions of taught queries"].taught == Terms(query=0.0, head=1.0)
    assert changed["p(query) alone, not shared out"].actionable is None
    assert changed["no doubt between need and offer"].clear < 1e-3
    assert changed["no lines for what else is asked"].several is None
    assert changed["no shift by language"].languages == {} and len(changed) == 6
    posts = written_posts()
    for lang in ablation.LEFT_OUT:
        without = ablation.PARTS[f"no posts in {lang}"]
        assert {p.lang for p in posts if not without.posts(p)} == {lang}
        assert sum(ablation.BY_LANGUAGE[lang](p) and p.judges and p.gold != "none" for p in posts) >= 40
