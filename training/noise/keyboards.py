"""Keyboard layouts: which letters lie beside a letter, for slips of the finger in the script a person types in."""

from __future__ import annotations

from functools import cache

__all__ = ["neighbours_of"]

# Three rows of letter keys; a space is a key that holds no letter. Written down from the layouts as sold.
LAYOUTS: dict[str, tuple[str, str, str]] = {
    "qwerty": ("qwertyuiop", "asdfghjkl", "zxcvbnm"),
    "azerty": ("azertyuiop", "qsdfghjklm", "wxcvbn"),
    "qwertz": ("qwertzuiopü", "asdfghjklöä", "yxcvbnm"),
    "croatian": ("qwertzuiopšđ", "asdfghjklčćž", "yxcvbnm"),
    "hungarian": ("qwertzuiopőú", "asdfghjkléáű", "íyxcvbnm"),
    "turkish": ("qwertyuıopğü", "asdfghjklşi", "zxcvbnmöç"),
    "spanish": ("qwertyuiop", "asdfghjklñ", "zxcvbnm"),
    "portuguese": ("qwertyuiop", "asdfghjklç", "zxcvbnm"),
    "swedish": ("qwertyuiopå", "asdfghjklöä", "zxcvbnm"),
    "danish": ("qwertyuiopå", "asdfghjklæø", "zxcvbnm"),
    "norwegian": ("qwertyuiopå", "asdfghjkløæ", "zxcvbnm"),
    "russian": ("йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю"),
    "ukrainian": ("йцукенгшщзхї", "фівапролджє", "ячсмитьбю"),
    "bulgarian": (" уеишщксдзц", "ьяаожгтнвмч", "юйъэфхпрлб"),
    "serbian": ("љњертзуиопшђ", "асдфгхјклчћж", "ѕџцвбнм"),
    "macedonian": ("љњертѕуиопшѓ", "асдфгхјклчќж", "зџцвбнм"),
    "greek": (" ςερτυθιοπ", "ασδφγηξκλ", "ζχψωβνμ"),
    "arabic": ("ضصثقفغعهخحجد", "شسيبلاتنمكط", "ئءؤر ىةوزظ"),
    "persian": ("ضصثقفغعهخحجچ", "شسیبلاتنمکگ", "ظطزرذدپو"),
    "hebrew": ("  קראטוןםפ", "שדגכעיחלךף", "זסבהנמצתץ"),
    "hindi": ("ौैाीूबहगदजड", "ोे्िुपरकतचट", " ंमनवलसय"),
    "thai": ("ๆไำพะัีรนยบล", "ฟหกดเ้่าสวง", "ผปแอิืทมใฝ"),
    "georgian": ("ქწერტყუიოპ", "ასდფგჰჯკლ", "ზხცვბნმ"),
    "korean": ("ㅂㅈㄷㄱㅅㅛㅕㅑㅐㅔ", "ㅁㄴㅇㄹㅎㅗㅓㅏㅣ", "ㅋㅌㅊㅍㅠㅜㅡ"),
}
LAYOUT_OF = {
    "fr": "azerty", "de": "qwertz", "cs": "qwertz", "sk": "qwertz", "hr": "croatian", "sl": "croatian", "bs": "croatian",
    "sr-Latn": "croatian", "hu": "hungarian", "tr": "turkish", "tr-de": "turkish", "es": "spanish", "pt": "portuguese",
    "pt-BR": "portuguese", "sv": "swedish", "fi": "swedish", "da": "danish", "nb": "norwegian", "no": "norwegian",
    "ru": "russian", "uk": "ukrainian", "bg": "bulgarian", "sr": "serbian", "mk": "macedonian", "el": "greek",
    "ar": "arabic", "arq": "arabic", "ary": "arabic", "fa": "persian", "ur": "persian", "he": "hebrew", "hi": "hindi",
    "mr": "hindi", "ne": "hindi", "th": "thai", "ka": "georgian", "ko": "korean",
}  # fmt: skip

# The keys' rows are set off by a quarter and a half; 1.3 key widths is touching: s lies beside a d w e z x, not q.
_STAGGER = (0.0, 0.25, 0.75)
_REACH = 1.3

# Hangul is typed by letter but stored by syllable: slips happen between decomposed leads, and between vowels.
_LEADS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"


@cache
def neighbours(layout: str) -> dict[str, str]:
    """For each letter of the layout, the letters of the keys that touch its key."""
    rows = LAYOUTS[layout]
    place = {
        letter: (column + _STAGGER[row], row)
        for row, keys in enumerate(rows)
        for column, letter in enumerate(keys)
        if letter != " "
    }
    beside = {
        a: "".join(b for b, (x, y) in place.items() if b != a and (x - ax) ** 2 + (y - ay) ** 2 <= _REACH**2)
        for a, (ax, ay) in place.items()
    }
    return _decomposed(beside) if layout == "korean" else beside


@cache
def neighbours_of(lang: str) -> dict[str, str]:
    """Neighbours on the keyboard of a language; Latin letters fall back to QWERTY."""
    own = neighbours(LAYOUT_OF.get(lang, "qwerty"))
    return own if "s" in own else neighbours("qwerty") | own


def _decomposed(beside: dict[str, str]) -> dict[str, str]:
    stored = {c: chr(0x1100 + i) for i, c in enumerate(_LEADS)} | {c: chr(0x1161 + i) for i, c in enumerate(_VOWELS)}
    kind = {c: c in _VOWELS for c in stored}
    return {stored[a]: "".join(stored[b] for b in near if kind[b] == kind[a]) for a, near in beside.items()}
