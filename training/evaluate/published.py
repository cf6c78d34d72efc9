"""Figures that papers and public result files give, shown beside ours and marked as published; never measured here.

`published.tsv` was read from the papers' text, cell by cell; the tests hold the averages that the papers print against
the cells they are of. "Table" figure 4 of Lamsal 2023 is that figure's caption, 3.4 of Li 2024 that section's text.
Left out because the text is damaged there: CT-M1-Complete on D-01 to D-09 (table 4 of Lamsal 2023),
CT-M2-BestLoss/Complete-SE with hard negatives on D-01 to D-09 (table 6), two cells with five decimals (table 7), most
of LASER's row of Nishimwe's table 9; RoLASER's zeros of that table are from the sentence beneath it.

MTEB's are means over its files of the task that stands as their table, as our notes keep them: of NTREX-128 the
accuracy in both directions between English and 52 of our languages, and the lowest language's; of SemRel's test split
the Spearman of its 12 languages, the paper's less Spanish.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from msgspec import Struct

from training.files import read_rows

__all__ = ["PAPERS", "PEERS", "by_part", "find"]

PAPERS = {
    "Lamsal 2023": "Lamsal, Read, Karunasekera 2023, CrisisTransformers, arXiv:2309.05494",
    "Lamsal 2024": "Lamsal, Read, Karunasekera 2024, Semantically Enriched Cross-Lingual Sentence Embeddings for "
    "Crisis-related Social Media Texts",
    "Nishimwe 2024": "Nishimwe, Sagot, Bawden 2024, Making Sentence Embeddings Robust to User-Generated Content, "
    "hal-04520909",
    "Li 2024": "Li et al. 2024, USTCCTSU at SemEval-2024 Task 1, Reducing Anisotropy for Cross-lingual Semantic "
    "Textual Relatedness",
    "Ousidhoum 2024": "Ousidhoum et al. 2024, SemRel2024: A Collection of Semantic Textual Relatedness Datasets for "
    "13 Languages",
    "MTEB": "MTEB's public result files, https://github.com/embeddings-benchmark/results at f4cc6c8 (2026-08-20)",
}
PEERS = (  # multilingual encoders that MTEB has measured, as its tables name them
    "LaBSE",
    "multilingual-e5-small",
    "potion-multilingual-128M",
    "static-similarity-mrl-multilingual-v1",
    "bekko-embedding-v1-a8m",
)


class Published(Struct, frozen=True):
    """One printed figure."""

    paper: str  # a key of PAPERS
    table: str  # of MTEB the task
    system: str  # as the paper names it
    dataset: str
    part: str  # language or noise type, "" for the whole
    metric: str
    value: float
    half_width: float | None  # of the 95 % interval, where it is printed


@cache
def rows() -> tuple[Published, ...]:
    """Every row of the table."""
    return tuple(
        Published(
            **{
                **row,
                "value": float(row["value"]),
                "half_width": float(row["half_width"]) if row["half_width"] else None,
            }
        )
        for row in read_rows(Path(__file__).parent / "published.tsv")
    )


def find(**wanted: str) -> list[Published]:
    """Rows whose columns have these values, in file order: find(paper="Lamsal 2024", table="4", metric="matching")."""
    return [row for row in rows() if all(getattr(row, column) == value for column, value in wanted.items())]


def by_part(system: str, **wanted: str) -> dict[str, float]:
    """One system's values by part."""
    return {row.part: row.value for row in find(system=system, **wanted)}
