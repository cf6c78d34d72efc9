"""Sections on the vectors themselves: translations, relatedness, classes, spread, noise."""

from __future__ import annotations

from collections.abc import Mapping

from training.evaluate import published
from training.evaluate.relatedness import MTEB_LANGUAGES, PAPER_LANGUAGES, mean_of
from training.evaluate.report_tables import PUBLISHED, between, cell, interval, sets, table, two

__all__ = ["classes", "matching", "noise", "relatedness", "spread"]

_SEMREL = {
    "mBERT": "5",
    "XLM-R": "5",
    "LaBSE": "12",
    "LaBSE fine-tuned": "12",
}  # system: table of Ousidhoum et al. 2024


def matching(found: Mapping) -> str:
    parts = [
        "## Sentence matching",
        "A sentence among all translations, in both directions; 1 is best. Accuracy, cosine"
        " distance and xSIM (error in percent, margin of 4 neighbours) from the language to English; xSIM++ with hard"
        " negatives made by our own rules, not comparable with the paper's. Published: Lamsal 2024, table 4, "
        "on TED2020; under NTREX what MTEB's result files give for other multilingual encoders.",
    ]
    theirs = [
        published.by_part(s, paper="Lamsal 2024", table="4", metric="matching") for s in ("CT-XLMR-SE", "CT-mBERT-SE")
    ]
    for name, figures in sets(found):
        if "mean_paper" in figures:
            parts.append(
                f"**{name}**: mean of {figures['languages_all']} languages {figures['mean_all']:.3f}, of the"
                f" {figures['languages_paper']} of the paper {figures['mean_paper']:.3f}, of their 15 best"
                f" {figures['mean_best_15']:.3f}, lowest {figures['lowest_paper']:.3f}."
            )
        else:
            parts.append(f"**{name}**")
        by_lang = figures["by_language"]
        hard = any("xsim++" in f for f in by_lang.values())
        head = [
            "language",
            "script",
            "en→xx",
            "xx→en",
            "mean",
            "interval",
            "cosine distance",
            "xSIM",
            *(["xSIM++"] if hard else []),
        ]
        parts.append(
            table(
                [*head, "sentences", f"CT-XLMR-SE {PUBLISHED}", f"CT-mBERT-SE {PUBLISHED}"],
                [
                    [
                        lang,
                        f["script"],
                        f["en_to_xx"],
                        f["xx_to_en"],
                        f["matching"],
                        between(f),
                        f["cosine_distance"],
                        two(f["xsim"]),
                        *([two(f.get("xsim++"))] if hard else []),
                        f["sentences"],
                        *(of.get(lang) for of in theirs),
                    ]
                    for lang, f in sorted(by_lang.items(), key=lambda item: -item[1]["matching"])
                ],
            )
        )
        if name.startswith("ntrex128"):
            parts.append(ntrex_peers(by_lang))
        scripts = sorted(figures["by_script"].items(), key=lambda item: -item[1]["matching"])
        parts.append(table(["script", "mean", "languages"], [[s, f["matching"], f["languages"]] for s, f in scripts]))
    return "\n\n".join(parts)


def ntrex_peers(by_lang: Mapping[str, Mapping]) -> str:
    """Ours beside other multilingual encoders, on the same sentences."""
    worst = min(by_lang, key=lambda lang: by_lang[lang]["matching"])
    mean = sum(f["matching"] for f in by_lang.values()) / len(by_lang)
    rows: list[list] = [["ours", len(by_lang), mean, f"{two(by_lang[worst]['matching'])} ({worst})"]]
    for peer in published.PEERS:
        (whole,) = published.find(paper="MTEB", system=peer, metric="matching")
        (lowest,) = published.find(paper="MTEB", system=peer, metric="lowest")
        rows.append([f"{peer} {PUBLISHED}", whole.part.split()[0], whole.value, f"{two(lowest.value)} ({lowest.part})"])
    return table(["encoder", "languages", "mean of both directions", "lowest"], rows)


def semrel_peers(by_lang: Mapping[str, Mapping]) -> str | None:
    """Ours beside other multilingual encoders, over their languages; None where we lack one of them."""
    mean = mean_of(by_lang, MTEB_LANGUAGES)
    if mean is None:
        return None
    rows = [["ours", "dev", len(MTEB_LANGUAGES), mean]]
    for peer in published.PEERS:
        (whole,) = published.find(paper="MTEB", system=peer, metric="spearman")
        rows.append([f"{peer} {PUBLISHED}", "test", whole.part.split()[0], whole.value])
    return table(["encoder", "split", "languages", "mean"], rows)


def relatedness(found: Mapping) -> str:
    parts = [
        "## Relatedness",
        "Spearman's correlation of cosine with people's scores, beside that of word overlap (Dice, as the organisers'"
        " script splits words; and over whole words, vowel signs and apostrophes in them). Published:"
        " Ousidhoum 2024, tables 5 and 12, on SemRel's test split, ours is its dev split; reliability: table 3, two"
        " halves of the people's judgements with each other. Other multilingual encoders: MTEB's result files, also the"
        " test split.",
    ]
    theirs = {s: published.by_part(s, paper="Ousidhoum 2024", table=t) for s, t in _SEMREL.items()}
    theirs["split-half reliability"] = published.by_part("people", dataset="SemRel2024 train/dev")
    for name, figures in sets(found):
        others = theirs if name.startswith("SemRel") else {}
        below = ", ".join(figures["below_overlap"]) or "none"
        by_lang = figures["by_language"]
        paper = mean_of(by_lang, PAPER_LANGUAGES)
        of_paper = "" if paper is None else f", of the paper's {len(PAPER_LANGUAGES)} {paper:.3f}"
        parts += [
            f"**{name}**: mean of {len(by_lang)} languages {figures['mean']:.3f}{of_paper}, word overlap"
            f" {figures['mean_overlap']:.3f}, over whole words"
            f" {cell(figures.get('mean_overlap_words'))}; below word overlap (≥ 90 pairs): {below}.",
            table(
                [
                    "language",
                    "ours",
                    "interval",
                    "word overlap",
                    "whole words",
                    "pairs",
                    *(f"{s} {PUBLISHED}" for s in others),
                ],
                [
                    [
                        lang,
                        f["spearman"],
                        between(f),
                        f["overlap"],
                        f.get("overlap_words"),  # of reports that were made without it: none
                        f["pairs"],
                        *(of.get(lang) for of in others.values()),
                    ]
                    for lang, f in by_lang.items()
                ],
            ),
        ]
        if others and (peers := semrel_peers(by_lang)):
            parts.append(peers)
    return "\n\n".join(parts)


def classes(found: Mapping) -> str:
    systems = ("SBERT", "CT", "CT-XLMR-SE", "CT-mBERT-SE")
    theirs = {
        s: {row.dataset: row.value for row in published.find(system=s, paper="Lamsal 2024", table="2")} for s in systems
    }
    rows = [
        [
            name,
            f["d_avg"],
            f["half_width"],
            f["between"],
            f["d_avg"] - f["between"],
            f["posts"],
            f["classes"],
            *(of.get(f["twin"]) for of in theirs.values()),
        ]
        for name, f in sets(found)
    ]
    means = [
        row for table in ("2", "3") for row in published.find(paper="Lamsal 2024", table=table, dataset="mean of 18")
    ]
    return "\n\n".join(
        [
            "## Posts of one class (D_avg)",
            "Mean cosine within classes, weighted by the inverse of their sizes. An encoder"
            " that maps everything to one point scores 1.0: read it against the mean between classes. "
            "Published: Lamsal 2024,"
            " table 2, D_avg only, on sets of the same origin but other rows; means of their 18 sets (tables 2, 3): "
            + ", ".join(f"{row.system} {row.value:.3f}" for row in means)
            + ".",
            table(
                [
                    "set",
                    "D_avg",
                    "±",
                    "between",
                    "difference",
                    "posts",
                    "classes",
                    *(f"{s} {PUBLISHED}" for s in systems),
                ],
                rows,
            ),
        ]
    )


def spread(found: Mapping) -> str:
    return "\n\n".join(
        [
            "## Anisotropy",
            f"Of {found['texts']:,} texts in all languages of {found['set']}.",
            table(
                ["mean cosine of two texts", "share of the widest axis", "effective dimensions", "dimensions"],
                [[found["mean_cosine"], found["widest_axis"], f"{found['effective_dim']:.1f}", found["dim"]]],
            ),
        ]
    )


def noise(found: Mapping) -> str:
    parts = [
        "## Noise",
        f"{found['sentences']:,} English sentences, noised, against themselves; errors in percent, 0 is best; mean ±"
        " 95 % over generation seeds. Published: Nishimwe 2024, tables 5 and 9 (FLORES devtest, 10 seeds; "
        "their own hard"
        " negatives and word lists: compare the order, not the size, of xSIM++).",
    ]
    systems = ("LASER", "RoLASER", "c-RoLASER")
    for metric, label, number in (
        ("xsim++", "xSIM++", "5"),
        ("xsim", "xSIM", "9"),
        ("cosine_distance", "cosine distance", "5"),
    ):
        theirs = [published.by_part(s, paper="Nishimwe 2024", table=number, metric=metric) for s in systems]
        rows = [
            [kind, interval(f[metric]), *(two(of.get(kind)) for of in theirs)] for kind, f in found["by_kind"].items()
        ]
        parts.append(table([label, "ours", *(f"{s} {PUBLISHED}" for s in systems)], rows))
    if found["by_language"]:
        kinds = sorted({kind for f in found["by_language"].values() for kind in f})
        cell = lambda f: f"{f['cosine_distance']['mean']:.3f} / {f['xsim']['mean']:.1f}" if f else None  # noqa: E731
        parts += [
            "Other languages, each noised by what changes it: cosine distance / xSIM.",
            table(
                ["language", *kinds],
                [[lang, *(cell(f.get(k)) for k in kinds)] for lang, f in found["by_language"].items()],
            ),
        ]
    if found["normalisation"]:
        lexnorm = {
            s: published.find(paper="Nishimwe 2024", table="4", dataset="MultiLexNorm en", system=s) for s in systems
        }
        theirs = [
            f"{s} " + ", ".join(f"{row.metric.replace('_', ' ')} {row.value:.2f}" for row in rows)
            for s, rows in lexnorm.items()
        ]
        parts += [
            "Real posts against what people made of them. Published for MultiLexNorm English, table 4: "
            f"{'; '.join(theirs)}.",
            table(
                ["set", "cosine distance", "matching", "xSIM", "pairs"],
                [
                    [n, f["cosine_distance"], f["matching"], two(f["xsim"]), f["pairs"]]
                    for n, f in found["normalisation"].items()
                ],
            ),
        ]
    return "\n\n".join(parts)
