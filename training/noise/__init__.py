"""Artificial user-generated text: how people really write, from how they should.

    from random import Random
    noise("We need water for the people here.", Random(1))               # mix_all, the paper's sampling
    transform("leet", "We need water for the people here.", Random(1))   # one transformation
    noise("Нам нужна вода, помогите!", Random(1), rate=0.3, lang="ru")   # slips, leet, romanisation …

Twelve transformations for English (Nishimwe, Sagot, Bawden 2024, appendix A): abr1 chat acronyms, abr2 short forms,
abr3 office acronyms, cont contractions, dysl exchanged words, fing slips of the finger, homo homophones, leet, slng
slang, spac white space, spel misspellings, week days and months. For other languages: fing on their keyboard, leet,
spac, accs (accents dropped), lost (letters with accents dropped), roma (typed in Latin letters), abrv (their short
forms), elon
(letters held down), vowl (vowels left out).
"""

from training.noise.mix import KINDS, MIX_RATE, NEUTRAL, PAPER, draw_mix, kinds_of, noise, own_lists, transform
from training.noise.words import WordList, read_lang_lists, read_ugc_wordlists, read_word_list

__all__ = [
    "KINDS",
    "MIX_RATE",
    "NEUTRAL",
    "PAPER",
    "WordList",
    "draw_mix",
    "kinds_of",
    "noise",
    "own_lists",
    "read_lang_lists",
    "read_ugc_wordlists",
    "read_word_list",
    "transform",
]
