"""The gates: what got worse blocks, by name and figure; what did not, passes; what was forced says why."""

import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save

from models.encoders.bundle import CALIBRATION, CLUSTERS, QUERY_VECTORS, contents, read_bundle, write_bundle
from models.encoders.load import FLOOD, load_encoder
from models.encoders.probes import check_probes
from models.encoders.query_vectors import read_vectors, standing_texts
from models.encoders.registry import OWN, Registry, encoder_of
from models.errors import ConfigError, EncoderError
from models.queries import load_queries
from tests.releases.tiny import shuffled_rows
from training import publish
from training.gates import TOLERANCES, Tolerance, compare, pack_figures
from training.jobs import run
from training.publish import Config, Refused, current_bundle, main, measure, read_arguments

FIGURES = {"matching": {"en": 0.9, "sw": 0.5}, "noise_matching": {"en": 0.8}, "posts_per_core_s": {"all": 20_000.0}}

ROOT = Path(__file__).parents[2]

SIDE_BY_SIDE = publish.speed.side_by_side


def equal(path, **manifest):
    """The bundled encoder with its axes in another order, which changes nothing."""
    bundled, tensors = read_bundle(FLOOD), load_file(FLOOD / "model.safetensors")
    order = np.random.default_rng(0).permutation(bundled.manifest.dim)
    tensors |= {"rows": np.ascontiguousarray(tensors["rows"][:, order]), "empty": tensors["empty"][order].copy()}
    files = {n: b for n, b in contents(bundled).items() if n not in (CALIBRATION, CLUSTERS)} | {
        "model.safetensors": save(tensors)
    }
    write_bundle(path, msgspec.structs.replace(bundled.manifest, parent=bundled.id, **manifest), files)
    return path


def bad(path):
    """The bundled encoder with its rows shuffled."""
    shuffled_rows(path, FLOOD)
    return path


MEASURED: dict[str, dict] = {}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A version is measured once for all tests, and all are equally fast: pace is no figure of a busy machine's."""
    monkeypatch.setenv("CRISIS_CACHE", str(tmp_path / "cache"))

    def once(bundle, data, seed):
        if bundle.id not in MEASURED:
            MEASURED[bundle.id] = measure(bundle, data, seed)
        return {metric: dict(found) for metric, found in MEASURED[bundle.id].items()}

    def at_one_pace(encoders):
        return [20_000.0] * len(encoders)

    monkeypatch.setattr(publish.speed, "side_by_side", at_one_pace)
    monkeypatch.setattr(publish, "measure", once)
    monkeypatch.setattr(
        publish, "load_queries", lambda: load_queries()[::3]
    )  # a dozen: a version breaks in all or none


def test_equal_figures_pass():
    verdict = compare(FIGURES, FIGURES)
    assert (verdict.regressions, verdict.compared, verdict.left_out) == ([], 4, [])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"matching": {"en": 0.9, "sw": 0.46}}, ["sw: matching 0.500 → 0.460, allowed 0.470"]),
        ({"noise_matching": {"en": 0.7}}, ["en: noise_matching 0.800 → 0.700, allowed 0.720"]),
        ({"posts_per_core_s": {"all": 13_000.0}}, ["all: posts_per_core_s 20000.000 → 13000.000, allowed 14000.000"]),
        ({"matching": {"en": 0.9}}, ["sw: matching 0.500 → nan, allowed 0.470"]),
        ({"matching": {"en": math.nan, "sw": 0.5}}, ["en: matching 0.900 → nan, allowed 0.870"]),
        ({"matching": {"en": 0.88, "sw": 0.48}, "noise_matching": {"en": 0.75}}, []),
        ({"matching": {"en": 0.99, "sw": 0.9}, "noise_matching": {"en": 1.0}}, []),
    ],
)
def test_a_regression_names_language_metric_and_figures(change, told):
    assert [str(r) for r in compare(FIGURES, FIGURES | change).regressions] == told


@pytest.mark.parametrize("metric", TOLERANCES)
def test_each_metric_blocks_alone_beyond_its_tolerance_and_not_within(metric):
    tolerance = TOLERANCES[metric]
    before = {m: {"sw": 0.8} for m in TOLERANCES}
    slack = tolerance.worse * (0.8 if tolerance.share else 1.0)
    for change, told in ((0.9 * slack, 0), (1.1 * slack, 1)):
        worse = 0.8 - change if tolerance.higher_is_better else 0.8 + change
        regressions = compare(before, before | {metric: {"sw": worse}}).regressions
        assert [(r.metric, r.where) for r in regressions] == [(metric, "sw")] * told


def test_only_served_languages_block_and_the_others_are_told():
    worse = FIGURES | {"matching": {"en": 0.9, "sw": 0.0, "xx": 0.5}}
    verdict = compare(FIGURES, worse, served=["en"])
    assert verdict.regressions == []
    assert verdict.left_out == ["matching sw", "matching xx"]


@given(st.dictionaries(st.sampled_from("abc"), st.floats(0, 1), min_size=1), st.floats(0, 0.5))
def test_what_got_better_never_blocks_and_the_slack_is_exact(figures, worse):
    table = {"m": Tolerance(worse), "d": Tolerance(worse, higher_is_better=False)}
    up = {k: v + 0.1 for k, v in figures.items()}
    assert not compare({"m": figures, "d": up}, {"m": up, "d": figures}, tolerances=table).regressions
    beyond = {k: v - worse - 1e-6 for k, v in figures.items()}
    assert len(compare({"m": figures}, {"m": beyond}, tolerances=table).regressions) == len(figures)


def test_every_tolerance_is_used_and_every_figure_has_one(tmp_path):
    figures = pack_figures(load_encoder("flood"), load_queries()[:6], {"en": ["a fine day"]})
    assert set(figures) <= set(TOLERANCES)
    assert {"en", "es", "ar"} <= set(figures["query_matching"])
    assert all(0 <= v <= 1 for metric in figures.values() for v in metric.values())


def test_an_equal_version_is_published_with_its_verdict_and_probes(tmp_path, capsys):
    path = equal(tmp_path / "equal")
    version = main(Config(str(path), registry=str(tmp_path / "registry"), data=False))
    manifest = Registry(tmp_path / "registry").fetch(version, tmp_path / "fetched").manifest
    assert manifest.id == encoder_of(version) == read_bundle(path).id
    assert manifest.evaluation["gates"]["regressions"] == []
    assert manifest.evaluation["gates"]["against"] == read_bundle(FLOOD).id
    assert "forced" not in manifest.evaluation
    assert set(manifest.evaluation["gates"]["figures"]) <= set(TOLERANCES)
    stored = read_vectors(tmp_path / "fetched" / version / QUERY_VECTORS, load_encoder(path))
    assert list(stored) == standing_texts()
    assert set(manifest.files) == {"README.md", "model.safetensors", "tokenizer.json", QUERY_VECTORS}
    check_probes(load_encoder(path), manifest.evaluation["probes"])
    with pytest.raises(EncoderError):
        check_probes(load_encoder("flood"), manifest.evaluation["probes"])
    assert "query_matching" in capsys.readouterr().out


def test_a_version_that_is_there_already_keeps_its_manifest_and_that_is_told(tmp_path, capsys):
    path, registry = bad(tmp_path / "bad"), tmp_path / "registry"
    version = main(Config(str(path), registry=str(registry), data=False, current="none"))
    assert "published" in capsys.readouterr().out
    manifest = (registry / version / "manifest.json").read_bytes()
    assert main(Config(str(path), registry=str(registry), data=False, force="a drill")) == version
    told = capsys.readouterr().out
    assert "already" in told and "forced is not kept" in told and "published" not in told
    assert (registry / version / "manifest.json").read_bytes() == manifest


def test_a_version_with_shuffled_rows_is_refused_and_if_forced_keeps_the_reason(tmp_path):
    path = bad(tmp_path / "bad")
    registry = tmp_path / "registry"
    with pytest.raises(
        Refused, match=r"(?s)is refused, \d+ figures.*en: query_matching 0\.\d+ → 0\.\d+, allowed 0\.\d+"
    ):
        main(Config(str(path), registry=str(registry), data=False))
    assert Registry(registry).list() == []
    with pytest.raises(Refused):
        main(Config(str(path), registry=str(registry), data=False, force="  "))
    version = main(Config(str(path), registry=str(registry), data=False, force="a drill"))
    manifest = Registry(registry).fetch(version, tmp_path / "fetched").manifest
    assert manifest.evaluation["forced"] == "a drill"
    assert any("query_matching" in told for told in manifest.evaluation["gates"]["regressions"])


def test_the_current_version_may_lie_in_the_registry_and_the_first_needs_none(tmp_path):
    path, registry = equal(tmp_path / "equal"), str(tmp_path / "registry")
    version = main(Config(str(path), registry=registry, data=False, current="none"))
    assert main(Config(str(FLOOD), registry=registry, data=False, current=version[:6]))
    with pytest.raises(EncoderError, match="no bundle directory"):
        main(Config(str(FLOOD), current="abcdef", data=False))


def test_by_default_a_version_is_held_against_what_people_made_current(tmp_path, monkeypatch):
    path, registry = equal(tmp_path / "equal"), Registry(tmp_path / "registry")
    monkeypatch.setenv("CRISIS_ENCODER__REGISTRY", registry.url)
    first = main(Config(str(path), data=False))

    def against(version: str) -> str:
        return registry.fetch(version, tmp_path / "fetched").manifest.evaluation["gates"]["against"]

    assert against(first) == read_bundle(FLOOD).id
    registry.choose(first)
    assert against(main(Config(str(FLOOD), data=False))) == encoder_of(first)
    registry.choose(OWN)
    with pytest.raises(Refused):
        main(Config(str(bad(tmp_path / "bad")), data=False))


def test_versions_are_timed_in_turns_and_the_best_round_of_each_counts():
    turns = []

    class Told:
        def __init__(self, name):
            self.name = name

        def encode(self, texts):
            turns.append((self.name, len(texts)))

    paces = SIDE_BY_SIDE([Told("a"), Told("b")], count=300, rounds=3)
    assert turns == [("a", 200), ("b", 200), *[("a", 300), ("b", 300)] * 3]
    assert len(paces) == 2 and all(pace > 0 for pace in paces)


def test_a_manifest_that_does_not_tell_what_it_was_made_of_is_refused(tmp_path):
    path = equal(tmp_path / "untold", training={}, data_hashes={})
    with pytest.raises(Refused, match=r"(?s)manifest: training is empty.*manifest: data_hashes is empty"):
        main(Config(str(path), registry=str(tmp_path / "registry"), data=False))


def test_the_command_line_takes_the_bundle_and_knobs_and_refuses_unknown_ones():
    config = read_arguments(["DIR", "registry=R", "served=en,sw", "--force", "because we must", "data=false"])
    assert config == Config("DIR", "R", served=("en", "sw"), force="because we must", data=False)
    with pytest.raises(ConfigError, match="unknown knob"):
        read_arguments(["DIR", "faster=yes"])
    for words in (["registry=R"], ["--force", "x"], []):
        with pytest.raises(ConfigError, match="name the bundle"):
            read_arguments(words)
    for words in (["--force"], ["--force", " "], ["--force", "registry=R"]):
        with pytest.raises(ConfigError, match="--force needs a reason"):
            read_arguments(["DIR", *words])


def test_the_command_blocks_with_the_figures_and_says_how_to_go_on(tmp_path):
    path, registry = bad(tmp_path / "bad"), tmp_path / "registry"
    words = [str(path), f"registry={registry}", "data=false"]
    with pytest.raises(SystemExit) as ended:
        run(main, {"BUNDLE": Config(bundle="BUNDLE")}, words, read=read_arguments)
    assert re.search(r"^error: .*worse than allowed(?s:.*)publish with --force \"why\"", ended.value.code)
    assert not registry.exists()
    main(read_arguments([*words, "--force", "a drill"]))
    (entry,) = Registry(registry).list()
    assert entry.manifest.evaluation["forced"] == "a drill"


def test_the_command_as_people_type_it_ends_with_status_1_where_nothing_is_published(tmp_path):
    words = [sys.executable, "-m", "training.publish", str(tmp_path / "none"), "data=false"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and done.stderr.startswith("error: ") and str(tmp_path / "none") in done.stderr


def test_a_bundle_is_published_whatever_its_folder_is_called_and_the_help_tells_every_knob(tmp_path, monkeypatch):
    """`laptop` is a preset of the job that makes bundles: this one knows folders alone."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(FLOOD, tmp_path / "laptop")
    assert read_arguments(["laptop", "registry=R"]) == Config(bundle="laptop", registry="R")
    assert current_bundle(Config(bundle="laptop", current="laptop")).id == read_bundle(FLOOD).id
    done = subprocess.run(
        [sys.executable, "-m", "training.publish", "--help"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0
    assert all(knob in done.stdout for knob in ("--force", "registry", "current", "served")), done.stdout
