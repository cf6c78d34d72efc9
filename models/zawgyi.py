"""Burmese in the Zawgyi font encoding → Unicode. Half of Burmese social media was written in it for a decade.

Zawgyi reuses the Myanmar block for glyphs in *visual* order: the vowel sign ေ and the medial ြ stand before their
consonant, stacked consonants are single code points, and 1039 to 103D mean other marks than in Unicode. Detection
is Google's Markov model (`myanmartools`); no maintained wheel carries ICU's converter, so the conversion is ours,
written from the two encodings' descriptions (Unicode Technical Note 11 for the order of marks).
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from functools import cache
from typing import Any

__all__ = ["repair_burmese"]

# Zawgyi glyph → what it draws, in Unicode. _KINZI stands for င်္ until it is moved before its consonant.
_KINZI = "\ue000"
_STACKED = {
    0x1060: 0x1000, 0x1061: 0x1001, 0x1062: 0x1002, 0x1063: 0x1003, 0x1065: 0x1005, 0x1066: 0x1006, 0x1067: 0x1006,
    0x1068: 0x1007, 0x1069: 0x1008, 0x106C: 0x100B, 0x106D: 0x100C, 0x1070: 0x100F, 0x1071: 0x1010, 0x1072: 0x1010,
    0x1073: 0x1011, 0x1074: 0x1011, 0x1075: 0x1012, 0x1076: 0x1013, 0x1077: 0x1014, 0x1078: 0x1015, 0x1079: 0x1016,
    0x107A: 0x1017, 0x107B: 0x1018, 0x107C: 0x1019, 0x1085: 0x101C, 0x1093: 0x1018,
}  # fmt: skip
_GLYPHS = {
    **{zawgyi: "\u1039" + chr(consonant) for zawgyi, consonant in _STACKED.items()},
    **dict.fromkeys((0x103B, *range(0x107E, 0x1085)), "\u103c"),  # medial ra, in the widths its consonant needs
    0x1033: "\u102f", 0x1034: "\u1030", 0x1039: "\u103a", 0x103A: "\u103b", 0x107D: "\u103b", 0x103C: "\u103d",
    0x103D: "\u103e", 0x1087: "\u103e", 0x108A: "\u103d\u103e", 0x1088: "\u103e\u102f", 0x1089: "\u103e\u1030",
    0x105A: "\u102b\u103a", 0x108E: "\u102d\u1036", 0x1094: "\u1037", 0x1095: "\u1037",
    0x1064: _KINZI, 0x108B: _KINZI + "\u102d", 0x108C: _KINZI + "\u102e", 0x108D: _KINZI + "\u1036",
    0x106A: "\u1009", 0x106B: "\u100a", 0x108F: "\u1014", 0x1090: "\u101b", 0x1086: "\u103f",
    0x106E: "\u100d\u1039\u100d", 0x106F: "\u100d\u1039\u100e", 0x1091: "\u100f\u1039\u100d",
    0x1092: "\u100b\u1039\u100c", 0x1097: "\u100b\u1039\u100b", 0x1096: "\u1039\u1010\u103d",
}  # fmt: skip

_STACK = "\u1039[\u1000-\u1021]"
_MARKS = f"(?:{_STACK}|[\u102b-\u1030\u1032\u1036-\u1038\u103a\u103b\u103d\u103e{_KINZI}])*"
_SYLLABLE = re.compile(f"(?<![\u1031\u103c])([\u1031\u103c]*)([\u1000-\u102a\u103f\u104e\u1040\u1044])({_MARKS})")
_MISPLACED_E = re.compile("\u1031([\u103b-\u103e]+)")  # typed after its consonant, before the medials
_MARK = re.compile(f"{_STACK}|.")
_ORDER = {  # of the marks after a consonant and its stack
    mark: place
    for place, mark in enumerate(
        "\u103b\u103c\u103d\u103e\u1031\u102d\u102e\u1032\u102f\u1030\u102b\u102c\u103a\u1036\u1037\u1038"
    )
}
_DIGITS = "\u1040-\u1049"
_ZERO_FOR_WA = re.compile(f"(?<![{_DIGITS}.,])\u1040(?![{_DIGITS}.,])")
_MYANMAR = re.compile("[\u1000-\u109f]")
PROBABLY = 0.9  # of being Zawgyi; measured on 1,997 sentences in both encodings, see tests/models/test_text_zawgyi.py
JUDGED = 300  # characters from the first Burmese one: two sentences settle it, and the model costs 0.3 µs for each


@cache
def _detector() -> Any:
    with warnings.catch_warnings():  # it opens its resource the way Python 3.11 deprecated
        warnings.simplefilter("ignore", DeprecationWarning)
        from myanmartools import ZawgyiDetector

        return ZawgyiDetector()


def zawgyi_probability(text: str) -> float:
    """How surely the Burmese in `text` is Zawgyi, 0 to 1; 0 where there is none or nothing tells the two apart."""
    if not (begins := _MYANMAR.search(text)):
        return 0.0
    score: float = _detector().get_zawgyi_probability(text[begins.start() : begins.start() + JUDGED])
    return 0.0 if score == float("-inf") else score


def zawgyi_to_unicode(text: str) -> str:
    """Convert text known to be Zawgyi. Other scripts pass through; the result is NFC."""
    if "\u104e\u1004" not in text:
        text = text.replace("\u104e", "\u104e\u1004\u1039\u1038")
    text = text.translate(_GLYPHS)
    text = _ZERO_FOR_WA.sub(_zero_or_wa, text)
    text = text.replace("\u1025\u103a", "\u1009\u103a").replace("\u1025\u102e", "\u1026")
    text = _MISPLACED_E.sub("\\1\u1031", _SYLLABLE.sub(_reorder, text)).replace("\u1005\u103b", "\u1008")
    return unicodedata.normalize("NFC", text)


def repair_burmese(text: str) -> str:
    """Convert if the text is probably Zawgyi and reads as Unicode afterwards; else return it unchanged.

    The second condition makes it idempotent, and leaves text alone that is neither.
    """
    if zawgyi_probability(text) < PROBABLY:
        return text
    converted = zawgyi_to_unicode(text)
    return converted if zawgyi_probability(converted) < PROBABLY else text


def _reorder(syllable: re.Match[str]) -> str:
    before, base, after = syllable.groups()
    marks = _MARK.findall(after)
    stacks = [m for m in marks if len(m) == 2]
    kinzi = "\u1004\u103a\u1039" if _KINZI in marks else ""
    asat_first = "\u103a\u103b" in after  # ယောက်ျား: the killed consonant carries the medial
    loose = {*before, *marks} - {_KINZI, *stacks}
    signs = sorted(loose, key=lambda mark: -1 if asat_first and mark == "\u103a" else _ORDER[mark])
    return kinzi + base + "".join(stacks) + "".join(signs)


def _zero_or_wa(zero: re.Match[str]) -> str:
    """A lone digit zero that carries or follows a Burmese sign is the letter wa: they look the same."""
    text, at = zero.string, zero.start()
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    is_letter = before in ("\u1031", "\u103c") or ("\u102b" <= after <= "\u103e")
    return "\u101d" if is_letter and (before or after) else zero.group()
