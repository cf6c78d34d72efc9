"""Words of clusters: found in any script, weighed, faded, and made a label of."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files
from math import log1p

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.clusters import labels
from models.clusters.function_words import function_words
from models.clusters.labels import Sample, Vocabulary, heaviest, label_of, prune, terms_of
from models.language_tags import normalise_tag


@given(st.text(max_size=300))
def test_any_text_gives_terms_without_raising(text):
    assert all(terms_of(text))


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Flood in RIVERTON! flood", ["flood", "riverton", "flood"]),
        ("see https://example.org/x @someone &amp; HTTPURL #help 112", ["see", "help"]),
        ("पानी चाहिए।", ["पानी", "चाहिए"]),
        ("نحتاج إلى ماء نظيف", ["نحتاج", "إلى", "ماء", "نظيف"]),
        ("需要饮用水", ["需要", "要饮", "饮用", "用水"]),
        ("助けて", ["助け", "けて"]),
        ("น้ำท่วม", ["น้", "้ำ", "ำท", "ท่", "่ว", "วม"]),
        ("ရေလို", ["ရေ", "ေလ", "လိ", "ို"]),
        ("vodă și apă", ["vodă", "apă"]),
        ("нужна вода", ["нужна", "вода"]),
        ("covid病毒", ["covid", "病毒"]),
        ("서울 지진 홍수 구조 대피 요청, 곧", ["서울", "지진", "홍수", "구조", "대피", "요청"]),
        ("ውሃ ምግብ ቤት", ["ውሃ", "ምግብ", "ቤት"]),
        ("ދިވެހި ފެން", ["ދިވެހި", "ފެން"]),
        ("", []),
    ],
)
def test_words_are_found_in_any_script(text, expected):
    assert terms_of(text) == expected


ADDRESSES = re.compile(r"https?://\S+|www\.\S+|\S+@\S+|@\w+|&\w+;")  # as one would write it down


@given(st.lists(st.sampled_from(["a", "bc", "@", " ", "\n", "&", ";", ".", "/", "www.", "https://", "é"]), max_size=30))
@settings(max_examples=500)
def test_links_addresses_and_mentions_are_left_out_as_if_looked_for_at_every_letter(parts):
    text = "".join(parts)
    assert labels._SKIP.sub(" ", text) == ADDRESSES.sub(" ", text)


@pytest.mark.parametrize("begin, terms", [("/", 1), ("@", 0), ("&", 1), ("www", 1), ("a@ ", 1)])
def test_a_long_text_without_spaces_is_read_as_a_short_one(begin, terms):
    """Half a minute, where its end is looked for from every letter."""
    assert len(terms_of(begin + "a" * 200_000)) == terms == len(terms_of(begin + "a" * 20))


def test_a_label_prefers_words_of_the_cluster_over_words_of_the_stream():
    stream = {"the": 900.0, "flood": 60.0, "riverton": 40.0, "water": 300.0}
    counts = {"the": 60.0, "flood": 50.0, "riverton": 40.0, "floods": 20.0, "water": 10.0}
    assert label_of(counts, stream, mean=50.0, size=3) == ["riverton", "flood", "the"]


def counted(texts):
    return dict(Counter(term for text in texts for term in terms_of(text)))


def test_what_two_posts_say_comes_before_what_one_says_and_function_words_are_left_out():
    """One event is all of the stream, so c-TF-IDF holds "the" for a word of the cluster, and every rare word too."""
    texts = ["The bridge at Riverton is down", "bridge is closed, the 42nd", "Aardvark and the bridge, Riverton"]
    counts = counted(texts)
    weighed = [term for _, term in sorted((-n * log1p(10.0 / n), term) for term, n in counts.items())]
    assert weighed[:2] == ["bridge", "the"] and weighed.index("42nd") < weighed.index("down")
    assert label_of(counts, counts, 10.0, 3, dict.fromkeys(texts, "en")) == ["bridge", "riverton", "42nd"]


@pytest.mark.parametrize(
    "lang, texts, label",
    [
        ("es", ["los puentes con agua", "los puentes, con barro"], {"puentes"}),
        ("pt-BR", ["você precisa de água", "água para você"], {"água"}),
        ("tl", ["ang tulay mga baha", "mga tulay ang baha"], {"tulay", "baha"}),
        ("tl", ["the bridge ang tulay", "sa the bridge"], {"bridge"}),  # English is in posts of all languages
        ("und", ["the water", "water the"], {"water"}),  # "water" is a function word of Dutch, none of English
        ("en", ["watch http road", "road http watch"], {"watch", "road"}),
    ],
)
def test_function_words_of_the_posts_languages_are_left_out(lang, texts, label):
    two = label_of(counted(texts), {}, 10.0, len(label), dict.fromkeys(texts, lang))
    assert set(two) == label


def test_a_word_of_most_posts_is_no_function_word_for_one_post_in_another_language():
    texts = {f"the war in street {n}": "en" for n in range(11)} | {"es war einmal": "de"}
    assert label_of(counted(texts), {}, 10.0, 1, texts) == ["war"]
    assert label_of(counted(["es war"] * 2), {}, 10.0, 1, {"es war rot": "de", "es war gut, rot": "de"}) == ["war"]


def test_posts_of_nothing_but_function_words_have_a_label():
    texts = dict.fromkeys(["and the others", "the and"], "en") | {"they, the": "en"}
    assert label_of({"the": 3.0, "and": 2.0}, {}, 10.0, 2, texts) == ["the", "and"]


def test_a_word_is_said_where_a_word_begins_with_it():
    texts = dict.fromkeys(["ceasefire: firefighters", "#fire", "campfire"], "en")
    assert [labels.Sample(texts).said(term) for term in ("fire", "campfire", "smoke", "the")] == [2, 1, 0, 0]


@pytest.mark.parametrize("counts", [{}, {"bridge": 0.0}])
def test_a_cluster_whose_counts_faded_is_labelled_by_its_posts(counts):
    texts = dict.fromkeys(["the bridge is down", "bridge closed", "no way over the bridge"], "en")
    assert label_of(counts, {"bridge": 5.0}, 0.0, 1, texts) == ["bridge"]


def test_every_list_of_function_words_is_read_as_labels_read_words():
    lines = (files("models") / "data" / "function_words.tsv").read_text(encoding="utf-8").splitlines()
    langs = [line.split("\t")[0] for line in lines]
    assert langs == sorted(set(langs)) and set(langs) <= {normalise_tag(lang) for lang in langs}
    for lang, words in (line.split("\t") for line in lines):
        assert terms_of(words.replace(",", " ")) == words.split(",") == sorted(words.split(",")), lang
        assert function_words(lang) >= set(words.split(","))
    assert "the" in function_words("xx") and "los" not in function_words("und")


@pytest.mark.parametrize(
    "texts, label",
    [
        (["地震发生了", "海边地震发生", "地震发生,救援来", "救援在哪", "快救援"], ["地震发生", "救援"]),
        (["น้ำท่วมบ้าน", "ที่นี่น้ำท่วม", "น้ำท่วมหนัก ช่วยด้วย", "ช่วยด้วยครับ"], ["น้ำท่วม", "ช่วยด้วย"]),
        (["ရေကြီးနေတယ်", "မြို့ထဲ ရေကြီး။", "ရေကြီးလို့ ကူညီပါ", "ကူညီပါ။"], ["ရေကြီး", "ကူညီပါ"]),
        (["洪水で道路が", "洪水です", "また洪水", "flood 洪水"], ["洪水"]),
    ],
)
def test_where_words_are_not_parted_a_label_has_what_the_posts_share(texts, label):
    counts = Counter(term for text in texts for term in terms_of(text))
    assert sorted(label_of(dict(counts), {}, 10.0, len(label), dict.fromkeys(texts, "und"))) == sorted(label)


@given(st.lists(st.text("水震地洪救น้ำท่วมရေကြီး ab", max_size=30), max_size=12), st.integers(1, 5))
@settings(max_examples=200, deadline=None)
def test_every_part_of_a_label_is_in_a_post_and_what_was_joined_in_two(texts, size):
    counts = Counter(term for text in texts for term in terms_of(text))
    label = label_of(dict(counts), {}, 10.0, size, dict.fromkeys(texts, "und"))
    again = label_of(dict(sorted(counts.items())), {}, 10.0, size, dict.fromkeys(texts[::-1], "und"))
    assert len(label) <= size and label == again
    for part in label:
        assert sum(part in text for text in set(texts)) >= (1 if part in counts else 2)
        assert len(part) > 1 and not any(part in other for other in label if other is not part)


COUNTS = st.dictionaries(st.text("abcdefg", min_size=1, max_size=3), st.sampled_from([0.0, 0.5, 1.0, 1.5, 7.0, 40.0]))


@given(COUNTS, COUNTS, st.sampled_from([0.1, 3.0, 500.0]))
@settings(max_examples=200, deadline=None)
def test_a_label_has_the_heaviest_of_all_terms_though_few_are_weighed(counts, stream, mean):
    weighed = [(-n * log1p(mean / max(stream.get(term, 0.0), n)), term) for term, n in counts.items() if n]
    assert list(heaviest(counts, stream, mean)) == [term for _, term in sorted(weighed)]


def test_pruning_keeps_the_heaviest_terms_whatever_their_order():
    counts = {f"w{i}": float(i % 10) for i in range(50)}
    backwards = dict(reversed(counts.items()))
    prune(counts, 20)
    prune(backwards, 20)
    assert counts == backwards and len(counts) == 20 and min(counts.values()) >= 6


@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=30), st.floats(10, 1e5))
@settings(max_examples=50, deadline=None)
def test_term_counts_decay_by_half_life_over_any_span_of_time(times, half_life_s):
    vocabulary, counts, times = Vocabulary(half_life_s), {}, sorted(times)
    for at in times:
        if vocabulary.due(at):
            vocabulary.rescale(at, [counts])
        vocabulary.add(["water"], vocabulary.scale(at), counts)
    now = times[-1]
    closed = sum(2.0 ** max((t - now) / half_life_s, -1000) for t in times)
    assert counts["water"] / vocabulary.scale(now) == pytest.approx(closed, rel=1e-6, abs=1e-6)
    assert vocabulary.counts == pytest.approx(counts)


def test_what_two_posts_share_is_a_word_and_not_the_end_of_one_behind_a_vowel_sign():
    sample = Sample({"सुनामी आई": "und", "सुनामी चेतावनी जारी": "und"})
    assert [sample.said(term) for term in ("सुनामी", "चेतावनी", "नामी", "तावनी")] == [2, 1, 0, 0]
