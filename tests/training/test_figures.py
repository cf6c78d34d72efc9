"""The table of results says what the results say."""

import importlib
import json
import re
import shlex
from pathlib import Path

import pytest

from training import figures, paper_figures, reliability
from training.evaluate.published import by_part, find
from training.evaluate.relatedness import PAPER_LANGUAGES
from training.paper_figures import user_written
from training.paper_methods import METHODS, SUPERVISED_LANGUAGES


def test_the_table_is_that_of_the_files():
    assert figures.TABLE.read_text("utf-8") == figures.table(), "run: python -m training.figures"


def test_the_diagrams_are_those_of_the_kept_alerts(tmp_path):
    reliability.draw(reliability.tables_of(figures.RESULTS / "alerts.json"), again := tmp_path / "again.svg")
    marks = re.compile(rb'<use xlink:href="#[^"]+" x="([\d.]+)" y="([\d.]+)"')
    kept, drawn = (marks.findall(path.read_bytes()) for path in (figures.DIAGRAMS, again))
    assert kept == drawn and len(kept) > 100, "run: python -m training.figures"


def test_every_result_names_its_command_and_machine_and_no_path_of_it():
    assert figures.result_files()
    for name in figures.result_files():
        record = json.loads((figures.RESULTS / name).read_text("utf-8"))
        assert {"command", "commit", "machine", "data_hash", "seed", "config", "metrics"} <= set(record), name
        assert record["command"].startswith("python -m training."), name
        assert not [word for word in record["command"].split() if word.partition("=")[2].startswith("/")], name


def test_what_the_table_says_of_the_paper_is_published():
    text = figures.whitening()
    for system, shown in {
        "XLM-R-base": (".591", ".439"),
        "XLM-R-base whitened": (".689", ".475"),
        "mBERT": (".597", ".439"),
        "mBERT whitened": (".641", ".447"),
    }.items():
        found = by_part(system, paper="Li 2024")
        assert (f"{found['es']:.3f}"[1:], f"{found['id']:.3f}"[1:]) == shown and shown[0] in text and shown[1] in text


def test_every_printed_figure_of_a_method_is_one_published_row_and_every_small_run_is_told_of():
    told = {name for method in METHODS for _, name, _ in method.ours}
    told |= {name for name in figures.result_files() if Path(name).match(f"papers/{paper_figures.FILTERED}")}
    assert told == {name for name in figures.result_files() if name.startswith(("papers/", "semrel-"))}
    for method in METHODS:
        for label, wanted in method.printed:
            rows = find(**wanted)
            assert len({row.system for row in rows}) == 1, (method.name, label)
            assert len(rows) == 1 or f"mean of {len(rows)}" in label, (method.name, label)
        for label, _, place in method.ours:
            assert isinstance(place, str) or f"mean of {len(place)}" in label, (method.name, label)


def test_semrels_trained_baselines_stand_beside_labses_over_the_same_languages():
    lines = {line.split(" | ")[0]: line.split(" | ") for line in paper_figures.methods()}
    supervised = lines["| relatedness, supervised (SemRel)"]
    assert "mean of 9 languages as it is 0.552; trained, mean of 9 0.652;" in supervised[1]
    assert "mean of 9 languages 0.762;" in supervised[2]  # .85 .60 .77 .83 .70 .69 .72 .88 .82
    crosslingual = lines["| relatedness, across languages (SemRel)"]
    assert "mean of 13 languages as it is 0.575; trained, mean of 13 0.557;" in crosslingual[1]  # pa is not among them
    assert "mean of 13 languages 0.662; LaBSE as it is, mean of 13 0.626;" in crosslingual[2]
    assert set(SUPERVISED_LANGUAGES) == set(by_part("LaBSE supervised"))
    assert set(PAPER_LANGUAGES) == set(by_part("LaBSE crosslingual"))


def test_a_command_names_the_encoder_that_was_measured_by_the_name_it_has_now():
    told = {"command": "python -m training.whiten laptop pairs=semrel out=w-bundled result=whiten-bundled.json"}
    old = {**told, "config": {"encoder": "bundled"}, "metrics": {"encoder": "ac93f52d0aeb"}}
    assert figures.command_of(old) == told["command"].replace("laptop", "laptop encoder=flood")
    evaluated = {**old, "command": "python -m training.evaluate bundled laptop"}
    assert figures.command_of(evaluated) == "python -m training.evaluate flood laptop"
    whitened = {**evaluated, "metrics": {"encoder": "ac93f52d0aeb-w3e373ac2"}}
    noised = {**evaluated, "metrics": {"ac93f52d0aeb": {"noise": {}}, "a0f58d11e263": {"noise": {}}}}
    assert figures.command_of(whitened) == figures.command_of(noised) == "python -m training.evaluate flood laptop"
    new = {**evaluated, "metrics": {"encoder": "0258e73575fb"}}
    assert figures.command_of(new) == new["command"]
    assert figures.command_of({**old, "config": {"encoder": "mlm/best"}}) == told["command"]


def test_a_command_names_the_job_that_does_now_what_was_done_and_leaves_out_the_note():
    bundled = "python -m training.publish laptop run=best result=encoder.json note=Made by `training.robust`, once"
    record = {"command": bundled, "metrics": {}}
    assert figures.command_of(record) == "python -m training.bundle laptop run=best result=encoder.json note=…"
    published = {"command": "python -m training.publish candidate registry=encoders", "metrics": {}}
    assert figures.command_of(published) == published["command"]


def test_a_word_with_a_blank_is_quoted_also_where_the_record_has_it_bare():
    evaluated = "python -m training.evaluate bundle laptop measures=matching"
    bare = {"command": f"{evaluated} parallel=flores200 devtest,ntrex128 out=out", "metrics": {}}
    last = {"command": f"{evaluated} parallel=flores200 devtest", "metrics": {}}
    quoted = {"command": f"{evaluated} 'parallel=flores200 devtest' out=out 'note=two words'", "metrics": {}}
    assert figures.command_of(bare) == f"{evaluated} 'parallel=flores200 devtest,ntrex128' out=out"
    assert figures.command_of(last) == f"{evaluated} 'parallel=flores200 devtest'"
    assert figures.command_of(quoted) == f"{evaluated} 'parallel=flores200 devtest' out=out note=…"
    assert figures.command_of({"command": f"{evaluated} parallel=ntrex128", "metrics": {}}).endswith(
        "parallel=ntrex128"
    )


def words_of(name: str) -> list[str]:
    """A kept result's command, in the words a shell would make of it."""
    return shlex.split(figures.command_of(json.loads((figures.RESULTS / name).read_text("utf-8"))))


def test_every_word_of_a_command_is_a_knob_but_for_what_it_begins_with():
    for name in figures.result_files():
        knobs = [word for word in words_of(name)[3:] if "=" in word]
        assert words_of(name)[-len(knobs) :] == knobs or not knobs, name


def test_every_job_of_a_command_is_there():
    for name in figures.result_files():
        words = words_of(name)
        known = training_knobs(words[2])
        assert not known or {w.partition("=")[0] for w in words[3:] if "=" in w} <= known, name


def training_knobs(job: str) -> set[str]:
    """A job's knobs, empty for `training.evaluate`, whose other words are jobs of their own."""
    return set() if job == "training.evaluate" else set(importlib.import_module(job).Config.__struct_fields__)


def test_every_folder_and_file_that_a_command_reads_is_of_a_command_of_the_table_or_told_above_it():
    commands = [
        figures.command_of(json.loads((figures.RESULTS / name).read_text("utf-8"))) for name in figures.result_files()
    ]
    written = {word.removeprefix("out=") for command in commands for word in command.split() if word.startswith("out=")}
    knobs = (
        "base",
        "beside",
        "encoder",
        "file",
        "init",
        "model",
        "run",
        "student",
        "teacher",
        "tokenizer",
        "whitening",
    )
    read = {value for c in commands for w in c.split() for k, _, value in [w.partition("=")] if k in knobs}
    read |= {c.split()[3] for c in commands if c.startswith("python -m training.evaluate ")}
    own = {"bundled", "flood", "char", "token", *"ablation alerts curve feedback scales sizes".split()}
    made = {value for value in read if value.removesuffix("/best").removesuffix("/model") in written}
    assert {"mlm/best", "bundle", "e5-two", "xnli.tsv.gz"} <= read - made
    above = figures.table().partition("| file |")[0]
    assert not [value for value in read - made - own if f"`{value}`" not in above]


def test_a_result_of_code_that_no_commit_holds_is_marked_and_no_other(tmp_path, monkeypatch):
    command = {"command": "python -m training.x", "metrics": {}}
    for name, commit in {"odd.json": "0123456789ab+changes", "even.json": "0123456789ab"}.items():
        (tmp_path / name).write_text(json.dumps({**command, "commit": commit}))
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    rows = [line for line in figures.table().splitlines() if "`python -m training.x`" in line]
    assert [row.split(" | ")[:2] for row in rows] == [
        ["| `even.json`", "01234567"],
        ["| `odd.json` (uncommitted changes)", "01234567"],
    ]


def test_every_kept_result_of_changed_code_is_marked_in_the_table():
    kept = {name: json.loads((figures.RESULTS / name).read_text("utf-8"))["commit"] for name in figures.result_files()}
    lines = figures.TABLE.read_text("utf-8").splitlines()
    for name, commit in kept.items():
        (line,) = [line for line in lines if line.startswith(f"| `{name}`")]
        assert line.startswith(f"| `{name}` (uncommitted changes) |") == commit.endswith("+changes"), name


def test_what_the_table_of_real_posts_says_of_the_paper_is_published():
    text = " ".join((user_written.__doc__ or "").split())
    for system in ("LASER", "RoLASER", "c-RoLASER"):
        distance, error = (
            find(paper="Nishimwe 2024", table="4", system=system, dataset="MultiLexNorm en", metric=metric)[0].value
            for metric in ("cosine_distance", "xsim")
        )
        assert f" {system} {distance:.2f} and {error:.2f}".replace(" 0.0", " .0", 1) in text
    assert len(user_written()) > 10


def test_the_kind_of_a_result_is_the_longest_beginning_and_may_be_unknown():
    assert (
        figures.kind_of("needs-whitened-x.json") == "needs-whitened-"
        and figures.kind_of("report/report.json") == "report/"
    )
    assert figures.kind_of("odd.json") == ""


def test_a_figure_is_found_by_its_place():
    assert figures.at({"a": {"b c": {"d": 0.5}}}, "a/b c/d") == 0.5
    with pytest.raises(KeyError):
        figures.at({"a": {}}, "a/b")


def test_a_figure_of_every_seed_is_their_mean_and_one_below_a_hundredth_keeps_two_digits(tmp_path, monkeypatch):
    (tmp_path / "run.json").write_text('{"metrics": {"noise": {"xsim": [1.0, 2.0, 4.5]}, "loss": 0.002634}}')
    monkeypatch.setattr(paper_figures, "RESULTS", tmp_path)
    assert paper_figures.figure("run.json", "noise/xsim") == 2.5
    assert paper_figures.shown(paper_figures.figure("run.json", "loss")) == "0.0026"
    assert [paper_figures.shown(value) for value in (0.0, 0.5, -0.25, 13.17)] == ["0.000", "0.500", "-0.250", "13.17"]


def test_the_command_writes_the_table_only_when_nothing_else_is_asked(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(figures, "TABLE", tmp_path / "README.md")
    with pytest.raises(SystemExit) as asked:
        figures.command(["--help"])
    assert asked.value.code == 0 and figures.__doc__.splitlines()[0] in capsys.readouterr().out
    for word in ("--chek", "report"):
        with pytest.raises(SystemExit) as refused:
            figures.command([word])
        assert refused.value.code == 2 and f"unrecognized arguments: {word}" in capsys.readouterr().err
    assert not figures.TABLE.exists()
    figures.command([])
    assert figures.TABLE.read_text("utf-8") == figures.table()
