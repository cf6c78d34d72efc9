"""Fine-tune an encoder to classify posts, and say how well it does over repeated runs.

    python -m training.classify smoke                                        # need / offer / neither, bundled queries
    python -m training.classify laptop file=humaid.jsonl.gz label=labels     # a linear head on the static encoder
    python -m training.classify paper base=MLM/best file=humaid.jsonl.gz label=labels

Source: Lamsal, Read, Karunasekera 2023, sections 3.3 and 3.5.1: mean-pooled tokens, one linear layer, up to 30 epochs
of batches of 32 at 1e-5, early stopping (patience 5, threshold 1e-4), 5 repeats, macro F1 with its 95 % interval. A
base that is a static bundle stays as it is; only the head is trained on its vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np
import torch
from msgspec import Struct
from safetensors.torch import save_file
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from models.encoders.bundle import MANIFEST
from models.encoders.load import folder_of, load_encoder
from models.encoders.protocol import Encoder
from models.encoders.stored_cleaning import store_cleaning
from models.errors import ConfigError
from models.text import Cleaning, clean
from training.bundled_posts import bundled_posts
from training.files import DataError, hash_rows, read_table
from training.jobs import Count, Positive, cache_dir, model_named, run, write_atomically, write_result
from training.loop import BEST, Pace, autocast, device, fit, load_weights
from training.metrics import mean_interval
from training.run_key import run_key

__all__ = ["Config", "probe"]

SPLITS = {"train": "train", "dev": "dev", "validation": "dev", "test": "test"}


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the classification job."""

    base: str = "flood"  # "flood", "bundled" (the default encoder), a bundle or transformers directory, or a hub id
    file: str = ""  # .tsv or .jsonl (.gz allowed); empty = need, offer or neither, from the bundled queries
    text: str = "text"  # its column with the text
    label: str = "label"  # its column with the class; of a list the first
    only: str = ""  # COLUMN=VALUE: only these rows, of a file that holds several sets
    split: str = "split"  # its column with train, dev or test; without one: 70, 10 and 20 %, stratified
    split_seed: int = 42  # the paper's random state
    most: int = 0  # rows used at most, a sample by `split_seed`; 0 = all
    repeats: Count = 5
    epochs: Count = 30
    patience: int = 5  # epochs without a better validation score
    threshold: float = 1e-4
    batch: Count = 32
    lr: Positive = 1e-5
    dropout: float = 0.1
    max_length: Count = 128
    mention_token: str = "@USER"
    seed: int = 1
    out: str = ""  # default CRISIS_CACHE/classify


PRESETS = {
    "smoke": Config(repeats=2, epochs=8, lr=0.1),
    "laptop": Config(lr=0.03),
    "paper": Config(base="FacebookAI/roberta-base"),
}


class Dataset(Struct, frozen=True):
    """Texts and classes, and which rows are for what."""

    texts: list[str]
    labels: np.ndarray  # (n,) int, places in `names`
    names: list[str]
    rows: dict[str, np.ndarray]  # "train", "dev", "test": places of rows
    data_hash: str


def read_dataset(config: Config) -> Dataset:
    """Raises DataError where the file, a split name or a class is unusable."""
    if config.file:
        column, equals, value = config.only.partition("=")
        if config.only and not equals:
            raise ConfigError(f"only={config.only}: write COLUMN=VALUE")
        asked = (config.text, config.label, *([column] if column else []))
        table = [
            row
            for row in read_table(Path(config.file), asked, (config.split,))
            if not column or row.pop(column) == value
        ]
        if not table:
            raise DataError(f"{config.file}: no row where {column} is {value}")
    else:
        table = [
            {config.text: p.text, config.label: p.query.split(".")[0]}
            for p in bundled_posts()
            if p.lang in ("en", "es", "")
        ]
    parted = [config.split in row for row in table]
    if any(parted) and not all(parted):  # splitting all anew would train on rows that are there to test
        raise DataError(
            f"{config.file}: {parted.count(False)} rows without a {config.split}, the first is row "
            f"{parted.index(False) + 1}"
        )
    if 0 < config.most < len(table):
        chosen = np.random.default_rng(config.split_seed).choice(len(table), config.most, replace=False)
        table = [table[i] for i in np.sort(chosen)]
    texts = [clean(row[config.text], cleaning_of(config)) for row in table]
    names, labels = np.unique([row[config.label] for row in table], return_inverse=True)
    counts = Counter(labels.tolist())
    if len(names) < 2:
        raise DataError(f"{config.file or 'the bundled posts'}: one class only, {str(names[0])!r}")
    if any(parted):
        unknown = {row[config.split] for row in table} - SPLITS.keys()
        if unknown:
            raise DataError(f"{config.file}: unknown split {', '.join(sorted(unknown))}; wanted train, dev, test")
        split = np.array([SPLITS[row[config.split]] for row in table])
        rows = {part: np.flatnonzero(split == part) for part in ("train", "dev", "test")}
    else:
        if rare := [str(names[k]) for k, count in counts.items() if count < 10]:
            raise DataError(f"{config.file}: fewer than 10 rows of {', '.join(rare)}: too few to split 70/10/20")
        places = np.arange(len(table))
        train, rest = train_test_split(places, test_size=0.3, stratify=labels, random_state=config.split_seed)
        dev, test = train_test_split(rest, test_size=2 / 3, stratify=labels[rest], random_state=config.split_seed)
        rows = {"train": train, "dev": dev, "test": test}
    if empty := [part for part, index in rows.items() if not len(index)]:
        raise DataError(f"{config.file}: no row in split {', '.join(empty)}")
    print(
        ", ".join(f"{part} {len(index)}" for part, index in rows.items()),
        dict(zip(names.tolist(), np.bincount(labels).tolist(), strict=True)),
    )
    return Dataset(
        texts, labels, names.tolist(), rows, hash_rows([table, rows["train"].tolist(), rows["test"].tolist()])
    )


def cleaning_of(config: Config) -> Cleaning:
    """How texts are read, while it learns and by whoever loads the model."""
    return Cleaning(mention_token=config.mention_token)


class Head(torch.nn.Module):
    """One linear layer on vectors that stay as they are."""

    def __init__(self, vectors: np.ndarray, classes: int) -> None:
        super().__init__()
        self._vectors = torch.from_numpy(vectors).to(device())
        self.linear = torch.nn.Linear(vectors.shape[1], classes)

    def forward(self, index: np.ndarray) -> torch.Tensor:
        return self.linear(self._vectors[torch.from_numpy(index)])

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: t.contiguous() for name, t in self.state_dict().items()}, folder / "head.safetensors")


class MeanPooled(torch.nn.Module):
    """A transformer, the mean of its tokens, dropout and one linear layer, all trained."""

    def __init__(self, base: str, texts: list[str], classes: int, config: Config) -> None:
        super().__init__()
        from transformers import AutoModel, AutoTokenizer  # seconds to import: a head on vectors needs none

        self.tokenizer = AutoTokenizer.from_pretrained(base)
        self.body = AutoModel.from_pretrained(base)
        self.dropout = torch.nn.Dropout(config.dropout)
        self.linear = torch.nn.Linear(self.body.config.hidden_size, classes)
        self._cleaning = cleaning_of(config)
        self._ids = self.tokenizer(texts, truncation=True, max_length=config.max_length)["input_ids"]

    def forward(self, index: np.ndarray) -> torch.Tensor:
        batch = self.tokenizer.pad({"input_ids": [self._ids[i] for i in index]}, return_tensors="pt").to(
            self.body.device
        )
        with autocast(self.body.device):
            states = self.body(**batch).last_hidden_state  # (rows, length, hidden)
        mask = batch["attention_mask"][..., None].float()
        mean = (states.float() * mask).sum(1) / mask.sum(1)
        return self.linear(self.dropout(mean))

    def save(self, folder: Path) -> None:
        self.body.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        save_file(
            {"linear.weight": self.linear.weight.detach(), "linear.bias": self.linear.bias.detach()},
            folder / "head.safetensors",
        )
        store_cleaning(folder, self._cleaning)


def builder(config: Config, data: Dataset) -> Callable[[], Head | MeanPooled]:
    """Makes a fresh model for each repeat; the vectors of a static base are computed once."""
    path = folder_of(None if config.base == "bundled" else config.base)
    if (path / MANIFEST).exists():
        vectors = load_encoder(path).encode(data.texts)
        return lambda: Head(vectors, len(data.names))
    name = model_named(config.base, "base")
    return lambda: MeanPooled(name, data.texts, len(data.names), config)


def macro_f1(gold: Sequence[int], predicted: Sequence[int], classes: int) -> float:
    """Mean over all classes of the harmonic mean of precision and recall; a class never met counts 0."""
    return float(f1_score(gold, predicted, labels=range(classes), average="macro", zero_division=0))


def train_once(config: Config, data: Dataset, build: Callable, repeat: int, folder: Path) -> dict:
    """One repeat from its own seed: test macro F1 of the best epoch, before and after."""
    done = folder / "result.json"
    key = run_key(msgspec.structs.replace(config, repeats=0), data.data_hash)  # how many there are changes none of them
    if done.exists() and (stored := msgspec.json.decode(done.read_bytes()))["key"] == key:
        return stored
    seed = config.seed + repeat
    torch.manual_seed(seed)
    model = build().to(device())
    train = data.rows["train"]
    per_epoch = -(-len(train) // config.batch)

    def losses(step: int) -> Iterator[torch.Tensor]:
        epoch, part = divmod(step, per_epoch)
        order = np.random.default_rng([seed, epoch]).permutation(train)
        index = order[part * config.batch : (part + 1) * config.batch]
        gold = torch.from_numpy(data.labels[index]).to(device())
        yield torch.nn.functional.cross_entropy(model(index), gold)

    def score(part: str) -> float:
        model.eval()
        index = data.rows[part]
        with torch.no_grad():
            predicted = [model(index[s : s + 256]).argmax(1).cpu().numpy() for s in range(0, len(index), 256)]
        return macro_f1(data.labels[index], np.concatenate(predicted), len(data.names))

    before = score("test")
    pace = Pace(
        steps=config.epochs * per_epoch,
        lr=config.lr,
        warmup=0,
        seed=seed,
        checkpoint_every=per_epoch,
        validate_every=per_epoch,
        patience=config.patience,
        threshold=config.threshold,
    )
    trace = fit(model, losses, pace, folder, f"{key} {repeat}", lambda: 1 - score("dev"), title=f"repeat {repeat + 1}")
    load_weights(folder / BEST, model)
    model.save(folder / "best")
    result = {
        "key": key,
        "before": before,
        "macro_f1": score("test"),
        "epochs": trace.step / per_epoch,
        "stopped_early": trace.stopped,
    }
    write_atomically(done, msgspec.json.encode(result))
    return result


def repeat_runs(config: Config, data: Dataset, build: Callable, out: Path) -> dict:
    """The repeats together: mean test macro F1 with its 95 % interval; checkpoints under `out`."""
    results = [
        train_once(config, data, build, repeat, out / f"repeat-{repeat + 1}") for repeat in range(config.repeats)
    ]
    interval = mean_interval([result["macro_f1"] for result in results])
    return {
        "macro_f1": interval.mean,
        "half_width_95": interval.half_width if interval.runs > 1 else None,
        "before": float(np.mean([result["before"] for result in results])),
        "classes": data.names,
        "rows": {part: len(index) for part, index in data.rows.items()},
        "repeats": [{name: value for name, value in result.items() if name != "key"} for result in results],
    }


def probe(encoder: Encoder, config: Config) -> dict:
    """A linear head on an encoder that stays as it is, whatever its kind: how much of the classes its vectors hold."""
    data = read_dataset(config)
    vectors = encoder.encode(data.texts)
    with TemporaryDirectory() as folder:
        metrics = repeat_runs(config, data, lambda: Head(vectors, len(data.names)), Path(folder))
    return {**metrics, "data_hash": data.data_hash}


def main(config: Config) -> Path:
    out = Path(config.out) if config.out else cache_dir() / "classify"
    data = read_dataset(config)
    metrics = repeat_runs(config, data, builder(config, data), out)
    write_result(out / "run.json", config, data.data_hash, config.seed, metrics)
    print(
        f"macro F1 {metrics['macro_f1']:.4f} ± {metrics['half_width_95'] or 0:.4f} (95 %, {config.repeats} "
        f"repeats) → {out}"
    )
    return out


if __name__ == "__main__":
    run(main, PRESETS)
