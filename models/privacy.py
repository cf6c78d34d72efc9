"""Phone numbers and e-mail addresses → `[phone]` and `[email]`, before anything else sees a post.

People in trouble post their numbers. The alert still says that there is one; who is allowed to call opens the post at
its source. Phone numbers are judged by `phonenumbers` (Google's metadata), asked only where enough digits stand
together; dates, magnitudes, coordinates, prices and numbers inside URLs stay.
"""

from __future__ import annotations

import re
from functools import lru_cache

import phonenumbers

EMAIL, PHONE = "[email]", "[phone]"

# A number without a country code is tried in these, disaster-prone or populous, regions.
REGIONS = (
    "US", "IN", "TR", "ID", "PH", "PK", "BD", "NP", "HT", "MX", "BR", "CL", "ES", "FR", "IT", "DE", "GB", "GR", "UA",
    "JP", "SA", "EG", "SY", "MA", "NG", "KE", "AU", "NZ", "LK", "MM", "VN", "TH", "CN", "IR", "AF",
)  # fmt: skip
ASKED = 20  # candidates per post that are judged; a post that holds more is a list of numbers or an attack

# One run of local part per start, so a long run without @ costs one scan.
_EMAIL = re.compile(r"(?<![\w.%+@-])[\w.%+-]++@(?:[\w-]+\.)+[^\W\d_]{2,}")
# 7 to 15 digits with at most two separators between them. Possessive: no backtracking into half a number.
_CANDIDATE = re.compile(
    r"(?<![\w/=#&@$€£₹¥₺.,-])(?<!\d[:.,])"
    r"(?:\+|\(\+?)?\d(?:[ \u00a0().\-\u2010-\u2013/]{0,2}\d){6,}+(?![\w%°$€£₹¥₺]|[.,:]\d)"
)
_ENOUGH_DIGITS = re.compile(r"\d(?:\W{0,2}\d){6}")  # cheap: nearly every post stops here
_IN_URL = re.compile(r"(?:https?://|www\.)\S*$", re.IGNORECASE)
_CHAT_LINK = re.compile(r"((?:wa\.me/|whatsapp\.com/send/?\?phone=|tel:)\+?)\d{7,15}", re.IGNORECASE)
_SEPARATOR = r"[-/. \u2010-\u2013]"
_DATE = re.compile(
    rf"(?<!\d)(?:19|20)\d\d{_SEPARATOR}[01]?\d{_SEPARATOR}[0-3]?\d(?!\d)"
    rf"|(?<!\d)[0-3]?\d{_SEPARATOR}[0-3]?\d{_SEPARATOR}(?:19|20)\d\d(?!\d)"
    r"|^(?:19|20)\d\d[01]\d[0-3]\d(?:\d{4}|\d{6})?$"  # 20230206, 202302060417
    rf"|^(?:(?:19|20)\d\d{_SEPARATOR}{{1,3}})+(?:19|20)\d\d$"  # 2010-2023
)
_DECIMAL = re.compile(r"(?<![\d.])\d{1,3}\.\d{3,}(?![\d.]\d)")
_GROUPED = re.compile(r"^\d{1,3}(?:\.\d{3})+$|^\d{1,3}(?: \d{3}){1,2}$")  # 1.500.000 and 25 000 000
_CURRENCY = "usd|eur|gbp|inr|rs|npr|pkr|tl|php|idr|rp|htg|mxn"
_MONEY_BEFORE = re.compile(rf"(?:[$€£₹¥₺]|\b(?:{_CURRENCY}))\.? ?$", re.IGNORECASE)
_COUNTED_AFTER = re.compile(
    rf" ?(?:[$€£₹¥₺]|(?:{_CURRENCY}|dollars?|euros?|rupees?|lira|pesos?|people|km)\b)", re.IGNORECASE
)
# A word that announces a number, in the languages of our queries: then its length is enough (local numbers are valid
# only together with an area code that nobody writes).
_ANNOUNCED = re.compile(
    r"(?:\b(?:call|phone|ph|tel|telp|telf|t[eé]l[eé]phone|tel[eé]fono|telefone?|cell?|mobile|contact|hotline|"
    r"whats?app|hp|"
    r"llam[ae]r?|ligue|ligar|appele[rz]|chiam\w+|rele|nimewo|num[eé]ro|n[uú]mero|anruf\w*|ara\w*|numara\w*|piga|simu|"
    r"hubungi|tawag\w*|gọi|тел\w*|звон\w*)\b|هاتف|اتصل|رقم|تلفن|فون|नंबर|फ़?ोन|सम्पर्क|মোবাইল|ফোন|电话|電話|โทร|ဖုန်း|☎|📞|📱)"
    r"[^\d\n]{0,15}$",
    re.IGNORECASE,
)


def mask(text: str) -> str:
    """Replace phone numbers and e-mail addresses. Idempotent; never raises; other text is untouched."""
    while (masked := _mask_once(text)) != text:  # what stands beside a token may now read as an address of its own
        text = masked
    return text


def _mask_once(text: str) -> str:
    if "@" in text:
        text = _EMAIL.sub(EMAIL, text)
    return _mask_numbers(text) if _ENOUGH_DIGITS.search(text) else text


def _mask_numbers(text: str) -> str:
    text = _CHAT_LINK.sub(rf"\1{PHONE}", text)
    asked = 0

    def judge(found: re.Match[str]) -> str:
        nonlocal asked
        candidate = found.group()
        before, after = text[max(0, found.start() - 80) : found.start()], text[found.end() : found.end() + 10]
        if _DATE.search(candidate) or _DECIMAL.search(candidate) or _IN_URL.search(before):
            return candidate
        if _MONEY_BEFORE.search(before) or _COUNTED_AFTER.match(after):
            return candidate
        asked += 1
        if asked > ASKED or _is_phone(candidate):
            return PHONE
        announced = _ANNOUNCED.search(before) and sum(map(str.isdecimal, candidate)) <= 15
        return PHONE if announced and not _GROUPED.match(candidate) else candidate

    return _CANDIDATE.sub(judge, text)


@lru_cache(maxsize=4096)
def _is_phone(candidate: str) -> bool:
    digits = sum(c.isdecimal() for c in candidate)
    if digits > 15:  # the longest number there is (ITU-T E.164)
        return False
    international = candidate.lstrip("(").startswith("+") or (candidate.startswith("00") and digits >= 10)
    if international:  # somebody wrote a country code: a number that could exist is enough
        number = _parse("+" + candidate.lstrip("(+").removeprefix("00"), None)
        return number is not None and phonenumbers.is_possible_number(number)
    if _GROUPED.match(candidate) or digits < 8 and not re.search(r"[-(/]", candidate):
        return False
    numbers = (_parse(candidate, region) for region in REGIONS)
    return any(number is not None and phonenumbers.is_valid_number(number) for number in numbers)


def _parse(candidate: str, region: str | None) -> phonenumbers.PhoneNumber | None:
    try:
        return phonenumbers.parse(candidate, region)
    except phonenumbers.NumberParseException:
        return None
