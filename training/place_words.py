"""Names of places that are words of a language: models/data/place_words.tsv, which models/places/ordinary.py reads.

    pip install '.[places]'
    python -m training.place_words all out=models/data/place_words.tsv

Looked for, as they are and in small letters, in the written posts (training/posts), whose places are marked, and
among words in small letters in everyday sentences (Tatoeba, CRISIS_DATA), whose places are not. A name that is told
there without being one, `least` times or more and more than `to_right` times as often as a place of that name is
meant, is a word of the language. Spared are countries by their English name and by that of the language itself (Unicode
CLDR), and towns of so many people that somebody did not mark one is likelier.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path

from msgspec import Struct

from models.places.gazetteer import Gazetteer, Place
from models.places.mentions import LEAST_CONFIDENCE, finds
from models.places.names import fold, keys, unjoined
from training.files import data_dir, files_of, read_json, read_lines
from training.jobs import run
from training.posts import HERE

__all__ = ["Config", "is_marked", "main", "ordinary_words"]


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the job."""

    out: str = "models/data/place_words.tsv"
    least: int = 2  # posts or sentences that say it and mean no place
    to_right: int = 3  # times as often as one that means the place
    people: int = 20_000  # of a town, for each time it was said: a bigger one is spared
    sentences: int = 4_000  # of a language


Said = tuple[str, str, Place, bool]  # language, key, the place it would be, is it one


def in_posts(gazetteer: Gazetteer) -> Iterator[Said]:
    """What is told of the written posts, a name once a post, as it is or in small letters."""
    for path in sorted((HERE / "written").glob("[0-9]*.jsonl")):  # not those set aside
        for post in read_json(path):
            marked = fold(" ".join(post["places"]))
            told = {}
            for text in (post["text"], post["text"].lower()):
                told |= {key: (place, is_marked(said, marked)) for said, key, place in names_in(text, gazetteer)}
            yield from ((post["lang"], key, *found) for key, found in told.items())


def is_marked(said: str, marked: str) -> bool:
    """Is what a text says among its marked places (folded)? These have nothing written onto them."""
    return fold(said) in marked or unjoined(keys(said)) in marked


def in_sentences(root: Path, most: int, gazetteer: Gazetteer) -> Iterator[Said]:
    """What would be told of everyday sentences in small letters, and stands in small letters in them."""
    for path in files_of(root / "tatoeba-train", "*.tsv.gz"):
        lang = path.name.removesuffix(".tsv.gz")
        for line in read_lines(path)[1 : most + 1]:
            text = line.split("\t")[1]
            small = text.lower()
            if len(small) != len(text):
                continue  # a letter that is two in small letters: positions would not match
            for said, key, place in names_in(small, gazetteer):
                if said in text and said != said.upper():  # in scripts without capitals nothing tells names from words
                    yield lang, key, place, False


def names_in(text: str, gazetteer: Gazetteer) -> Iterator[tuple[str, str, Place]]:
    """What is told of a text: as it is said, its key, the place."""
    for find in finds(text, gazetteer):
        if find.confidence >= LEAST_CONFIDENCE:
            said = text[find.start : find.end]
            yield said, keys(said), gazetteer.place(int(find.places[0]))


def own_names(lang: str) -> set[str]:
    """Keys of the names of countries in a language, and in English."""
    from babel import Locale, UnknownLocaleError

    found = set()
    for name in ("en", lang.replace("-", "_")):
        try:
            found |= {keys(said) for said in Locale.parse(name).territories.values()}
        except (UnknownLocaleError, ValueError):
            continue  # CLDR does not know it
    return found


def ordinary_words(
    said: Iterable[Said], config: Config, own_names: Callable[[str], Set[str]] = own_names
) -> dict[str, list[str]]:
    """Keys by language, sorted. own_names: keys of the names of countries that are spared in a language."""
    wrong: dict[str, Counter[str]] = defaultdict(Counter)
    right: dict[str, Counter[str]] = defaultdict(Counter)
    places: dict[str, Place] = {}
    for lang, key, place, meant in said:
        (right if meant else wrong)[lang][key] += 1
        places[key] = place
    found = {}
    for lang, counts in sorted(wrong.items()):
        own = own_names(lang)
        words = [
            key
            for key, times in sorted(counts.items())
            if times >= config.least
            and times > config.to_right * right[lang][key]
            and {key, unjoined(key)}.isdisjoint(own)
            and (places[key].kind == "country" or places[key].people < config.people * times)
        ]
        if words:
            found[lang] = words
    return found


def main(config: Config) -> None:
    """Make the list."""
    gazetteer = Gazetteer.bundled()

    def said() -> Iterator[Said]:
        yield from in_posts(gazetteer)
        yield from in_sentences(data_dir(), config.sentences, gazetteer)

    found = ordinary_words(said(), config)
    lines = "".join(f"{lang}\t{','.join(words)}\n" for lang, words in found.items())
    Path(config.out).write_text(lines, encoding="utf-8")
    print(f"{sum(map(len, found.values())):,} words of {len(found)} languages in {config.out}")


PRESETS = {"all": Config()}

if __name__ == "__main__":
    run(main, PRESETS)
