"""The alerts of a frame's matches, and those to withdraw."""

from __future__ import annotations

import msgspec

from models.alerts import make_alerts, withdraw
from models.encoders.ready import Ready
from models.records import (
    Alert,
    MatchedFrame,
    account_of,
)
from streams.pipeline.ports import Alerts

__all__ = ["alerts", "with_withdrawals"]


def alerts(frame: MatchedFrame, ready: Ready) -> list[Alert]:
    """The alerts of a frame's matches, with the release that scored them."""
    made = make_alerts(frame.posts, frame.matches, ready.queries, frame.encoder_version)
    return [msgspec.structs.replace(alert, registry_version=ready.name) for alert in made]


def blank(alert: Alert) -> Alert:
    """The alert without its post's text, link and places, and what was read in it: a withdrawal tells none of it."""
    post = msgspec.structs.replace(alert.post, text="", url=None, geo=None, places=[], author=None)
    return msgspec.structs.replace(alert, post=post, evidence=msgspec.structs.replace(alert.evidence, signs=[]))


async def with_withdrawals(frame: MatchedFrame, alerts: list[Alert], known: Alerts) -> list[Alert]:
    """The frame's alerts, and those to withdraw: of deleted posts, and of edited ones that no longer match.

    A post deleted while it was still under way gets no alert at all. Withdrawn alerts say which they were, not what.
    """
    if frame.deletions:
        await known.mark_gone([d.id for d in frame.deletions])
    gone = await known.gone({a.post.id for a in alerts}) if alerts else set()
    kept = [a for a in alerts if a.post.id not in gone]
    causes = {p.id: p for p in frame.posts if p.kind == "update"} | {d.id: d for d in frame.deletions}
    earlier = {a.alert_id: a for a in await known.alerts_of(causes)} if causes else {}
    ids = {a.alert_id for a in kept}
    return [after(earlier.get(a.alert_id), a) for a in kept] + [
        blank(withdraw(a, causes.get(a.post.id) or causes[account_of(a.post.id)]))
        for a in earlier.values()
        if a.status == "active" and a.alert_id not in ids
    ]


def after(earlier: Alert | None, edited: Alert) -> Alert:
    """The alert of an edited post, as an update of what was told of it.

    Times alone do not tell which state is the later: an edit may be read in the millisecond of the post, or by a
    machine whose clock is behind. An edit that is read again is what was told of it.
    """
    if earlier is None:
        return edited
    if (earlier.seen_at, earlier.post) == (edited.seen_at, edited.post):
        return earlier
    return msgspec.structs.replace(edited, revision=max(edited.revision, earlier.revision + 1))
