"""A BERT or XLM-R sentence encoder as a bundle for ONNX Runtime: served on a CPU without torch
(`models.encoders.onnx`).

python -m training.export_onnx minilm out=DIR                       # the teacher, all-MiniLM-L6-v2, int8
python -m training.export_onnx MODEL out=DIR precision=fp32 licence=MIT
python -m training.export_onnx e5-cut out=e5-small evened=0.5       # a model as it came, its space evened out

What the bundle learnt from is told by the runs that made it (training.loop keeps each beside its model): job, knobs and
a hash of the data, back to the first whose folder is still there. Of a model that came from elsewhere nothing is known.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from msgspec import Struct
from safetensors import safe_open

from models.encoders.batching import micro_batches, pad
from models.encoders.bundle import Manifest, write_bundle
from models.encoders.load import load_encoder
from models.encoders.onnx import MODEL
from models.encoders.probes import PROBES, check_probes, probe_vectors
from models.errors import ConfigError, EncoderError
from models.queries import background_texts, load_queries
from models.text import clean
from training.evening import even_out
from training.files import read_texts
from training.jobs import code_version, machine, read_config, run
from training.loop import CHECKPOINT
from training.onnx_graph import encoder_graph, observed_ranges
from training.teacher import teacher_path

__all__ = ["Config", "Learnt", "learnt_by", "main"]

LEAST_COSINE = {"fp32": 0.9999, "int8": 0.95}  # to torch's vectors, of every text; int8 is .97 to .99 when it is well
LARGEST = 2**31 - 1  # bytes of a protobuf


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the export."""

    model: str = ""  # the first word: minilm, a sentence-transformers directory or a hub id
    out: str = ""  # the bundle to write
    precision: str = "int8"  # or "fp32"
    reduce_range: bool = True  # 7 bits enter a product: 8 overflow on processors without VNNI, which then disagree
    evened: float = 0.0  # share of an evening-out (training.evening) folded in behind the pooling; 0 = none
    texts: str = ""  # file of texts like those to be served, for that and int8's scales; empty = the bundled queries
    max_texts: int = 2000  # of those, spread over the whole file
    licence: str = "as the model it was exported from"  # goes into the manifest


PRESETS = {"minilm": Config(model="minilm")}  # the one model that has a name here; any other is given by its place


class Learnt(Struct, frozen=True):
    """One run behind a model."""

    job: str  # the module; of runs older than its record the folder's name
    config: dict[str, Any]  # its knobs, folders by their names
    data_hash: str


def learnt_by(model: str | Path, seen: frozenset[Path] = frozenset()) -> list[Learnt]:
    """The runs that made the model directory, the last one first: the one beside it, then those beside the models that
    its knobs name, as far as they are there."""
    folder = Path(model).resolve()
    places = (folder.parent / "run" / CHECKPOINT, folder.parent / CHECKPOINT, folder / CHECKPOINT)
    path = next((place for place in places if place.exists()), None)
    if path is None or path in seen:
        return []
    with safe_open(path, "np") as file:
        told = file.metadata()
    try:
        knobs, data_hash, _ = json.loads(told["key"])
    except ValueError:  # a part of a run (training.classify), which is no encoder's
        return []
    begun = [value for value in knobs.values() if isinstance(value, str) and value and Path(value).is_dir()]
    run_folder = path.parent.parent if path.parent.name == "run" else path.parent
    named = {name: _without_folders(value) for name, value in knobs.items()}
    mine = Learnt(told.get("job", run_folder.name), named, data_hash)
    return [mine, *(run for value in begun for run in learnt_by(value, seen | {path}))]


def _without_folders(value: Any) -> Any:
    """A path by its last two names: bundles are read elsewhere."""
    if not isinstance(value, str) or not value or not (value.startswith("/") or Path(value).exists()):
        return value
    return "/".join(Path(value).parts[-2:])


def hashes(runs: Sequence[Learnt]) -> dict[str, str]:
    """The data of each run by its job: "adapt", and "adapt 2" of the one before it."""
    found: dict[str, str] = {}
    times: Counter[str] = Counter()
    for one in runs:
        times[name := one.job.removeprefix("training.")] += 1
        found[name if times[name] == 1 else f"{name} {times[name]}"] = one.data_hash
    return found


def main(config: Config) -> Manifest:
    from models.encoders.packed import PackedEncoder
    from models.encoders.transformer import TransformerEncoder

    if config.precision not in LEAST_COSINE or not config.out:
        raise ConfigError(
            f"set out=DIR and precision={' or '.join(LEAST_COSINE)}; got {config.out!r}, {config.precision!r}"
        )
    source = TransformerEncoder(teacher_path() if config.model == "minilm" else config.model, packed=True)
    if not isinstance(source._packed, PackedEncoder):
        raise EncoderError(
            f"{config.model} is no BERT or XLM-R with one pooling by mean, cls or max: serve it by [torch]"
        )
    fast = getattr(source._tokenizer, "backend_tokenizer", None)
    if fast is None:
        raise EncoderError(f"{config.model} has no tokenizer.json: its tokenizer runs only inside transformers")
    packed = source._packed.float().cpu()
    texts = _texts(config)
    if config.evened:
        if packed.projection is not None:
            raise ConfigError(f"evened={config.evened}: {config.model} has a linear map of its own: leave it as it is")
        mean, turn = even_out(source.encode(texts), config.evened)
        packed.project(torch.from_numpy(turn.T), torch.from_numpy(-mean @ turn))
    graph, entering = encoder_graph(packed)
    if config.precision == "int8":
        seen = (*PROBES, *texts)  # with no text at all, which is unlike any
        ids = source._ids([clean(text, source.cleaning) for text in seen])
        batches = (pad([ids[i] for i in rows]) for rows in micro_batches([len(post) for post in ids], 512))
        ranges = observed_ranges(graph, entering, batches)
        graph, _ = encoder_graph(packed, ranges, config.reduce_range)
    if graph.ByteSize() > LARGEST:
        raise EncoderError(
            f"the graph of {config.model} is {graph.ByteSize()} bytes, an ONNX file holds {LARGEST}: use int8"
        )
    files = {MODEL: graph.SerializeToString(), "tokenizer.json": fast.to_str().encode()}
    settings = {"precision": config.precision, "prefix": source._prefix}
    runs = learnt_by(config.model)
    manifest = Manifest(
        "onnx",
        source.dim,
        source._longest,
        source.cleaning,
        packed.pooling,
        config.licence,
        parent=source.version,
        settings=settings,
        training={
            "model": Path(config.model).name,
            "reduce_range": config.reduce_range,
            "evened": config.evened,
            "texts": Path(config.texts).name,
            "job": "training.export_onnx",
            "code_version": code_version(),
            "machine": machine(),
            "runs": msgspec.to_builtins(runs),
        },
        data_hashes=hashes(runs),
    )
    write_bundle(config.out, manifest, files)
    exported = load_encoder(config.out)
    check_probes(exported)
    sample = [*PROBES, *texts[:: max(1, len(texts) // 300)]]
    cosines = (exported.encode(sample) * source.encode(sample)).sum(1)
    if (worst := float(cosines.min())) < LEAST_COSINE[config.precision]:
        raise EncoderError(
            f"{config.out}: cosine {worst:.4f} to torch's on {sample[int(cosines.argmin())]!r}: do not serve it"
        )
    evaluation = {"cosine_to_torch": {"mean": float(cosines.mean()), "least": worst}, "probes": probe_vectors(exported)}
    manifest = write_bundle(config.out, msgspec.structs.replace(manifest, evaluation=evaluation), files)
    print(
        f"{config.out}: {manifest.id}, {sum(map(len, files.values())) / 1e6:.1f} MB, cosine to torch "
        f"{cosines.mean():.5f} (least {worst:.5f})"
    )
    return manifest


def _texts(config: Config) -> list[str]:
    """What int8's scales are taken from, spread over the whole file."""
    if config.texts:
        texts = read_texts(Path(config.texts))
    else:
        texts = [*(text for query in load_queries() for _, text in query.texts()), *background_texts()]
    if not texts:
        raise ConfigError(f"{config.texts} holds no text")
    return [texts[i] for i in np.linspace(0, len(texts) - 1, min(config.max_texts, len(texts))).astype(int)]


def read_words(argv: Sequence[str]) -> Config:
    """MODEL key=value … as a Config. Raises ConfigError saying what to write."""
    first = argv[0] if argv else ""
    if not first or "=" in first or first.startswith("-"):
        raise ConfigError(
            f"name the model first: python -m training.export_onnx minilm out=DIR; got {first or 'nothing'}"
        )
    return read_config({first: Config(model=first)}, argv)


if __name__ == "__main__":
    run(main, PRESETS, read=read_words)
