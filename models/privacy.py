"""Phone numbers and e-mail addresses → `[phone]` and `[email]`, before anything else sees a post.

People in trouble post their numbers. The alert still says that there is one; who is allowed to call opens the post at
its source. Phone numbers are judged by `phonenumbers` (Google's metadata), asked only where enough digits stand
together; dates, magnitudes, coordinates, prices and numbers inside URLs stay.
"""

from __future__ import annotations

import re
from functools import lru_cache

import phonenumbers

__all__ = ["mask"]

EMAIL, PHONE = "[email]", "[phone]"

# A number without a country code is tried in these, disaster-prone or populous, regions.
REGIONS = (
    "US", "IN", "TR", "ID", "PH", "PK", "BD", "NP", "HT", "MX", "BR", "CL", "ES", "FR", "IT", "DE", "GB", "GR", "UA",
    "JP", "SA", "EG", "SY", "MA", "NG", "KE", "AU", "NZ", "LK", "MM", "VN", "TH", "CN", "IR", "AF",
)  # fmt: skip
MOST_DIGITS = 15  # of a number (ITU-T E.164)
ASKED = 20  # candidates per post that are judged; a post that holds more is a list of numbers or an attack

# One run of local part per start, so a long run without @ costs one scan.
# A chain of addresses goes at once: one a round would cost the square of its length.
_EMAIL = re.compile(r"(?<![\w.%+@＠﹫-])(?:[\w.%+-]++[@＠﹫](?:[\w-]+[.．])+[^\W\d_]{2,})+")
_AT_SIGNS = "@＠﹫"  # as it is typed beside Chinese and Japanese
_HAS_AT = re.compile(f"[{_AT_SIGNS}]")
_BEHIND_A_NAME = re.compile(rf"[{_AT_SIGNS}](?<=[\w.%+-].)")  # a mention's is not
_AT = r"\s?[\[({]\s?(?:at|@|arroba|ät|et)\s?[\])}]\s?"
_DOT = r"(?:\.|\s?[\[({]\s?(?:dot|\.|punto|punkt|nokta|point)\s?[\])}]\s?)"
_SPELT_AT = re.compile(_AT, re.IGNORECASE)
_PROVIDERS = "(?:gmail|googlemail|yahoo|hotmail|outlook|icloud|proton(?:mail)?|yandex|gmx)"
_SPELT_EMAIL = re.compile(
    rf"(?<![\w.%+@-])[\w.%+-]{{1,64}}+{_AT}"
    rf"(?:[\w-]{{1,64}}+(?:{_DOT}[\w-]{{1,64}}+){{1,4}}|{_PROVIDERS}\b)",
    re.IGNORECASE,
)
# With a provider's name behind it more is an address: "a @ gmail", "a(a)gmail", "a @gmail.com", "a at gmail dot com".
# But "via @yahoo" is a mention, and "at yahoo.com" a place.
_OF_PROVIDERS = ("mail", "yahoo", "outlook", "icloud", "proton", "yandex", "gmx")  # looked for one by one: 1 µs, not 7
_ENDINGS = r"(?:(?:\s?\.|\s(?:dot|punto|ponto|punkt|nokta|point)\s)[^\W\d_]{2,}+)"
_PROVIDED_EMAIL = re.compile(
    rf"(?<![\w.%+@-])[\w.%+-]{{1,64}}+"
    rf"(?:(?:\s[{_AT_SIGNS}]\s|\s?\(a\)\s?){_PROVIDERS}\b{_ENDINGS}*+"
    rf"|\s?[{_AT_SIGNS}]\s?{_PROVIDERS}{_ENDINGS}++|\s(?:at|arroba)\s{_PROVIDERS}(?=\s){_ENDINGS}++)",
    re.IGNORECASE,
)
# Seven digits or more, with a few separators between them: one number or several. Possessive: no backtracking into half
# a number. What stands before it is judged afterwards.
_DASH = r"\-\u2010-\u2013\u2212\u30fc\uff0d"  # Japanese writes its long vowel for one
# A long dash parts sentences too ("713-555-0188—300 people"): it must stand twice, 138—1234—5678.
_LONG = "[\u2014\u2015]"
_LONG_DASH = rf"{_LONG}(?=\d{{3,4}}{_LONG}\d{{3}})|(?:(?<={_LONG}\d{{3}})|(?<={_LONG}\d{{4}})){_LONG}(?=\d{{3}})"
_RARE = r"*|~_·•ـ"  # between the digits of a number that begins as one, or is announced; of anything else elsewhere
# Marks of direction, joiners and the like, which phones put around the numbers of their address books, and the frames
# of keycaps (0️⃣): between digits they are nothing.
_UNSEEN = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe0e\ufe0f\u20e3\ufeff"
_ALL_UNSEEN = re.compile(f"[{_UNSEEN}]+")
_BETWEEN = (
    rf"(?: ?[{_DASH}] ?|[)）][{_DASH}][(（]|{_LONG_DASH}"
    rf"|[ \u00a0\u3000().{_DASH}/,;（）／，、；{_RARE}]{{0,2}})"
)


def _candidate(unseen: str, frame: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<!\d)(?<!\d[:.,])(?:[+＋]{unseen}|[(（][+＋]?)?\d(?:{unseen}{_BETWEEN}{unseen}\d){{6,}}+{frame}"
    )


_CANDIDATE, _CANDIDATE_WITH_UNSEEN = _candidate("", ""), _candidate(f"[{_UNSEEN}]*+", "(?:\ufe0f?\u20e3)?+")
_COUNT = re.compile(r"([+＋]?[(（]?\d[\d ]*)([^\d\s]*\s[^\d]*\d+)")  # a number, and behind a blank what is counted
# Asked apart: as a part of the pattern it would have it begin anew at each digit of a long run.
_GOES_ON = re.compile(r"\d|_++[^\W_]|[%°]|[.,:]\d")
_ENOUGH_DIGITS = re.compile(r"\d(?:[\W_ーـ]{0,3}\d){6}")  # cheap: nearly every post stops here
_GLUED = re.compile(r"[\w/=&^$€£₹¥₺.,-]$")  # what goes on in a number or name: an announcement alone makes it a phone's
# But a number that begins as one is no name's: Ayşe=05321234567, Rahul-09841234567. Codes are in capitals.
_IN_QUERY = re.compile(r"[?&][\w.-]{0,80}=$")
_AFTER_NAME = re.compile(r"(?:^|[\s(\[{\"'])(?![A-Z]{1,6}\W)[^\s\d_.,/=?&$€£₹¥₺-]{2,30}[,./-]$")
_OF_ANOTHER_KIND = re.compile(
    r"(?:date|time\w*|datum|fecha|tarih|saat|lat\w*|lon\w*|lng|coord\w*|easting|northing|amount|total|sum|price|"
    r"balance|hash|sha\d*|md5|ver\w*)=$",
    re.IGNORECASE,
)
_LEAST_ASSIGNED = 9  # digits: 06022023 is a day
_JOINED = re.compile(r"[\w$€£₹¥₺]")
_EDGES = re.compile(r"(?<![\w@#/])_+|_+(?=\W)"), re.compile(r"(?<=\W)_+|_+(?!\w)")  # emphasis, as in chats: _0532 …_
_UNSPACED_LETTER = re.compile(
    "[\u0e00-\u0e4f\u0e80-\u0ecf\u1000-\u103f\u1780-\u17d3\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
# What is written onto its end: a unit, an ending ("05321234567den"). A code goes on in digits: 0532123456ab12.
_ENDING = re.compile(r"[^\W\d_]{1,12}(?![\w-])|[$€£₹¥₺]")
_LISTED = re.compile(r"(?<=[,;/，、；／|])|(?<=\d)(?=[,;/，、；／|])")
_IN_URL = re.compile(r"(?:https?://|www\.)\S*$", re.IGNORECASE)
_CHAT_LINK = re.compile(
    r"((?:\b(?:wa|zalo)\.me/|\bsignal\.me/#p/|[?&](?:phone|number|tel|msisdn)=|\b(?:tel|sms|callto):)(?:\+|%2B)?)\d{7,15}",
    re.IGNORECASE,
)
_SEPARATOR = rf"(?: ?[/.／\u2014\u2015{_DASH}] ?|[ _])"
_YEAR = r"(?:1[349]|20|25)\d\d"  # of Iran's and Afghanistan's calendar (1401), the common one, Thailand's (2566)
_TWO_DECIMALS = rf"[01]?\d?\d\.\d\d?(?: ?[/{_DASH}] ?|[ ,]{{1,2}}-?)[01]?\d?\d\.\d\d?"  # 38.25 -122.31, 10.00 - 17.30
_DATE = re.compile(  # asked in ASCII digits, whatever script they are of
    rf"(?<!\d){_YEAR}{_SEPARATOR}[01]?\d{_SEPARATOR}[0-3]?\d(?!\d)"
    rf"|(?<!\d)[0-3]?\d{_SEPARATOR}[0-3]?\d{_SEPARATOR}{_YEAR}(?!\d)"
    r"|^\(?(?:19|20)\d\d[01]\d[0-3]\d(?:\d{4}|\d{6})?$"  # 20230206, 202302060417
    rf"|^\(?(?:(?:19|20)\d\d{_SEPARATOR}{{1,3}}+)+(?:19|20)\d\d$"  # (2010-2023); possessive: " - " has 4 readings
    rf"|^\(?{_TWO_DECIMALS}$"
)
_YEAR_AND_TIME = re.compile(r"^(?:19|20)\d\d [0-2]\d[0-5]\d$")  # 26 April 2015 1130 Hrs
_TIME_AFTER = re.compile(r" ?(?:hrs?|hours?|utc|gmt)\b", re.IGNORECASE)
_RANGE = re.compile(rf"^\(?([1-9]\d{{2,4}}) ?[{_DASH}] ?([1-9]\d{{2,4}})$")
_HOURS = re.compile(rf"^\(?0\d[03]0 ?[{_DASH}] ?[012]\d[03]0$")
_DECIMAL = re.compile(r"(?<![\d.])\d{1,3}\.\d{3,}(?![\d.]\d)")
_STANDING = re.compile(rf"{_DATE.pattern}|{_DECIMAL.pattern}|(?<![\d.]){_TWO_DECIMALS}(?![\d.]\d)")
_CORE = re.compile(r"[+＋(（]?\d.*\d")
_WORDS = re.compile(r"([^\d+＋]+)")
_AMOUNT = re.compile(r"^[(（]?[1-9]\d{0,2}(?:(?:\.\d{3})+|(?: \d{3})? 000)$")  # 1.500.000 and 25 000 000
# And 83 614 362, where no number is announced. 612 345 678 is a number of Spain, Poland, Peru …
_GROUPED = re.compile(rf"{_AMOUNT.pattern}|^[(（]?[1-9]\d?(?: \d{{3}}){{2}}$")
_COUNTED = re.compile(rf"^\d(?:[ \u00a0/.,;:{_DASH}]+\d)+$")  # 1 2 3 4 5 6 7, 3-2 2-1 4-3 1-0
_CURRENCY = "usd|eur|gbp|inr|rs|npr|pkr|tl|php|idr|rp|htg|mxn"
_MONEY_BEFORE = re.compile(rf"(?:[$€£₹¥₺]|\b(?:{_CURRENCY}))\.? ?$", re.IGNORECASE)
_COUNTED_AFTER = re.compile(
    rf" ?(?:[$€£₹¥₺]|(?:{_CURRENCY}|dollars?|euros?|rupees?|lira|pesos?|reais|km|m[²2]|ha|hectares?|"
    r"people|persons?|personnes?|personas?|pessoas?|persone|personen|menschen|habitants?|habitantes?|residents?|"
    r"orang|jiwa|kişi|insan|người|watu|людей|человек|осіб|households?|homes|houses|families|familias|familles)\b"
    r"|[元円人名万萬億亿戸명]|公里|บาท|คน|लोग|लाख|জন|شخص|نفر|نسمة|افراد)",
    re.IGNORECASE,
)
# A number of another kind, by its name. The first are no phone's whatever they begin with.
_NAMED = re.compile(
    r"\b(?:isbn(?:-1[03])?|issn|doi|iban|utm|mgrs)\b[ :#.=]{0,3}(?:\d\d?[A-Z](?: ?[A-Z]{2})? ?)?$", re.IGNORECASE
)
_NUMBERED = re.compile(
    r"\b(?:case|order|ticket|ref(?:erence)?|invoice|id|grid|ver(?:sion)?|(?:zip|pin)(?: code)?|post(?:al)? ?code|plz|"
    r"population|pop|score)\b[ :#.]{0,3}$",
    re.IGNORECASE,
)
# A word that announces a number, in the languages of our queries: then its length is enough (local numbers are valid
# only together with an area code that nobody writes).
_ANNOUNCED = re.compile(
    r"(?:\b(?:call|phone|ph|tel|telp|telf|t[eé]l[eé]phone|tel[eé]fono|telefone?|cell?|mobile|contact|hotline|"
    r"whats?app|hp|"
    r"llam[ae]r?|ligue|ligar|appele[rz]|chiam\w+|rele|nimewo|num[eé]ro|n[uú]mero|anruf\w*|ara\w*|numara\w*|piga|simu|"
    r"hubungi|telepon|nomor|wa|tawag\w*|gọi|s?đt|namba|тел\w*|звон\w*|дзвон\w*|τηλ\w*|ტელ\w*|հեռ\w*)\b|\bn[or][.:°º]|№|"
    r"\bcontactos? ?:|"
    r"هاتف|اتصل|رقم|تلفن|فون|نمبر|شماره|टेलि?फ़?ोन|नंबर|नम्बर|फ़?ोन|मोबाइल|सम्पर्क|মোবাইল|ফোন|নম্বর|电话|電話|手机|전화|번호|โทร|เบอร์|ဖုန်း|"
    r"ទូរស័ព្ទ|លេខ|ໂທ|ஃபோன்|போன்|தொலைபேசி|ఫోన్|ಫೋನ್|ഫോൺ|ફોન|ਫ਼?ੋਨ|ଫୋନ|දුරකථන|ስልክ|טלפון|☎|📞|📱)"
    r"[^\d\n]{0,15}$",
    re.IGNORECASE,
)
# Right before its digits, or a sign that means nothing else: then "22 334 455" is no amount.
_OUTRIGHT = re.compile(
    r"(?:[☎📞📱]\ufe0f?|\b(?:tel|telp|phone|ph|mobile|cell|hotline|whats?app))[ .:=/#-]{0,3}$", re.IGNORECASE
)
ROUNDS = 6
_NO_AT = str.maketrans(dict.fromkeys(_AT_SIGNS, " "))
_WIDE = str.maketrans("＋（）／，；－", "+()/,;-")
_HAS_RARE = re.compile(f"[{_RARE}]")
_ANY_DIGITS = re.compile(r"\d(?:[\W_ーـ]{0,3}\d){6,}+")


def mask(text: str) -> str:
    """Replace phone numbers and e-mail addresses. Idempotent; never raises; other text is untouched."""
    rounds = 0
    while (masked := _mask_once(text)) != text:  # what stands beside a token may now read as an address of its own
        rounds += 1
        # Only a chain made for it goes on longer: what is left of it that could be a number or an address goes whole.
        text = _ANY_DIGITS.sub(PHONE, masked.translate(_NO_AT)) if rounds == ROUNDS else masked
    return text


def _mask_once(text: str) -> str:
    if ("@" in text or not text.isascii()) and _BEHIND_A_NAME.search(text):  # an address holds no blank
        text = " ".join([_EMAIL.sub(EMAIL, word) if _HAS_AT.search(word, 1) else word for word in text.split(" ")])
    if ("(" in text or "[" in text or "{" in text) and _SPELT_AT.search(text):
        text = _SPELT_EMAIL.sub(EMAIL, text)
    lowered = text.lower()
    if any([name in lowered for name in _OF_PROVIDERS]):
        text = _PROVIDED_EMAIL.sub(EMAIL, text)
    if text.isascii() or not _ALL_UNSEEN.search(text):
        return _Numbers(text).masked(_CANDIDATE) if _ENOUGH_DIGITS.search(text) else text
    return _Numbers(text).masked(_CANDIDATE_WITH_UNSEEN)


class _Numbers:
    """The numbers of one text, judged where they stand, from the first on: what was masked announces what follows."""

    def __init__(self, text: str) -> None:
        self._text = _CHAT_LINK.sub(rf"\1{PHONE}", text)
        self._asked = 0
        self._told, self._at = "", 0  # the end of what is judged, masked, and where it ends in the text

    def masked(self, candidate: re.Pattern[str]) -> str:
        return candidate.sub(self._masked, self._text)

    def _masked(self, found: re.Match[str]) -> str:
        if _GOES_ON.match(self._text, found.end()):
            return found.group()
        before = (self._told + self._text[self._at : found.start()])[-80:]
        told = self._judge(found.group(), before, self._text[found.end() : found.end() + 14])
        self._told, self._at = before + told, found.end()
        return told

    def _judge(self, run: str, before: str, after: str) -> str:
        if _IN_URL.search(before):
            return run
        before, after = (edge.sub(" ", beside) for edge, beside in zip(_EDGES, (before, after), strict=True))
        near = before[-40:]
        if _MONEY_BEFORE.search(near) or _NAMED.search(near):
            return run
        word = _ANNOUNCED.search(near)
        announced = bool(word)
        dialled = _is_dialled(run)
        outright = announced and bool(_OUTRIGHT.search(near))
        bare = _seen(run)
        # "call 713-555-0188 families stranded"; but "número de afectados: 25 334 455 personas"
        phone = announced and (outright or not _GROUPED.match(bare)) and self._is_one(run, announced, outright)
        counted, numbered = bool(_COUNTED_AFTER.match(after)), bool(_NUMBERED.search(near))
        parts = _COUNT.fullmatch(run) if counted and not numbered else None  # "call (9841234567), 5 people"
        if parts and all(len(each) >= 10 for each in re.findall(r"\d+", parts[1])):
            return f"{self._part(parts[1], announced, outright)}{parts[2]}"
        if not (dialled or phone) and (counted or numbered):
            return run
        if word and PHONE[1:] in word.group() and _is_range(bare):  # "[phone], need 1000-1500 blankets"
            return run
        if _YEAR_AND_TIME.match(bare) and _TIME_AFTER.match(after):
            return run
        if not (dialled or announced) and (_COUNTED.match(bare) or _HAS_RARE.search(bare)):
            return run
        # In Chinese, Japanese or Thai everything is joined to what stands before and after it.
        digits = sum(map(str.isdecimal, run))
        long = digits >= 10
        if _JOINED.match(after) and not (long and _UNSPACED_LETTER.match(after)):
            if not (dialled or announced) or not _ENDING.match(after):
                return run
        if _GLUED.search(before) and not announced and not (long and _UNSPACED_LETTER.match(before[-1])):
            if not dialled or digits < _LEAST_ASSIGNED or not _named(before):
                return run
        if self._is_one(run, announced, outright) and not re.search("[,;，、；]", run):
            return PHONE
        listed = _LISTED.split(run)
        if len(listed) == 1:
            return self._beside_dates(run)
        return "".join(self._part(part, announced, outright) for part in listed)

    def _part(self, part: str, announced: bool, outright: bool) -> str:
        bare = part.strip(" \u00a0")
        if self._is_one(bare, announced, outright):
            return part.replace(bare, PHONE)
        return self._beside_dates(part)

    def _beside_dates(self, run: str) -> str:
        """A date or a coordinate hides no number beside it."""
        standing = [kept.span() for kept in _STANDING.finditer(_ascii(run))]
        if not standing:
            return self._several(run)
        out, at = [], 0
        for start, end in (*standing, (len(run), len(run))):
            out += [_CORE.sub(self._core, run[at:start], 1), run[start:end]]
            at = end
        return "".join(out)

    def _core(self, found: re.Match[str]) -> str:
        return PHONE if self._is_one(found.group(), False, False) else self._several(found.group())

    def _several(self, run: str) -> str:
        """What is no number by itself: several, with spaces, dashes or nothing between them, or none."""
        if _GROUPED.match(run.strip()):
            return run
        joined = self._among_dashes(run)
        return joined if joined != run and not any(map(str.isdecimal, joined)) else self._among_spaces(run)

    def _among_spaces(self, run: str) -> str:
        """From each word on, the longest that is a number; else what is in the word."""
        words = re.split("([ \u00a0]+)", run)
        if len(words) == 1:
            return self._among_dashes(run)
        digits = [sum(map(str.isdecimal, word)) for word in words]
        out, at = [], 0
        while at < len(words):
            for end in range(min(len(words), at + 9), at, -2):
                if 7 <= sum(digits[at:end]) <= 15 and self._is_one("".join(words[at:end]), False, False):
                    out.append(PHONE)
                    at = end
                    break
            else:
                out.append(self._among_dashes(words[at]))
                at += 1
        return "".join(out)

    def _among_dashes(self, run: str) -> str:
        """More digits than a number has, with signs between them or none: numbers that begin as such, or are alike."""
        if len(run) <= MOST_DIGITS or sum(map(str.isdecimal, run)) <= MOST_DIGITS:
            return run
        words = _WORDS.split(run)  # digits and what stands between them, by turns
        digits = [sum(map(str.isdecimal, word)) for word in words]
        lengths = digits[::2]
        middle = len(lengths) // 2
        half = len(words) // 2 if middle > 2 and lengths[:middle] == lengths[middle:] else 0
        out, at = [], 0
        while at < len(words):
            end = 0 if at % 2 else self._end(words, digits, at, half)
            out.append(PHONE if end else self._unspaced(words[at]))
            at = end or at + 1
        return "".join(out)

    def _end(self, words: list[str], digits: list[int], at: int, half: int) -> int:
        """Where the number ends that begins at a word; 0 where none does. Best right before the next that begins."""
        dialled, found = _is_dialled(words[at]), []
        for end in range(min(len(words), at + 9), at, -2):
            count = sum(digits[at:end])
            alike = count >= 10 and (end == at + 1 or (at, end) in ((0, half), (half + 1, len(words))))
            if 7 <= count <= MOST_DIGITS and (dialled or alike):
                last = end >= len(words) - 1 or _is_dialled(words[end + 1])
                found.append((not last, -end, end))
        return next((end for *_, end in sorted(found) if self._is_one("".join(words[at:end]), False, False)), 0)

    def _unspaced(self, word: str) -> str:
        """Numbers with nothing between them (a sign that nobody sees was taken out): all of it, or nothing."""
        if len(word) <= MOST_DIGITS or not _is_dialled(word):
            return word
        half, found, at = len(word) // 2, 0, 0
        while at < len(word):
            ends = [end for end in range(at + 9, min(len(word), at + MOST_DIGITS + 2)) if _is_dialled(word[end])]
            ends = sorted(ends, key=lambda end: end != half) + [len(word)] * (len(word) - at <= MOST_DIGITS + 1)
            end = next((end for end in ends if self._is_one(word[at:end], False, False)), 0)
            if not end:
                return word
            found, at = found + 1, end
        return PHONE * found if at == len(word) else word

    def _is_one(self, candidate: str, announced: bool, outright: bool) -> bool:
        candidate = _seen(candidate).strip()
        digits = sum(map(str.isdecimal, candidate))
        if digits < 7 or _DATE.search(_ascii(candidate)) or _DECIMAL.search(candidate):
            return False
        if not announced and _is_range(candidate):
            return False
        if digits > MOST_DIGITS and self._asked < ASKED:
            return False
        self._asked += 1
        if self._asked > ASKED or _is_phone(candidate):
            return True
        return announced and (outright or not _AMOUNT.match(candidate))


def _seen(text: str) -> str:
    return text if text.isascii() else _ALL_UNSEEN.sub("", text)


def _is_dialled(run: str) -> bool:
    """A count, a price or a distance does not begin with a zero or a plus."""
    first = run.lstrip("(（")[:1]
    return first in ("+", "＋") or first.isdecimal() and int(first) == 0


def _is_range(candidate: str) -> bool:
    """To a number that is close by, or both are round: 1000-1500 blankets, the houses 1695-1697; or 0800 - 1730."""
    found = _RANGE.match(_ascii(candidate))
    if not found:
        return bool(_HOURS.match(_ascii(candidate)))
    low, high = map(int, found.groups())
    unit = 10 if len(found[1]) == len(found[2]) else 100  # 912-2660 is a number of seven digits
    return low < high <= low + 30 or low < high <= 10 * low and low % unit == high % unit == 0


def _named(before: str) -> bool:
    """Does a name stand before it, with a sign between them that elsewhere belongs to a number or a link?"""
    if before.endswith("="):
        return not _IN_QUERY.search(before) and not _OF_ANOTHER_KIND.search(before)
    return bool(_AFTER_NAME.search(before))


@lru_cache(maxsize=4096)
def _is_phone(candidate: str) -> bool:
    digits = sum(c.isdecimal() for c in candidate)
    if digits > MOST_DIGITS:
        return False
    candidate = _HAS_RARE.sub(" ", _ascii(candidate))
    international = candidate.lstrip("(").startswith("+") or (candidate.startswith("00") and digits >= 10)
    if international:  # somebody wrote a country code: a number that could exist is enough
        number = _parse("+" + candidate.lstrip("(+").removeprefix("00"), None)
        return number is not None and phonenumbers.is_possible_number(number)
    if _GROUPED.match(candidate) or digits < 8 and not re.search(r"[-(/]", candidate):
        return False
    numbers = (_parse(candidate, region) for region in REGIONS)
    return any(number is not None and phonenumbers.is_valid_number(number) for number in numbers)


def _ascii(text: str) -> str:
    """In digits and signs of ASCII, as the patterns of dates ask for; every character stays one."""
    if text.isascii():
        return text
    return "".join(str(int(c)) if c.isdecimal() else c for c in text.translate(_WIDE))


def _parse(candidate: str, region: str | None) -> phonenumbers.PhoneNumber | None:
    try:
        return phonenumbers.parse(candidate, region)
    except phonenumbers.NumberParseException:
        return None
