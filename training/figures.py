"""What was measured: the table `training/results/README.md` and its diagrams, from the results that lie beside them.

python -m training.figures        # after a result was added or replaced; a test holds the table to the files
"""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from training import paper_figures, reliability
from training.paper_figures import at

RESULTS = Path(__file__).parent / "results"
TABLE = RESULTS / "README.md"
DIAGRAMS = RESULTS / "reliability.svg"
UNCOMMITTED = " (uncommitted changes)"
# Beginning of a file's name: what it is, and its headline figures by their place in the metrics
HEADLINES: dict[str, tuple[str, dict[str, str]]] = {
    "report/": (
        "every measure of the static encoder; read `report/report.md`",
        {
            "FLORES, the paper's languages": "matching/flores200 devtest/mean_paper",
            "SemRel dev": "relatedness/SemRel2024 dev/mean",
            "xSIM++ of mix_all": "noise/by_kind/mix_all/xsim++/mean",
            "needs, originals": "needs/originals",
        },
    ),
    "reader/": (
        "sentence matching and relatedness of the default encoder before it learnt on; read `reader/report.md`",
        {
            "FLORES, the paper's languages": "matching/flores200 devtest/mean_paper",
            "NTREX": "matching/ntrex128/mean_paper",
            "SemRel dev": "relatedness/SemRel2024 dev/mean",
        },
    ),
    "flores/": (
        "sentence matching (FLORES-200 devtest) of the default encoder; read `flores/report.md`",
        {"FLORES, the paper's languages": "matching/flores200 devtest/mean_paper"},
    ),
    "ntrex/": (
        "sentence matching (NTREX-128) of the default encoder; read `ntrex/report.md`",
        {"NTREX, the paper's languages": "matching/ntrex128/mean_paper"},
    ),
    "needs/": (
        "relatedness, and needs by the directions alone, of the default encoder; read `needs/report.md`",
        {
            "SemRel dev": "relatedness/SemRel2024 dev/mean",
            "STS-B": "relatedness/STS-B test/mean",
            "needs, originals": "needs/originals",
            "needs, translations": "needs/translations",
        },
    ),
    "encoder-": (
        "headline measures of a published encoder",
        {
            "FLORES, the paper's languages": "matching/mean_paper",
            "SemRel dev": "relatedness/mean",
            "needs, originals": "needs/originals",
        },
    ),
    "whiten-": (
        "an encoder as it is and whitened: mean Spearman",
        {"as it is": "spearman_before", "whitened": "spearman_after"},
    ),
    "semrel-": (
        "SemRel's trained baselines: mean Spearman of the languages on dev (`training.semrel`)",
        {
            "as it is": "mean_before",
            "trained": "mean_after",
            "languages": "languages",
        },
    ),
    "classes-reader/": (
        "the same of the default encoder; read `classes-reader/report.md`",
        {
            "CrisisLex": "classes/crisislex-t26/d_avg",
            "CrisisNLP": "classes/crisisnlp-crowdflower/d_avg",
            "stance": "classes/covid-vaccine-stance/d_avg",
            "SAD Stress": "classes/sad-stress/d_avg",
        },
    ),
    "classes/": (
        "posts of one class: D_avg, static encoder; read `classes/report.md`",
        {
            "CrisisLex": "classes/crisislex-t26/d_avg",
            "CrisisNLP": "classes/crisisnlp-crowdflower/d_avg",
            "stance": "classes/covid-vaccine-stance/d_avg",
            "SAD Stress": "classes/sad-stress/d_avg",
        },
    ),
    "needs-whitened-": (
        "needs and matching of a whitened encoder",
        {
            "FLORES, the paper's languages": "matching/flores200 devtest/mean_paper",
            "needs, originals": "needs/originals",
        },
    ),
    "mlm-": ("masked LM: validation loss", {"before": "loss_before", "lowest": "loss_best"}),
    "clusters-": ("clusters of a stream, at the end", {"B³ F1": "final/b3_f1", "NMI": "final/nmi"}),
    "noise-": ("robustness to noise", {}),
    "papers/": ("a small run of one method of the papers, see below", {}),
    "alerts": (
        "how good the alerts are at default settings (`training.evaluate.alerts`)",
        {
            "written posts under their query": "figures/written/own_query/value",
            "alerts right, real posts": "figures/read/alerts_right/value",
            "ordinary posts that alert": "figures/ordinary/ordinary_alerted/value",
        },
    ),
    "ablation": (
        "right query in 20 languages, of real posts under theirs, without parts of the score "
        "(`training.evaluate.ablation`)",
        {
            "whole": "without/whole/written, 20 languages/own_query",
            "no word axes": "without/no word axes/written, 20 languages/own_query",
            "not shared out": "without/p(query) alone, not shared out/written, 20 languages/own_query",
            "no written posts": "without/no written posts/written, 20 languages/own_query",
            "real, whole": "without/whole/real posts/own_query",
            "real, no word axes": "without/no word axes/real posts/own_query",
            "real, no real posts": "without/no real posts/real posts/own_query",
        },
    ),
    "scales": (
        "ways to make a score a probability, fitted on some events, judged on others (`training.evaluate.scales`)",
        {
            f"log loss, {name}": f"ways/{name}/log loss"
            for name in ("one line", "a line shifted by language", "isotonic by query")
        },
    ),
    "learning-curve": (
        "right query, real posts set aside under theirs, with a share of the posts to learn from "
        "(`training.evaluate.curve`)",
        {
            "a tenth": "curve/0.1/written, 20 languages/own_query",
            "a quarter": "curve/0.25/written, 20 languages/own_query",
            "half": "curve/0.5/written, 20 languages/own_query",
            "all": "curve/1.0/written, 20 languages/own_query",
            "real, a tenth": "curve/0.1/real posts/own_query",
            "real, all": "curve/1.0/real posts/own_query",
        },
    ),
    "feedback": (
        "what an analyst's labels teach, average precision over tasks (`training.evaluate.feedback`)",
        {
            "start": "start",
            "gain by 20": "true labels/20/gain",
            "100": "true labels/100/gain",
            "300": "true labels/300/gain",
            "a tenth wrong, 100": "some wrong/100/gain",
        },
    ),
    "places": (
        "places found in posts by name: words that people marked as places (IDRISI-R), and the place they meant "
        "(IDRISI-D)",
        {
            "precision, en": "words/en/precision",
            "recall, en": "words/en/recall",
            "ar": "words/ar/precision",
            "recall, ar": "words/ar/recall",
            "in place, en": "in_place/en/in_place",
            "ar, in place": "in_place/ar/in_place",
        },
    ),
    "backends-": (
        "CPU back-ends on one core, times sentence-transformers' speed",
        {
            "fp32": "backends/onnx fp32/times_sentence_transformers",
            "int8": "backends/onnx int8/times_sentence_transformers",
            "STS-B of int8": "backends/onnx int8/stsb_spearman",
        },
    ),
    "calibrate": (
        "ranking by query and calibrated thresholds",
        {"ranking, en": "ranking/en/mean", "ranking, ht": "ranking/ht/mean"},
    ),
}


# What a reader of the whitening table must know of its masked LM.
MLM = """`mlm` is the checkpoint `best` (also `complete`) of the run in `mlm-english.json`: two layers, \
202,464 English texts, 2.5 epochs,
24 minutes on two cores; its validation loss still fell at the end. It is judged in English alone, \
the language it has read.
`bundled` is trained to be compared (teacher–student and contrast) and half whitened when published."""


def result_files() -> list[str]:
    """Every JSON of the results, by its path below them."""
    return sorted(path.relative_to(RESULTS).as_posix() for path in RESULTS.rglob("*.json"))


def table() -> str:
    """The README's text. Raises KeyError where a result lacks a headline figure of its kind."""
    lines = [
        "# Results",
        "",
        "One JSON a run: command, commit, machine, data hash, seed, configuration, metrics. This table is written by",
        "`python -m training.figures`; published figures of other systems are in `training/evaluate/published.tsv`.",
        f"Where it says{UNCOMMITTED} the code that ran was not quite that of the commit which the file names:",
        "made before `training.jobs` kept such results out of this folder.",
        "",
        "| file | what | command | figures |",
        "|---|---|---|---|",
    ]
    for name in result_files():
        record = json.loads((RESULTS / name).read_text("utf-8"))
        what, places = HEADLINES.get(kind_of(name), ("", {}))
        figures = "; ".join(f"{label} {at(record['metrics'], place):.3f}" for label, place in places.items())
        lines.append(f"| `{name}`{uncommitted(record)} | {what} | `{record['command']}` | {figures} |")
    return "\n".join([*lines, "", *kept_promises(), "", whitening(), "", *papers(), ""])


def kept_promises() -> list[str]:
    """The reliability diagrams, with what is drawn."""
    return [
        "## What probabilities promise",
        "",
        f"![Reliability diagrams]({DIAGRAMS.name})",
        "",
        *wrapped(reliability.__doc__),
    ]


def uncommitted(record: Mapping) -> str:
    """What is said of a result whose code no commit holds; "" of others."""
    return UNCOMMITTED if record["commit"].endswith("+changes") else ""


def papers() -> list[str]:
    """The methods of the papers as we ran them, and real posts beside their normalised versions."""
    return [
        "## Methods of the papers",
        "",
        *wrapped(paper_figures.__doc__),
        "",
        *paper_figures.methods(),
        "",
        "## Language filtering",
        "",
        *wrapped(paper_figures.filtering.__doc__),
        "",
        *paper_figures.filtering(),
        "",
        "## Posts as people write them",
        "",
        *wrapped(paper_figures.user_written.__doc__),
        "",
        *paper_figures.user_written(),
    ]


def wrapped(docstring: str | None) -> list[str]:
    """The paragraph after a docstring's first, so that table and code say one thing."""
    return inspect.cleandoc(docstring or "").split("\n\n")[1].splitlines()


def kind_of(name: str) -> str:
    """The longest beginning in HEADLINES, "" for none: such a result is listed without figures."""
    return max((kind for kind in HEADLINES if name.startswith(kind)), key=len, default="")


def whitening() -> str:
    """Where whitening helped and where not, as measured, beside what the paper prints."""
    lines = [
        "## Whitening",
        "",
        "Spearman on pairs, as it is → whitened (training.whiten; Li et al. 2024, table 1, print for "
        "XLM-R-base .591 → .689",
        "on Spanish and .439 → .475 on Indonesian, for mBERT .597 → .641 and .439 → .447). Where one language "
        "is named, it is the",
        "target: the map is fitted without it, and without the languages that its own texts' whitening harms:",
        "",
        "| encoder | pairs | languages | mean as it is → whitened | English alone | "
        "mean cosine of two texts | left out |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in result_files():
        if name.startswith("whiten-"):
            record = json.loads((RESULTS / name).read_text("utf-8"))
            m, spread = (
                record["metrics"],
                [record["metrics"][f"anisotropy_{when}"]["mean_cosine"] for when in ("before", "after")],
            )
            lines.append(
                f"| {name.split('-')[1]} {m['encoder']}{uncommitted(record)} | {record['config']['pairs']}"
                f" | {record['config']['target'] or len(m['by_language'])}"
                f" | {arrow(m['spearman_before'], m['spearman_after'])}"
                f" | {arrow(*m['by_language']['en']) if 'en' in m['by_language'] else '–'} | {arrow(*spread)}"
                f" | {', '.join(m['left_out']) or '–'} |"
            )
    return "\n".join([*lines, "", MLM])


def arrow(before: float, after: float) -> str:
    return f"{before:.3f} → {after:.3f}"


def command(argv: Sequence[str] | None = None) -> None:
    """Write the table and draw the diagrams. Takes no argument: an unknown word stops it before a file is touched."""
    argparse.ArgumentParser(
        "python -m training.figures", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args(argv)
    reliability.draw(reliability.tables_of(RESULTS / "alerts.json"), DIAGRAMS)
    TABLE.write_text(table(), "utf-8")
    print(f"→ {TABLE}, {DIAGRAMS}")


if __name__ == "__main__":
    command()
