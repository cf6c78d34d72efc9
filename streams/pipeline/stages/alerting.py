"""The alerts of a frame's matches, and those to withdraw."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from models.alerts import UPDATED, make_alerts, withdraw
from models.encoders.ready import Ready
from models.moments import epoch_s, rfc3339
from models.records import (
    Alert,
    Deletion,
    MatchedFrame,
    Post,
    account_of,
)
from streams.pipeline.ports import Alerts

__all__ = ["alerts", "taken_back", "with_withdrawals"]


def alerts(frame: MatchedFrame, ready: Ready) -> list[Alert]:
    """The alerts of a frame's matches, with the release that scored them."""
    return make_alerts(frame.posts, frame.matches, ready.queries, frame.encoder_version, ready.name)


def blank(alert: Alert) -> Alert:
    """The alert without its post's text, link and places, and what was read in it: a withdrawal tells none of it."""
    post = msgspec.structs.replace(alert.post, text="", url=None, geo=None, places=[], author=None)
    return msgspec.structs.replace(alert, post=post, evidence=msgspec.structs.replace(alert.evidence, signs=[]))


async def with_withdrawals(frame: MatchedFrame, alerts: list[Alert], known: Alerts) -> list[Alert]:
    """The frame's alerts, and those to withdraw: of deleted posts, and of edited ones that no longer match.

    A post deleted while it was still under way gets no alert at all; one that it got all the same, from who died before
    `taken_back`, is withdrawn. Withdrawn alerts say which they were, not what.
    """
    if frame.deletions:
        await known.mark_gone([d.id for d in frame.deletions])
    gone = await known.gone({a.post.id for a in alerts}) if alerts else set()
    kept = [a for a in alerts if a.post.id not in gone]
    deleted = {d.id: d for d in frame.deletions}
    before = {a.post.id: _deletion(a) for a in alerts if a.post.id in gone}
    changed = {p.id: p for p in frame.posts if p.kind == "update"} | before | deleted
    earlier = {a.alert_id: a for a in await known.alerts_of(changed)} if changed else {}
    ids = {a.alert_id for a in kept}
    causes = (  # what is deleted may be an account, with all posts of its; what is edited is itself alone
        (a, cause) for a in earlier.values() if (cause := deleted.get(account_of(a.post.id)) or changed.get(a.post.id))
    )
    return [after(earlier.get(a.alert_id), a) for a in kept] + [
        blank(withdraw(a, cause))
        for a, cause in causes
        if a.status == "active" and a.alert_id not in ids and not _is_older(cause, a)
    ]


def taken_back(given: Sequence[Alert], gone: Collection[str]) -> list[Alert]:
    """Withdrawals of what was given just now, of posts that are gone by now. given: of one alert the last state counts.

    Who carries out a deletion marks, then looks for alerts; who gives an alert keeps it, then looks for marks: whoever
    is later sees the other.
    """
    last = {alert.alert_id: alert for alert in given}.values()
    return [blank(withdraw(a, _deletion(a))) for a in last if a.status == "active" and a.post.id in gone]


def _deletion(alert: Alert) -> Deletion:
    """That of its post, which somebody else has read: as of the alert itself, for want of its moment."""
    return Deletion(alert.post.id, epoch_s(alert.seen_at))


def _is_older(cause: Post | Deletion, alert: Alert) -> bool:
    """Was this edit seen before what was told, so that it says nothing against it?"""
    return isinstance(cause, Post) and alert.seen_at > rfc3339(cause.seen_at)


def after(earlier: Alert | None, edited: Alert) -> Alert:
    """The alert of an edited post, as an update of what was told of it.

    An edit may be read in the millisecond of its post, whose alert grew by a revision when its cluster became known:
    it comes after that, and after another that is on its way (`UPDATED`). One that is read again is what was told of
    it; one that was seen before what was told (read again, or put by and read late) stays the older.
    """
    if earlier is None or earlier.seen_at > edited.seen_at:
        return edited
    if (earlier.seen_at, earlier.post) == (edited.seen_at, edited.post):
        return earlier
    return msgspec.structs.replace(edited, revision=max(edited.revision, earlier.revision + UPDATED))
