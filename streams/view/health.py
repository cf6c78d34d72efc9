"""One sentence about the whole: is what one sees now what is so? Pure, made from measured ages alone.

The page, /readyz, `crisis status` and the operator hear the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from streams.view.status import WorkerStatus

__all__ = ["Health", "judge"]

SILENT_S = 3.0  # workers speak every second; a page asks for figures every second, and waits for two
NOTED_S = 5.0  # what was put by in a rebalance, and is read at once, needs no word
LONG_S = 3.0  # a call reads what a second brings, 200,000 characters at most; with a word each second, told within 5
WAITING_FRAMES = 1_000  # a hundred thousand posts: some minutes of work


class Health(Struct, frozen=True):
    """live: all of it works. late: alerts come, but late or not all. down: nothing new comes."""

    level: Literal["live", "late", "down"]
    sentence: str


def judge(
    redis_silent_s: float,
    workers: Mapping[str, WorkerStatus],
    lag: Mapping[str, int] | None,
    agents: Sequence[str],
    at: float,
    put_by: int = 0,
) -> Health:
    """redis_silent_s: since Redis last answered. lag: frames waiting by topic, None where the broker does not answer.

    agents: those that must run somewhere; at: epoch seconds; put_by: posts that wait to be read in context.
    """
    if redis_silent_s > SILENT_S:
        return Health("down", f"Redis has not answered for {redis_silent_s:.0f} s: what is shown is that old")
    heard = {name: said for name, said in workers.items() if said.silent_s(at) <= SILENT_S}
    if not heard:
        silent_s = min((said.silent_s(at) for said in workers.values()), default=None)
        since = "no worker has ever spoken" if silent_s is None else f"no worker has spoken for {silent_s:.0f} s"
        return Health("down", f"{since}: no new post is read")
    ready = [said for said in heard.values() if said.state == "ready"]
    if missing := [agent for agent in agents if not any(agent in said.agents for said in ready)]:
        return Health("down", f"no worker that is ready runs {', '.join(missing)}: posts wait")
    if lag is None:
        return Health("late", "the broker does not answer: no new post comes in")
    unread = _unread(put_by, [said.waits_since for said in heard.values() if said.waits_since], at)
    waiting = {topic: frames for topic, frames in lag.items() if frames > WAITING_FRAMES}
    if waiting:
        topic, frames = max(waiting.items(), key=lambda item: item[1])
        return Health("late", "; ".join((f"alerts come late: {frames:,} records wait in {topic}", *unread)))
    name, said = max(heard.items(), key=lambda item: item[1].computes_s)
    if said.computes_s > LONG_S:
        return Health("late", f"worker {name} has computed one batch for {said.computes_s:.0f} s: alerts wait for it")
    if unread:
        return Health("late", f"the most pressing posts are read first: {unread[0]}")
    for name, said in sorted(heard.items()):
        if said.message:
            return Health("late", f"worker {name}: {said.message}")
    return Health("live", f"live: {len(heard)} worker{'s' if len(heard) > 1 else ''} at work")


def _unread(put_by: int, since: Sequence[float], at: float) -> list[str]:
    """What is said of the posts that were only skimmed; nothing while they wait for moments."""
    waited_s = at - min(since, default=at)
    if waited_s < NOTED_S:
        return []
    minutes = f"{waited_s / 60:.0f} min" if waited_s < 7200 else f"{waited_s / 3600:.0f} h"
    posts = f"{put_by:,} posts" if put_by else "posts"
    return [f"{posts} wait to be read in context, the oldest for {f'{waited_s:.0f} s' if waited_s < 120 else minutes}"]
