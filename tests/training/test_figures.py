"""The table of results says what the results say."""

import json

import pytest

from training import figures, paper_figures
from training.evaluate.published import by_part, find
from training.paper_figures import user_written
from training.paper_methods import METHODS


def test_the_table_is_that_of_the_files():
    assert figures.TABLE.read_text("utf-8") == figures.table(), "run: python -m training.figures"


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
    told |= {path.name for path in (figures.RESULTS / "papers").glob(paper_figures.FILTERED)}
    assert told == {path.name for path in (figures.RESULTS / "papers").glob("*.json")}
    for method in METHODS:
        for label, wanted in method.printed:
            assert len(find(**wanted)) == 1, (method.name, label)


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
