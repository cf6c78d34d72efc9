"""What `crisis encoder` shows, as tables."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Column, Table

from models.encoders.bundle import Manifest
from models.moments import told
from streams.releases.bands import Arm, read_arm
from streams.releases.diff import Change, Diff
from streams.releases.release import Release

__all__ = ["diff_tables", "languages_table", "role_of", "trial_table", "when"]


def when(at: float | None) -> str:
    """A moment for people; – for none."""
    return f"{told(at)} UTC" if at else "–"


def role_of(release: Release, name: str) -> str:
    """What a version is for now, coloured; empty if nothing."""
    if name == release.current:
        return "[green]current"
    if release.staged and name == release.staged.version:
        return "[yellow]canary" if release.staged.canary else "[yellow]shadow"
    if release.refused and name == release.refused.version:
        return "[red]refused"
    return "previous" if name == release.previous else ""


def trial_table(counts: dict[str, int]) -> Table:
    """How a trial goes, and in which languages it differs."""
    table = Table(
        "trial", "posts", "errors", "ms a post", "alerts on", title="Figures of the trial", title_justify="left"
    )
    names = {
        "current": "current version",
        "staged": "canary",
        "beside": "current, on the shadow's frames",
        "shadow": "shadow",
    }
    for arm, label in names.items():
        found = read_arm(counts, arm)
        posts = sum(found.lang_posts.values())
        alerts = sum(found.lang_alerts.values()) / posts if posts else 0.0
        if posts:
            table.add_row(label, f"{posts:,}", f"{found.errors:,}", _ms(found), f"{alerts:.1%}")
    staged, beside = read_arm(counts, "shadow"), read_arm(counts, "beside")
    for lang in sorted(staged.lang_posts, key=staged.lang_posts.__getitem__, reverse=True)[:8]:
        table.add_row(
            f"  shadow, {lang}",
            f"{staged.lang_posts[lang]:,}",
            "",
            "",
            f"{staged.alert_rate(lang):.1%} (current {beside.alert_rate(lang):.1%})",
        )
    return table


def _ms(arm: Arm) -> str:
    return f"{arm.ms_per_post:.2f}" if arm.encode_ms else "–"


def languages_table(manifest: Manifest) -> Table:
    """What was measured of a version, language by language."""
    table = Table("language", "sentence matching", "relatedness", "overlap baseline", "training pairs")
    for lang, f in sorted(manifest.languages.items()):
        figures = (f.matching, f.relatedness, f.relatedness_overlap)
        table.add_row(
            lang, *("–" if x is None else f"{x:.3f}" for x in figures), "–" if f.pairs is None else f"{f.pairs:,}"
        )
    return table


def diff_tables(found: Diff, most: int) -> list[Table]:
    """What B would alert that A does not, and the other way round, a post counting once: by language, then the biggest
    changes."""
    table = Table(
        "language",
        "posts",
        "alerts A",
        "alerts B",
        "kept",
        "gained",
        "lost",
        "moved",
        title=f"A = {found.a}   B = {found.b}",
        title_justify="left",
    )
    order = sorted(found.by_language.items(), key=lambda item: -item[1].posts)
    for lang, t in [*order, ("all", found.total)]:
        if lang == "all" or t.alerts_a or t.alerts_b:
            table.add_row(
                lang, *(f"{n:,}" for n in (t.posts, t.alerts_a, t.alerts_b, t.kept, t.gained, t.lost, t.moved))
            )
    each = (
        ("Gained: only B alerts", found.gained),
        ("Lost: only A alerts", found.lost),
        ("Moved: both alert, B under another query", found.moved),
    )
    return [table, *(_changes(title, changes, most) for title, changes in each if changes)]


def _changes(title: str, changes: list[Change], most: int) -> Table:
    shown = f"{title} ({len(changes):,}{f', the {most} biggest changes' if len(changes) > most else ''})"
    table = Table(
        "lang",
        Column("text", ratio=1),
        Column("query", no_wrap=True),
        Column("A: score, needed", no_wrap=True),
        Column("B", no_wrap=True),
        title=shown,
        title_justify="left",
    )
    for c in changes[:most]:
        text = c.text if len(c.text) <= 100 else c.text[:99] + "…"
        table.add_row(
            c.lang,
            escape(text),
            f"{c.instead_of} → {c.query_id}" if c.instead_of else c.query_id,
            f"{c.score_a:.2f}, {c.threshold_a:.2f}",
            f"{c.score_b:.2f}, {c.threshold_b:.2f}",
        )
    return table
