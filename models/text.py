"""Text, twice: `repair` and `mask` for people, `clean` for encoders. Serving and training call the same `clean`.

`clean` does what the CrisisTransformers papers do (Lamsal, Read, Karunasekera 2023, section 3.1.1, and 2024, section
3.2): URLs → HTTPURL, mentions → a token (`@USER` in 2023, `@MENTION` in 2024), HTML entities decoded, white space → one
space, encoding repaired (ftfy), emoji → their names. The papers do not say how names are delimited; we write plain
words ("folded hands"), which every tokenizer knows.

ftfy costs 25 to 95 µs a post and emoji 50, so each runs only where a cheap look says that it could change something.
All three functions are idempotent on any Unicode: they repeat until nothing changes.

Strangers write the input, so the cost of all three grows with its length and no faster (`python -m tests.hostile` lists
the costliest there are).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

import emoji
import ftfy
from ftfy import chardata
from ftfy.badness import is_bad
from ftfy.fixes import fix_character_width, fix_latin_ligatures, uncurl_quotes, unescape_html
from msgspec import Struct

from models.privacy import mask
from models.zawgyi import repair_burmese

__all__ = ["READ_CHARS", "Cleaning", "clean", "mask", "repair", "replace_links", "replace_mentions"]


class Cleaning(Struct, frozen=True):
    """How one encoder wants its text: part of the encoder's bundle, since it decides what the vectors mean."""

    url_token: str = "HTTPURL"
    mention_token: str = "@USER"
    emoji_names: bool = True


DEFAULT_CLEANING = Cleaning()

# A URL ends at white space, quotes or a letter of a script written without spaces (Thai, Lao, Burmese, Khmer, Chinese,
# Japanese); closing punctuation stays with the sentence. Without a scheme only well-known endings with a path count.
_NOT_URL = r"\s<>\"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\uffef"
_URL_BODY = rf"[^{_NOT_URL}]*[^{_NOT_URL}.,!?;:)'\]…]"
_ENDINGS = "com|org|net|info|io|gov|edu|int|co|ly|me|be|tv|gl|social"
_URL = re.compile(
    rf"(?:https?://|\bwww\.){_URL_BODY}|(?<![\w@.-])(?:[a-z0-9-]{{1,63}}\.){{1,4}}(?:{_ENDINGS})/{_URL_BODY}",
    re.IGNORECASE,
)
# @name, @name@server (Mastodon), @name.domain (Bluesky); a chain of servers is one mention, or it would go one a round.
# Names of other scripts end at white space or punctuation.
_MENTION = re.compile(
    r"(?<![A-Za-z0-9_.+-])@(?:"
    r"[A-Za-z0-9_][A-Za-z0-9_-]*(?:\.[a-z0-9-]+)*(?:@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)*"
    r"|[^\W\d_a-zA-Z][^\s@#:,.!?;()\[\]\"'：，。！？、]{0,29})"
)

# Where the emoji library may find something: its own table for the Basic Multilingual Plane, whole blocks beyond
# (single characters there make `re` slow); ASCII digits, # and * only before a keycap.
_EMOJI_BMP = {c for e in emoji.EMOJI_DATA for c in e if "\x7f" < c < "\uffff"} | {"\u200d", "\ufe0e", "\ufe0f"}
_EMOJI_CHARS = re.escape("".join(sorted(_EMOJI_BMP))) + "\U0001f000-\U0001faff\U000e0020-\U000e007f"
_EMOJI_CHAR = re.compile(f"[{_EMOJI_CHARS}]")
_EMOJI = re.compile(f"(?:[0-9#*]\ufe0f?\u20e3|[{_EMOJI_CHARS}])+")


# Mojibake is UTF-8 read as a single-byte encoding: a character that a first byte turned into, then one that a second
# byte did (or the space, ?, or U+FFFD that it was damaged to). Text without such a pair has none; ftfy's own look
# (`is_bad`, 20 µs) is asked only about text that has one.
def _upper_half(first: int, last: int) -> str:
    found = {c for e in chardata.CHARMAP_ENCODINGS for c in bytes(range(first, last + 1)).decode(e, "ignore")}
    return re.escape("".join(sorted(found)))


_MAY_BE_MOJIBAKE = re.compile(f"[{_upper_half(0xC2, 0xF4)}][{_upper_half(0x80, 0xBF)} ?\x1a\ufffd]")
_CONTROL_CHARS = "\r\x85\u2028\u2029\ufeff\ufff9-\ufffc\u206a-\u206f\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff"
_LOOK_CHARS = "".join(map(chr, (*chardata.LIGATURES, *chardata.WIDTH_MAP))) + "\u02bc\u2018-\u201f"
_LOOKS_OR_EMOJI = re.compile(f"[{_LOOK_CHARS}{_EMOJI_CHARS}]")
_LOOKS = re.compile(f"[{_LOOK_CHARS}]")
_CONTROLS = re.compile(f"[{_CONTROL_CHARS}]")
_ENCODER_FIXES = ftfy.TextFixerConfig(explain=False, unescape_html=False, fix_encoding=False)  # that is `_decoded`
# People keep the quotes, full-width forms and ligatures they wrote.
_PEOPLE_FIXES = _ENCODER_FIXES._replace(uncurl_quotes=False, fix_character_width=False, fix_latin_ligatures=False)

_BIDI = "\u202a-\u202e\u2066-\u2069"  # embeddings, overrides, isolates: they can make a text read as another
_INVISIBLE = "\u00ad\u180e\u200b\u2060-\u2064\u3164\uffa0\ufeff"
_TAGS = "\U000e0000-\U000e007f"  # unseen letters; honest only after the black flag (🏴󠁧󠁢󠁷󠁬󠁳󠁿)
_JUNK = re.compile(f"[{_BIDI}{_INVISIBLE}\x00-\x08\x0b-\x1f\x7f-\x9f]|(?<![\U0001f3f4{_TAGS}])[{_TAGS}]+")
_JOINERS = re.compile("(?<=[\u200c\u200d])[\u200c\u200d]+")
_MYANMAR = re.compile("[\u1000-\u109f]")
_SPACES = re.compile(r"[^\S\n]+")
_NEWLINES = re.compile(r" ?\n[ \n]*")

ROUNDS = 8  # honest text is settled in two; one that hides entities in entities any deeper loses its ampersands
_AMPERSANDS = {ord("&"): " ", 0xFF06: " "}
_PLAIN = re.compile(
    r"[^A-Za-z0-9 \n]+"
)  # what is left of a text that is not settled after twice as many: nothing honest

# An encoder reads 256 to 512 pieces, which ordinary text has in 2,300 characters. Unicode's longest expansions (one
# character of Arabic is a sentence of 18) count for more, so that they cost what they bring.
READ_CHARS = 2_400
_SPRAWLING = re.compile(
    "[" + "".join(c for c in map(chr, range(0x3300, 0xFE00)) if len(unicodedata.normalize("NFKC", c)) > 4) + "]"
)
_SPRAWLING_READ = 64

# Putting a run of marks in order costs the square of its length. Unicode's own bound on one is 30 (UAX #15, Stream-Safe
# Text Format); no script needs half of that.
MOST_MARKS = 30
_BMP_MARKS = "".join(re.escape(chr(c)) for c in range(0x300, 0x10000) if unicodedata.combining(chr(c)))
_FAR_MARKS = "".join(chr(c) for c in range(0x10000, 0x1F000) if unicodedata.combining(chr(c)))
# Beyond the first plane a search for single characters is slow: first any of it, then, if there are so many, which.
_MAYBE_TOO_MANY = re.compile(f"[{_BMP_MARKS}\U00010000-\U0001efff]{{{MOST_MARKS + 1}}}")
_TOO_MANY_MARKS = re.compile(f"([{_BMP_MARKS}{_FAR_MARKS}]{{{MOST_MARKS}}})[{_BMP_MARKS}{_FAR_MARKS}]+")


def clean(text: str, cleaning: Cleaning = DEFAULT_CLEANING) -> str:
    """What an encoder reads. Never raises; `clean(clean(x)) == clean(x)`; one line, no leading or trailing space."""
    most = READ_CHARS
    # An emoji may be seven words: a short text of nothing else would cost six times its bytes.
    fits = READ_CHARS if text.isascii() else min(READ_CHARS, 2 * len(text.encode("utf-8", "replace")) + 48)
    while True:
        text = _until_settled(_head(text, most), lambda t: _clean_once(t, cleaning))
        if len(text) <= fits:
            return text
        # names of emoji and tokens can be longer than what they stand for
        most = fits if most > fits else most - max(8, most // 40)


def _head(text: str, most: int) -> str:
    """The first `most` characters, whole words if there are any."""
    if not text.isascii():
        for number, match in enumerate(_SPRAWLING.finditer(text)):
            # a blessing now and then is read, a text of nothing else is not: by what stands before, so that a text that
            # was cut is not cut again
            if number >= min(_SPRAWLING_READ, 4 + (match.start() - number) // 8):
                text = text[: match.start()]
                break
    if len(text) <= most:
        return text
    whole = text[: most + 1].rfind(" ", most // 2)
    return text[:most] if whole < 0 else text[:whole]


def repair(text: str) -> str:
    """What people may see: the text as it was meant, without control, bidi-override and invisible characters.

    Encoding repaired, HTML entities decoded, Zawgyi → Unicode, NFC, lone surrogates → U+FFFD, white space → single
    spaces and single newlines. Emoji and URLs stay. Idempotent, never raises.
    """
    if text.isascii() and text.isprintable() and "&" not in text and "  " not in text:
        return text.strip(" ")
    return _until_settled(text, _repair_once)


# A link or a mention holds no blank, and what stands before it matters up to a blank: so only words with a sign of one
# are searched, a third of the time of searching texts.
def replace_links(text: str, by: Callable[[re.Match[str]], str]) -> str:
    """The text with what `by` makes of each link."""
    return " ".join([_URL.sub(by, word) if "/" in word or "." in word else word for word in text.split(" ")])


def replace_mentions(text: str, by: Callable[[re.Match[str]], str]) -> str:
    """The text with what `by` makes of each mention."""
    return " ".join([_MENTION.sub(by, word) if "@" in word else word for word in text.split(" ")])


def _until_settled(text: str, step: Callable[[str], str]) -> str:
    if not text.isascii() and _MAYBE_TOO_MANY.search(text):
        text = _TOO_MANY_MARKS.sub(r"\1", text)
    rounds = 0
    while (changed := step(text)) != text:
        rounds += 1
        text = changed.translate(_AMPERSANDS) if rounds % ROUNDS == 0 else changed
        if rounds > 2 * ROUNDS:
            text = _PLAIN.sub(" ", text)
    return text


def _clean_once(text: str, cleaning: Cleaning) -> str:
    if "/" in text or "www." in text or "WWW." in text:
        text = replace_links(text, lambda _: cleaning.url_token)
    if "@" in text:
        text = replace_mentions(text, lambda _: cleaning.mention_token)
    if "&" in text:
        text = unescape_html(text)
    text = " ".join(text.split())
    if text.isascii() and text.isprintable():
        return text
    if _is_damaged(text):
        text = _undamaged(text, _ENCODER_FIXES)
    elif not _LOOKS_OR_EMOJI.search(text):  # one look for both, since most text has neither
        return text
    elif _LOOKS.search(text):  # the rest of what ftfy does, without its search for damage
        text = unicodedata.normalize("NFC", uncurl_quotes(fix_character_width(fix_latin_ligatures(text))))
    if cleaning.emoji_names and _EMOJI_CHAR.search(text):
        text = " ".join(_EMOJI.sub(lambda run: _emoji_names(run.group()), text).split())
    return text


def _repair_once(text: str) -> str:
    if "&" in text:
        text = unescape_html(text)
    if _is_damaged(text):
        text = _undamaged(text, _PEOPLE_FIXES)
    if not text.isprintable():
        text = _JUNK.sub("", text)
        text = _JOINERS.sub("", text)
    if not text.isascii() and _MYANMAR.search(text):
        text = repair_burmese(text)
    if "  " not in text and text.isprintable():  # so there is no other white space than a blank
        return text.strip(" ")
    return _NEWLINES.sub("\n", _SPACES.sub(" ", text)).strip()


def _undamaged(text: str, fixes: ftfy.TextFixerConfig) -> str:
    """What `ftfy.fix_text` makes of it.

    ftfy takes 100 µs for a line however short: of very many only the first are decoded.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    most = 8 + len(text) // 60
    decoded = "\n".join([*map(_decoded, lines[:most]), *lines[most:]])
    return ftfy.fix_and_explain(decoded, fixes).text


# A repaired line comes again: to see that it is settled, and before the encoder.
@lru_cache(maxsize=512)
def _decoded(line: str) -> str:
    return ftfy.fix_encoding(line) if _is_bad(line) else line


@lru_cache(maxsize=512)
def _is_bad(text: str) -> bool:
    return is_bad(text)


def _is_damaged(text: str) -> bool:
    # Every control but U+FFFC is unprintable, and asking that is cheap.
    if not (text.isprintable() and "\ufffc" not in text) and _CONTROLS.search(text):
        return True
    if text.isascii():
        return False
    return not unicodedata.is_normalized("NFC", text) or bool(_MAY_BE_MOJIBAKE.search(text) and _is_bad(text))


@lru_cache(maxsize=4096)
def _emoji_names(run: str) -> str:
    return emoji.replace_emoji(run, lambda _, data: f" {data['en'].strip(':').replace('_', ' ')} ")
