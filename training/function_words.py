"""Words that say nothing of what a text is about: models/data/function_words.tsv, which labels of clusters leave out.

    python -m training.function_words all

Those that are frequent whatever is talked of: in more than half of the kinds of text that there are in a language, of
everyday sentences, games, sentences on health (CRISIS_DATA) and the written posts (training/posts). In the posts a word
has to be as frequent whatever is asked for or offered, too: "water" is in as many of them as "from", and not as evenly.
Left out is what a map names: school, house, street.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from math import log
from pathlib import Path

from msgspec import Struct

from models.clusters.labels import UNSPACED, terms_of
from training.data import training_pairs
from training.files import data_dir, read_json
from training.jobs import run, write_atomically
from training.posts import HERE

__all__ = ["Config", "evenness", "function_words", "main"]

POSTS = "posts"
KINDS = ("tatoeba-train", "debian-games", "tico19-dev", "cmu-haitian-medical")
NAMES = ("osm-presets",)


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the job."""

    out: str = "models/data/function_words.tsv"
    often: float = 0.005  # of the texts of a kind
    least: int = 200  # texts of a kind in a language: fewer are not asked
    posts_often: float = 0.01
    even: float = 0.92  # over the classes of the posts: English "has" .96, "please" .93, "street" .86, "water" .76


class Text(Struct, frozen=True):
    """One that is counted."""

    lang: str
    kind: str
    text: str
    asked: str = ""  # of a post: the category of the need or offer, empty = none


def texts(root: Path) -> Iterator[Text]:
    """Each once, the English of the kinds too; of the posts not those set aside."""
    pairs = training_pairs(root, KINDS)
    yield from map(Text, pairs.lang, pairs.source, pairs.text)
    yield from (Text("en", kind, text) for kind, text in sorted({*zip(pairs.source, pairs.english, strict=True)}))
    for path in sorted((HERE / "written").glob("[0-9]*.jsonl")):
        for post in read_json(path):
            yield Text(post["lang"], POSTS, post["text"], post["gold"].partition(".")[2])


def names(root: Path) -> dict[str, set[str]]:
    """Words by language that alone name something on a map."""
    pairs, found = training_pairs(root, NAMES), defaultdict(set)
    for lang, text in [*zip(pairs.lang, pairs.text, strict=True), *(("en", text) for text in pairs.english)]:
        if len(terms := terms_of(text)) == 1:
            found[lang].add(terms[0])
    return found


def evenness(said: Mapping[str, int], texts: Mapping[str, int]) -> float:
    """How evenly the classes say something: 1 = all alike, 0 = one alone.

    The entropy of their shares of texts that say it, of the highest there could be, with what few texts lack of it:
    (classes that say it − 1) / (2 · texts that say it), Miller 1955, Note on the bias of information estimates.
    """
    shares = [said[name] / n for name, n in texts.items() if said.get(name)]
    if len(texts) < 2 or not shares:
        return 1.0
    total = sum(shares)
    entropy = -sum(share / total * log(share / total) for share in shares)
    return min(1.0, (entropy + (len(shares) - 1) / (2 * sum(said.values()))) / log(len(texts)))


def function_words(told: Iterable[Text], named: Mapping[str, Set[str]], config: Config) -> dict[str, list[str]]:
    """Words by language, sorted. named: those that are none."""
    number: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)  # of texts, by category
    said: dict[tuple[str, str], dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for one in told:
        number[one.lang, one.kind][one.asked] += 1
        for term in {*terms_of(one.text)}:
            said[one.lang, one.kind][term][one.asked] += 1

    kinds: Counter[str] = Counter()
    often: dict[str, Counter[str]] = defaultdict(Counter)  # in how many kinds
    for (lang, kind), by_category in number.items():
        if (size := by_category.total()) < config.least:
            continue
        kinds[lang] += 1
        least = size * (config.posts_often if kind == POSTS else config.often)
        asked = {category: n for category, n in by_category.items() if category}
        for term, counts in said[lang, kind].items():
            if counts.total() >= least and not UNSPACED.search(term) and term not in named.get(lang, ()):
                even = evenness({category: counts[category] for category in asked}, asked)
                often[lang][term] += even >= config.even
    found = {
        lang: sorted(term for term, times in often[lang].items() if 2 * times > n) for lang, n in sorted(kinds.items())
    }
    return {lang: words for lang, words in found.items() if words}


def main(config: Config) -> None:
    """Make the list."""
    root = data_dir()
    found = function_words(texts(root), names(root), config)
    lines = "".join(f"{lang}\t{','.join(words)}\n" for lang, words in found.items())
    write_atomically(Path(config.out), lines.encode())
    print(f"{sum(map(len, found.values())):,} words of {len(found)} languages in {config.out}")


PRESETS = {"all": Config()}

if __name__ == "__main__":
    run(main, PRESETS)
