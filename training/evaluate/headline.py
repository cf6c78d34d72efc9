"""The three figures an encoder is chosen and described by, in one call."""

from __future__ import annotations

from models.encoders.protocol import Encoder
from training.evaluate import matching, needs, relatedness
from training.evaluate.report_tables import cell
from training.files import data_dir

__all__ = ["measure", "show"]


def measure(encoder: Encoder, split: str = "devtest") -> dict:
    """FLORES matching, SemRel relatedness and need precision, with their summaries.

    split: of FLORES: "devtest" to report, "dev(sib)" to choose by.
    """
    root = data_dir()
    by_lang = matching.flores_matching(encoder, root, split)
    related = relatedness.semrel(encoder, root)
    needed = needs.need_precision(encoder, root)
    return {
        "matching": {"set": f"FLORES-200 {split}", **matching.summary(by_lang), "by_language": by_lang},
        "relatedness": {"set": "SemRel2024 dev", **relatedness.summary(related), "by_language": related},
        "needs": {
            "set": "disaster-messages-multilingual, held-out half",
            **needs.summary(needed),
            "translation_matching": needs.translation_matching(encoder, root),
            "by_label": needed,
        },
    }


def show(metrics: dict) -> str:
    """The figures of `measure` as lines of text."""
    m, r, n = metrics["matching"], metrics["relatedness"], metrics["needs"]
    worst = sorted(m["by_language"].items(), key=lambda item: item[1])
    return "\n".join(
        [
            f"matching     {m['set']}: all {m['mean_all']:.3f}, paper's {m['languages_paper']} {m['mean_paper']:.3f},"
            f" best 15 {m['mean_best_15']:.3f}, lowest {m['lowest_paper']:.2f}, below .45: {m['below_0.45']}",
            "             " + " ".join(f"{lang} {value:.2f}" for lang, value in worst),
            f"relatedness  {r['set']}: {r['languages']} languages {r['mean']:.3f} (overlap {r['mean_overlap']:.3f}),"
            f" the paper's {len(relatedness.PAPER_LANGUAGES)} {cell(r['mean_paper'])},"
            f" below overlap: {' '.join(r['below_overlap']) or 'none'}",
            "             "
            + " ".join(f"{lang} {f['spearman']:.2f}/{f['overlap']:.2f}" for lang, f in r["by_language"].items()),
            f"needs        AP originals {n['originals']:.3f}, translations {n['translations']:.3f}, ratio "
            f"{n['ratio']:.2f},"
            f" chance {n['chance']:.3f}; translation matching {n['translation_matching']:.3f}",
            "             "
            + " ".join(f"{k} {f['originals']:.2f}/{f['translations']:.2f}" for k, f in n["by_label"].items()),
        ]
    )
