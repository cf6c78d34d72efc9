"""What is written in capitals, in small letters: for encoders that tell the two apart.

Some people type capitals where it is urgent, some phones and gateways send nothing else, and a model that learnt from
ordinary text reads them as something else: of written needs and offers in cased scripts, put in capitals, the right
query alerted for .32 instead of .74, with twice the false alarms (training/results/shouted.json).
"""

from __future__ import annotations

import re

__all__ = ["quieter"]

FEWEST = 3  # words in capitals, one after another, that are no abbreviations any more
TITLED, SHARE = 5, 0.85  # of so many words at the least, so many that begin with a capital make a text a title
_SPACE = re.compile(r"(\s+)")


def quieter(text: str) -> str:
    """The text with words in capitals, three or more together, in small letters; all of it where nearly every word
    begins with a capital. Signs and digits between them do not part them.
    """
    if sum(map(str.isupper, text)) < min(TITLED, 2 * FEWEST):  # as nearly all posts: a fifth of the time
        return text
    pieces = _SPACE.split(text)
    words = [piece for piece in pieces if len(piece) > 1 and piece[0].isalpha() and piece.upper() != piece.lower()]
    if len(words) >= TITLED and sum(w[0].isupper() and not w.isupper() for w in words) >= SHARE * len(words):
        return text.lower()
    shouted: list[int] = []
    for at, piece in enumerate([*pieces, "."]):
        if piece.isupper():
            shouted.append(at)
        elif at == len(pieces) or piece.upper() != piece.lower():
            if sum(len(pieces[i]) > 1 for i in shouted) >= FEWEST:
                for i in shouted:
                    pieces[i] = pieces[i].lower()
            shouted = []
    return "".join(pieces)
