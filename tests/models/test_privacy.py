"""Phone numbers of everywhere are masked; what people count, date, measure and price in a disaster is not."""

import json

import phonenumbers
import pytest
from hypothesis import given
from hypothesis import strategies as st
from phonenumbers import PhoneNumberFormat as Form
from phonenumbers import PhoneNumberType as Kind

from models.posts import parse_post
from models.privacy import EMAIL, PHONE, mask
from tests.hostile.test_cost import assert_in_proportion

FEWEST = 7  # digits: shorter ones (of Tokelau, Vanuatu …) are beside counts and house numbers no phone's by their look


def has_digits(text):
    return any(c.isdecimal() for c in text)


@pytest.mark.parametrize("region", sorted(phonenumbers.SUPPORTED_REGIONS))
def test_an_example_number_of_every_country_is_masked(region):
    examples = [phonenumbers.example_number_for_type(region, kind) for kind in (Kind.MOBILE, Kind.FIXED_LINE)]
    for number in filter(None, examples):
        for form in (Form.E164, Form.INTERNATIONAL, Form.RFC3966):
            assert not has_digits(mask(phonenumbers.format_number(number, form)))
        local = phonenumbers.format_number(number, Form.NATIONAL)
        if sum(map(str.isdecimal, local)) >= FEWEST:
            assert not has_digits(mask(f"tel. {local}"))


@pytest.mark.parametrize(
    "text",
    [
        "05321234567/05327654321", "9841234567,9851234567", "9841234567;9851234567", "9841234567 9851234567",
        "0532 123 45 67 - 0533 765 43 21", "0532 123 45 67 veya 0533 765 43 21", "+905321234567,+905331234567",
        "0812-3456-7890/0813-9876-5432", "０９０-1234-5678、090-1234-5679", "tel.0532 123 4567",
        "Tel/05321234567", "tel=05321234567", "#05321234567", "@05321234567", "No.05321234567",
        "No: 0532 123 45 67", "cell#0917-123-4567", "no. 5551234", "Ph 2345 6789", "📞 22334455",
        "tel:\n0532 123 45 67", "05321234567'den", "0532_123_45_67", "0532*123*45*67", "0532|1234567",
        "0532·123·45·67", "0 5 3 2 1 2 3 4 5 6 7", "(0532)123-4567", "+1.415.555.2671", "00 90 532 123 45 67",
        "012 345 678", "012.345.678", "8 (912) 345-67-89", "тел. 0671234567", "дзвоніть 0671234567",
        "τηλ. 2101234567", "טלפון 0501234567", "0300-1234567", "نمبر ۰۳۰۰۱۲۳۴۵۶۷", "شماره ۰۹۱۲۳۴۵۶۷۸۹",
        "هاتف: ٠٥٠ ١٢٣ ٤٥٦٧", "फोन ९८४१२३४५६७", "নম্বর ০১৭১২৩৪৫৬৭৮", "ফোন: ০১৭১২-৩৪৫৬৭৮", "தொலைபேசி 2345678",
        "ఫోన్ ౨౩౪౫౬౭౮", "ಫೋನ್ ೨೩೪೫೬೭೮", "ഫോൺ 2345678", "ફોન ૨૩૪૫૬૭૮", "ଫୋନ୍ 2345678", "ਫ਼ੋਨ 2345678",
        "දුරකථන 2345678", "โทร ๐๘๑-๒๓๔-๕๖๗๘", "ဖုန်း ၀၉-၄၂၁၁၂၃၄၅၆", "លេខ 012 345 678", "ໂທ 2345678", "전화 555-1234",
        "電話０９０－１２３４－５６７８", "电话：13800138000", "手机13800138000", "gọi 0912345678", "sđt 2345678",
        "ስልክ 0911234567", "simu 0712345678", "namba 2345678", "hubungi 0812 3456 7890", "nomor 2345678",
        "tawag 09171234567", "rele 3410 1234", "ligue 11912345678", "llamar al 612345678",
        "Call 713-555-0188 families stranded", "contact: 9876543210 persons stuck",
        "Phone 713-555-0188 homes flooded", "WhatsApp id 9876543210", "contact id: 713-555-0188",
        "फोन 9876543210 लोग फंसे हैं", "hubungi 81234567890 orang terjebak",
        "tel: 9876543210 families need food", "call 9876543210 people are trapped",
        "_0532 123 45 67_", "call _+90 532 123 45 67_ now", "_call 0532 123 45 67_", "__05321234567__", "tel:_5551234_",
        "_call 5551234_", "_phone_ 5551234", "*_call 713-555-0188 families stranded_*",
        "Ayşe=+905321234567", "Rahul=05321234567", "no=05321234567", "Ayşe = 05321234567", "wa=+90 532 123 45 67",
        "Ali/05321234567", "Ayşe-05321234567", "Rahul,09841234567", "(Ayşe.0532 123 45 67)", "आयशा-09841234567",
        "05321234567-05327654321", "0532-123-45-67-0533-765-43-21", "0532 123 45 67-0533 765 43 21",
        "9841234567-9851234567", "984-123-4567-985-123-4567", "+905321234567-05327654321", "05321234567–05327654321",
        "05321234567.05327654321", "05321234567~05327654321~05337654321", "०९८४१२३४५६७-०९८५१२३४५६७",
        "0532123456705327654321", "+90532123456705327654321", "053212345670532765432105337654321",
        "0532\u200e123\u200e45\u200e67", "0532\u200d1234567", "05\ufe0e32\u034f123\u200c45 67",
        "\u200e+90 532 123 45 67\u200e",
        "+\u200e90 532 123 45 67", "\u202a+90 532 123 45 67\u202c", "0️⃣5️⃣3️⃣2️⃣1️⃣2️⃣3️⃣4️⃣5️⃣6️⃣7️⃣",
        "0532\u200e1234567,0533\u200e7654321", "05" + "\u200d" * 400 + "321234567",
        "call me 612 345 678", "llamar al 612 345 678", "Celular: 987 654 321", "Telefon: 501 234 567",
        "Yape 987 654 321", "ligar 923 456 789", "612 345 678, 987 654 321", "number of people: 612 345 678",
        "llamar: 22 334 455", "tel 25 000 000", "電話 090ー1234ー5678", "０９０ー１２３４ー５６７８",
        "138—1234—5678", "フリーダイヤル１—８００—４４６—２５８１", "هاتف 0944ـ123ـ456", "٠٩٤٤ـ١٢٣ـ٤٥٦",
        "(0532)-(123)-(4567)", "call 1000-1500", "Contacto: 22 334 455", "contactos : 22 334 455",
        "912-2660", "0235-0259", "2210-2825",
        "https://zalo.me/0901234567", "zalo.me/0901234567", "https://signal.me/#p/+905321234567",
    ],
)  # fmt: skip
def test_a_number_is_masked_however_it_is_written(text):
    assert PHONE in mask(text) and not has_digits(mask(text))


@pytest.mark.parametrize(
    "text",
    [
        "2023-02-06", "06.02.2023", "6/2/2023", "20230206041732", "2010-2023", "1990/1991/1992",
        "1755, 1906, 1999, 2011", "06-02-2023 07-02-2023", "from 2023-02-06 to 2023-02-10", "06.02.2023-08.02.2023",
        "२०२३-०२-०६", "٢٠٢٣/٠٢/٠٦", "۱۴۰۱/۱۱/۱۷", "1401/11/17", "2566/02/06", "2023年2月6日", "２０２３－０２－０６",
        "2023_02_06", "12:00-14:00-16:00", "call before 2023-02-06", "magnitude 7.8 depth 17.9 km at 01:17:35 UTC",
        "37.17360,36.20210", "lat 37.173612 lon 36.202134", "36°12'15\"N 37°09'40\"E", "-33.865143, 151.209900",
        "UTM 37S 0245123 4112345", "MGRS 37SBA4512312345", "grid 4512 1234", "3.14159265", "0.123456789",
        "66,000,000 hectares", "1234567 km", "1234567 m²", "score 3-2 2-1 4-3 1-0", "1 2 3 4 5 6 7 8 9",
        "1-2-3-4-5-6-7", "1,500,000 people", "1.500.000 personas", "10000000 personnes", "25000000 kişi",
        "1234567 orang", "1234567 человек", "1500000人", "3000000名", "१२३४५६७ लोग", "١٥٠٠٠٠٠ شخص", "1234567 homes",
        "population 83614362", "25 000 000", "50,000 dead", "between 10,000 and 20,000", "100000-200000 people",
        "$1,234,567", "€ 1.234.567,89", "₹12,34,567", "1234567 TL", "USD 2500000", "5000000円", "5.000.000 euro",
        "2 000 000 $", "10^7 1234567", "ISBN 978-3-16-148410-0", "ISBN 9783161484100", "ISBN 0-306-40615-2",
        "ISSN 2049-3630", "doi 10.1000/1820000", "10.1038/s41586-020-2649-2", "IBAN DE89 3704 0044 0532 0130 00",
        "case 2023/1234", "order 2023123456789012", "postcode 34000 34100", "PIN 560001", "192.168.100.200",
        "ver 1.2.3.4567890", "flight TK1234567", "https://x.example/status/1622501234567890123",
        "id=1622501234567890123", "IMG_20230206_123456.jpg", "user_2023020612", "id_05321234567_x",
        "https://x.example/_05321234567_", "_1,500,000 people_", "_2023-02-06_",
        "date=06022023", "date=06.02.2023", "time=060220231530", "lat=+37.173612", "lat=037.173612,lon=036.202134",
        "utm=0245123 4112345", "isbn=0-306-40615-2", "balance=+1500000", "total=+25000000", "0=0", "x=0000000",
        "flight=TK1234567", "TK-0123456789", "INC/0123456789", "order=2125550123", "bank.example/?ref=05321234567",
        "bank.example/05321234567", "2023-02-06-2023-02-07", "0000-0002-1825-0097", "20230206041732123456",
        "100000-200000-300000-400000", "37.173612-36.202134", "12345678901234567890", "0001234567890123",
        "1️⃣ 2️⃣ 3️⃣ 4️⃣ 5️⃣ 6️⃣ 7️⃣", "3\u200d-2 2-1 4-3 1-0", "1\u200e,\u200e500,000 people",
        "location 27.71 85.32", "38.25 -122.31", "38.2 -122.3", "(27.71/85.32)", "open 06.00–12.00", "10.00 - 17.30",
        "Need 1000-1500 blankets at the school", "(600-1000 blankets)", "१०००-१५०० कंबल चाहिए", "১০০০-১৫০০ কম্বল দরকার",
        "We need 2000-3000 litres", "besoin de 1500-2000 repas", "necesitamos 3000-4000 raciones", "2500-3000 selimut",
        "12000 - 15000 displaced", "5600-5700 block of Main St, trapped", "1695-1697 Commonwealth Ave",
        "room 1201-1202", "MGRS 45RUM 34000 66000", "MGRS 45R UM 34000 66000", "open 0800 - 1700", "0900-1730hrs",
        "26 April 2015 1130 Hrs", "07 Dec 2014 1500 UTC", "28 - 2 - 1441", "٢٨/ ٢/ ١٤٤١", "27 - 04 - 2015",
        "2015—04—27", "(2009 - 2013)", "2009—2013", "(20180725)", "(25 000 000)", "(1.500.000)", "83 614 362",
        "125 334 455 people", "número de afectados: 25 334 455 personas", "1,000—2,000—3,000",
        "_22000000 people_", "_USD 22000000_", "_order 2125550123_", "_ISBN 978-3-16-148410-0_", "@_2125550123",
        "12 345 678 901 people", "en contacto con 1500000 personas", "2010 - 2011 - 2012 - 2023",
    ],
)  # fmt: skip
def test_what_is_counted_dated_measured_priced_or_named_is_not(text):
    assert mask(text) == text


@pytest.mark.parametrize("word", ["case", "id", "population", "post code"])
def test_a_word_before_it_hides_no_number_that_begins_as_one(word):
    assert mask(f"{word} 05321234567") == f"{word} {PHONE}"
    assert mask(f"{word} +905321234567") == f"{word} {PHONE}"


@pytest.mark.parametrize("between", ["\u200b", "\u2060", "\u200e", "\u200d", "\u00ad", "\ufeff", "-", " - ", "\u2013"])
def test_two_numbers_hide_each_other_by_no_sign_between_them_whether_it_is_seen_or_not(between):
    """As a post arrives: invisible characters are taken out of it before it is masked."""
    for first, second in (("05321234567", "05327654321"), ("+905321234567", "05327654321")):
        line = json.dumps({"id": "1", "text": f"call {first}{between}{second} or {second}{between}{first}"})
        text = parse_post(line.encode(), seen_at=1.7e9, author_key=b"k").text
        assert text.count(PHONE) == 4 and not has_digits(text)


@pytest.mark.parametrize(
    "text, masked",
    [
        ("call 0532 123 45 67 06.02.2023", f"call {PHONE} 06.02.2023"),
        ("2023-02-06 05321234567", f"2023-02-06 {PHONE}"),
        ("05321234567, 37.173612 36.202134", f"{PHONE}, 37.173612 36.202134"),
        ("27.71 85.32 9841234567", f"27.71 85.32 {PHONE}"),
        ("9841234567, 27.71 85.32", f"{PHONE}, 27.71 85.32"),
        ("9841234567, need 1000-1500 blankets", f"{PHONE}, need 1000-1500 blankets"),
        ("9841234567, 1000-1500 blankets", f"{PHONE}, 1000-1500 blankets"),
        ("call 713-555-0188—300 people", f"call {PHONE}—300 people"),
    ],
)
def test_a_date_or_a_place_beside_a_number_stays_and_the_number_does_not(text, masked):
    assert mask(text) == masked


@pytest.mark.parametrize(
    "text, masked",
    [
        ("9841234567 5 people", f"{PHONE} 5 people"),
        ("9841234567, 5 people", f"{PHONE}, 5 people"),
        ("9841234567. 5 people trapped", f"{PHONE}. 5 people trapped"),
        ("call 9841234567 5 people", f"call {PHONE} 5 people"),
        ("+9779841234567 5 people", f"{PHONE} 5 people"),
        ("9841234567 9851234567 5 people stuck", f"{PHONE} {PHONE} 5 people stuck"),
        ("9841234567 9851234567 people stuck", f"{PHONE} {PHONE} people stuck"),
        ("0532 123 45 67 x0532 123 45 67 x0532 123 45 67", f"{PHONE} x{PHONE} x{PHONE}"),
    ],
)
def test_what_is_counted_behind_a_number_hides_it_no_more_than_another_number_does(text, masked):
    assert mask(text) == masked


@pytest.mark.parametrize(
    "address", ["me＠example.com", "me﹫example.com", "ｍｅ＠ｅｘａｍｐｌｅ．ｃｏｍ", "a.b@example．com"]
)
def test_an_address_is_masked_in_wide_signs_too(address):
    assert mask(f"write {address} now") == f"write {EMAIL} now"


@pytest.mark.parametrize(
    "address",
    [
        "ayse @ gmail.com",
        "ayse@ gmail.com",
        "ayse @ gmail",
        "ayse @gmail.com",
        "ayse＠ gmail.com",
        "ayse@gmail .com",
        "ayse at gmail dot com",
        "ayse AT Gmail DOT com",
        "ayse.k at yahoo dot com dot tr",
        "ayse arroba gmail punto com",
        "ayse(a)gmail.com",
        "ayse (a) gmail.com",
        "ayse(a)gmail",
        "ayse (at) gmail (dot) com",
    ],
)
def test_an_address_written_out_is_masked_where_a_provider_of_mail_is_named(address):
    assert mask(f"write {address}, please") == f"write {EMAIL}, please"


@pytest.mark.parametrize(
    "text",
    [
        "via @yahoo",
        "RT @Yahoo: floods",
        "the list is at yahoo.com",
        "we meet @ school. com",
        "meet at gmail office",
        "tents(a)school.org",
        "the outlook at dawn",
        "at outlook point",
    ],
)
def test_a_mention_or_a_place_is_no_address_written_out(text):
    assert mask(text) == text


PIECES = st.lists(
    st.sampled_from(
        ["612 345 678", "1000-1500", "27.71 85.32", "—", "ー", "ـ", "(", ")-(", "138", "4567", ",", " ", "call ",
         " people", "ayse", " @ ", "@", "(a)", " at ", "gmail", " dot com", ".com", "zalo.me/", "wa.me/", "2015 1130",
         " Hrs"]
    ),
    max_size=12,
)  # fmt: skip


@given(PIECES.map("".join))
def test_ranges_positions_and_addresses_written_out_are_settled_at_once_too(text):
    assert mask(mask(text)) == mask(text)


NUMBERS = st.lists(
    st.sampled_from(
        ["0", "5321234567", "05321234567", "+90", "2023", "-", "=", ".", " ", "\u200e", "\u20e3", "＠", "a", "/"]
    ),
    max_size=12,
)


@given(NUMBERS.map("".join))
def test_what_is_masked_once_is_masked(text):
    assert mask(mask(text)) == mask(text)


@pytest.mark.parametrize(
    "unit",
    [
        "0", "0-", "05321234567", "05321234567-", "9841234567-", "984-123-4567-", "1\u200e", "\u200e",
        "1" + "\u200e" * 99,
        "0\ufe0f\u20e3", "+0", "=0", "a=05321234567 ", "a,05321234567", "2023-02-06 ", "2023-02-06-05321234567 ",
        "37.173612 ", "a＠b.co", "＠a", "0.", "0" * 16 + "-", "00000000000 ",
        "612 345 678 ", "1000-1500 ", "1000 - 1500 - ", "27.71 85.32 ", "27.71", "138—1234—", "123—", "1ー", "1ـ",
        "1)-(", "2015 1130 ", "a @ gmail ", "gmail @ ", "a(a)", "a(a)gmail", "a at gmail dot ", "gmail at ",
        "gmail dot com ", "gmail" + "a" * 60, "zalo.me/", "signal.me/#p/+",
        "0532 123 45 67 x", "x0532 123 45 67", "12345670532 123 45 67 x", "2010 - ", "2010 . ", "1999-2010 ",
    ],
)  # fmt: skip
def test_what_is_masked_costs_in_proportion_to_its_length(unit):
    assert_in_proportion(mask, lambda length: unit * (length // len(unit)), 10_000)


@pytest.mark.parametrize("end", ["2110", "a", "1%", "\u200e1%", ".1"])
@pytest.mark.parametrize("unit", ["2010 - ", "1999 / ", "1_", "1 ", "1-", "1, "])
def test_a_run_that_ends_as_no_number_does_costs_in_proportion_to_its_length(unit, end):
    """23 s for 88 characters it was ("2010 - " twelve times, 2110), four times as long for each two more."""
    assert_in_proportion(mask, lambda length: unit * (length // len(unit)) + end, 10_000)
