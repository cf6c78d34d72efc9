"""Noise on words: a phrase is written in one of the forms a list has for it.

A list is a TSV file, `standard<TAB>form|form`; lines that begin with # are comments. The lists under `lists/` are this
project's own. `read_ugc_wordlists` reads larger ones for experiments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

from training.files import DataError, numbered_lines, read_rows

__all__ = ["LISTS", "WordList", "read_lang_lists", "read_ugc_wordlists", "read_word_list"]

LISTS = Path(__file__).parent / "lists"
_WORD = re.compile(r"\w+(?:['’&/.-]\w+)*")

# Which lists of the set `ugc-wordlists` serve which transformation.
_UGC_KINDS = {
    "phrase-abbreviation": "abr1", "acronym": "abr1", "word-abbreviation": "abr2", "insert-abbreviation": "abr2",
    "business-acronym": "abr3", "dyslexia-homophones": "dysl", "dyslexia-similar": "dysl", "dyslexia-verbs": "dysl",
    "slang-noun": "slng", "slang-adjective": "slng", "slang-adverb": "slng", "misspelling-common": "spel",
    "misspelling-human": "spel", "weekday-month": "week",
}  # fmt: skip


class WordList:
    """Phrases and the forms each may take. A key with capitals is matched as it is, any other in any case.

    `spaced=False` is for scripts without spaces between words: keys are then found anywhere in the text.
    """

    def __init__(self, rows: Iterable[tuple[str, tuple[str, ...]]], spaced: bool = True) -> None:
        self._forms: dict[str, tuple[str, ...]] = {}
        for standard, forms in rows:
            key = _key(standard)
            known = self._forms.get(key, ())
            self._forms[key] = known + tuple(f for f in forms if f not in known and f != standard)
        self._longest: dict[str, int] = {}  # first word of a phrase → most words of a phrase that begins so
        self._pattern = None
        if spaced:
            for key in self._forms:
                words = key.split(" ")
                self._longest[words[0]] = max(len(words), self._longest.get(words[0], 0))
        elif self._forms:
            self._pattern = re.compile("|".join(map(re.escape, sorted(self._forms, key=len, reverse=True))))

    def forms(self) -> set[str]:
        """Every form that stands for a phrase."""
        return {form for forms in self._forms.values() for form in forms}

    def meanings(self) -> Iterator[tuple[str, str]]:
        """(form, the phrase it stands for), in the list's order."""
        return ((form, standard) for standard, forms in self._forms.items() for form in forms)

    def __len__(self) -> int:
        return len(self._forms)

    def both_ways(self) -> WordList:
        """The list that also turns every form back into its phrase."""
        back = [(form, (standard,)) for standard, forms in self._forms.items() for form in forms]
        return WordList([*self._forms.items(), *back])

    def replace(self, text: str, rng: Random, p: float) -> str:
        """Each phrase found (the longest at a place) takes one of its forms with chance p."""
        if p <= 0 or not self._forms:
            return text
        if self._pattern:
            return self._pattern.sub(lambda m: self._draw(m.group(), m.group(), rng, p), text)
        parts, done, skip = [], 0, 0
        words = list(_WORD.finditer(text))
        for at, word in enumerate(words):
            if at < skip:
                continue
            found = self._find(text, words, at)
            if found is None:
                continue
            key, skip = found
            start, end = word.start(), words[skip - 1].end()
            parts.append(text[done:start])
            parts.append(self._draw(key, text[start:end], rng, p))
            done = end
        parts.append(text[done:])
        return "".join(parts)

    def _find(self, text: str, words: list[re.Match], at: int) -> tuple[str, int] | None:
        """The key of the longest phrase that begins at word `at`, and the word after it."""
        first = words[at].group().replace("’", "'")
        for word in {first: None, first.lower(): None}:
            key, best = word, (word, at + 1) if word in self._forms else None
            for n in range(1, min(self._longest.get(word, 0), len(words) - at)):
                gap = text[words[at + n - 1].end() : words[at + n].start()]
                if gap != " ":
                    break
                following = words[at + n].group().replace("’", "'")
                key = f"{key} {following if word != word.lower() else following.lower()}"
                if key in self._forms:
                    best = (key, at + n + 1)
            if best:
                return best
        return None

    def _draw(self, key: str, original: str, rng: Random, p: float) -> str:
        if rng.random() >= p:
            return original
        form = rng.choice(self._forms[key])
        # The capitals of an acronym say nothing about its place in the sentence.
        return form if key != key.lower() else in_case_of(original, form)


def in_case_of(original: str, form: str) -> str:
    """The form with the capitals of what it stands for, unless it has its own."""
    if form != form.lower():
        return form
    if original.isupper() and len(original) > 1:
        return form.upper()
    return form[0].upper() + form[1:] if original[:1].isupper() else form


def read_word_list(path: Path) -> WordList:
    """A list from a TSV file. Raises DataError naming the line that is not `standard<TAB>form|form`."""
    return WordList((cells[0], tuple(cells[1].split("|"))) for cells in _read(path, 2))


def read_lang_lists(path: Path) -> dict[str, WordList]:
    """Lists by language from a TSV file `lang<TAB>standard<TAB>form|form`."""
    rows: dict[str, list] = {}
    for lang, standard, forms in _read(path, 3):
        rows.setdefault(lang, []).append((standard, tuple(forms.split("|"))))
    return {lang: WordList(of, spaced=lang not in ("th", "ja", "zh", "ko")) for lang, of in rows.items()}


def read_ugc_wordlists(path: Path) -> dict[str, WordList]:
    """Lists by transformation from `ugc_wordlists.tsv.gz` (columns list, lang, standard, ugc, source); English only."""
    rows: dict[str, list] = {}
    for row in read_rows(path):
        kind = _UGC_KINDS.get(row["list"])
        if kind and row["lang"] == "en" and row["standard"].strip() and row["ugc"].strip():
            rows.setdefault(kind, []).append((row["standard"].strip(), (row["ugc"].strip(),)))
    return {kind: WordList(of) for kind, of in rows.items()}


def _read(path: Path, columns: int) -> Iterable[list[str]]:
    for number, line in numbered_lines(path):
        if not line or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != columns or not all(cells):
            raise DataError(f"{path}, line {number}: {len(cells)} columns, wanted {columns}, none empty: {line[:60]!r}")
        yield cells


def _key(phrase: str) -> str:
    """As words are found: straight apostrophes, no closing stop ("e.g." is found as "e.g")."""
    return phrase.replace("’", "'").rstrip(".")
