"""Tiny BERT and XLM-R sentence encoders with random weights, saved as sentence-transformers saves them."""

from __future__ import annotations

from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

TEXTS = [
    "We need water at the school, please hurry!",
    "Nou bezwen dlo",
    "Нужна вода в школе",
    "مدرسے میں پانی چاہیے",
    "学校需要水",
    "NEED WATER NOW",
    "",
    "x",
    "a very long post " * 20,
]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
LONGEST = 60


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """One token a byte, between <s> and </s>: no text is unknown and lengths differ much."""
    pieces = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        cls_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        sep_token="</s>",
        unk_token="<unk>",
        model_max_length=LONGEST,
    )


def tiny_model(kind: str = "xlm-roberta") -> torch.nn.Module:
    torch.manual_seed(0)
    shape = dict(
        vocab_size=260,
        hidden_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=96,
        pad_token_id=1,
        max_position_embeddings=LONGEST + 2,
        initializer_range=0.2,
    )
    if kind == "bert":
        return BertModel(BertConfig(**shape), add_pooling_layer=False).eval()
    return XLMRobertaModel(XLMRobertaConfig(**shape, type_vocab_size=1), add_pooling_layer=False).eval()


def save_tiny(
    folder: Path, kind: str = "xlm-roberta", pooling: str = "mean", *more: torch.nn.Module, normalize: bool = False
) -> Path:
    """A directory shaped like crisistransformers/CT-XLMR-SE: XLM-R, pooling, modules.json; `more` modules before the
    pooling.
    """
    body = folder / "body"
    tiny_model(kind).save_pretrained(body)
    tiny_tokenizer().save_pretrained(body)
    first = Transformer(str(body), max_seq_length=LONGEST)
    width = more[-1].out_features if more else first.get_embedding_dimension()
    modules = [first, *more, Pooling(width, pooling), *([Normalize()] if normalize else [])]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "saved"))
    return folder / "saved"
