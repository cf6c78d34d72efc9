"""The table of sets: whatever a job reads is in it, nothing else is, and what is missing is told with its place."""

import ast
import gzip
import re

import pytest

from tests.house import ROOT, modules, parsed
from training import data
from training.data import LEFT_OUT, SOURCES, training_pairs
from training.evaluate import relatedness
from training.evaluate.material import LABELLED, PARALLEL
from training.files import DataError, data_dir, files_of, read_aligned, read_rows
from training.mlm import Config as MlmConfig
from training.posts import FILES
from training.sets import DATA_SETS

ROOTS = {"root", "data_dir"}


def is_root(node: ast.expr) -> bool:
    """`root`, `data_dir()`, or `root := data_dir()`."""
    while isinstance(node, ast.Call | ast.NamedExpr):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id in ROOTS


def begins(node: ast.expr) -> str:
    """The first name in a constant path or in "flores200 devtest", also of an f-string; "" of anything else."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    text = node.value if isinstance(node, ast.Constant) else ""
    return re.split("[/ ]", text)[0] if isinstance(text, str) else ""


def folders_joined() -> set[str]:
    """Names that training code appends to the data folder, or hands on beside it."""
    found = set()
    for path in modules("training"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and is_root(node.left):
                found.add(begins(node.right))
            if isinstance(node, ast.Call) and len(node.args) > 1 and is_root(node.args[0]):
                found.add(begins(node.args[1]))
    return found - {"", "SemRel2024"}


def names_in_code() -> set[str]:
    """The first name of every constant of training code but the table's own."""
    paths = [path for path in modules("training") if path.name != "sets.py"]
    return {begins(node) for path in paths for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant)}


def test_every_set_that_training_code_reads_is_in_the_table():
    joined = folders_joined()
    assert {"tatoeba-train", "flores200", "humaid", "ntrex128", "stsb-multi"} <= joined  # the walk finds what it should
    listed = {place.split("/")[0] for place in FILES.values()}
    listed |= {source.file.split("/")[0] for source in LABELLED.values()}
    listed |= {folder for folder, *_ in relatedness.SETS.values()} | {name.split()[0] for name in PARALLEL}
    assert joined | listed <= set(DATA_SETS)


def test_no_folder_of_the_data_that_code_names_is_left_out_of_the_table(data_dir):
    folders = {path.name for path in data_dir.iterdir() if path.is_dir()}
    assert folders & names_in_code() - set(LEFT_OUT) <= set(DATA_SETS)


def test_every_set_of_the_table_is_read_by_code():
    assert set(DATA_SETS) <= names_in_code()


def test_the_table_tells_who_reads_posts_labelled_sets_and_pairs_as_the_code_has_it():
    def telling(word: str) -> set[str]:
        return {name for name, known in DATA_SETS.items() if word in f"{known.learnt}; {known.judges}"}

    assert telling("posts that were read") == {place.split("/")[0] for place in FILES.values()}
    assert telling("measures=classes") == {source.file.split("/")[0] for source in LABELLED.values()}
    assert telling("measures=matching") == {name.split()[0] for name in PARALLEL}
    assert telling("measures=relatedness") == {folder for folder, *_ in relatedness.SETS.values()}
    assert telling("pairs of training.distill") == {name for name, known in DATA_SETS.items() if known.sources}


def test_every_source_of_pairs_lies_in_one_set_or_in_the_project_and_every_set_has_its_terms_and_its_place():
    sources = [source for known in DATA_SETS.values() for source in known.sources]
    assert sorted([*sources, "crisis-lexicons"]) == sorted(SOURCES)
    for name, known in DATA_SETS.items():
        assert bool(known.licence) != bool(known.sources) and (known.learnt or known.judges), name
        assert re.search(r"https://(?!pypi|deb\.|files\.)[\w./-]+", known.origin), name


def test_every_job_that_the_table_names_is_there():
    for name, known in DATA_SETS.items():
        for job in re.findall(r"training\.([\w.]+\w)", f"{known.learnt}; {known.judges}"):
            place = ROOT / "training" / job.replace(".", "/")
            assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), (name, job)
        for posts in re.findall(r"training\.mlm posts=([\w-]+)", known.learnt):
            assert posts == name and "posts" in MlmConfig.__struct_fields__


@pytest.mark.parametrize("source", [source for source in SOURCES if source != "crisis-lexicons"])
def test_pairs_of_a_missing_set_are_an_error_that_tells_where_it_can_be_had(source, tmp_path):
    (name,) = [name for name, known in DATA_SETS.items() if source in known.sources]
    with pytest.raises(DataError, match="missing data file") as caught:
        training_pairs(tmp_path, (source, "crisis-lexicons"))  # these are there: what is missing is not passed over
    assert f"/{name}/" in str(caught.value) and DATA_SETS[name].origin in str(caught.value)


def test_a_missing_file_of_a_folder_that_no_table_knows_is_named_alone(tmp_path):
    for read in (lambda: list(read_rows(tmp_path / "x.tsv")), lambda: read_aligned(tmp_path)):
        with pytest.raises(DataError, match=rf"missing data files? {tmp_path}/\S+$"):
            read()


def write(path, *lines: str) -> None:
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join([*lines, ""]))


def test_the_files_of_a_folder_come_by_name(tmp_path):
    write(tmp_path / "fr.tsv.gz", "en\txx")
    write(tmp_path / "ar.tsv.gz", "en\txx")
    assert [path.name for path in files_of(tmp_path, "*.tsv.gz")] == ["ar.tsv.gz", "fr.tsv.gz"]


def test_the_table_counts_the_rows_that_are_here_and_names_the_files_that_are_not(tmp_path, monkeypatch, capsys):
    write(tmp_path / "tatoeba-train" / "fr.tsv.gz", "en\txx", "help\taide", "boat\tbateau")
    write(tmp_path / "tatoeba-train" / "ht.tsv.gz", "en\txx", "help\tèd")
    write(tmp_path / "tico19" / "en.txt.gz", "wash your hands", "stay at home")
    write(tmp_path / "ntrex128" / "en.txt.gz", "one", "two")
    write(tmp_path / "ntrex128" / "fr.txt.gz", "un", "")
    (tmp_path / "humaid").mkdir()
    (tmp_path / "humaid" / "tweets.jsonl.gz").write_bytes(b"no gzip")
    monkeypatch.setenv("CRISIS_DATA", str(tmp_path))
    data.command([])
    lines = capsys.readouterr().out.splitlines()
    assert "tatoeba-train  3 rows" in lines and "ntrex128  3 rows" in lines
    assert f"tico19  missing data files {tmp_path}/tico19/meta.tsv.gz" in lines
    assert any(line.startswith(f"humaid  damaged data file {tmp_path}/humaid/tweets.jsonl.gz") for line in lines)
    assert lines[-1] == f"2 of {len(DATA_SETS)} sets are in {tmp_path}"
    assert {line.split("  ")[0] for line in lines if line and line[0] != " "} >= set(DATA_SETS)


@pytest.mark.parametrize("wrong", ["unset", "a file's name", "an empty folder"])
def test_without_data_the_table_is_printed_all_the_same_and_the_command_ends_with_1_and_the_way_out(
    wrong, tmp_path, monkeypatch, capsys
):
    place = tmp_path if wrong == "an empty folder" else tmp_path / "data"
    monkeypatch.setenv("CRISIS_DATA", "" if wrong == "unset" else str(place))
    monkeypatch.setattr("training.files.__file__", str(tmp_path / "checkout" / "training" / "files.py"))
    with pytest.raises(SystemExit, match="error: .*set CRISIS_DATA to the folder") as ended:
        data.command([])
    told = {"unset": "CRISIS_DATA is not set", "a file's name": f"CRISIS_DATA={place} is no folder"}
    assert told.get(wrong, f"none of the sets is in {place}") in str(ended.value)
    printed = capsys.readouterr().out
    assert all(f"{name}  missing" in printed for name in DATA_SETS) and "https://crisisnlp.qcri.org" in printed
    if wrong != "an empty folder":
        with pytest.raises(DataError, match=re.escape("`python -m training.data`")):
            data_dir()


def test_the_table_takes_no_word(capsys):
    with pytest.raises(SystemExit) as refused:
        data.command(["humaid"])
    assert refused.value.code == 2 and "unrecognized arguments: humaid" in capsys.readouterr().err
