"""The crisis lexicons in the repository, and that jobs read them as pairs."""

from collections import Counter

from training.data import LEXICONS, training_pairs

FILES = sorted(LEXICONS.glob("*.tsv"))


def test_every_line_is_english_and_its_text_and_none_stands_twice():
    for path in FILES:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) >= 300 and len(set(lines)) == len(lines), path.name
        assert all(len(cells := line.split("\t")) == 2 and all(map(str.strip, cells)) for line in lines), path.name


def test_jobs_read_them_as_pairs_of_their_language(tmp_path):
    pairs = training_pairs(tmp_path, ("crisis-lexicons",))  # they need no research data
    assert Counter(pairs.lang) == {path.stem: path.read_text("utf-8").count("\n") for path in FILES}
    known = set(zip(pairs.lang, pairs.english, pairs.text, strict=True))
    assert {("ht", "shoes", "soulye"), ("ht", "money", "kòb")} <= known
