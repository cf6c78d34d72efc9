"""Places by name: the table, what a user asks for, and what posts name."""

from __future__ import annotations

import math
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import QueryError
from models.filters import Where, located
from models.places import mentions
from models.places.gazetteer import Gazetteer, radius_km, within
from models.places.meant import _name
from models.places.mentions import _AFTER, finds, lies_in, named_in
from models.places.names import code, fold, keys, unjoined, words
from models.records import Geo, Post
from training.places import (
    Entry,
    around,
    in_other_scripts,
    is_short,
    named_in_english,
    said_names,
    said_otherwise,
    table,
)

PLACES = Gazetteer.bundled()


SIGNED = {  # scripts without spaces: consonants, vowel signs
    "Thai": ("กขคงจชดตทนบปพมยรลวสหอ", "ัิีึืุู็่้"),
    "Lao": ("ກຂຄງຈຊດຕທນບປພມຢຣລວສຫ", "ັິີຶືຸູ່້"),
    "Myanmar": ("ကခဂငစဆတထဒနပဖဗမယရလဝသဟ", "ါာိီုူေဲ"),
    "Khmer": ("កខគងចឆជតថទនបផពមយរលវសហ", "ាិីឹឺុូួេែៃោៅ"),
}
MARKED = SIGNED | {
    "Devanagari": ("कखगचजतदनपबमयरलवसह", "ािीुूेैोौ"),
    "Tamil": ("கஙசஞடணதநபமயரலவழளறன", "ாிீுூெேை"),
    "Tibetan": ("ཀཁགངཅཆཇཉཏཐདནཔཕབམ", "ིེོུ"),
    "Thaana": ("ހށނރބޅކއވމފދތލގ", "ަާިީުޫެޭ"),
    "Adlam": ("𞤀𞤁𞤂𞤃𞤄𞤅𞤆𞤇", "𞥄𞥅𞥆𞥇"),
    "Chakma": ("𑄇𑄈𑄉𑄊𑄋𑄌𑄍𑄎", "𑄧𑄨𑄩𑄪𑄫𑄬"),
}


@st.composite
def syllables(draw, scripts: dict[str, tuple[str, str]]) -> tuple[str, str, str, str]:
    """A name of two syllables or more, what is written before and after it, and a vowel sign of its script."""
    letters, signs = scripts[draw(st.sampled_from(sorted(scripts)))]
    said = st.tuples(st.sampled_from(letters), st.sampled_from(signs)).map("".join)
    many = [draw(st.lists(said, min_size=least, max_size=4).map("".join)) for least in (2, 0, 0)]
    return (*many, draw(st.sampled_from(signs)))


def gazetteer(*names: str) -> Gazetteer:
    return Gazetteer(table([Entry([*names], "country", 9_000_000, (0, 0, 10, 10))], "UT", said_otherwise([])))


def post(text: str, geo: Geo | None = None) -> Post:
    return Post("p", text, 0.0, 0.0, geo=geo)


# --- the table


def test_what_a_place_is_called_in_other_scripts_and_without_accents_finds_it():
    for name in ("Port-au-Prince", "port au prince", "Pòtoprens", "Порт-о-Пренс", "太子港", "포르토프랭스", "بيروت"):
        first = PLACES.called(name)[0]
        assert (first.name, first.country) in {("Port-au-Prince", "HT"), ("Beirut", "LB")}, name


def test_a_country_a_province_and_a_town_say_what_they_are_and_where():
    kerala, haiti = PLACES.called("Kerala")[0], PLACES.called("هايتي")[0]
    assert (kerala.kind, kerala.country) == ("province", "IN") and (haiti.kind, haiti.country) == ("country", "HT")
    assert within(kerala.box, 9.98, 76.28) and not within(kerala.box, 13.08, 80.27)  # Kochi; Chennai
    jacmel = PLACES.called("Jacmel")[0]
    assert jacmel.province == "Sud-Est" and within(jacmel.box, jacmel.lat, jacmel.lon)


def test_a_box_over_the_date_line_is_the_short_way_round():
    box = around([(-18.1, 178.4), (-16.8, -179.9), (-17.6, 177.4)])
    assert box == (-18.1, 177.4, -16.8, -179.9)
    assert within(box, -17, 179.9) and not within(box, -17, 0)
    assert radius_km(box) == pytest.approx(2.7 * 111.2 * math.cos(math.radians(17.45)) / 2, rel=0.01)


def test_the_table_keeps_each_name_with_its_places_those_with_most_people_first():
    found = [
        Entry(["Utopia"], "country", 9_000, (0, 0, 10, 10)),
        Entry(["Port"], "town", 1_000, (1, 1, 1, 1), 0),
        Entry(["Port", "Puerto"], "town", 8_000, (2, 2, 2, 2), 0),
    ]
    made = Gazetteer(table(found, "UT", said_otherwise([])))
    assert [place.people for place in made.called("port")] == pytest.approx([8_000, 1_000], rel=0.05)
    assert [place.full_name for place in made.called("puerto")] == ["Port, UT"]
    assert made.called("atlantis") == []


def test_transliterations_of_machines_and_codes_are_no_names():
    assert said_names("Beirut", ["BEY", "bai lu te", "byrwt", "Beyrouth", "بيروت", "Bayrut, Lebanon"]) == [
        "Beirut",
        "Beyrouth",
        "بيروت",
        "Bayrut",
    ]


def test_words_said_all_day_are_counted_unless_they_are_marked_as_places():
    counted = said_otherwise([("we go to nice places in Nice, by sea", ["Nice"]), ("nice, very nice", [])])
    assert counted["nice"] == 2 and counted["sea"] == 1  # the first text marks it as a place


def test_a_name_of_two_letters_is_short_but_where_each_is_a_syllable():
    assert not any(map(is_short, ("서울", "대구", "ደሴ", "東京", "suva", "bam1", "ура")))
    assert all(map(is_short, ("서", "ደ", "東", "bam", "ур", "라고")))  # the last says "said so"


def test_what_a_big_city_is_called_is_no_word_where_the_english_sentence_names_it():
    found = [
        Entry(["Tokyo", "東京", "ニュー 東京"], "town", 9_000_000, (0, 0, 0, 0)),
        Entry(["Kyiv", "Kiev", "Київ", "کیف"], "town", 3_000_000, (0, 0, 0, 0)),
        Entry(["Mary", "メアリー"], "town", 100_000, (0, 0, 0, 0)),
    ]
    cities = in_other_scripts(found)
    assert cities == {"tokyo": {"東京"}, "kyiv": {"کیف"}, "kiev": {"کیف"}}  # Mary is a woman in most sentences
    assert named_in_english("Is it far to Tokyo or Kyiv?", cities) == {"東京", "کیف"}
    pairs = [("I saw Tokyo", "東京を見た"), ("How are you?", "کیف حالک"), ("kiev", "کیف")]
    counted = said_otherwise((other, named_in_english(english, cities)) for english, other in pairs)
    assert counted["東京"] == 0 and counted["کیف"] == 2 and counted["حالک"] == 1


def test_a_word_is_counted_without_what_stands_before_it_but_not_without_its_ending():
    counted = said_otherwise([("ממקום אחר, काठमाडौंमा", []), ("בחיפה", ["חיפה"])])
    assert counted["מקום"] == counted["ממקום"] == 1 and counted["חיפה"] == 0
    assert counted[keys("काठमाडौंमा")] == 1 and counted[keys("काठमाडौं")] == 0


def test_folding_is_idempotent_and_joins_what_is_written_in_two_ways():
    for one, other in (("Bogotá", "bogota"), ("Les-Cayes", "les cayes"), ("أربيل", "اربيل"), ("İzmir", "izmir")):
        assert keys(one) == keys(other)
        assert fold(fold(one)) == fold(one)


def test_no_mark_of_any_script_ends_a_word_and_no_stop_is_part_of_one():
    marks = [chr(c) for c in range(0x1F000) if unicodedata.category(chr(c)) in ("Mn", "Mc")]
    ending = {mark for mark in marks if words(f"a{mark}b") != [(0, 3)]}
    assert len(marks) > 2_000 and ending == {m for m in marks if "\u20d0" <= m <= "\u20ff" or "\ufe00" <= m <= "\ufe0f"}
    assert [keys(text) for text in ("नेपाल।", "နီပေါ။", "ភ្នំពេញ។")] == [keys(name) for name in ("नेपाल", "နီပေါ", "ភ្នំពេញ")]


@given(syllables(MARKED))
def test_names_that_differ_in_a_vowel_sign_have_different_keys(said):
    name, _, _, sign = said
    assert (keys(name) == keys(name[:-1] + sign)) == (name[-1] == sign)
    assert keys(name) != keys(name[:-1])
    assert fold(fold(name)) == fold(name)


def test_burmese_stays_is_not_nepal():
    assert keys("နီပေါ") != keys("နေပါ")
    assert PLACES.called("နီပေါ")[0].country == "NP" and PLACES.called("နေပါ") == []


def test_vowels_that_are_left_out_at_will_make_no_other_name():
    for one, other in (("שָׁלוֹם", "שלום"), ("مُحَمَّد", "محمد"), ("אַנדארע", "אנדארע")):
        assert keys(one) == keys(other)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("وبيروت", "بيروت"),
        ("בחיפה", "חיפה"),
        ("ומחיפה", "חיפה"),
        ("ለመቀሌ", "መቀሌ"),
        ("काठमाडौंमा", "काठमाडौं"),
        ("ঢাকায়", "ঢাকা"),
        ("সিলেটে", "সিলেট"),
        ("সিলেটের", "সিলেট"),
        ("સુરતમાં", "સુરત"),
        ("சென்னையில்", "சென்னை"),
        ("கடலூரில்", "கடலூர்"),
        ("కాకినాడలో", "కాకినాడ"),
        ("കൊച്ചിയിൽ", "കൊച്ചി"),
        ("ගාල්ලේ", "ගාල්ල"),
        ("Գյումրիում", "Գյումրի"),
        ("თბილისში", "თბილისი"),
        ("საქართველოდან", "საქართველო"),
        ("서울에서", "서울"),
        ("Астанада", "Астана"),
    ],
)
def test_what_is_written_onto_a_name_leaves_the_name(written, name):
    assert unjoined(keys(written)) == keys(name)
    assert any(place.name == PLACES.called(name)[0].name for place in (said.place for said in named_in(written)))


def test_no_word_too_short_for_a_name_and_none_in_latin_letters_is_cut():
    for word in ("בים", "በጅማ", "চাদর", "고양이", "лодке", "сюда", "granada", "veranda", "يوم"):
        assert unjoined(keys(word)) == keys(word), word


def test_a_name_in_scripts_without_spaces_is_kept_without_its_own_too():
    assert said_names("Utopia", ["ยู โทเปีย", "ユー トピア"]) == ["Utopia", "ยู โทเปีย", "ユー トピア", "ยูโทเปีย"]


def test_the_beginnings_hide_no_name_and_pass_one_in_twenty_of_what_begins_none():
    several = [key.split(" ") for key in map(keys, PLACES._names) if " " in key]
    assert len(several) > 30_000
    assert all(PLACES.begins(code(" ".join(parts[:n]))) for parts in several for n in range(1, len(parts)))
    others = [PLACES.begins(code(f"no place is called {n}")) for n in range(20_000)]
    assert np.mean(others) == pytest.approx(0.05, abs=0.01)


def test_what_the_table_holds_is_what_a_search_of_all_of_it_finds():
    asked = [key + other for key in map(keys, PLACES._names[::50]) for other in ("", " x")]
    assert [PLACES.holds(code(key)) for key in asked] == PLACES.known(asked).tolist()
    assert [len(PLACES.indices(code(key))) > 0 for key in asked] == PLACES.known(asked).tolist()


def test_a_name_of_one_place_means_it_and_what_it_lies_in_tells_of_it():
    asked = map(code, map(keys, PLACES._names[::100]))
    alone = [(c, int(found[0])) for c in asked if len(found := PLACES.indices(c, plain=False)) == 1]
    assert len(alone) > 500
    for wanted, place in alone:
        name = _name(wanted, PLACES)
        assert (name.biggest, name.places.tolist(), name.shares.tolist()) == (place, [place], [1.0])
        assert name.people.tolist() == PLACES.people(np.array([place])).tolist()
        assert list(name.above) == [PLACES.above(place)] and name.around == {*PLACES.above(place)}
        assert name.features["share"] == 1.0 and name.features["wide"] == PLACES.is_wide(place)
        assert not any(kept.flags.writeable for kept in (name.places, name.people, name.shares))


# --- what a user asks for


def test_an_area_is_asked_for_by_name_or_by_four_numbers():
    assert located("18,-74.5,20,-71.6") == {"area": [18, -74.5, 20, -71.6], "place": ""}
    assert located("") == {"area": [], "place": ""}
    found = located("Jacmel")
    assert found["place"] == "Jacmel, Sud-Est, HT" and within(found["area"], 18.235, -72.537)


def test_where_several_places_are_called_so_the_choices_are_told_and_can_be_asked_for():
    with pytest.raises(QueryError, match=r"places are called 'Springfield': choose .*Springfield, Illinois, US"):
        located("Springfield")
    assert located("Springfield, Illinois, US")["place"] == "Springfield, Illinois, US"
    with pytest.raises(QueryError, match=r"2 places are called 'Gaziantep'.*\(province\).*\(town\)"):
        located("Gaziantep")
    town, province = located("Gaziantep (town), TR")["area"], located("Gaziantep (province), TR")["area"]
    assert radius_km(town) < radius_km(province)


def test_one_place_far_bigger_than_all_others_of_its_name_is_meant():
    first, others = PLACES.choose("London")
    assert first.country == "GB" and others


def test_an_unknown_name_says_what_can_be_written_instead():
    with pytest.raises(QueryError, match="no place is called 'Qwertzuiop' here.*SOUTH,WEST,NORTH,EAST"):
        located("Qwertzuiop")


# --- what posts name


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("The water rises in Les Cayes, please send boats", "Les Cayes, Sud, HT"),
        ("Necesitamos agua en Pedernales, Ecuador", "Pedernales, Manabí, EC"),
        ("#Gaziantep enkaz altındayız", "Gaziantep"),
        ("محاصرون ببيروت تحت الركام", "Beirut"),
        ("太子港需要帮助，很多人被困", "Port-au-Prince, Ouest, HT"),
        ("서울 강남 반지하에 물이 차요 살려주세요", "Seoul"),
        ("대구 지하철 화재, 갇혔어요", "Daegu"),
        ("ደሴ ውሃ የለም", "Dessie"),
        ("محاصرون في غزة نحتاج ماء", "Gaza"),
        ("شوارع القاهرة غرقت ونحن عالقون", "Cairo"),
        ("大阪で地震、閉じ込められています", "Osaka"),
        ("בחיפה יש פצועים לכודים", "Ḩayfā"),
        ("সিলেটে পানি, সাহায্য চাই", "Sylhet"),
        ("नेपाल। पानी चाहिए", "Nepal"),
        ("ရန်ကုန်မှာ ရေကြီးနေပါတယ်", "Yangon"),
        ("အရမ်းကြီးနေတဲ့နီပေါမှာ", "Nepal"),
        ("น้ำท่วมหนักที่กรุงเทพมหานครช่วยด้วย", "Bangkok"),
        ("ນ້ຳຖ້ວມຢູ່ວຽງຈັນ", "Vientiane"),
        ("ទឹកជំនន់នៅភ្នំពេញ", "Phnom Penh"),
        ("ទឹក\u200bជំនន់\u200bនៅ\u200bភ្នំ\u200bពេញ\u200b", "Phnom Penh"),
    ],
)
def test_a_post_names_a_place(text, place):
    assert any(said.place.full_name.startswith(place) for said in named_in(text))
    assert all(0 < said.confidence < 1 and said.text in text for said in named_in(text))


@pytest.mark.parametrize(
    "text",
    [
        "Hurricane Florence is coming and Florence will be strong",
        "they want to send us nice things, we are all okay, van is full",
        "read https://example.org/London/Paris and ask @Berlin",
        "ဒီမှာ ရေကြီးနေပါတယ် လှေလိုပါတယ်",  # it is flooding here, a boat is needed
        "มีน้ำ ไม่มีไฟ น ม",
        "미리 대피하세요! “곧 옵니다”라고 했어요, 고양이도 있어요",  # leave beforehand, they said; there is a cat too
        "כיוון שאין מים, מי יכול לעזור",  # as there is no water
        "کیف حالکم",  # how are you
        "",
    ],
)
def test_storms_everyday_words_links_and_handles_are_no_places(text):
    assert named_in(text) == []


@given(syllables(MARKED))
def test_a_name_in_any_script_is_found_between_spaces(said):
    name, before, after, _ = said
    text = f"{before} {name} {after}"
    assert name in [text[find.start : find.end] for find in finds(text, gazetteer(name))]


@given(syllables(SIGNED))
def test_in_scripts_without_spaces_a_name_is_found_in_a_run(said):
    name, before, after, _ = said
    text = before + name + after
    assert name in [text[find.start : find.end] for find in finds(text, gazetteer(name))]


@given(syllables(SIGNED))
def test_no_name_is_found_that_ends_inside_a_syllable(said):
    name, before, _, sign = said
    assert finds(before + name + sign, gazetteer(name)) == [] or name in (before + name)[:-1]


def test_no_letter_is_parted_from_what_is_written_around_it():
    for name, text in (("นาน", "นานา"), ("มานา", "เมานา"), ("ကန", "ကန်"), ("កម", "កម្ពុជា"), ("โลม", "โลมาก์")):
        assert finds(text, gazetteer(name)) == [], name


def test_a_hashtag_of_one_word_is_whole_in_any_script():
    for text in ("#Nepal", "#नेपाल", "#နီပေါ", "#เนปาล"):
        assert [find.features["tag"] for find in finds(text, PLACES)] == [0.0], text


def test_the_country_named_beside_a_town_says_which_is_meant():
    assert named_in("flood in Paris, Texas")[0].place.country == "US"
    assert named_in("flood in Paris")[0].place.country == "FR"


def told(text: str, lang: str = "und") -> list[str]:
    return [said.place.full_name for said in named_in(text, lang=lang)]


def test_a_country_in_a_list_of_countries_is_no_town_of_another_and_no_part_of_its_own():
    for text in (
        "Tsunami warning for Mexico, Costa Rica, Nicaragua",
        "Tsunami warning for Costa Rica, Brasil, Colombia",
        "Mexico sends help to America, thank you Mexico",
        "Storm over Panama, Guatemala, Paraguay. Panama floods",
        "سيول في الكويت اليوم، ادعوا لأهل الكويت",
    ):
        assert [said.place.kind for said in named_in(text, most=9)] == ["country"] * len(told(text)), text


def test_a_country_gives_way_where_a_province_of_the_other_is_named_or_the_country_of_a_city_nearly_as_big():
    assert "Mexico, Missouri, US" in told("crash in Mexico, Missouri")
    assert told("flood in Kuwait City")[0].startswith("Kuwait City")
    assert any(name.startswith("Amman") for name in told("سيول في عمان الأردن")) and told("سيول في عمان") == [
        "Oman, OM"
    ]


def test_the_likeliest_place_inside_a_country_or_province_stands_before_it():
    for text, first in (
        ("#Olbia sotto acqua, tutta la #Sardegna chiede aiuto", "Olbia, Sardegna, IT"),
        ("Aiuto da Olbia, Sardegna, Italia", "Olbia, Sardegna, IT"),
        ("Nepal needs tents, most of all Kathmandu", "Kathmandu, Bagmati, NP"),
    ):
        assert told(text)[0] == first, text
    sure = {said.place.full_name: said.confidence for said in named_in("Nepal needs tents, most of all Kathmandu")}
    assert sure["Nepal, NP"] > sure["Kathmandu, Bagmati, NP"]  # it stands first all the same


def test_what_does_not_lie_in_the_likeliest_place_stands_in_the_order_of_its_likelihood():
    found = named_in("Flood in Nepal, India, Lagos and Paris", most=9)
    assert len(found) == 4
    assert [said.confidence for said in found] == sorted((said.confidence for said in found), reverse=True)


@pytest.mark.parametrize("small, country", [("Kalaw", "MM"), ("Santos", "BR")])
def test_a_small_town_in_another_country_than_the_surest_place_is_less_sure_unless_another_lies_there(small, country):
    def sure(text: str) -> float:
        (find,) = (find for find in finds(text, PLACES) if text[find.start : find.end] == small)
        assert PLACES.place(int(find.places[0])).country == country
        return find.confidence

    home = PLACES.place(next(i for i, iso in enumerate(PLACES._iso) if iso == country)).name
    alone = sure(f"the road to {small}")
    big = PLACES.called(small)[0].people >= 100_000
    assert (sure(f"In the Philippines the road to {small}") < alone) != big
    assert sure(f"In {home} the road to {small}, help the Philippines") >= alone


def test_a_town_apart_from_the_rest_of_the_text_still_lies_in_the_area_of_a_query():
    area = located("Kalaw")["area"]
    assert lies_in("In the Philippines and near Kalaw we wait", area)


def test_a_capital_that_only_begins_a_sentence_hides_no_place_of_the_languages_own_country():
    for text in ("Nou nan kenscoff, nou bezwen dlo", "Tanpri ede nou. Nan leogane nou bezwen tant", "Nan leogane: Dlo"):
        assert [said.place.country for said in named_in(text, lang="ht")] == ["HT"], text
        assert named_in(text) == named_in(text, lang="en") == []
    assert told("Nou nan kenscoff", lang="ht-HT") == told("nou nan kenscoff", lang="ht")
    assert named_in("Nou nan olbia", lang="ht") == []  # in another country
    assert named_in("Nou nan kenscoff ak Jan", lang="ht") == []  # its writer knows capitals
    assert told("Kenscoff bezwen dlo", lang="ht") == told("Kenscoff bezwen dlo")  # in a capital it is a name as before


def test_the_names_of_a_text_are_those_of_all_its_runs_the_longest_first():
    rng = np.random.default_rng(0)
    some = [keys(PLACES._names[n]).split(" ") for n in rng.integers(0, len(PLACES), 3_000)]
    parts = [part for name in some for part in name]
    for start in range(0, 3_000, 20):
        said = parts[start : start + 20]
        expected, at = [], 0
        while at < len(said):
            runs = [said[at : at + length] for length in range(5, 0, -1) if at + length <= len(said)]
            runs = [run for run in runs if run[0] not in _AFTER and run[-1] not in _AFTER]
            named = [run for run in runs if len(PLACES.indices(code(" ".join(run)), plain=False))]
            expected += [" ".join(run) for run in named[:1]]
            at += len(named[0]) if named else 1
        text = " ".join(said)
        assert [text[find.start : find.end] for find in finds(text, PLACES)] == expected


def test_what_a_post_costs_is_bounded_however_long_it_is():
    assert len(finds("Haiti " * 10_000, PLACES)) <= 150


def test_a_word_that_was_forgotten_names_what_it_named(monkeypatch):
    texts = ["Floods in Jacmel and Port-au-Prince, Haiti", "Flut in Köln, Berlin", "بغزة", "floods in jacmel, haiti"]
    told = [[(f.start, f.places.tolist(), f.features) for f in finds(text, PLACES)] for text in texts]
    assert all(told)
    monkeypatch.setattr(mentions, "KEPT", 2)
    mentions._names(PLACES).clear()
    again = [[(f.start, f.places.tolist(), f.features) for f in finds(text, PLACES)] for text in texts]
    assert again == told and len(mentions._names(PLACES)) <= 2


def test_a_text_of_any_kind_is_read_and_its_finds_do_not_overlap():
    rng = np.random.default_rng(0)
    letters = [chr(int(c)) for c in rng.integers(1, 0x2FFFF, 3_000) if not 0xD800 <= c <= 0xDFFF]
    for start in range(0, len(letters), 100):
        found = finds("".join(letters[start : start + 100]), PLACES)
        assert all(a.end <= b.start for a, b in zip(found, found[1:], strict=False))


# --- the filter


def test_a_post_without_coordinates_is_in_an_area_if_it_names_a_place_there():
    where = Where(**located("Haiti"))
    assert where.refusal(post(text="We need water in Les Cayes")) == ""
    assert where.refusal(post(text="We need water", geo=Geo(18.5, -72.3))) == ""
    assert "names Beirut" in where.refusal(post(text="We need water in Beirut"))
    assert "does not say where it is" in where.refusal(post(text="We need water"))
    assert "outside the query's area, Haiti, HT" in where.refusal(post(text="In Les Cayes", geo=Geo(0, 0)))


def test_of_places_of_one_name_the_one_in_the_area_is_meant_but_a_country_is_not_in_its_town():
    assert lies_in("water main broken in Springfield", located("Springfield, Illinois, US")["area"])
    assert not lies_in("We need water in Haiti", located("Port-au-Prince")["area"])


def test_an_area_is_named_in_small_letters_too_in_a_text_that_has_capitals():
    area = located("Léogâne")["area"]
    text = "Tanpri Bondye ede nou, Wozlò malad nan leogane"
    assert not named_in(text) and lies_in(text, area)
    assert not lies_in("Tanpri Bondye ede nou, Wozlò malad nan jacmel", area)


@pytest.mark.parametrize(
    "lang, text",
    [
        ("es", "necesitamos agua pero nadie llega"),
        ("az", "iki saat gözləyirik, su yoxdur"),
        ("fr", "JE SUIS SUR LE TOIT AVEC MON MARI"),
        ("ro", "cine are o barca"),
    ],
)
def test_a_word_of_the_posts_own_language_is_no_place_there_and_may_be_one_elsewhere(lang, text):
    assert named_in(text) and not named_in(text, lang=lang)
    told = named_in(text)[0].place
    area = list(told.box)
    assert lies_in(text, area) and not lies_in(text, area, lang=lang)
    assert named_in(f"{told.name}: flood", lang=lang)[0].place == told  # by the name that the language calls it


def test_a_language_is_told_with_or_without_its_region():
    assert named_in("flood in cada") and not named_in("flood in cada", lang="pt-BR")
