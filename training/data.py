"""The training and evaluation sets under CRISIS_DATA: which are read, by whose leave, and as what.

python -m training.data        # the sets that jobs read: what each holds, its terms, where it can be had, is it here

`training_pairs` gives only rows whose licence lets the trained weights be handed on: no non-commercial, research-only
or unstated terms, no test set, no tweets. `SOURCES` lists each source with its licence; what is left out is listed too,
with the reason, so that nothing is skipped silently.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from training.files import (
    DataError,
    data_dir,
    files_of,
    numbered_lines,
    read_aligned,
    read_json,
    read_lines,
    read_rows,
    read_table,
)
from training.sets import DATA_SETS, DataSet

__all__ = [
    "LEFT_OUT",
    "Pairs",
    "SOURCES",
    "in_train_half",
    "labelled_posts",
    "read_messages",
    "training_pairs",
    "unique_texts",
]


SOURCES = {
    "tatoeba-train": "CC BY 2.0 FR",
    "software-l10n": "Apache-2.0, MPL-2.0, MIT, CC BY, GPL (by string)",
    "humanitarian-l10n": "MIT, BSD-2, Apache-2.0, MPL-2.0, LGPL-3.0, AGPL-3.0 (by string)",
    "afriqa": "CC BY 4.0",
    "cmu-haitian-medical": "GPL-3.0 as mirrored",
    "nusax": "CC BY-SA",
    "indic-wiki-4ref": "CC BY-SA 3.0",
    "tico19-dev": "CC0 1.0",
    "tico19-fb-terms": "CC0 1.0",
    "tico19-google-terms": "CC0 1.0",
    "osm-presets": "ISC",
    "cldr-territories": "Unicode-3.0",
    "emoji-cldr": "Unicode-3.0",
    "disaster-messages": "CC BY 4.0 (the train half only)",
    "crisis-lexicons": "CC BY 4.0, ours",
    "debian-games": "GPL-2+, GPL-3+, LGPL, AGPL-3+ (copyleft, by package)",
    "debian-docs": "GPL-2+, LGPL, GFDL, CC BY-SA 3.0, MPL-2.0 (mostly copyleft, by package)",
    "debian-apps": "GPL-2+, GPL-3+, LGPL, MPL-2.0, BSD-3 (mostly copyleft, by package)",
    "freedict": "GPL-2+, GPL-3+, CC BY-SA 3.0 (copyleft, by dictionary)",
}
DEBIAN = ("debian-games", "debian-docs", "debian-apps")  # of Debian 12, main; each names the packages its rows are from
LEXICONS = Path(__file__).parent / "lexicons"  # crisis words and phrases of languages that have little else
LEFT_OUT = {
    "lafand-mt": "CC BY-NC",
    "interdialect-ckb": "CC BY-NC-SA",
    "indonesian-mt-general": "no licence stated",
    "indonesian-mt-news": "no licence stated",
    "small_parallel_enja": "no licence stated",
    "multi30k": "captions for research only",
    "xling-eval": "no licence stated",
    "cosda-muse": "derived from dictionaries under CC BY-NC",
    "wmt-news-train": "for research only",
    "ddtp": "package descriptions among debian-docs, no licence stated",
}


class Pairs(Struct, frozen=True):
    """Translation pairs as columns of equal length; `text` is in `lang`, `english` says the same."""

    english: list[str]
    text: list[str]
    lang: list[str]
    source: list[str]
    data_hash: str


def in_train_half(message_id: str) -> bool:
    """Which half of disaster-messages-multilingual a message is in: half of all ids, by hash, for ever the same."""
    return hashlib.sha256(message_id.encode()).digest()[0] < 128


def read_messages(root: Path) -> list[dict]:
    """disaster-messages-multilingual, one JSON object a message."""
    return list(read_json(root / "disaster-messages-multilingual" / "messages.jsonl.gz"))


def labelled_posts(root: Path, sets: Sequence[str]) -> list[tuple[str, str]]:
    """(text, language) of every post of these folders' `tweets.jsonl.gz` that is no test row; labels are not read.

    Their terms are for research: what is trained on them may be measured, never shipped. Raises DataError.
    """
    files = [root / name / "tweets.jsonl.gz" for name in sets]
    rows = [row for path in files for row in read_table(path, ("text",), ("lang", "split"))]
    return [(row["text"], row.get("lang", "")) for row in rows if row.get("split") != "test"]


def training_pairs(root: Path, sources: tuple[str, ...] = tuple(SOURCES)) -> Pairs:
    """Every pair of the named sources, in a fixed order. `lang` "en" rows say the English in other words."""
    unknown = [source for source in sources if source not in SOURCES]
    if unknown:
        reasons = ", ".join(f"{name} ({LEFT_OUT.get(name, 'unknown')})" for name in unknown)
        raise DataError(f"not for shipped weights: {reasons}; choose from {', '.join(SOURCES)}")
    rows = [row for row in _all_rows(root, frozenset(sources)) if row[0].strip() and row[1].strip()]
    english, text, lang, source = map(list, zip(*rows, strict=True))
    digest = hashlib.sha256()
    for row in rows:
        digest.update("\x1f".join(row).encode() + b"\x1e")
    return Pairs(english, text, lang, source, digest.hexdigest())


def _all_rows(root: Path, wanted: frozenset[str]) -> Iterator[tuple[str, str, str, str]]:
    """(english, text, lang, source) of every wanted row."""
    if "tatoeba-train" in wanted:
        for path in files_of(root / "tatoeba-train", "*.tsv.gz"):
            lang = path.name.removesuffix(".tsv.gz")
            for row in read_rows(path):
                yield row["en"], row["xx"], lang, "tatoeba-train"
    if "software-l10n" in wanted:
        texts = read_aligned(root / "software-l10n")
        for lang, lines in texts.items():
            if lang != "en":
                for english, text in zip(texts["en"], lines, strict=True):
                    yield english, text, lang, "software-l10n"
    if "humanitarian-l10n" in wanted:
        for row in read_rows(root / "humanitarian-l10n" / "humanitarian_l10n.tsv.gz"):
            yield row["en"], row["xx"], row["lang"], "humanitarian-l10n"
    if wanted & {"afriqa", "cmu-haitian-medical", "nusax"}:
        for row in read_rows(root / "misc-parallel" / "misc_parallel.tsv.gz"):
            if row["source"] in wanted and row["split"] == "train":
                yield row["en"], row["xx"], row["lang"], row["source"]
    if "indic-wiki-4ref" in wanted:
        for row in read_rows(root / "indic-wiki-4ref" / "indic_wiki_4ref.tsv.gz"):
            for column in ("en1", "en2", "en3", "en4"):
                yield row[column], row["xx"], row["lang"], "indic-wiki-4ref"
    if "tico19-dev" in wanted:
        texts = read_aligned(root / "tico19")
        split = [row["split"] for row in read_rows(root / "tico19" / "meta.tsv.gz")]
        for lang, lines in texts.items():
            if lang != "en":
                for part, english, text in zip(split, texts["en"], lines, strict=True):
                    if part == "dev":
                        yield english, text, lang, "tico19-dev"
    if wanted & {"tico19-fb-terms", "tico19-google-terms", "osm-presets", "cldr-territories"}:
        for row in read_rows(root / "lexicons" / "lexicons.tsv.gz"):
            if row["source"] in wanted:
                yield row["en"], row["xx"], row["lang"], row["source"]
    if "emoji-cldr" in wanted:
        yield from _emoji_rows(root)
    if "crisis-lexicons" in wanted:
        for path in sorted(LEXICONS.glob("*.tsv")):
            for line in read_lines(path):
                english, _, text = line.partition("\t")
                yield english, text, path.stem, "crisis-lexicons"
    for name in (*DEBIAN, "freedict"):
        if name in wanted:
            for row in read_rows(root / name / f"{name.replace('-', '_')}.tsv.gz"):
                if row["source"] not in LEFT_OUT:
                    yield row["en"], row["xx"], row["lang"], name
    if "disaster-messages" in wanted:
        for message in read_messages(root):
            if message.get("text_en") and in_train_half(message["id"]):
                yield message["text_en"], message["text"], message["lang"], "disaster-messages"


def _emoji_rows(root: Path) -> Iterator[tuple[str, str, str, str]]:
    """Names of the same emoji in two languages, with the keywords, which hold many everyday words."""
    rows = list(read_rows(root / "emoji-cldr" / "emoji_names.tsv.gz"))
    english = {row["emoji"]: row for row in rows if row["lang"] == "en"}
    for row in rows:
        if row["lang"] != "en" and row["emoji"] in english:
            partner = english[row["emoji"]]
            yield partner["name"], row["name"], row["lang"], "emoji-cldr"


def unique_texts(texts: list[str]) -> tuple[list[str], np.ndarray]:
    """The distinct texts in order of first use, and for each text its place among them, int32."""
    place: dict[str, int] = {}
    index = np.fromiter((place.setdefault(t, len(place)) for t in texts), dtype=np.int32, count=len(texts))
    return list(place), index


def rows_here(folder: Path, known: DataSet) -> int:
    """How many rows of a set are there, headers and empty lines not counted. Raises DataError where a file is missing
    or damaged."""
    found = [files_of(folder, pattern) for pattern in known.files][0]
    headers = sum(".tsv" in path.suffixes for path in found)
    return sum(bool(line) for path in found for _, line in numbered_lines(path)) - headers


def about(name: str, known: DataSet, state: str) -> str:
    """What a reader must know of a set; `state`: its rows, or that it is missing."""
    licences = [SOURCES[source] for source in known.sources]
    if len(licences) > 1:
        licences = [f"{source} {licence}" for source, licence in zip(known.sources, licences, strict=True)]
    parts = {
        "holds": known.holds,
        "files": f"{' '.join(known.files)}: {known.columns}",
        "teaches": known.learnt,
        "judges": known.judges,
        "licence": known.licence or "; ".join(licences),
        "from": known.origin,
    }
    lines = [
        textwrap.fill(f"    {part:9}{said}", 120, subsequent_indent=" " * 13, break_on_hyphens=False)
        for part, said in parts.items()
        if said
    ]
    return "\n".join([f"{name}  {state}", *lines, ""])


def command(argv: Sequence[str] | None = None) -> None:
    """Print the table of sets. Ends with 1 where there is no data folder, or none of the sets in it."""
    argparse.ArgumentParser(
        "python -m training.data", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args(argv)
    root, wrong = None, ""
    try:
        root = data_dir()
    except DataError as error:
        wrong = f"error: {error}"
    here = 0
    for name, known in DATA_SETS.items():
        state = "missing"
        try:
            if root:
                state = f"{rows_here(root / name, known):,} rows"
                here += 1
        except DataError as error:
            state = str(error).partition(": it holds ")[0]
        print(about(name, known, state))
    print("Never in shipped weights:", "; ".join(f"{name} ({reason})" for name, reason in LEFT_OUT.items()))
    if root and not here:
        wrong = f"error: none of the sets is in {root}: set CRISIS_DATA to the folder with a folder of each set's name"
    if wrong:
        sys.exit(wrong)
    print(f"{here} of {len(DATA_SETS)} sets are in {root}")


if __name__ == "__main__":
    command()
