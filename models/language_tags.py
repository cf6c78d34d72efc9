"""Codes of languages: those that posts carry here, what platforms and people write for them, and what was meant.

What a code of three letters or an old one stands for, and in which script a language is written, `langcodes` knows (of
the registries of BCP 47 and CLDR); it is imported with the first tag.
"""

from __future__ import annotations

import difflib
from functools import cache

from models.errors import QueryError

__all__ = [
    "LANGUAGES",
    "RENAMED",
    "UNKNOWN",
    "carried",
    "in_other_script",
    "language_problem",
    "normalise_tag",
    "post_language",
]

UNKNOWN = "und"
LANGUAGES = frozenset(
    "af am ar arq ary as az be bg bn bs ca ceb ckb cs cy da de dv el en eo es et eu fa fi fr ga gl gu ha he hi hr ht "
    "hu hy id ig is it ja jv ka kk km kn ko ku ky lo lt lv mg mi mk ml mn mr ms mt my nb ne nl nn ny om or pa pl ps pt "
    "ro ru rw sd si sk sl sn so sq sr st su sv sw ta te tg th ti tk tl tr ts tt ug uk ur uz vi wo xh yi yo zh "
    "zu".split()
)
# Beside them: what the models find too (models/language.py), where the post's own tag says the same.
TAGGED = frozenset(
    "an ast av ba bar bcl bh bo bpy br bxr cbk ce co cv diq dsb dty eml frr fy gd gn gom gsw gv hif hsb ia ie ilo io "
    "jbo krc kv kw la lb lez li lmo lrc mai mhr min mrj mwl myv mzn nah nap nds new oc os pam pfl pms qu rm rue sa sah "
    "sc scn sco tyv vec vep vls vo wa war xal xmf".split()
)
# What models and standards call what we call something else. Sorani's label in py3langid is that of its southern
# neighbour, Alemannic's in fastText that of Albanian's southern half; Bosnian is not told from Croatian by words, only
# by the post's tag.
RENAMED = {
    "no": "nb", "bs": "hr", "sh": "hr", "fil": "tl", "sdh": "ckb", "azb": "az", "pnb": "ur", "wuu": "zh", "yue": "zh",
    "arz": "ar", "uzs": "uz", "als": "gsw",
}  # fmt: skip
_VARIANTS = {"zh-hant": "zh-Hant", "zh-tw": "zh-Hant", "zh-hk": "zh-Hant", "zh-mo": "zh-Hant", "pt-br": "pt-BR"}
# What people type instead of a code: names, and countries.
NAMES = dict(
    pair.split(":")
    for pair in "arabic:ar bengali:bn burmese:my myanmar:my chinese:zh mandarin:zh creole:ht haitian:ht "
    "dutch:nl english:en farsi:fa persian:fa filipino:tl tagalog:tl french:fr français:fr german:de deutsch:de "
    "greek:el hausa:ha hebrew:he hindi:hi indonesian:id bahasa:id italian:it japanese:ja jp:ja korean:ko kr:ko "
    "kurdish:ku malagasy:mg nepali:ne pashto:ps polish:pl portuguese:pt romanian:ro russian:ru serbian:sr "
    "somali:so spanish:es español:es castellano:es sp:es swahili:sw tamil:ta thai:th turkish:tr ukrainian:uk ua:uk "
    "urdu:ur vietnamese:vi vn:vi cn:zh gr:el".split()
)


def normalise_tag(tag: str | None) -> str:
    """A BCP 47 tag as this project writes it: `en-US`, `eng` → `en`, `pt_br` → `pt-BR`, `zh-TW` → `zh-Hant`; else
    `und`.
    """
    if not tag or not isinstance(tag, str):
        return UNKNOWN
    low = tag.strip().lower().replace("_", "-")
    if low in _VARIANTS:
        return _VARIANTS[low]
    base, *rest = low.split("-")
    if not 2 <= len(base) <= 3 or not base.isascii() or not base.isalpha() or base in ("zxx", "mul", "qme", "qam"):
        return UNKNOWN
    base = _ours(base)
    if base == "zh" and "hant" in rest:
        return "zh-Hant"
    return f"{base}-Latn" if "latn" in rest and in_other_script(base) else base


@cache  # two or three letters: there are no more than 18,000
def _ours(base: str) -> str:
    """`spa` → `es`, `iw` → `he`, `tgl` → `tl`."""
    from langcodes import standardize_tag

    if base not in RENAMED and base not in TAGGED:
        base = standardize_tag(base, macro=True).partition("-")[0]
    return base if base in LANGUAGES else RENAMED.get(base, base)


@cache
def in_other_script(base: str) -> bool:
    """Is this one of our languages, and mostly written in other letters than Latin ones?"""
    if base not in LANGUAGES:
        return False
    from langcodes import Language

    return Language.get(base).maximize().script != "Latn"


def carried(code: str) -> str:
    """The code that posts carry for this one, whatever its case: `fil` → `tl`; empty if no post can carry it."""
    low = code.strip().lower()
    found = low if low in TAGGED else normalise_tag(low)
    return found if low == UNKNOWN or found in TAGGED or found.partition("-")[0] in LANGUAGES else ""


def language_problem(code: str) -> str:
    """What to write instead of a code that no post carries so, but for its case; empty if posts do."""
    low, found = code.strip().lower(), carried(code)
    if found and low == found.lower():
        return ""
    meant = found or _named(low)
    told = f" (did you mean {meant}?)" if meant else ""
    return f"no post has the language {code!r}{told}: write codes of ISO 639 such as en, es, ht or pt-BR"


def post_language(code: str) -> str:
    """The code as posts carry it, whatever its case. Raises QueryError for one that no post can carry."""
    if wrong := language_problem(code):
        raise QueryError(wrong)
    return carried(code)


def _named(low: str) -> str:
    """The code of a language that is called so, or nearly; empty if none is."""
    begun = next((name for name in NAMES if len(low) > 2 and name.startswith(low)), low)
    near = difflib.get_close_matches(begun, NAMES, 1, 0.8)
    return NAMES[near[0]] if near else ""
