"""What a card of the page says, and which alerts share one."""

from __future__ import annotations

import re
import time

import msgspec
import pytest
from playwright.sync_api import expect

from models.moments import rfc3339
from models.records import Evidence, Geo, NamedPlace, Reading
from tests.dashboard.browsing import cards
from tests.dashboard.invented import invent


def test_alerts_of_one_post_read_as_one(page, server):
    at = time.time()
    both = [
        invent(950, query, text="a tent and water, please", score=score, at=at)
        for query, score in (("need.water", 0.55), ("need.shelter", 0.71))
    ]
    server.call(lambda view: view.put_alerts(both))
    expect(page.locator(".card", has_text="a tent and water")).to_have_count(2)
    expect(page.locator(".card .text", has_text="a tent and water").locator("visible=true")).to_have_count(1)
    expect(cards(page).first.locator(".category")).to_have_text("Shelter")  # the surest is on top
    page.get_by_role("button", name=re.compile("^Shelter, needs")).click()
    expect(page.locator(".card .text", has_text="a tent and water").locator("visible=true")).to_have_count(1)


def test_a_low_score_is_not_said_to_reach_its_threshold(page, server):
    server.call(
        lambda view: view.put_alerts(
            [invent(960, level="suggestion", score=0.41, threshold=0.51, probability=0.05, at=time.time())]
        )
    )
    expect(cards(page).first.locator(".score")).to_have_text("0.41 < 0.51")
    expect(cards(page).first.locator(".chance")).to_have_text("5 % likely")


def test_a_score_that_is_below_its_threshold_by_a_hair_does_not_read_as_the_same_number(page, server):
    head = Evidence("We need water", "en", 0.5, terms={"head": 1.0, "bias": -1.0})
    at = time.time()
    told = [
        invent(961, level="suggestion", score=0.4988, threshold=0.5, probability=0.3, evidence=head, at=at),
        invent(962, level="suggestion", score=0.5051, threshold=0.51, probability=0.3, at=at),
    ]
    server.call(lambda view: view.put_alerts(told))
    score = '#list > .card[data-post="p{}"] .score'
    expect(page.locator(score.format(961))).to_have_text("49 % < 50 %")
    expect(page.locator(score.format(962))).to_have_text("0.50 < 0.51")


def sure_by(query, terms, **more):
    """An alert on one line whose terms say how it was read, and the names its numbers have on its card."""
    evidence = Evidence("We need water", "en", 0.7, terms=terms)
    return invent(965, query, text=query, evidence=evidence, threshold=0.5, at=time.time(), **more)


def test_what_makes_a_need_an_alert_is_told_apart_from_how_likely_its_category_is(page, server):
    # By the head 87 of 100 such posts can be acted on, and 42 of 100 ask for this: an alert, and no "42 % likely" one.
    alert = sure_by("need.water", {"bias": -1.5, "query": 0.5, "head": 0.7}, score=0.87, probability=0.42)
    server.call(lambda view: view.put_alerts([alert]))
    first = page.locator('#list > .card[data-post="p965"]')
    expect(first.locator(".chance")).to_have_text("87 % a need or offer")
    expect(first.locator(".chance")).to_have_class("chance good")
    expect(first.locator(".score")).to_have_text("87 % ≥ 50 %")
    expect(first.locator(".under")).to_have_text("42 % under this category")
    for part in (".chance", ".score", ".under"):
        expect(first.locator(part)).to_have_attribute(
            "title",
            "87 %: how likely anybody can act on the post, whichever category it is; it alerts from 50 %. "
            "42 %: how likely this category is the right one",
        )
    page.keyboard.press("?")
    expect(page.locator("#help")).to_contain_text("how likely anybody can act on the post at all")


@pytest.mark.parametrize(
    "query, terms",
    [
        ("warning.danger", {"bias": -1.5, "query": 0.5, "head": 1.5}),
        ("need.boats", {"bias": -1, "query": 1, "gate": 1}),
    ],
)
def test_a_notice_and_a_query_the_head_never_saw_have_one_number_that_is_held_against_the_bar(
    page, server, query, terms
):
    server.call(lambda view: view.put_alerts([sure_by(query, terms, score=0.6214, probability=0.621)]))
    first = page.locator('#list > .card[data-post="p965"]')
    expect(first.locator(".chance")).to_have_text("62 % under this category")
    expect(first.locator(".score")).to_have_text("62 % ≥ 50 %")
    expect(first.locator(".under")).to_be_empty()


def test_where_it_is_in_doubt_whether_that_is_needed_or_offered_how_likely_it_is_as_this_is_told(page, server):
    terms = {"bias": -1, "query": 1, "gate": 1}
    server.call(lambda view: view.put_alerts([sure_by("offer.boats", terms, score=0.62, probability=0.54)]))
    first = page.locator('#list > .card[data-post="p965"]')
    expect(first.locator(".chance")).to_have_text("62 % under this category")
    expect(first.locator(".score")).to_have_text("62 % ≥ 50 %")
    expect(first.locator(".under")).to_have_text("54 % as an offer")


def test_without_a_learnt_head_a_score_is_no_probability(page, server):
    server.call(lambda view: view.put_alerts([sure_by("need.food", {"measured": 1.1}, score=0.61, probability=0.75)]))
    first = page.locator('#list > .card[data-post="p965"]')
    expect(first.locator(".chance")).to_have_text("75 % likely")
    expect(first.locator(".score")).to_have_text("0.61 ≥ 0.50")
    expect(first.locator(".score")).to_have_attribute("title", re.compile("^0.61: how close the post is to the query"))


def test_many_alerts_of_one_post_fold_to_the_surest_three(page, server):
    queries = ["need.water", "need.food", "need.shelter", "need.money", "need.animals"]
    many = [
        invent(970, q, text="everything is gone", score=0.5 + n / 100, at=time.time()) for n, q in enumerate(queries)
    ]
    server.call(lambda view: view.put_alerts(many))
    ours = page.locator('#list > .card[data-post="p970"]')
    expect(ours).to_have_count(5)  # all have come
    seen = ours.locator("visible=true")
    expect(seen).to_have_count(3)
    assert [one.split("\n")[1] for one in seen.all_inner_texts()] == ["Animals", "Money", "Shelter"]
    page.get_by_role("button", name="+2 weaker").click()
    expect(seen).to_have_count(5)
    page.get_by_role("button", name="less").click()
    expect(seen).to_have_count(3)


def test_an_opened_card_says_why_it_is_so_likely_and_in_the_readers_language(page, server):
    near = Evidence("Nou bezwen dlo", "ht", 0.7, "We need water", "en", {"bias": -1.5, "query": 0.5, "head": 3.25})
    server.call(lambda view: view.put_alerts([invent(980, evidence=near, at=time.time())]))
    because = cards(page).first.locator(".because")
    expect(because).to_have_text(
        "like the query’s We need water English · +2.25 = bias −1.50 + query +0.50 + head +3.25"
    )
    expect(because.locator("q")).to_have_attribute("title", re.compile("nearest to the post.* no translation"))
    expect(because).to_be_hidden()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(because).to_be_visible()


def test_the_words_that_moved_an_opened_alert_are_marked_in_its_text_and_nothing_else_changes(page, server):
    text = "🙏 <b>send</b> water now"
    moved = {
        "query_id": "need.water",
        "log_odds": 2.0,
        "rest": 0.5,
        "words": [
            {"start": 5, "end": 9, "by": -0.4},
            {"start": 14, "end": 19, "by": 1.9},
        ],
    }
    page.route("**/api/words?*", lambda route: route.fulfill(json={"moved": moved}))
    server.call(lambda view: view.put_alerts([invent(985, text=text, at=time.time())]))
    first = cards(page).first
    expect(first.locator(".text")).to_have_text(text)
    expect(first.locator("mark")).to_have_count(0)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(first.locator("mark")).to_have_text(["send", "water"])
    expect(first.locator("mark.toward")).to_have_text("water")
    expect(first.locator(".text")).to_have_text(text)
    expect(first.locator(".moved")).to_have_text("+2.00 = words +1.50 + what no single word moves +0.50")


def test_a_place_that_a_post_names_stands_on_its_card_with_how_sure_that_is(page, server):
    named = NamedPlace("Okay", "Les Cayes, Sud, HT", "town", 18.19, -73.75, 5.0, 0.62)
    server.call(lambda view: view.put_alerts([invent(986, geo=None, places=[named], at=time.time())]))
    expect(cards(page).first.locator(".place")).to_have_text("names Les Cayes, Sud, HT (62 %)")


def test_the_place_on_a_card_leads_to_the_posts_that_are_there(page, server):
    here, near = NamedPlace("Okay", "Les Cayes, Sud, HT", "town", 18.19, -73.75, 5.0, 0.62), Geo(18.2, -73.74)
    sud, isles = NamedPlace("Sud", "Sud, HT", "province", 18.25, -73.8, 60.0, 0.5), Geo(-17.8, 179.99)
    where = {
        989: {"geo": None, "places": [here]},
        990: {"geo": near},
        991: {"geo": None, "places": [sud]},
        992: {"geo": isles},
        993: {"geo": None, "places": []},
    }
    told = [invent(number, at=time.time(), **fields) for number, fields in where.items()]
    server.call(lambda view: view.put_alerts(told))
    reached = {989: ["p989", "p990"], 990: ["p989", "p990"], 991: ["p989", "p990", "p991"], 992: ["p992"]}
    for number, there in reached.items():
        page.locator(f'#list > .card[data-post="p{number}"] .place').click()
        expect(cards(page)).to_have_count(len(there))
        assert sorted(card.get_attribute("data-post") for card in cards(page).all()) == there
        chip = page.get_by_role("button", name=re.compile("^Remove filter area"))
        expect(chip).to_contain_text({989: "in Les Cayes", 991: "in Sud"}.get(number, "around"))
        chip.click()
    expect(page.locator('#list > .card[data-post="p993"] .place')).to_be_hidden()


def test_a_post_that_is_seen_long_after_it_was_posted_says_so_before_it_is_opened(page, server):
    at = time.time()
    server.call(lambda view: view.put_alerts([invent(987, at=at, created_at=rfc3339(at - 3600)), invent(988, at=at)]))
    late, soon = (page.locator(f'#list > .card[data-post="p{n}"]') for n in (987, 988))
    expect(late).to_have_class(re.compile(r"\blate\b"))
    expect(late.locator(".posted")).to_be_visible()
    expect(late.locator(".posted")).to_have_text(re.compile(r"^posted .*\d\d:\d\d$"))
    expect(soon.locator(".posted")).to_be_hidden()


def test_a_card_that_changes_keeps_its_place_in_a_crowd(page, server):
    both = [invent(n, text=f"one of two {n}", at=time.time() + n, cluster_id="c-two") for n in (1, 2)]
    both = [msgspec.structs.replace(a, post=msgspec.structs.replace(a.post, id=f"x:{n}/1")) for n, a in enumerate(both)]
    both = [msgspec.structs.replace(a, alert_id=f"two-{n}") for n, a in enumerate(both)]
    server.call(lambda view: view.put_alerts(both))
    ours = page.locator('#list > .card[data-crowd^="c-two"]')
    expect(ours.locator("visible=true")).to_have_count(1)
    page.keyboard.press("j")  # somebody reads: nothing is grouped anew
    changed = msgspec.structs.replace(both[1], revision=both[1].revision + 1, score=0.8)
    server.call(lambda view: view.put_alerts([changed]))
    expect(ours.and_(page.locator('[data-id="two-1"]'))).to_have_attribute("data-revision", str(changed.revision))
    expect(ours.locator("visible=true")).to_have_count(1)


def test_posts_of_one_cluster_are_one_card_that_says_how_many_more_and_the_counts_agree(page, server):
    def said(n, lang, **more):
        post = msgspec.structs.replace(invent(n, lang=lang, at=time.time()).post, id=f"x:{n % 2}/{n}")
        return invent(n, lang=lang, at=time.time(), post=post, cluster_id="c-new", **more)

    also = [Reading("need.food", "suggestion", 0.41)]
    alerts = [said(990, "en", also=also), said(991, "ht"), said(992, "en")]
    for alert in alerts:
        server.call(lambda view, alert=alert: view.put_alerts([alert]))
    expect(cards(page)).to_have_count(43)
    seen = page.locator('#list > .card[data-crowd^="c-new"]').locator("visible=true")
    expect(seen).to_have_count(1)
    first = page.locator('#list > .card[data-post="x:0/990"]')  # stays the card
    expect(first.locator(".also")).to_have_text("also Need: Food 41 %")
    expect(first.locator(".crowd")).to_have_text("+2 more, 2 authors, 2 languages")
    expect(cards(page).first).to_have_attribute("data-post", "x:0/990")  # where the newest of them stands
    expect(page.locator("#count")).to_have_text("43 posts stand")
    expect(page.locator("#needs-total")).to_have_text(str(43 - 13))
    first.locator(".crowd").click()
    expect(seen).to_have_count(3)
    first.locator(".crowd").click()
    expect(seen).to_have_count(1)


def test_five_people_of_one_mastodon_server_are_five_authors_and_one_who_posts_twice_is_one(page, server):
    # What stands before the slash of `masto:HOST/ID` is the server: only the author tells its people apart.
    for n, who in enumerate(["ada", "ben", "eva", "ida", "ida", "leo"]):
        said = invent(
            n, at=time.time(), post_id=f"masto:m.example/{n}", author=f"pseudonym-{who}", cluster_id="c-masto"
        )
        server.call(lambda view, said=said: view.put_alerts([said]))
    first = page.locator('#list > .card[data-post="masto:m.example/0"]')
    expect(first.locator(".crowd")).to_have_text("+5 more, 5 authors, 1 language")
    assert "pseudonym-" not in page.content()  # whose it is, the page need not know


def test_many_new_accounts_with_one_text_are_told_on_the_card(page, server):
    text = "Give money to the rescue of our city, number {}"
    for n in range(9):
        bot = invent(700 + n, text=text.format(n), at=time.time(), post_id=f"x:bot{n}/1")
        server.call(lambda view, bot=bot: view.put_alerts([bot]))
    expect(cards(page).first.locator(".marks")).to_have_text("9 accounts, same words")
    expect(cards(page).last.locator(".marks")).to_be_hidden()
