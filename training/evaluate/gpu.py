"""Posts a second on a GPU: the packed forward beside padded torch and sentence-transformers, and the share of the
ceiling.

python -m training.evaluate.gpu xlmr-base out=x.json      # random weights; needs a CUDA device
python -m training.evaluate.gpu smoke                     # a tiny shape, on a CPU too: only shows that it runs

The ceiling is the fastest bfloat16 product of the model's own shapes and a square one, measured in the same run; a
share counts useful multiply-adds only, never padding.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from msgspec import Struct
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

from models.encoders.batching import packed_batches
from models.encoders.packed import PackedEncoder
from models.encoders.transformer import TOKENS, TransformerEncoder
from models.errors import ConfigError
from training.evaluate.backends import useful_flops
from training.jobs import run, write_result

__all__ = ["Config", "main"]

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the measurement."""

    width: int = 768
    layers: int = 12
    heads: int = 12
    vocabulary: int = 250_002
    posts: int = 60_000
    slow_posts: int = 20_000  # of them, for what is padded
    rounds: int = 5
    out: str = ""
    need_gpu: bool = True
    seed: int = 1


PRESETS = {
    "xlmr-base": Config(),
    "smoke": Config(width=32, layers=2, heads=2, vocabulary=300, posts=200, slow_posts=100, rounds=1, need_gpu=False),
}


def lengths_of_posts(count: int, seed: int) -> np.ndarray:
    """Tokens, <s> and </s> counted: mean 35, p95 70, at most 128, as in public crisis sets (a gamma distribution)."""
    drawn = np.random.default_rng(seed).gamma(3.35, 35 / 3.35, count)
    return np.clip(np.rint(drawn), 3, 128).astype(int)


def save_random(folder: Path, config: Config) -> Path:
    """A sentence-transformers directory of this shape; its tokenizer reads words "4", "5", … as those ids."""
    torch.manual_seed(config.seed)
    shape = XLMRobertaConfig(
        vocab_size=config.vocabulary,
        hidden_size=config.width,
        num_hidden_layers=config.layers,
        type_vocab_size=1,
        num_attention_heads=config.heads,
        intermediate_size=4 * config.width,
        max_position_embeddings=514,
        pad_token_id=1,
    )
    XLMRobertaModel(shape, add_pooling_layer=False).save_pretrained(folder / "body")
    words = {word: i for i, word in enumerate([*SPECIAL, *map(str, range(len(SPECIAL), config.vocabulary))])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = dict(zip(("cls_token", "pad_token", "sep_token", "unk_token"), SPECIAL, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **names).save_pretrained(folder / "body")
    body = Transformer(str(folder / "body"), max_seq_length=128)
    SentenceTransformer(modules=[body, Pooling(config.width, "mean")], device="cpu").save(str(folder / "model"))
    return folder / "model"


def median_s(work, rounds: int) -> float:
    """Seconds, the device waited for; the first call warms up and is not counted."""
    spent = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        spent.append(time.perf_counter() - start)
    return float(np.median(spent[1:]))


def ceiling_tflops(config: Config, device: torch.device, dtype: torch.dtype) -> dict[str, float]:
    """TFLOP/s of each product."""
    rows, w = (TOKENS["cuda"], config.width) if device.type == "cuda" else (256, config.width)
    side = 8192 if device.type == "cuda" else 256
    found = {}
    for m, k, n in ((side, side, side), (rows, w, 3 * w), (rows, w, 4 * w), (rows, 4 * w, w)):
        x, weight = torch.randn(m, k, device=device, dtype=dtype), torch.randn(n, k, device=device, dtype=dtype)
        seconds = (
            median_s(lambda x=x, weight=weight: [torch.nn.functional.linear(x, weight) for _ in range(10)], 5) / 10
        )
        found[f"{m}x{k}x{n}"] = 2 * m * k * n / seconds / 1e12
    return found


def main(config: Config) -> dict:
    if config.need_gpu and not torch.cuda.is_available():
        raise ConfigError("no CUDA device here: run this where there is one, or the preset smoke")
    rng = np.random.default_rng(config.seed)
    lengths = lengths_of_posts(config.posts, config.seed)
    ids = [[0, *rng.integers(len(SPECIAL), config.vocabulary, n - 2).tolist(), 2] for n in lengths]
    texts = [" ".join(map(str, post[1:-1])) for post in ids]
    rows: dict[str, dict[str, float]] = {}
    with TemporaryDirectory() as folder:
        path = save_random(Path(folder), config)
        padded, packed = TransformerEncoder(path, packed=False), TransformerEncoder(path, packed=True)
        plain = SentenceTransformer(str(path), device=str(packed.device)).to(next(packed._model.parameters()).dtype)
    forward: PackedEncoder = packed._packed
    ceilings = ceiling_tflops(config, packed.device, forward.words.dtype)

    def measured(name: str, work, count: int) -> None:
        seconds = median_s(work, config.rounds)
        flops = useful_flops(config.width, config.layers, 4 * config.width, lengths[:count])
        rows[name] = {
            "posts_per_s": count / seconds,
            "tokens_per_s": float(lengths[:count].sum()) / seconds,
            "share_of_ceiling": flops / seconds / 1e12 / max(ceilings.values()),
        }
        print(
            f"{name:45} {rows[name]['posts_per_s']:9.0f} posts/s, {rows[name]['share_of_ceiling']:.1%} of the ceiling",
            flush=True,
        )

    def from_ids() -> None:
        waiting = None
        for places in packed_batches(lengths.tolist(), TOKENS[packed.device.type]):
            started = forward.start(forward.pack([ids[i] for i in places]))
            if waiting is not None:
                waiting()
            waiting = started
        waiting()

    few = texts[: config.slow_posts]
    with torch.inference_mode():
        measured("sentence-transformers, batch 32", lambda: plain.encode(few), len(few))
        measured("sentence-transformers, batch 256", lambda: plain.encode(few, batch_size=256), len(few))
        measured("padded torch, sorted, by token budget", lambda: padded.encode(few), len(few))
        measured("packed, ids on the host to vectors on the host", from_ids, config.posts)
        measured("packed, text to vectors", lambda: packed.encode(texts), config.posts)
    cosines = (packed.encode(few[:500]) * padded.encode(few[:500])).sum(1)
    metrics = {
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "ceiling_tflops": ceilings,
        "variants": rows,
        "packed_to_padded_cosine_least": float(cosines.min()),
        "tokens_mean": float(lengths.mean()),
        "tokens_p95": float(np.percentile(lengths, 95)),
    }
    if config.out:
        write_result(Path(config.out), config, "", config.seed, metrics)
    return metrics


if __name__ == "__main__":
    run(main, PRESETS)
