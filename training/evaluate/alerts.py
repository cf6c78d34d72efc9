"""How good the alerts are: one table, from the matcher at its default settings to what a responder is shown.

    python -m training.evaluate alerts                                # every set (CRISIS_DATA), the bundled encoder
    python -m training.evaluate alerts encoder=DIR sample=2000        # another bundle, at most 2,000 posts of a set
    python -m training.evaluate alerts smoke                          # the posts that come with the project, a few each

Sets: `written` and `read`, posts of our own that nothing learns from (training/posts); `own`, the written ones under
queries as people would add them, each by itself; `demo`; `calibration`, written
streams and read posts together, by language; `disaster`, what was held out of disaster-messages-multilingual, as sent,
where a message that asks is right; `humaid`, its test split; `trecis`, its labelled part; `t26`, the events of
CrisisLexT26 nothing learns from, in time order; `ordinary`, everyday sentences, news and chatter in which nothing
should be found (some of them also set thresholds; see training.labels).

A post has one alert, for its first reading; a reading is right if it is the post's `gold` or `second`. Posts that were
read weigh as many posts as they stand for; HumAID and CrisisNLP, which teach nothing, are also told apart.
Texts are encoded once and kept in CRISIS_CACHE by encoder version, so a second run takes seconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from models.encoders.ready import load, ready
from models.errors import ConfigError
from models.queries import load_queries
from training.evaluate import alert_figures as figures
from training.evaluate import alert_material as material
from training.evaluate.alert_reading import Reader, judge
from training.evaluate.alert_table import Parts, line, show
from training.evaluate.figure import Drawing
from training.evaluate.left_out import urgency_left_out
from training.evaluate.own_figures import own_figures
from training.files import data_dir, hash_rows
from training.jobs import cache_dir, write_result
from training.keeping import keeping
from training.labels import disaster_messages, ordinary, test_sets
from training.posts import LabelledPost, read_posts, written_posts

__all__ = ["Config", "PRESETS", "main"]

SETS = ("written", "own", "read", "calibration", "demo", "disaster", "humaid", "trecis", "t26", "ordinary")
RESULT = Path("training/results/alerts.json")


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the alert benchmark."""

    encoder: str = "bundled"  # or flood, the bundled static one, or a bundle's directory
    sets: tuple[str, ...] = SETS  # any of these, by comma
    sample: int = 0  # posts of each set at most, drawn by chance; 0 = all
    per_language: int = 60  # ordinary sentences of each language (a third as many lines of news)
    per_chatter: int = 1_000  # ordinary posts of each set of chatter
    repeats: int = 200  # drawings of each interval; 0 = no intervals
    seed: int = 1
    out: str = ""  # the JSON; default training/results/alerts.json (whole run, bundled encoder), else in CRISIS_CACHE


PRESETS = {"laptop": Config(), "smoke": Config(sets=("written", "demo"), sample=60, repeats=20)}


def main(config: Config) -> Path:
    """Print the table and write its JSON. Returns the JSON's path."""
    if unknown := [name for name in config.sets if name not in SETS]:
        raise ConfigError(f"sets={','.join(unknown)}: choose from {', '.join(SETS)}")
    ref = None if config.encoder == "bundled" else config.encoder
    loaded = load(ref)
    encoder = keeping(loaded.encoder, cache_dir() / "vectors")
    matcher = ready(dataclasses.replace(loaded, encoder=encoder), load_queries()).matcher
    reader = Reader(matcher, encoder)
    parts: Parts = {}
    details: dict = {}
    hashes = []
    for name in config.sets:
        print(f"{name} …", flush=True)
        found, more, data_hash = MEASURES[name](reader, config)
        parts |= found
        details |= {name: more} if more else {}
        hashes.append(data_hash)
    metrics = {
        "encoder": encoder.version,
        "learnt_head": matcher.head is not None,
        "figures": {part: {f.name: line(part, f) for f in listed} for part, listed in parts.items()},
        "details": details,
    }
    show(parts, encoder.version)
    out = result_path(config, encoder.version)
    write_result(out, config, hash_rows(hashes), config.seed, metrics)
    print(f"→ {out}")
    return out


def result_path(config: Config, version: str) -> Path:
    """Only a whole run of the bundled encoder replaces the kept result."""
    if config.out:
        return Path(config.out)
    whole = config == msgspec.structs.replace(PRESETS["laptop"], out="")
    return RESULT if whole else cache_dir() / f"alerts-{version.replace('/', '_')}.json"


def _labelled(
    reader: Reader, config: Config, name: str, posts: list[LabelledPost], groups: dict[str, Callable] | None = None
) -> tuple[Parts, dict, str]:
    """The figures of labelled posts, together and by group."""
    posts = [posts[i] for i in _sample(config, len(posts))]
    judged = judge(reader, posts)
    parts = {name: figures.labelled_figures(judged, _draw(config))}
    for group, wanted in (groups or {}).items():
        if (part := judged.part(wanted)).posts:
            parts[f"{name}: {group}"] = figures.labelled_figures(part, _draw(config))
    calibration, details = figures.calibration_figures(judged)
    parts[name] += calibration
    details["alerts_by_category"] = figures.by_category(judged)
    parts[f"{name}: notices"] = figures.notice_figures(judged, _draw(config))
    parts[f"{name}: priority"] = figures.priority_figures(judged, _draw(config))
    return parts, details, hash_rows((p.text, p.gold, p.second, p.urgency, p.weight) for p in posts)


def _written(reader: Reader, config: Config) -> tuple[Parts, dict, str]:
    uses = ("stream", "needs and offers", "near misses")
    groups = {use: lambda post, use=use: post.use == use for use in uses}
    groups |= {"20 languages": lambda post: post.event.startswith("61-")}
    groups |= {"8 languages": lambda post: post.event.startswith("75-")}
    groups |= {"8 other languages": lambda post: post.event.startswith("87-")}
    groups |= {"8 new languages": lambda post: post.event.startswith("101-")}
    groups |= {"4 events": lambda post: post.event.startswith(("127-", "128-", "129-", "130-"))}  # ro, he, ml, si
    groups |= {"dry and short": lambda post: post.event.startswith("149-")}
    groups |= {"all but those": lambda post: not post.event.startswith("149-")}  # what judged before them
    posts = [p for p in written_posts() if p.judges]
    found, details, told = _labelled(reader, config, "written", [p for p in posts if p.use != "several"], groups)
    several = judge(reader, [p for p in posts if p.use == "several"])
    found["written: several at once"] = figures.labelled_figures(several, _draw(config))
    return found, details, hash_rows([told, *(p.text for p in several.posts)])


def _own(reader: Reader, config: Config) -> tuple[Parts, dict, str]:
    posts = [p for p in written_posts() if p.judges and p.use in ("needs and offers", "near misses")]
    posts = [posts[i] for i in _sample(config, len(posts))]
    found = own_figures(reader, posts, config.seed + 1)  # other sentences than the scale was fitted with
    return {"own": found}, {}, hash_rows((p.text, p.gold, p.second) for p in posts)


def _read(reader: Reader, config: Config) -> tuple[Parts, dict, str]:
    apart = ("humaid", "crisisnlp-crowdflower", "crisisnlp-volunteers")
    groups = {
        "HumAID and CrisisNLP": lambda post: post.origin in apart,
        "other sets": lambda post: post.origin not in apart,
    }
    return _labelled(reader, config, "read", [p for p in read_posts(data_dir()) if p.judges], groups)


def _calibration(reader: Reader, config: Config) -> tuple[Parts, dict, str]:
    """Posts in the proportions of streams. A set weighs as many posts as were labelled in it."""
    posts = [p for p in written_posts() if p.judges and p.use == "stream"]
    posts += [p for p in read_posts(data_dir()) if p.judges]
    mean = {name: np.mean([p.weight for p in posts if p.origin == name]) for name in {p.origin for p in posts}}
    posts = [msgspec.structs.replace(p, weight=float(p.weight / mean[p.origin])) for p in posts]
    posts = [posts[i] for i in _sample(config, len(posts))]
    found, details = figures.calibration_figures(judge(reader, posts))
    return {"calibration": found}, details, hash_rows((p.text, p.gold, p.second, p.weight) for p in posts)


def _demo(reader: Reader, config: Config) -> tuple[Parts, dict, str]:
    return _labelled(reader, config, "demo", material.demo_posts())


def _disaster(reader: Reader, config: Config) -> tuple[Parts, dict, str]:
    messages = disaster_messages(data_dir(), train_half=False)
    sent = np.flatnonzero(messages.langs != "en*")
    chosen = sent[_sample(config, len(sent))]
    found = figures.disaster_figures(reader, messages, chosen, _draw(config))
    asked_for = [bool(x) for x in messages.asks[chosen]]
    return {"disaster": found}, {}, hash_rows(zip([messages.texts[i] for i in chosen], asked_for, strict=True))


def _humaid(reader: Reader, config: Config) -> tuple[Parts, dict, str]:
    labelled = next(found for found in test_sets(data_dir()) if found.name == "humaid test")
    chosen = _sample(config, len(labelled.texts))
    found = figures.humaid_figures(reader, labelled, chosen, _draw(config))
    return {"humaid": found}, {}, hash_rows(labelled.texts[i] for i in chosen)


def _trecis(reader: Reader, config: Config) -> tuple[Parts, dict, str]:
    posts = material.trecis_posts(data_dir())
    posts = [posts[i] for i in _sample(config, len(posts))]
    left_out = figures.ranked(urgency_left_out(reader.encoder, posts, written_posts() + read_posts(data_dir())), posts)
    posts = [post for post in posts if not post.learnt]
    found, details = figures.trecis_figures(reader, posts, _draw(config))
    found += left_out
    unseen = [post for post in posts if not post.taught]
    apart = figures.trecis_figures(reader, unseen, _draw(config))[0] if unseen else []
    return {"trecis": found, "trecis: events nothing was learnt from": apart}, details, hash_rows(posts)


def _t26(reader: Reader, config: Config) -> tuple[Parts, dict, str]:
    posts = material.donation_stream(data_dir())
    posts = [posts[i] for i in _sample(config, len(posts))]
    return {"t26": figures.budget_figures(reader, posts)}, {}, hash_rows(posts)


def _ordinary(reader: Reader, config: Config) -> tuple[Parts, dict, str]:
    posts = ordinary(data_dir(), config.per_language, config.per_chatter, config.seed)
    kept = np.flatnonzero(~posts.shapes)  # the others shape directions
    kept = kept[_sample(config, len(kept))]
    posts = msgspec.structs.replace(
        posts, texts=[posts.texts[i] for i in kept], groups=posts.groups[kept], shapes=posts.shapes[kept]
    )
    found, details = figures.ordinary_figures(reader, posts)
    return {"ordinary": found}, details, hash_rows(posts.texts)


def _draw(config: Config) -> Drawing:
    return Drawing(config.seed, config.repeats)


def _sample(config: Config, n: int) -> np.ndarray:
    """Places of at most `sample` of n posts, in their order."""
    if not config.sample or n <= config.sample:
        return np.arange(n)
    return np.sort(np.random.default_rng(config.seed).permutation(n)[: config.sample])


MEASURES: dict[str, Callable[[Reader, Config], tuple[Parts, dict, str]]] = {
    "written": _written,
    "own": _own,
    "read": _read,
    "calibration": _calibration,
    "demo": _demo,
    "disaster": _disaster,
    "humaid": _humaid,
    "trecis": _trecis,
    "t26": _t26,
    "ordinary": _ordinary,
}
