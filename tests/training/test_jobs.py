"""The record of a run: which code made it, and that a result which no commit made is not kept among those that are."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from msgspec import Struct
from safetensors import SafetensorError

import training
from models.errors import ConfigError
from training import jobs


class Knobs(Struct, frozen=True):
    out: str = ""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with one commit, whose training/jobs.py is ours to be asked."""
    results = tmp_path / "training" / "results"
    results.mkdir(parents=True)
    (tmp_path / "models").mkdir()
    file = tmp_path / "training" / "jobs.py"
    file.write_text("1")

    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    monkeypatch.setattr(jobs, "__file__", str(file))
    monkeypatch.setattr(jobs, "RESULTS", results)
    monkeypatch.setenv("CRISIS_CACHE", str(tmp_path / "cache"))
    jobs.code_version.cache_clear()
    yield tmp_path, git
    jobs.code_version.cache_clear()


def commit_of(path: Path) -> str:
    return json.loads(path.read_text())["commit"]


def test_the_commit_of_a_result_is_the_one_the_job_began_from(checkout):
    root, git = checkout
    out = root / "run.json"

    def main(knobs: Knobs) -> None:
        began.append(jobs.code_version())
        git("commit", "--allow-empty", "-m", "made while the job ran")
        (root / "training" / "jobs.py").write_text("an edit made while the job ran")
        jobs.write_result(out, knobs, "", 1, {})

    began: list[str] = []
    jobs.run(main, {"smoke": Knobs()}, ["smoke"])
    assert commit_of(out) == began[0] and "+" not in began[0]
    jobs.code_version.cache_clear()
    assert jobs.code_version() != began[0] and jobs.code_version().endswith("+changes")


def test_a_result_of_uncommitted_code_is_not_kept_among_the_results(checkout, capsys):
    root, _ = checkout
    kept = jobs.RESULTS / "x.json"
    assert jobs.write_result(kept, Knobs(), "", 1, {"first": 1}) == kept
    jobs.code_version.cache_clear()
    assert "+" not in jobs.code_version()  # a result that another run wrote is no change of the code
    (root / "models" / "new.py").write_text("2")
    jobs.code_version.cache_clear()
    elsewhere = jobs.write_result(kept, Knobs(), "", 1, {"second": 2})
    assert elsewhere == root / "cache" / "results" / "x.json" and str(elsewhere) in capsys.readouterr().out
    assert commit_of(elsewhere).endswith("+changes") and not commit_of(kept).endswith("+changes")
    assert jobs.write_result(root / "mine.json", Knobs(), "", 1, {}) == root / "mine.json"


def test_the_hash_of_the_code_follows_an_edit_that_no_commit_holds_and_no_result(checkout):
    root, _ = checkout

    def now() -> str:
        jobs.code_hash.cache_clear()
        return jobs.code_hash()

    before = now()
    jobs.write_result(jobs.RESULTS / "x.json", Knobs(), "", 1, {})
    assert now() == before
    (root / "models" / "new.py").write_text("2")
    edited = now()
    (root / "models" / "new.py").write_text("3")
    assert len({before, edited, now()}) == 3
    jobs.code_hash.cache_clear()


NO_JOBS = {"data.py", "figures.py"}  # they print or write a table of what is there, and have no knob


def test_every_job_has_the_one_command_line():
    """Presets, knobs, `--help` and one sentence where something is wrong come from `run`."""
    ran = {}
    for path in Path(jobs.__file__).parent.rglob("*.py"):
        last = ast.parse(path.read_text("utf-8")).body[-1]
        if isinstance(last, ast.If) and "__main__" in ast.unparse(last.test):
            ran[path.name] = any(getattr(n, "id", "") == "run" for n in ast.walk(last))
    assert len(ran) > 20 and {name for name, through_run in ran.items() if not through_run} == NO_JOBS


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("base=/home/me/cache/mnr/best", "base=mnr/best"),
        ("/home/me/distil/model", "distil/model"),
        ("file=/data/humaid/tweets.jsonl.gz", "file=tweets.jsonl.gz"),
        ("encoder=mlm/best", "encoder=mlm/best"),
        ("columns=a,b", "columns=a,b"),
    ],
)
def test_a_command_is_told_without_folders_but_for_the_run_whose_weights_are_meant(monkeypatch, tmp_path, word, told):
    monkeypatch.setattr(jobs.sys, "argv", ["job", "laptop", word])
    record = json.loads(jobs.write_result(tmp_path / "x.json", Knobs(), "", 1, {}).read_text())
    assert record["command"].split()[-1] == told


def test_a_model_that_is_neither_a_folder_nor_had_from_the_hub_is_told_with_its_knob(tmp_path):
    def unreachable(name: str) -> str:
        raise RuntimeError("Cannot send a request\nand 60 lines more")

    wrong = r"base=mlm/best: no such folder here, and it cannot be had as a hub id \(Cannot send a request\)$"
    with pytest.raises(ConfigError, match=wrong):
        jobs.model_loaded(unreachable, "mlm/best", "base")
    with pytest.raises(ConfigError, match=r"base=\./best: no such folder$"):
        jobs.model_loaded(str, "./best", "base")
    with pytest.raises(RuntimeError, match="60 lines"):  # it is there: what is wrong with it is a bug, or told by it
        jobs.model_loaded(unreachable, str(tmp_path), "base")
    assert jobs.model_loaded(str.upper, "org/model", "base") == "ORG/MODEL"


def test_weights_that_no_disk_has_room_for_end_a_job_with_one_sentence():
    def main(knobs: Knobs) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    with pytest.raises(SystemExit, match="^error: .*No space left on device"):
        jobs.run(main, {"smoke": Knobs()}, ["smoke"])


def test_a_command_is_kept_so_that_a_shell_reads_what_was_typed(monkeypatch, tmp_path):
    words = ["laptop", "parallel=flores200 devtest,ntrex128", "note=Ada's `own`, for $5"]
    monkeypatch.setattr(jobs.sys, "argv", ["job", *words])
    record = json.loads(jobs.write_result(tmp_path / "x.json", Knobs(), "", 1, {}).read_text())
    assert shlex.split(record["command"])[3:] == words


def test_every_command_that_a_jobs_docstring_shows_begins_with_a_preset_it_has():
    shown = 0
    for path in sorted(Path(training.__file__).parent.rglob("*.py")):
        module = ast.parse(source := path.read_text("utf-8"))
        presets = [
            [key.value for key in node.value.keys]
            for node in module.body
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Dict)
            and ast.unparse(node.targets[0]) == "PRESETS"
        ]
        if not presets or "read=" in source.rpartition("__main__")[2]:  # such a job's first word is an encoder, a model
            continue
        name = ".".join(path.relative_to(Path(training.__file__).parents[1]).with_suffix("").parts)
        words = re.findall(rf"python -m {re.escape(name)} +([^ \n]+)", ast.get_docstring(module) or "")
        assert set(words) <= set(presets[0]), name
        shown += len(words)
    assert shown > 20


NONSENSE = [
    *(("adapt", word) for word in ("batch=0", "epochs=0", "rate=0", "temperature=0")),
    *(("classify", word) for word in ("batch=0", "epochs=0", "lr=0", "max_length=0", "repeats=0")),
    *(("contrastive", word) for word in ("batch=0", "batch=1", "temperature=0", "temperature=-1", "epochs=0", "lr=0")),
    *(("distill", word) for word in ("batch=0", "contrast_batch=0", "steps=0", "checkpoint_every=0")),
    *(("mlm", word) for word in ("batch=0", "block=0", "epochs=-1", "heads=0", "layers=0", "lr=nan", "pieces=0")),
    *(("robust", word) for word in ("batch=-3", "heads=0", "steps=0", "lr=0")),
    *(("semrel", word) for word in ("batch=0", "epochs=0", "lr=0")),
    *(("shorten", word) for word in ("batch=0", "epochs=0", "rate=0")),
]


@pytest.mark.parametrize(("job", "word"), NONSENSE)
def test_a_knob_of_which_nothing_can_be_made_stops_the_job_at_once(job, word):
    presets = importlib.import_module(f"training.{job}").PRESETS
    with pytest.raises(ConfigError, match=f"^{word}: Expected `"):
        jobs.read_config(presets, ["smoke", word])
