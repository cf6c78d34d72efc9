"""Tables: read by their header whatever the columns are called, with no row lost, cut, or read as another's."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import ConfigError, Rejected
from models.posts import parse_post
from streams.ingest.tables import read_table

ROOF = "I am fine, but we are trapped on the roof, send a boat"


def lines_of(table: str, name: str = "a.csv", notes: list[str] | None = None) -> list[object]:
    note = (notes if notes is not None else []).append
    return [json.loads(line) for line in read_table(io.BytesIO(table.encode()), name, note)]


def test_a_table_is_read_by_its_header_whatever_the_columns_are_called():
    first, second = lines_of(
        "\ufefftweet_id;Tweet_Text;created_at;latitude;longitude;other\r\n"
        '1;"Water, please; ""now""\r\nat the bridge";2026-02-01T08:00:00Z;1.5;-2;x\r\n'
        "2;Food;;;;\r\n"
    )
    assert first == {
        "id": "1",
        "text": 'Water, please; "now"\r\nat the bridge',
        "created_at": "2026-02-01T08:00:00Z",
        "geo": {"lat": 1.5, "lon": -2.0},
    }
    assert second == {"id": "2", "text": "Food"}


@pytest.mark.parametrize(
    "titles",
    ["Tweet ID,Tweet Text,Created At,User Name", "post-id,full_text,Post Created,username", "ID,Message,posted,user"],
)
def test_titles_count_however_their_words_are_joined(titles):
    (post,) = lines_of(f"{titles}\n1,Water,2026-11-20 10:00,ada\n")
    assert post == {"id": "1", "text": "Water", "created_at": "2026-11-20 10:00", "author": "ada"}


def test_which_column_is_read_as_what_is_told_once():
    notes: list[str] = []
    lines_of("Nr,Tweet Text,Date,Time,Phone\n1,Water,2026-11-20,10:00,5\n2,Food,2026-11-20,10:01,6\n", notes=notes)
    assert notes == ["a.csv: text from 'Tweet Text', created_at from 'Date' and 'Time'"]


def test_a_table_without_a_text_column_says_which_columns_it_has():
    with pytest.raises(ConfigError, match="it has id, words"):
        lines_of("id,words\n1,a\n")


def test_a_row_without_a_text_stays_to_be_refused():
    (line,) = read_table(io.BytesIO(b"text\tlang\n\tfr\n"), "a.tsv")
    with pytest.raises(Rejected) as refused:
        parse_post(line, seen_at=1.0, author_key=b"k")
    assert refused.value.reason == "empty_text"


def test_undecodable_bytes_of_a_table_stay_to_be_refused_as_such():
    (line,) = read_table(io.BytesIO(b"id,text\n1,caf\xe9\n"), "a.csv")
    with pytest.raises(Rejected) as refused:
        parse_post(line, seen_at=1.0, author_key=b"k")
    assert refused.value.reason == "bad_utf8"
    (line,) = read_table(io.BytesIO(b"text\ncaf\xe9\n"), "a.csv")  # without an id too
    assert b"caf\xe9" in line


# ids


def ids(table: str, name: str = "export.csv") -> list[str]:
    return [post["id"] for post in lines_of(table, name)]


def test_the_next_day_s_table_without_ids_edits_no_post_of_the_day_before():
    monday = ids("text,time\nWe are trapped,2026-11-16 10:00\nWe need water,2026-11-16 10:05\n")
    tuesday = ids("text,time\nGood morning,2026-11-17 10:00\nWe need water,2026-11-17 10:05\n")
    assert not set(monday) & set(tuesday)


def test_a_row_read_again_is_the_same_post_wherever_it_stands_and_whatever_is_not_read_of_it():
    table = "text,author,status\nWater,ada,open\nFood,bob,open\n"
    longer = "text,author,status\nBlankets,eve,open\nWater,ada,done\nFood,bob,open\n"
    assert ids(table) == ids(table) == ids(longer)[1:]
    assert not set(ids(table)) & set(ids(table, "other.csv"))


@given(st.lists(st.tuples(st.sampled_from(["water", "food", ""]), st.sampled_from(["ada", "bob", ""])), max_size=12))
def test_rows_that_say_the_same_are_posts_of_their_own(rows):
    table = "text,author\n" + "".join(f"{text},{author}\n" for text, author in rows)
    found = ids(table)
    assert len(found) == len(set(found)) == len(rows)
    assert found == ids(table + "more,eve\n")[: len(rows)]  # and stay what they are when the table grows


@pytest.mark.parametrize("rounded", ["1.59E+18", "1.59e+18", "1,59E+18", "2E+18", "1.59E+018"])
def test_an_id_that_a_spreadsheet_rounded_is_none_and_is_told(rounded):
    notes: list[str] = []
    table = f"id;text\n{rounded};We are trapped\n{rounded};We need insulin\n7;Water\n"
    posts = lines_of(table, notes=notes)
    assert [post["text"] for post in posts] == ["We are trapped", "We need insulin", "Water"]
    assert len({post["id"] for post in posts}) == 3 and posts[2]["id"] == "7"
    assert notes[1].startswith(f"a.csv: 2 ids were rounded by a spreadsheet, the first is {rounded!r}")


@pytest.mark.parametrize("kept", ["1e5", "E+18", "15.9E+18", "1.59E+18x", "1590000000000000123"])
def test_other_ids_stay(kept):
    assert ids(f"id,text\n{kept},Water\n") == [kept]


# quotes and cells


@pytest.mark.parametrize("rows, stray", [(100, 50), (3, 3), (20, 1)])
def test_a_quote_that_is_never_closed_swallows_no_row(rows, stray):
    table = "id,text\n" + "".join(f"{n},{chr(34) * (n == stray)}water {n}\n" for n in range(1, rows + 1))
    assert ids(table) == [str(n) for n in range(1, rows + 1)]


def test_a_quote_in_the_last_row_keeps_its_cells_apart():
    assert lines_of('id,text,lang\n1,"water,en\n') == [{"id": "1", "text": '"water', "lang": "en"}]


@given(st.lists(st.sampled_from(["water", '"water', '"@ada: food', 'a "boat"', "5' pipe"]), min_size=1, max_size=12))
def test_quotes_that_begin_texts_of_a_tsv_swallow_no_row(texts):
    table = "id\ttext\tlang\n" + "".join(f"{n}\t{text}\ten\n" for n, text in enumerate(texts))
    posts = lines_of(table, "a.tsv")
    assert [(post["id"], post["text"].strip('"')) for post in posts] == [
        (str(n), text.strip('"')) for n, text in enumerate(texts)
    ]


@pytest.mark.parametrize("name, tab", [("a.csv", ","), ("a.tsv", "\t")])
def test_a_quoted_text_of_several_lines_is_one_row_also_at_the_end(name, tab):
    table = f'id{tab}text\n1{tab}"water\nat the bridge"\n2{tab}5" pipes\n3{tab}"food\n""now"""\n'
    texts = [post["text"] for post in lines_of(table, name)]
    assert texts == ["water\nat the bridge", '5" pipes', 'food\n"now"']


@pytest.mark.parametrize("name", ["one.csv", "one.tsv"])
def test_a_table_of_one_column_has_nothing_that_parts_its_texts(name):
    table = f'text\n{ROOF}\n"Ok; {ROOF}"\nHello|{ROOF}\n'
    assert [post["text"] for post in lines_of(table, name)] == [ROOF, f"Ok; {ROOF}", f"Hello|{ROOF}"]


def test_a_tsv_is_parted_by_tabs_however_many_commas_its_titles_hold():
    (post,) = lines_of(f"id\ttext\tcity, district, street\n1\t{ROOF}\tx\n", "a.tsv")
    assert post == {"id": "1", "text": ROOF}


def test_a_text_that_nobody_quoted_is_whole_where_it_stands_last():
    (post,) = lines_of(f"id,lang,text\n1,en,{ROOF}\n")
    assert post == {"id": "1", "lang": "en", "text": ROOF}


def test_a_row_of_too_many_cells_is_refused_with_the_reason_not_cut():
    (line,) = lines_of(f"id,text,lang\n1,{ROOF},en\n")
    assert line == "a.csv, row 1: 5 cells under 3 titles: quote a text that holds ','"


def test_blank_cells_behind_a_row_are_none():
    assert lines_of("id,text\n1,water,, ,\n") == [{"id": "1", "text": "water"}]


# places, kinds and the hashtags of HXL


def test_a_place_is_read_with_a_decimal_comma_too():
    table = "id;text;lat;lon\n1;a;18,54;-72,33\n2;b;18.54;-72.33\n3;c;north;1\n4;d;nan;inf\n5;e;1,2,3;4\n"
    here = {"lat": 18.54, "lon": -72.33}
    assert [post.get("geo") for post in lines_of(table)] == [here, here, None, None, None]


@pytest.mark.parametrize("kind, read", [("need", None), ("tweet", None), ("update", "update"), (" Delete", "delete")])
def test_a_kind_that_is_not_ours_says_nothing(kind, read):
    (post,) = lines_of(f"id,kind,text\n1,{kind},water\n")
    assert post.get("kind") == read


def test_the_row_of_hashtags_under_the_titles_is_no_post():
    tags = "#meta+id,#description+post,#geo +lat,#geo+lon,"
    (post,) = lines_of(f"id,text,lat,lon,other\n{tags}\n1,water,1,2,x\n")
    assert post == {"id": "1", "text": "water", "geo": {"lat": 1.0, "lon": 2.0}}


def test_a_post_of_hashtags_is_a_post():
    assert [post["text"] for post in lines_of("text\n#SOS\n")] == ["#SOS"]
    assert [post["text"] for post in lines_of("author,text\nada,#SOS\n#one,#SOS\n")] == ["#SOS", "#SOS"]
    assert [post["text"] for post in lines_of("author,text\nada,water\n#one,#SOS\n")] == ["water", "#SOS"]


def test_a_quote_that_the_next_row_s_closes_loses_neither():
    table = 'id,text,n\n1,"We are trapped on the roof,5\n2,"Trapped under rubble, please help",6\n3,ok,7\n'
    assert [post["text"] for post in lines_of(table)] == [
        '"We are trapped on the roof',
        "Trapped under rubble, please help",
        "ok",
    ]
