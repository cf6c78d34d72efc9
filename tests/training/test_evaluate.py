"""The evaluation: the smoke preset from the command to the report, resumed after a kill, and its parts by hand."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from models.encoders.load import load_encoder
from models.encoders.whitening import fit_whitening
from models.errors import ConfigError
from models.text import Cleaning
from tests.waiting import PATIENCE_S
from training import classify
from training.bundled_posts import bundled_posts
from training.evaluate import __main__ as job
from training.evaluate import matching, measures, plots
from training.evaluate.config import MEASURES, PRESETS, ROLASER_TASKS
from training.evaluate.report_tables import table
from training.files import DataError
from training.jobs import run
from training.metrics import hard_negatives


@pytest.fixture(autouse=True)
def quiet(one_thread, monkeypatch, tmp_path):
    monkeypatch.setenv("CRISIS_DATA", str(tmp_path / "no such folder"))  # the smoke preset needs none


def words(tmp_path, *more: str) -> job.Config:
    return job.read_words(
        ["flood", "smoke", f"out={tmp_path / 'report'}", "speed_posts=200", "speed_processes=2", *more]
    )


def test_the_smoke_preset_writes_one_report_of_every_measure_without_any_data(tmp_path):
    out = job.main(words(tmp_path))
    record = json.loads((out / "report.json").read_text("utf-8"), parse_constant=pytest.fail)  # strict JSON: no NaN
    found = record["metrics"]
    assert set(MEASURES) <= set(found) and record["seed"] == 1 and len(record["data_hash"]) == 64
    own = found["matching"]["bundled queries"]["by_language"]["es"]
    assert own["low"] <= own["matching"] <= own["high"] and own["matching"] > 0.5 > 1 / own["sentences"]
    assert own["matching"] == pytest.approx((own["en_to_xx"] + own["xx_to_en"]) / 2)
    assert own["xsim++"] >= own["xsim"]
    classes = found["classes"]["bundled queries"]
    assert classes["d_avg"] > classes["between"]
    noise = found["noise"]["by_kind"]["leet"]["xsim++"]
    assert noise["runs"] == 2 and noise["half_width"] is not None
    assert (
        found["classification"]["bundled queries"]["macro_f1"]
        > 0.6
        > found["classification"]["bundled queries"]["before"]
    )
    assert (
        found["needs"]["by_label"]["need.water"]["originals"] > 5 * found["needs"]["by_label"]["need.water"]["chance"]
    )
    assert found["spread"]["effective_dim"] > 10 and sum(found["spread"]["translations"]) == found["spread"]["texts"]
    assert found["speed"]["posts_per_s_together"] > 0
    text = (out / "report.md").read_text("utf-8")
    for heading in (
        "Sentence matching",
        "Relatedness",
        "D_avg",
        "Anisotropy",
        "Noise",
        "Classification",
        "Needs",
        "Speed",
        "posts a second of all processes",
    ):
        assert heading in text
    assert "CT-XLMR-SE (published)" in text and "RoLASER (published)" in text and "nan" not in text
    drawn = sorted(file.name for file in out.glob("*.svg"))
    assert drawn == sorted(f"{name}.svg" for name in plots.PLOTS)
    for name in drawn:
        assert f"]({name})" in text and ET.parse(out / name).getroot().tag.endswith("svg")


def test_a_killed_run_goes_on_and_ends_with_the_same_figures(tmp_path, monkeypatch):
    names = "relatedness,classes,spread"  # the quick ones
    whole = json.loads((job.main(words(tmp_path, f"measures={names}")) / "report.json").read_text())["metrics"]
    asked = []
    monkeypatch.setenv("CRISIS_CACHE", str(tmp_path / "another"))

    def counted(name, run):
        def measured(*args):
            asked.append(name)
            if name == "spread" and asked.count("spread") == 1:
                raise KeyboardInterrupt
            return run(*args)

        return measured

    monkeypatch.setattr(job, "MEASURES", {name: counted(name, run) for name, run in measures.MEASURES.items()})
    config = words(tmp_path, f"measures={names}", f"out={tmp_path / 'broken'}")
    with pytest.raises(KeyboardInterrupt):
        job.main(config)
    assert not (tmp_path / "broken" / "report.json").exists()
    again = json.loads((job.main(config) / "report.json").read_text())["metrics"]
    assert asked == ["relatedness", "classes", "spread", "spread"] and again == whole
    job.main(words(tmp_path, f"measures={names}", f"out={tmp_path / 'broken'}", "seed=2"))
    assert asked[4:] == ["relatedness", "classes", "spread"]  # other knobs: nothing is taken over


def test_other_code_or_other_data_measure_anew_and_what_is_kept_is_told(tmp_path, monkeypatch, capsys):
    asked, data = [], tmp_path / "data"
    data.mkdir()
    (data / "rows.tsv").write_text("a")
    monkeypatch.setenv("CRISIS_DATA", str(data))
    monkeypatch.setattr(job, "MEASURES", {"spread": lambda *_: asked.append(1) or {}})
    monkeypatch.setattr(job.report, "write", lambda *_: "")
    monkeypatch.setattr(job.plots, "draw", lambda *_: [])
    config = words(tmp_path, "measures=spread", "material=research")
    job.main(config)
    assert "kept from" not in capsys.readouterr().out
    job.main(config)
    assert len(asked) == 1 and "kept from" in capsys.readouterr().out
    (data / "rows.tsv").write_text("ab")
    job.main(config)
    assert len(asked) == 2
    monkeypatch.setattr(job, "code_hash", lambda: "other code")
    job.main(config)
    assert len(asked) == 3 and "kept from" not in capsys.readouterr().out


def test_what_cannot_be_measured_is_refused_before_anything_is(tmp_path):
    with pytest.raises(ConfigError, match="ENCODER PRESET"):
        job.read_words(["bundled"])
    with pytest.raises(ConfigError, match="name a preset first: smoke | laptop"):
        job.read_words(["bundled", "big"])
    with pytest.raises(ConfigError, match="measures=speling: choose from matching"):
        job.main(words(tmp_path, "measures=speling"))
    with pytest.raises(ConfigError, match="classified=humaidx: choose from .*humaid"):
        job.main(words(tmp_path, "classified=humaidx"))


def test_the_command_tells_its_presets_knobs_and_measures_and_what_is_wrong_in_one_sentence(capsys):
    with pytest.raises(SystemExit) as asked:
        run(job.main, PRESETS, ["--help"], job.read_words)
    told = capsys.readouterr().out
    assert (
        asked.value.code == 0
        and "python -m training.evaluate bundled smoke" in told
        and f"presets: {', '.join(PRESETS)}" in told
    )
    assert f"measures={','.join(MEASURES)}  – " in told
    for name in job.Config.__struct_fields__:
        assert any(line.startswith(f"  {name}=") and "  – " in line for line in told.splitlines()), (
            f"{name} has no default or no note"
        )
    with pytest.raises(SystemExit) as nothing:
        run(job.main, PRESETS, [], job.read_words)
    assert nothing.value.code == 2
    with pytest.raises(SystemExit, match="^error: unknown knob 'seeed=2'"):
        run(job.main, PRESETS, ["bundled", "smoke", "seeed=2"], job.read_words)


def test_the_module_is_run_with_that_command():
    done = subprocess.run(
        [sys.executable, "-m", "training.evaluate", "--help"], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0 and "knobs (key=value):" in done.stdout and not done.stderr


def test_an_encoder_can_be_measured_whitened(tmp_path):
    encoder = load_encoder("flood")
    sample = encoder.encode([post.text for post in bundled_posts()])
    path = tmp_path / "whitening.safetensors"
    path.write_bytes(fit_whitening(sample, 64).to_bytes())
    out = job.main(words(tmp_path, "measures=spread", f"whitening={path}"))
    found = json.loads((out / "report.json").read_text())["metrics"]
    assert found["encoder"].startswith(f"{encoder.version}-w") and found["spread"]["dim"] == 64
    with pytest.raises(ConfigError, match="do not go together"):
        job.main(words(tmp_path, f"whitening={path}", "clusters=tweets-t"))


def test_the_papers_settings_are_in_the_paper_preset():
    paper = PRESETS["paper"]
    assert (paper.noise_seeds, paper.noise_sentences, paper.repeats) == (
        10,
        0,
        5,
    )  # Nishimwe 2024, section 6; Lamsal 2023, 3.5.1
    assert PRESETS["rolaser"].tasks == ROLASER_TASKS and PRESETS["rolaser"].measures == ()


class Table:
    """Texts as the vectors they were given."""

    version, cleaning = "table", Cleaning()

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self.vectors = vectors
        self.dim = len(next(iter(vectors.values())))

    def encode(self, texts):
        rows = np.array([self.vectors[text] for text in texts], np.float32).reshape(len(texts), self.dim)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_matching_by_hand():
    """English a, b, c on the axes. The other language: a' near a, b' nearer a than b, c' missing."""
    encoder = Table({"a": [1, 0, 0], "b": [0, 1, 0], "c": [0, 0, 1], "x": [1, 0.1, 0], "y": [1, 0.9, 0]})
    found = matching.match_all(encoder, {"en": ["a", "b", "c"], "xx": ["x", "y", ""]}, seed=1)["xx"]
    # a finds x; b finds y (cos .67 > .10). x finds a; y finds a, wrongly.
    assert (found["en_to_xx"], found["xx_to_en"], found["matching"], found["sentences"]) == (1.0, 0.5, 0.75, 2)
    cosines = 1 / math.hypot(1, 0.1), 0.9 / math.hypot(1, 0.9)
    assert found["cosine_distance"] == pytest.approx(1 - sum(cosines) / 2, abs=1e-6)
    assert (found["low"], found["high"]) == (0.5, 1.0)  # two sentences: both right, or one of the two twice


def test_an_encoder_blind_to_everything_finds_one_sentence_of_n():
    assert matching.matching_accuracy(np.ones((5, 1), np.float32), np.ones((5, 1), np.float32)) == (0.2, 0.2)


def test_hard_negatives_of_missing_lines_are_not_candidates():
    texts = {"en": ["The 25 people", "It is cold"], "xx": ["", "k"]}
    negatives = hard_negatives(texts["en"], seed=1, per_kind=2)
    vectors = {text: [0.0, 1.0] for text in [*texts["en"], *texts["xx"], *(n.text for n in negatives)]}
    vectors |= {n.text: [1.0, 0.2] for n in negatives if n.of == 1} | {"k": [0.3, 1.0], "": [1.0, 0.0]}
    found = matching.match_all(Table(vectors), texts, 1, negatives)["xx"]
    assert found["xsim++"] == 0  # those of line 0 sit on the partner's very place and would count as errors


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Wir brauchen Wasser", "Latn"),
        ("нужна вода", "Cyrl"),
        ("نحتاج ماء", "Arab"),
        ("需要水", "Hani"),
        ("पानी", "Deva"),
        ("24 !", "Zyyy"),
    ],
)
def test_the_script_is_that_of_most_letters(text, script):
    assert matching.script_of([text]) == script


def test_scripts_are_means_over_their_languages():
    figures = {
        "a": {"script": "Latn", "matching": 0.5},
        "b": {"script": "Latn", "matching": 1.0},
        "c": {"script": "Arab", "matching": 0.1},
    }
    assert matching.by_script(figures) == {
        "Arab": {"matching": 0.1, "languages": 1},
        "Latn": {"matching": 0.75, "languages": 2},
    }


def test_a_table_shows_what_is_missing_as_missing():
    assert table(["a", "b"], [["x", 0.12345], [None, 3]]) == "| a | b |\n|---|---|\n| x | 0.123 |\n| – | 3 |"


def test_the_same_figures_give_the_same_plot(tmp_path):
    metrics = {"spread": {"translations": [0, 1, 2, 1], "strangers": [2, 1, 0, 0]}}
    drawn = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        assert plots.draw(metrics, folder) == ["spread.svg"]
        drawn.append((folder / "spread.svg").read_bytes())
    assert drawn[0] == drawn[1]


def test_the_research_sets_are_read_as_their_readmes_say(data_dir, monkeypatch):
    from training.evaluate import material

    monkeypatch.setenv("CRISIS_DATA", str(data_dir))
    sets = material.parallel("research", ("flores200 devtest", "tico19 test"))
    assert {len(lines) for lines in sets["flores200 devtest"].values()} == {1012}
    assert {len(lines) for lines in sets["tico19 test"].values()} == {2100} and "my-Zawgyi" not in sets["tico19 test"]
    scored = material.scored("research", 1)
    assert len(scored["SemRel2024 dev"]) == 14 and len(scored["STS-B test"]["en"]) == 1379
    labelled = material.labelled("research")
    assert len(set(labelled["humaid"].labels)) == 10 and len(set(labelled["covid-vaccine-stance"].labels)) == 3
    assert len(labelled["covid-vaccine-stance"].texts) == 1606 and len(labelled["vaccination-opinions"].texts) == 2787
    assert set(labelled["sad-stress"].labels) == set(labelled["sad-covid"].labels) == {"0", "1"}
    assert sum(bool(posts.twin) for posts in labelled.values()) == 7  # of the papers' eighteen
    for name in material.CLASSIFIED:  # classified as they are compared: no other set's rows among them
        if name in ("covid-vaccine-stance", "vaccination-opinions", "sad-covid"):
            read = classify.read_dataset(classify.Config(**material.classified(name)))
            assert len(read.texts) == len(labelled[name].texts)
    assert not {"Not labeled", "Not applicable"} & set(labelled["crisislex-t26"].labels)
    assert material.standard_english("research", 3) == sets["flores200 devtest"]["en"][:3]
    dev = material.standard_english("research", 0, "dev(sib)")
    assert len(dev) == 510 and not {*dev} & {*sets["flores200 devtest"]["en"]}
    with pytest.raises(DataError, match="no split 'dev'"):
        material.standard_english("research", 0, "dev")


def test_matching_and_relatedness_may_be_of_some_languages_alone(tmp_path):
    config = words(tmp_path, "langs=es,fr")
    encoder = load_encoder("flood")
    for measure in (measures.measure_matching, measures.measure_relatedness):
        some, all_of_them = (measure(encoder, c) for c in (config, words(tmp_path)))
        (few,), (many,) = (
            [part["by_language"] for name, part in found.items() if name != "data_hash"]
            for found in (some, all_of_them)
        )
        assert set(few) == {"es", "fr"} < set(many) and few["es"] == many["es"]
        assert some["data_hash"] != all_of_them["data_hash"]
        with pytest.raises(ConfigError, match="langs=xx: the set has .*es"):
            measure(encoder, words(tmp_path, "langs=xx"))
