"""The rows of the table of methods: each method of the papers, our small run's figures, and what the paper prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from training.evaluate.relatedness import PAPER_LANGUAGES

__all__ = ["METHODS", "SUPERVISED_LANGUAGES"]


class Method(Struct, frozen=True):
    """One row. `ours`: what it is, file among the results and place of the figure; `printed`: what it is, and what
    finds it. Of several places, or rows found, the mean is shown, and what it is says of how many."""

    name: str
    ours: tuple[tuple[str, str, str | tuple[str, ...]], ...]
    printed: tuple[tuple[str, Mapping[str, str]], ...]
    differs: str


MLM = {"paper": "Lamsal 2023", "table": "figure 4"}
F1 = {"paper": "Lamsal 2023", "table": "4", "metric": "macro_f1", "dataset": "CrisisNLP"}
D_AVG = {"paper": "Lamsal 2023", "metric": "d_avg", "dataset": "CrisisLex"}


MATCHING = {"paper": "Lamsal 2024", "table": "4", "system": "CT-XLMR-SE", "dataset": "TED2020", "metric": "matching"}
HINDI = "matching/flores200 devtest/by_language/hi"
SEMREL = {"paper": "Ousidhoum 2024", "dataset": "SemRel2024 test"}
LABSE = {**SEMREL, "table": "12", "system": "LaBSE"}
SUPERVISED = {**SEMREL, "table": "5", "system": "LaBSE supervised"}
CROSSLINGUAL = {**SEMREL, "table": "5", "system": "LaBSE crosslingual"}
SUPERVISED_LANGUAGES = "am arq ary en es ha mr rw te".split()  # those with a train split
MIX_ALL = {"paper": "Nishimwe 2024", "table": "5", "part": "mix_all"}


def robust(name: str) -> tuple[tuple[str, str, str], ...]:
    """How near a robust student came to its teacher, and its own noised to its own standard texts."""
    return (
        ("both squared distances to the teacher, held out", name, "loss_best"),
        ("of which standard text", name, "standard"),
        ("noised", name, "ugc"),
        ("cosine distance of the two", name, "cosine_distance"),
    )


def noised(name: str, version: str, whose: str = "") -> tuple[tuple[str, str, str], ...]:
    """Noised FLORES sentences beside standard ones, of one encoder of a measurement."""
    place = f"{version}/noise/mix_all"
    return (
        (f"mix_all of 500 FLORES sentences, cosine distance{whose}", name, f"{place}/cosine_distance"),
        (f"xSIM{whose}", name, f"{place}/xsim"),
        (f"xSIM++{whose}", name, f"{place}/xsim++"),
    )


def semrel(name: str, langs: Sequence[str]) -> tuple[tuple[str, str, str | tuple[str, ...]], ...]:
    """The means over these languages of SemRel's dev split as the encoder is and as trained, and English's."""
    return (
        (f"SemRel dev, mean of {len(langs)} languages as it is", name, _of_each(langs, "before")),
        (f"trained, mean of {len(langs)}", name, _of_each(langs, "after")),
        ("English as it is", name, "by_language/en/before"),
        ("trained", name, "by_language/en/after"),
    )


def _of_each(langs: Sequence[str], when: str) -> tuple[str, ...]:
    return tuple(f"by_language/{lang}/{when}" for lang in langs)


def quality(name: str) -> tuple[tuple[str, str, str], ...]:
    """What a report on English says of an encoder's vectors as they are."""
    classes = "classes/crisislex-t26"
    return (
        ("SemRel en", name, "relatedness/SemRel2024 dev/mean"),
        ("STS-B", name, "relatedness/STS-B test/mean"),
        ("D_avg of CrisisLex", name, f"{classes}/d_avg"),
        ("between its classes", name, f"{classes}/between"),
    )


METHODS = (
    Method(
        "masked LM, from scratch",
        (
            ("validation loss before", "papers/mlm-scratch.json", "loss_before"),
            ("lowest", "papers/mlm-scratch.json", "loss_best"),
        ),
        (("CT-M1 at epoch 0", {**MLM, "system": "CT-M1"}),),
        "171 steps of 1,024 pieces of 23,363 posts, 2 layers; theirs 40 epochs of 15 billion words, 12 layers. One"
        " vocabulary in our three starts, so that their losses compare; not with theirs",
    ),
    Method(
        "masked LM, from e5",
        (
            ("validation loss before", "papers/mlm-e5.json", "loss_before"),
            ("lowest", "papers/mlm-e5.json", "loss_best"),
            *quality("papers/quality-mlm-e5.json"),
        ),
        (
            ("from RoBERTa, CT-M2 at epoch 0", {**MLM, "system": "CT-M2"}),
            ("from BERTweet, CT-M3", {**MLM, "system": "CT-M3"}),
            ("D_avg of CrisisLex: CT-M1", {**D_AVG, "table": "5", "system": "CT-M1-BestLoss"}),
        ),
        "e5 comes without a masked-LM head: ours begins at random, which is why it starts where chance does."
        " Quality is of 100 posts a set; before contrast all texts are alike, so D_avg says little without the other",
    ),
    Method(
        "masked LM, from our own English one",
        (
            ("the English one's validation loss before", "papers/mlm-english.json", "loss_before"),
            ("lowest", "papers/mlm-english.json", "loss_best"),
            ("then on the posts before", "papers/mlm-from-english.json", "loss_before"),
            ("lowest", "papers/mlm-from-english.json", "loss_best"),
        ),
        (
            ("from RoBERTa, CT-M2 at epoch 0", {**MLM, "system": "CT-M2"}),
            ("from BERTweet, CT-M3", {**MLM, "system": "CT-M3"}),
        ),
        "the same posts, vocabulary and steps as the other two starts. 221 steps on 19,543 sentences of Tatoeba and"
        " Wikipedia come before them, where RoBERTa read 160 GB: worth .21 against scratch, e5's lowest layers 1.92",
    ),
    Method(
        "multiple negatives ranking (MNR), on the masked LM from e5",
        (
            ("of 100 premises miss their entailed sentence among 100, before", "papers/mnr.json", "error_before"),
            ("after", "papers/mnr.json", "error_best"),
            *quality("papers/quality-mnr.json"),
        ),
        (
            ("D_avg of CrisisLex: CT-M1", {**D_AVG, "table": "5", "system": "CT-M1-BestLoss"}),
            ("then", {**D_AVG, "table": "6", "system": "CT-M1-BestLoss-SE (MNR)"}),
        ),
        "900 English XNLI rows once, batches of 32; theirs 10,000 GooAQ rows, 20 epochs of batches of 512",
    ),
    Method(
        "MNR with hard negatives, the same rows",
        (
            ("before", "papers/mnr-hard-negatives.json", "error_before"),
            ("after", "papers/mnr-hard-negatives.json", "error_best"),
            *quality("papers/quality-mnr-hard-negatives.json"),
        ),
        (("D_avg of CrisisLex", {**D_AVG, "table": "6", "system": "CT-M1-BestLoss-SE (MNR with hard negatives)"}),),
        "the contradicted sentence as negative; theirs QQP. 100 held-out rows tell no difference of a few points",
    ),
    Method(
        "classification, fine-tuned, of the masked LM from e5",
        (
            ("macro F1 of CrisisNLP's 15 classes before", "papers/classify-mlm.json", "before"),
            ("after", "papers/classify-mlm.json", "macro_f1"),
        ),
        (
            ("macro F1 of CrisisNLP: RoBERTa", {**F1, "system": "RoBERTa"}),
            ("CT-M1", {**F1, "system": "CT-M1-BestLoss"}),
        ),
        "1,750 rows twice, 2 layers, 15 classes, two repeats of .261 and .280; theirs 10,214 rows of 8 classes, up"
        " to 30 epochs, 12 layers. A class of 11 rows in 2,500 weighs as much as any other. A linear head on the"
        " static encoder, 20,000 rows: .645",
    ),
    Method(
        "classification, fine-tuned, of e5 as it came",
        (
            ("macro F1 of CrisisNLP's 15 classes before", "papers/classify-e5.json", "before"),
            ("after", "papers/classify-e5.json", "macro_f1"),
        ),
        (
            ("macro F1 of CrisisNLP: RoBERTa", {**F1, "system": "RoBERTa"}),
            ("from it, CT-M2", {**F1, "system": "CT-M2-BestLoss"}),
        ),
        "the start of the masked LM above, the same rows and steps, two repeats of .280 and .267. 171 steps of masked"
        " LM on posts make no difference that this could tell (.270 after them); theirs, of the same set, loses .006."
        " The vocabulary was cut anew, from a few more texts",
    ),
    Method(
        "robust student over pieces (RoLASER)",
        (
            *robust("papers/robust-token.json"),
            *noised("papers/noise-token.json", "7ec230e70afd"),
            *noised("papers/noise-token.json", "ac93f52d0aeb", " of the teacher"),
        ),
        (
            ("cosine distance, mix_all of FLORES: LASER", {**MIX_ALL, "metric": "cosine_distance", "system": "LASER"}),
            ("RoLASER", {**MIX_ALL, "metric": "cosine_distance", "system": "RoLASER"}),
            ("xSIM++ LASER", {**MIX_ALL, "metric": "xsim++", "system": "LASER"}),
            ("RoLASER", {**MIX_ALL, "metric": "xsim++", "system": "RoLASER"}),
        ),
        "201,200 texts of Tatoeba and Debian's games, all but about 1,000 English, and as many draws: 786 steps of"
        " 256 from a random start, one layer of 64, the static encoder as teacher; theirs 2 million sentences,"
        " 683,000 steps from RoBERTa, LASER as teacher. The best constant vector costs 1.91; at every 131 steps"
        " 2.28, 1.61, 1.53, 1.48, 1.45, 1.43, still falling",
    ),
    Method(
        "the same student told apart from what says otherwise (`hard=0.1`, not in the paper)",
        (
            *robust("papers/robust-token-hard.json"),
            *noised("papers/noise-token-hard.json", "ad3715faa77d"),
        ),
        (("xSIM++ RoLASER", {**MIX_ALL, "metric": "xsim++", "system": "RoLASER"}),),
        "the run above, and beside its loss .1 times a contrast with negations, opposites, other numbers and names,"
        " made by rule of the English texts: xSIM++, whose rules are the same, falls by a tenth, and noised and"
        " standard text come to lie a sixth farther apart",
    ),
    Method(
        "robust student over letters (c-RoLASER)",
        (*robust("papers/robust-char.json"), *noised("papers/noise-char.json", "934721d87124")),
        (
            (
                "cosine distance, mix_all of FLORES: c-RoLASER",
                {**MIX_ALL, "metric": "cosine_distance", "system": "c-RoLASER"},
            ),
            ("xSIM++ c-RoLASER", {**MIX_ALL, "metric": "xsim++", "system": "c-RoLASER"}),
        ),
        "the same texts, noise, teacher, steps and width, letters' convolutions 1 to 4 wide from a random start;"
        " theirs from CharacterBERT, 1 to 7 wide. It learns slower than the one over pieces (at every 131 steps"
        " 2.09, 1.88, 1.80, 1.77, 1.73, 1.72, still falling): its smaller cosine distance says that all its vectors"
        " are more alike, as its xSIM does. Theirs too is behind RoLASER in xSIM++",
    ),
    Method(
        "transformer student over parallel data",
        (
            (
                "squared distance to the teacher a dimension, English and text, held out, before",
                "papers/distil.json",
                "loss_before",
            ),
            ("lowest", "papers/distil.json", "loss_best"),
            ("matching of FLORES en and hi before", "papers/quality-distil-before.json", f"{HINDI}/matching"),
            ("after", "papers/quality-distil-after.json", f"{HINDI}/matching"),
        ),
        (
            ("matching of TED2020, CT-XLMR-SE: hi", {**MATCHING, "part": "hi"}),
            ("es", {**MATCHING, "part": "es"}),
        ),
        "56 steps of 32 pairs of en with es, hi, id, tr, two layers of e5 and 40,000 pieces, the static encoder as"
        " teacher; theirs 128 million pairs, up to 20 epochs, 12 layers. Lowest at the last of five validations"
        " (.081, .037, .028, .024, .023): far from done, a vector of zeros costs .0052, and much of the fall is its"
        " vectors' length; that they also turn the right way is told by the matching",
    ),
    Method(
        "relatedness, supervised (SemRel)",
        semrel("semrel-supervised-flood.json", SUPERVISED_LANGUAGES),
        (
            ("SemRel test: LaBSE supervised, mean of 9 languages", SUPERVISED),
            ("English", {**SUPERVISED, "part": "en"}),
            ("LaBSE as it is, English", {**LABSE, "part": "en"}),
        ),
        "a linear map of 256 × 256 on the static encoder's vectors, a language at a time; theirs changes all of LaBSE,"
        " 471 million parameters. Ours is judged on the dev splits, theirs on test. It teaches most where the encoder"
        " reads least (ary .34 → .67, rw .26 → .59, ha .31 → .51); in three languages (arq, mr, te) no epoch beat the"
        " start on the tenth held out",
    ),
    Method(
        "relatedness, across languages (SemRel)",
        semrel("semrel-crosslingual-flood.json", PAPER_LANGUAGES),
        (
            ("SemRel test: LaBSE cross-lingual, mean of 13 languages", CROSSLINGUAL),
            ("LaBSE as it is, mean of 13", LABSE),
            ("English", {**CROSSLINGUAL, "part": "en"}),
            ("LaBSE as it is, English", {**LABSE, "part": "en"}),
        ),
        "the same map, learnt of English for all and of Spanish for English: it turns every language's vectors as"
        " English asks, and eight of the other twelve fall by it; theirs, all of LaBSE, learns to read and rises in the"
        " mean. Dev splits against test. Punjabi, which the paper has not, is left out of both means (−.075 → −.060)",
    ),
)
