"""Every implementation of a contract, found in the sources, through the checks of that contract."""

from __future__ import annotations

import io
import json

import msgspec
import numpy as np
import pytest
import torch
from redis.asyncio import Redis

from models.encoders.characters import CharacterEncoder, Shape
from models.encoders.load import BUNDLED, load_encoder
from models.encoders.mixture import Mixture
from models.encoders.normalise import NormalisedEncoder, Normaliser
from models.encoders.query_vectors import CachedEncoder
from models.encoders.whitening import Whitening
from streams.commands import attribute
from streams.config import Settings
from streams.config.sources import SOURCES
from streams.ingest import bluesky, mastodon
from streams.ingest.http import _lines
from streams.ingest.lines import open_lines, read_lines
from streams.outputs import FORMATS
from streams.pipeline.memory import MemoryAlerts, MemoryFolder
from streams.view.folder import RedisFolder
from streams.view.live import LiveView
from streams.worker.match import WithBatch
from tests.checks.discovery import ROOT, classes_with
from tests.checks.encoders import check_encoder
from tests.checks.formats import check_format
from tests.checks.ports import check_alerts, check_folder
from tests.checks.sources import check_source
from tests.ingest.test_bluesky import commit
from tests.ingest.test_mastodon import status
from tests.models.test_words import two_classes
from tests.models.tiny_bundle import tiny_files, tiny_manifest
from tests.models.tiny_transformer import save_tiny
from tests.outputs.invented import invent
from tests.releases.tiny import tiny_bundle
from training.export_onnx import Config, main
from training.keeping import KeepingEncoder

# -- encoders: class → (how one is made, how far a row may move with its company)


def static(folder):
    return load_encoder("flood")


def whitened(folder):
    whitening = Whitening(np.full(8, 0.1, np.float32), np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32))
    from models.encoders.bundle import write_bundle

    files = tiny_files() | {"w.safetensors": whitening.to_bytes()}
    write_bundle(folder / "white", tiny_manifest(dim=3, whitening="w.safetensors"), files)
    return load_encoder(folder / "white")


def transformer(folder):
    return load_encoder(save_tiny(folder))


def characters(folder):
    torch.manual_seed(0)
    CharacterEncoder(Shape(hidden=16, layers=1, heads=2, dim=8, filters=((1, 4), (3, 4)))).save(folder / "characters")
    return load_encoder(folder / "characters")


def onnx(folder):
    main(Config(str(save_tiny(folder / "model")), str(folder / "bundle"), max_texts=300))
    return load_encoder(folder / "bundle")


def cached(folder):
    encoder = load_encoder("flood")
    return CachedEncoder(encoder, dict(zip(["we need water"], encoder.encode(["we need water"]), strict=True)))


def worded(folder):
    from models.encoders.bundle import WORDS, write_bundle

    files = tiny_files() | {WORDS: two_classes().to_bytes()}
    write_bundle(folder / "worded", tiny_manifest(dim=10), files)
    return load_encoder(folder / "worded")


def normalised(folder):
    return NormalisedEncoder(load_encoder("flood"), Normaliser({"we": 2, "need": 2, "water": 1}))


def keeping(folder):
    return KeepingEncoder(load_encoder("flood"), folder / "kept")


def mixture(folder):
    (folder / "tiny").mkdir()
    tiny_bundle(folder / "tiny" / "bundle")
    return Mixture([(1.0, load_encoder("flood")), (2.0, load_encoder(folder / "tiny" / "bundle"))])


ENCODERS = {
    "StaticEncoder": (static, 0.0),
    "WhitenedEncoder": (whitened, 0.0),
    "TransformerEncoder": (transformer, 1e-5),
    "CharacterAwareEncoder": (characters, 1e-5),
    "OnnxEncoder": (onnx, 1e-4),  # int8 steps
    "CachedEncoder": (cached, 0.0),
    "NormalisedEncoder": (normalised, 0.0),
    "WordedEncoder": (worded, 0.0),
    "KeepingEncoder": (keeping, 0.0),
    "Mixture": (mixture, 0.0),
}
NO_ENCODERS = {  # classes with `encode` that nobody is handed as one
    "Frozen": "a student before it is trained, read once by its own job",
    "Invented": "the benchmark's, for sentences that are numbers",
    "Wrapped": "an encoder as mteb asks one",
}


def test_every_encoder_that_the_sources_hold_is_checked():
    found = classes_with({"encode"}, "models", "streams", "training")
    assert found == set(ENCODERS) | set(NO_ENCODERS) and len(ENCODERS) == 10


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_keeps_its_contract(name, tmp_path):
    make, atol = ENCODERS[name]
    encoder = make(tmp_path)
    assert type(encoder).__name__ == name
    check_encoder(encoder, atol)


BUNDLED_ATOL = {"reader": 1e-4, "flood": 0.0}  # the encoders that are shipped, and how far a row may move


def test_both_bundled_encoders_are_checked():
    shipped = {path.parent for path in (ROOT / "models" / "data").glob("*/manifest.json")}
    assert shipped == set(BUNDLED.values()) and set(BUNDLED) == set(BUNDLED_ATOL) and len(shipped) == 2


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_encoder_keeps_its_contract(name):
    check_encoder(load_encoder(name), BUNDLED_ATOL[name])


# -- what the stages ask of the world


@pytest.fixture
async def redis(redis_url):
    client = Redis.from_url(redis_url)
    yield client
    await client.aclose()


FOLDERS = {"MemoryFolder": lambda redis: MemoryFolder(), "RedisFolder": lambda redis: RedisFolder(redis, "t:", 3600)}
ALERTS = {
    "MemoryAlerts": lambda redis: MemoryAlerts(),
    "LiveView": lambda redis: LiveView(redis, Settings()),
    "WithBatch": lambda redis: WithBatch(LiveView(redis, Settings()), []),
}


def test_both_folders_and_all_three_alerts_are_checked():
    assert classes_with({"claim"}, "streams") == set(FOLDERS) and len(FOLDERS) == 2
    assert classes_with({"alerts_of", "put_alerts", "mark_gone", "gone"}, "streams") == set(ALERTS) and len(ALERTS) == 3


@pytest.mark.parametrize("name", FOLDERS)
async def test_a_folder_keeps_its_contract(name, redis):
    await check_folder(FOLDERS[name](redis))


@pytest.mark.parametrize("name", ALERTS)
async def test_alerts_keep_their_contract(name, redis):
    await check_alerts(ALERTS[name](redis), invent())


# -- sources: name → the lines it makes of two posts, and of a deletion where the platform tells of any

POSTS = [{"id": "sms:7/1", "text": "We need water\nand bread"}, {"id": "sms:7/2", "text": "Su lazım"}]
NDJSON = "".join(json.dumps(post) + "\n" for post in POSTS).encode()


def from_file(folder):
    (folder / "p.jsonl").write_bytes(NDJSON)
    with open_lines(folder / "p.jsonl") as lines:
        return [line.strip() for line in lines]


def from_bluesky(folder):
    events = [commit(1), commit(2), commit(1, "delete")]
    return [msgspec.json.encode(bluesky.to_post(msgspec.convert(event, bluesky._Event))) for event in events]


def from_mastodon(folder):
    statuses = [mastodon._decode(json.dumps(status(n))) for n in (1, 2)]
    return [msgspec.json.encode(mastodon.to_post(one, "social.example", "create")) for one in statuses]


LINES = {
    "file": (from_file, 0),
    "stdin": (lambda folder: [line.strip() for line in read_lines(io.BytesIO(NDJSON), 10_000)], 0),
    "http": (lambda folder: _lines(NDJSON, 50), 0),
    "bluesky": (from_bluesky, 1),
    "mastodon": (from_mastodon, 0),
}


def test_every_source_is_checked():
    assert set(SOURCES) == set(LINES) and len(SOURCES) == 5
    assert {name for name, source in SOURCES.items() if not source.prefix} == {"file", "stdin", "http"}  # pass posts on


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_keeps_its_contract(name, tmp_path):
    make, deletions = LINES[name]
    check_source(name, SOURCES[name], make(tmp_path), posts=2, deletions=deletions)


@pytest.mark.parametrize("prefix", [None, "masto"])
def test_a_source_is_refused_whose_row_does_not_say_which_ids_are_its_own(prefix, tmp_path):
    with pytest.raises(AssertionError, match="prefix"):
        check_source("bluesky", SOURCES["bluesky"]._replace(prefix=prefix), from_bluesky(tmp_path), 2, 1)


def test_no_two_sources_share_a_name_or_a_prefix():
    names = [*SOURCES, *(source.prefix for source in SOURCES.values() if source.prefix)]
    assert len(set(names)) == len(names)


# -- alert formats


def test_every_format_is_checked():
    assert len(FORMATS) == 5


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_keeps_its_contract(name, capsys):
    place, told = FORMATS[name]
    assert told
    check_format(attribute(place), lambda: capsys.readouterr().out)
