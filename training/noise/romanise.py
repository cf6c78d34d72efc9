"""Other scripts typed in Latin letters, as people do in chats: Arabizi, Hinglish, Greeklish, Cyrillic.

Informal romanisation has no standard; every writer has habits. One call draws one writer: for each letter with several
spellings, one is chosen and kept throughout the text.
"""

from __future__ import annotations

import re
from random import Random

__all__ = ["romanise"]

_RUSSIAN = {
    "а": "a", "б": "b", "в": "v", "г": "g", "д": "d", "е": "e", "ё": "yo|e|jo", "ж": "zh|j", "з": "z", "и": "i", "й": "y|j|i",
    "к": "k", "л": "l", "м": "m", "н": "n", "о": "o", "п": "p", "р": "r", "с": "s", "т": "t", "у": "u", "ф": "f", "х": "h|kh|x",
    "ц": "c|ts", "ч": "ch|4", "ш": "sh|6", "щ": "sch|shch|sh", "ъ": "", "ы": "y|i", "ь": "|'", "э": "e", "ю": "yu|u|ju",
    "я": "ya|ja", "і": "i", "ї": "yi|i", "є": "ye|e", "ґ": "g", "ў": "w|u", "ђ": "dj", "ј": "j", "љ": "lj", "њ": "nj",
    "ћ": "c", "џ": "dz", "ѓ": "gj", "ќ": "kj", "ѕ": "dz",
}  # fmt: skip
# Where a language reads a letter otherwise than Russian.
_CYRILLIC = {
    "uk": {"г": "h|g", "и": "y|i", "е": "e", "щ": "shch|sch"},
    "bg": {"ъ": "a|u|y", "щ": "sht|6t", "х": "h", "ж": "j|zh", "ц": "c|ts", "я": "ya|q", "ш": "sh|6"},
    "sr": {"ж": "z", "ш": "s", "ч": "c", "х": "h", "ц": "c"},
    "mk": {"ж": "z|zh", "ш": "s|sh", "ч": "c|ch", "х": "h", "ц": "c"},
}
_GREEK = {
    "ου": "ou|u", "αι": "ai|e", "ει": "ei|i", "οι": "oi|i", "μπ": "mp|b", "ντ": "nt|d", "γκ": "gk|g", "τσ": "ts", "αυ": "au|av",
    "ευ": "eu|ev", "α": "a", "β": "v|b", "γ": "g", "δ": "d", "ε": "e", "ζ": "z", "η": "i|h", "θ": "th|8", "ι": "i", "κ": "k",
    "λ": "l", "μ": "m", "ν": "n|v", "ξ": "ks|x|3", "ο": "o", "π": "p", "ρ": "r", "σ": "s", "ς": "s", "τ": "t", "υ": "y|u|i",
    "φ": "f|ph", "χ": "x|h|ch", "ψ": "ps", "ω": "o|w", "ά": "a", "έ": "e", "ή": "i|h", "ί": "i", "ό": "o", "ύ": "y|u|i",
    "ώ": "o|w", "ϊ": "i", "ΐ": "i", "ϋ": "y|u|i", "ΰ": "y|u|i", "ού": "ou|u", "αί": "ai|e", "εί": "ei|i", "οί": "oi|i",
}  # fmt: skip
_ARABIC = {
    "ا": "a", "أ": "a|2a", "إ": "i|2e", "آ": "aa|a", "ب": "b", "ت": "t", "ث": "th|s", "ج": "j|g", "ح": "7|h", "خ": "kh|5|7'",
    "د": "d", "ذ": "th|z", "ر": "r", "ز": "z", "س": "s", "ش": "sh|ch", "ص": "s|9", "ض": "d|dh", "ط": "t|6", "ظ": "z|th",
    "ع": "3|a", "غ": "gh|3'", "ف": "f", "ق": "q|9|2|k", "ك": "k", "ل": "l", "م": "m", "ن": "n", "ه": "h", "ة": "a|eh|ah",
    "و": "w|o|ou", "ي": "i|y|ee", "ى": "a", "ء": "2|", "ؤ": "2|o", "ئ": "2|e", "پ": "p", "چ": "ch|tch", "ژ": "zh|j", "گ": "g",
    "ک": "k", "ی": "i|y|ee", "ٹ": "t", "ڈ": "d", "ڑ": "r", "ں": "n", "ھ": "h", "ہ": "h", "ے": "e|ay", "َ": "a", "ُ": "o|u",
    "ِ": "i|e", "ّ": "", "ْ": "", "ً": "an", "ٌ": "un", "ٍ": "in", "،": ",", "؟": "?", "؛": ";", "۔": ".",
}  # fmt: skip
_HINDI_CONSONANTS = {
    "क": "k", "ख": "kh", "ग": "g", "घ": "gh", "ङ": "n", "च": "ch|c", "छ": "chh|ch", "ज": "j", "झ": "jh", "ञ": "n", "ट": "t",
    "ठ": "th", "ड": "d", "ढ": "dh", "ण": "n", "त": "t", "थ": "th", "द": "d", "ध": "dh", "न": "n", "प": "p", "फ": "ph|f",
    "ब": "b", "भ": "bh", "म": "m", "य": "y", "र": "r", "ल": "l", "ळ": "l", "व": "v|w", "श": "sh", "ष": "sh", "स": "s", "ह": "h",
    "क़": "q|k", "ख़": "kh", "ग़": "g|gh", "ज़": "z|j", "ड़": "d|r", "ढ़": "dh|rh", "फ़": "f|ph",
}  # fmt: skip
_HINDI_VOWELS = {
    "अ": "a", "आ": "aa|a", "इ": "i", "ई": "ee|i", "उ": "u", "ऊ": "oo|u", "ऋ": "ri", "ए": "e", "ऐ": "ai", "ओ": "o", "औ": "au",
    "ऑ": "o",
}  # fmt: skip
_HINDI_SIGNS = {
    "ा": "a|aa", "ि": "i", "ी": "i|ee", "ु": "u", "ू": "u|oo", "ृ": "ri", "े": "e", "ै": "ai|e", "ो": "o", "ौ": "au|o", "ॉ": "o",
}  # fmt: skip
_HINDI_MARKS = {"ं": "n", "ँ": "n|", "ः": "h|", "।": ".", "॥": ".", "ॐ": "om"} | {
    chr(0x966 + d): str(d) for d in range(10)
}
_VIRAMA, _NUKTA = "\u094d", "\u093c"

_SCRIPT = {
    "cyrillic": re.compile("[\u0400-\u045f\u0490\u0491]+"),
    "greek": re.compile("[\u0370-\u03ff]+"),
    "arabic": re.compile("[\u060c\u061b\u061f\u0621-\u06d4]+"),
    "devanagari": re.compile("[\u0900-\u097f]+"),
}
_ARABIC_CLUSTER = re.compile(r"(?<=[bcdfghjklmnqrstvz3579])(?=[bdfghjklmnqrstvz3579])")
_DIGRAPHS = ("th", "sh", "kh", "gh", "ch", "dh", "zh")


def romanise(text: str, rng: Random, lang: str = "") -> str:
    """The text in Latin letters, as one writer would type it. Scripts without a table stay as they are."""
    if text.isascii():
        return text
    style: dict[str, str] = {}
    russian = _RUSSIAN | _CYRILLIC.get(lang, {})
    text = _SCRIPT["cyrillic"].sub(lambda m: _letters(m.group(), russian, rng, style), text)
    text = _SCRIPT["greek"].sub(lambda m: _letters(m.group(), _GREEK, rng, style), text)
    text = _SCRIPT["arabic"].sub(lambda m: _arabic(m.group(), rng, style), text)
    return _SCRIPT["devanagari"].sub(lambda m: _devanagari(m.group(), rng, style), text)


def _spell(letter: str, spellings: str, rng: Random, style: dict[str, str]) -> str:
    """The spelling this writer uses for the letter, drawn at first use; the first listed is the commonest."""
    if letter not in style:
        options = spellings.split("|")
        style[letter] = options[0] if rng.random() < 0.5 else rng.choice(options)
    return style[letter]


def _letters(word: str, table: dict[str, str], rng: Random, style: dict[str, str]) -> str:
    out, i = [], 0
    while i < len(word):
        size = 2 if word[i : i + 2].lower() in table else 1
        unit = word[i : i + size]
        low = unit.lower()
        latin = _spell(low, table[low], rng, style) if low in table else unit
        out.append(latin.capitalize() if unit[0].isupper() else latin)
        i += size
    romanised = "".join(out)
    return romanised.upper() if len(word) > 1 and word.isupper() else romanised


def _arabic(word: str, rng: Random, style: dict[str, str]) -> str:
    """Letters as they are, then a short vowel in most clusters: the script leaves them out, Arabizi does not."""
    prefix = "al" if word.startswith("ال") and len(word) > 3 else ""
    latin = _letters(word[2:] if prefix else word, _ARABIC, rng, style)
    vowel = _spell("short vowel", "a|e|i", rng, style)

    def between(match: re.Match) -> str:
        at = match.start()
        return "" if latin[at - 1 : at + 1] in _DIGRAPHS or rng.random() < 0.3 else vowel

    return prefix + _ARABIC_CLUSTER.sub(between, latin)


def _devanagari(word: str, rng: Random, style: dict[str, str]) -> str:
    """Consonant by consonant; the inherent a is dropped where Hindi drops it (word end, and between V C _ C V)."""
    units: list[list] = []  # [consonant or "", vowel, is the vowel inherent]
    tail: dict[int, str] = {}  # marks after unit i
    word = word.replace(_NUKTA + _VIRAMA, _VIRAMA)
    i = 0
    while i < len(word):
        letter = word[i]
        if word[i + 1 : i + 2] == _NUKTA:
            letter += _NUKTA
        i += len(letter)
        base = letter if letter in _HINDI_CONSONANTS else letter.removesuffix(_NUKTA)
        if base in _HINDI_CONSONANTS:
            units.append([_spell(base, _HINDI_CONSONANTS[base], rng, style), "a", True])
        elif letter in _HINDI_VOWELS:
            units.append(["", _spell(letter, _HINDI_VOWELS[letter], rng, style), False])
        elif letter == _VIRAMA and units:
            units[-1][1:] = ["", False]
        elif letter in _HINDI_SIGNS and units:
            units[-1][1:] = [_spell(letter, _HINDI_SIGNS[letter], rng, style), False]
        elif letter in _HINDI_MARKS:
            mark = _spell(letter, _HINDI_MARKS[letter], rng, style)
            if not units:
                units.append(["", "", False])
            tail[len(units) - 1] = tail.get(len(units) - 1, "") + mark
    last = len(units) - 1
    if last > 0 and units[last][2] and last not in tail:
        units[last][1] = ""
    for k in range(last - 1, 0, -1):
        if units[k][2] and k not in tail and units[k - 1][1] and units[k + 1][1] and units[k + 1][0]:
            units[k][1] = ""
    return "".join(consonant + vowel + tail.get(k, "") for k, (consonant, vowel, _) in enumerate(units))
