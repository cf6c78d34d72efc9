"""What somebody typed for a query or a language: the one it names, or which was likely meant."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from models.errors import QueryError
from models.language import identify

__all__ = ["no_query", "post_language"]

# Beside models.language.LANGUAGES: what its models find too, where the post's own tag says the same.
TAGGED = frozenset(
    "als an ast av ba bar bcl bh bo bpy br bxr cbk ce co cv diq dsb dty eml frr fy gd gn gom gv hif hsb ia ie ilo io "
    "jbo krc kv kw la lb lez li lmo lrc mai mhr min mrj mwl myv mzn nah nap nds new oc os pam pfl pms qu rm rue sa sah "
    "sc scn sco tyv vec vep vls vo wa war xal xmf".split()
)
# What people type instead of a code: names, whose first three letters are mostly the longer codes, and countries.
NAMES = dict(
    pair.split(":")
    for pair in "arabic:ar bengali:bn burmese:my myanmar:my chinese:zh mandarin:zh creole:ht haitian:ht hat:ht "
    "dutch:nl english:en farsi:fa persian:fa filipino:tl tagalog:tl french:fr français:fr german:de deutsch:de "
    "greek:el hausa:ha hebrew:he hindi:hi indonesian:id bahasa:id italian:it japanese:ja jpn:ja jp:ja korean:ko kr:ko "
    "kurdish:ku malagasy:mg mlg:mg nepali:ne pashto:ps polish:pl portuguese:pt romanian:ro russian:ru serbian:sr "
    "somali:so spanish:es español:es castellano:es sp:es swahili:sw tamil:ta thai:th turkish:tr ukrainian:uk ua:uk "
    "urdu:ur vietnamese:vi vn:vi cn:zh gr:el zho:zh mya:my".split()
)


def no_query(query_id: str, known: Collection[str]) -> str:
    """The sentence that says that no query has this id."""
    meant = difflib.get_close_matches(query_id, sorted(known), 1)
    told = f" (did you mean {meant[0]}?)" if meant else ""
    return f"no query {query_id!r}{told}; `crisis query list` shows the {len(known)} active ones"


def post_language(code: str) -> str:
    """The code as posts carry it, whatever its case. Raises QueryError for one that no post can carry."""
    low = code.strip().lower()
    found = identify("", low)  # of a text that says nothing the tag alone decides, and no model is read
    if low in TAGGED or low == found.lower():
        return low if low in TAGGED else found
    meant = found if found != "und" else _named(low)
    told = f" (did you mean {meant}?)" if meant else ""
    raise QueryError(f"no post has the language {code!r}{told}: write codes of ISO 639 such as en, es, ht or pt-BR")


def _named(low: str) -> str:
    """The code of a language that is called so, or nearly; empty if none is."""
    begun = next((name for name in NAMES if len(low) > 2 and name.startswith(low)), low)
    near = difflib.get_close_matches(begun, NAMES, 1, 0.8)
    return NAMES[near[0]] if near else ""
