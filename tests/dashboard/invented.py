"""Invented alerts and clusters, hostile ones too, for the tests of the page and what looks like it."""

from __future__ import annotations

import random
from collections import Counter

import msgspec

from models.alerts import place_in_cluster
from models.moments import rfc3339
from models.records import Alert, ClusterEvent, Evidence, Example, Geo
from tests.outputs.invented import invent as any_alert

HOSTILE = {
    "script": '<script>document.title="owned"</script><img src=x onerror="document.title=\'owned\'"> water please',
    "rtl": "\u202egnp.exe \u202e we need water \u2066 unclosed",
    "zalgo": "w" + "\u0301\u0316\u0334" * 60 + "ater" + "\u0489" * 80,
    "long": "waaaater" * 700,
    "blank": " \u200b ",
    "json": '"}]}</script><script>alert(1)</script>\u2028\u2029&amp;<!--',
}


POSTS = [  # query, language, text
    ("need.search_rescue", "uk", "Мою сусідку завалило у підвалі на Ливарній, чути стукіт. Де рятувальники?"),
    ("need.water", "es", "No hay agua en la escuela de Tesk, somos unas ochenta personas con niños"),
    ("offer.water", "ar", "عندنا صهريج ماء صالح للشرب قرب الميناء، تعالوا بالقوارير"),
    ("need.medical_help", "tr", "Babam göğüs ağrısı çekiyor, ambulans gelemiyor, yakında doktor var mı?"),
    ("offer.shelter", "fr", "Nous avons une chambre au sec pour une famille, près de la place de Marova"),
    ("need.baby_hygiene", "my", "ကလေးနို့မှုန့်နဲ့ ဒိုင်ပါ လိုအပ်နေပါတယ်၊ ကျောင်းမှာ ရှိပါတယ်"),
    ("need.electricity_fuel", "hi", "अस्पताल का जनरेटर बंद होने वाला है, डीज़ल चाहिए, कृपया मदद करें"),
    (
        "offer.evacuation_transport",
        "en",
        "Two minibuses leaving the stadium at noon for the hills, room for thirty, message me",
    ),
    ("need.missing_people", "ja", "弟がマロヴァ駅で別れたまま連絡が取れません。見かけた方いませんか"),
    ("need.food", "sw", "Tuko watu arobaini kanisani na hatuna chakula tangu jana"),
    ("offer.volunteers_labour", "de", "Wir sind zu sechst mit Schaufeln am Alten Hafen, wo werden wir gebraucht?"),
    ("need.evacuation_transport", "bn", "আমার দাদি হাঁটতে পারেন না, পানি বাড়ছে, কেউ গাড়ি পাঠান"),
]


def invent(
    n: int, query: str = "need.water", lang: str = "en", text: str = "No water here", *, at: float, **more: object
) -> Alert:
    """The n-th alert. Any field of the alert can be overridden, and id, source, url and geo of its post."""
    category = query.split(".")[1]
    mine = {
        "url": f"https://example.org/p/{n}",
        "created_at": rfc3339(at - 2),
        "seen_at": rfc3339(at),
        "revision": int(at * 1000),
        "label": LABELS.get(category) or category.replace("_", " ").capitalize(),
        "hxl": "",
        "encoder_version": "static-1",
        "evidence": Evidence("We have had no drinking water for two days, please send water", "en", 0.72),
    }
    return any_alert(more.pop("post_id", f"p{n}"), text, query=query, lang=lang, **mine | more)


LABELS: dict[str, str] = {}


def several(count: int, now: float, seed: int = 7) -> list[Alert]:
    """Alerts of the invented posts above, the newest last."""
    dice = random.Random(seed)
    made = []
    for n in range(count):
        query, lang, text = POSTS[n % len(POSTS)]
        made.append(
            one_alert(
                dice,
                n,
                query,
                lang,
                text,
                now - (count - n) * 7.0,
                dice.choice(["bluesky", "mastodon", "sms", "radio-desk"]),
            )
        )
    return made


def one_alert(
    dice: random.Random, n: int, query: str, lang: str, text: str, at: float, source: str, **more: object
) -> Alert:
    sure = dice.random() < 0.7
    score = dice.uniform(0.5, 0.86) if sure else dice.uniform(0.38, 0.47)
    return invent(
        n,
        query,
        lang,
        text,
        at=at,
        source=source,
        level="alert" if sure else "suggestion",
        score=round(score, 3),
        threshold=0.474 if sure else 0.371,
        probability=round(min(0.98, score + 0.15), 2) if dice.random() < 0.6 else None,
        geo=Geo(34.2 + dice.random() / 10, 27.9) if dice.random() < 0.2 else None,
        **more,
    )


def hostile(now: float) -> list[Alert]:
    """One alert of each hostile text, with hostile links, sources and languages."""
    made = [
        invent(
            9000 + i,
            text=text,
            at=now - 600 - i,
            source="<b>bold</b>",
            url="javascript:document.title='owned'",
            lang='x"><script>',
        )
        for i, text in enumerate(HOSTILE.values())
    ]
    return [msgspec.structs.replace(a, label="Drinking <i>water</i>") if i == 0 else a for i, a in enumerate(made)]


def clusters_of(
    alerts: list[Alert], now: float, *, hostile_too: bool = False
) -> tuple[list[ClusterEvent], list[Alert]]:
    """A cluster per query with its alerts placed in it: (events, updates)."""
    events, placed = [], []
    by_query: dict[str, list[Alert]] = {}
    for alert in alerts:
        by_query.setdefault(alert.query_id, []).append(alert)
    for n, (query, of) in enumerate(sorted(by_query.items(), key=lambda item: -len(item[1]))):
        if len(of) < 2:
            continue
        examples = [Example(a.post.id, a.post.text, a.post.lang) for a in of[:4]]
        events.append(
            ClusterEvent(
                event="grow",
                cluster_id=f"c{n}",
                version=len(of),
                posts=len(of) * 3,
                weight=len(of) * 2.2,
                first_at=rfc3339(now - 5400 + 60 * n),
                last_at=rfc3339(now - 20 * n),
                label=" ".join(dict.fromkeys(of[0].post.text.lower().split()[1:5])),
                encoder_version="static-1",
                medoid=examples[0],
                examples=examples[1:],
                burst=round(14.0 / (n + 1), 1),
                categories={query: len(of)},
                languages=dict(Counter(a.post.lang for a in of)),
                sources=dict(Counter(a.post.source for a in of)),
            )
        )
        placed += [place_in_cluster(a, f"c{n}") for a in of]
    if hostile_too:
        texts = [Example(f"h{i}", t, "und") for i, t in enumerate(HOSTILE.values())]
        events.append(
            ClusterEvent(
                event="new",
                cluster_id="<img src=x onerror=alert(1)>",
                version=1,
                posts=5,
                weight=5,
                first_at=rfc3339(now - 60),
                last_at=rfc3339(now),
                label="<b>bold</b> \u202elabel",
                encoder_version="static-1",
                medoid=texts[0],
                examples=texts[1:],
                burst=99.0,
                categories={"need.<i>x</i>": 3},
                languages={"<u>": 2},
                sources={"<s>": 5},
            )
        )
    return events, placed
