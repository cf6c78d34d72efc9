"""One sentence about the whole: is what one sees now what is so? Pure, made from measured ages alone.

The page, /readyz, `crisis status` and the operator hear the same words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct, structs

from streams.view.status import SourceStatus, WorkerStatus

__all__ = ["Health", "Known", "judge"]

SILENT_S = 3.0  # workers speak every second; a page asks for figures every second, and waits for two
NOTED_S = 5.0  # what was put by in a rebalance, and is read at once, needs no word
STANDS_S = 2.0  # it is looked at each second: told three seconds after it moved last, and by the page within five
LONG_S = 3.0  # a call reads what a second brings, 200,000 characters at most; with a word each second, told within 5
HELD_TOLD = 3  # queries
WAITING_FRAMES = 1_000  # a hundred thousand posts: some minutes of work


class Health(Struct, frozen=True):
    """live: all of it works. late: alerts come, but late or not all. down: nothing new comes."""

    level: Literal["live", "late", "down"]
    sentence: str
    openly: str = ""  # told instead to whoever asks without a token: no words of a platform's server, no query

    def for_anybody(self) -> str:
        """The sentence, or as much of it as concerns anybody."""
        return self.openly or self.sentence


class Known(Struct, frozen=True):
    """What is known of the whole at a moment. Seconds and epoch seconds are by the clock of Redis."""

    at: float = 0.0
    workers: Mapping[str, WorkerStatus] = {}
    sources: Mapping[str, SourceStatus] = {}  # what brings posts in, unless it took leave
    lag: Mapping[str, int] | None = None  # frames waiting by topic, None where the broker does not answer
    put_by: int = 0  # posts that wait to be read in context


def judge(known: Known | None, agents: Mapping[str, tuple[str, int]]) -> Health:
    """known: None where Redis does not answer. agents: those that must run somewhere → their topic, its partitions."""
    if known is None:
        return Health("down", "Redis does not answer: nothing new is shown")
    if known.lag is None:
        return Health("down", "the broker does not answer: no new post comes in")
    at, workers = known.at, known.workers
    heard = {name: said for name, said in workers.items() if said.silent_s(at) <= SILENT_S}
    if not heard:
        silent_s = min((said.silent_s(at) for said in workers.values()), default=None)
        since = "no worker has ever spoken" if silent_s is None else f"no worker has spoken for {silent_s:.0f} s"
        return Health("down", f"{since}: no new post is read")
    ready = [said for said in heard.values() if said.state == "ready"]
    if missing := [agent for agent in agents if not any(agent in said.agents for said in ready)]:
        told = (f" (worker {name}: {s.message})" for name, s in sorted(heard.items()) if s not in ready and s.message)
        why = next(told, "")
        return Health("down", f"no worker that is ready runs {', '.join(missing)}{why}: posts wait")
    wrong = next(_wrong(known, heard, agents), None)
    found = Health("late", wrong) if wrong else next(_missing(known), None)
    found = found or Health("live", f"live: {len(heard)} worker{'s' if len(heard) > 1 else ''} at work")
    if held := _held(heard.values()):
        return structs.replace(found, sentence=f"{found.sentence}; {held}", openly=found.for_anybody())
    return found


def _wrong(known: Known, heard: Mapping[str, WorkerStatus], agents: Mapping[str, tuple[str, int]]) -> Iterator[str]:
    """What makes alerts late, the worst first."""
    at, lag = known.at, known.lag or {}
    unread = _unread(known.put_by, [said.waits_s + said.silent_s(at) for said in heard.values() if said.waits_s])
    if waiting := {topic: frames for topic, frames in lag.items() if frames > WAITING_FRAMES}:
        topic, frames = max(waiting.items(), key=lambda item: item[1])
        yield "; ".join((f"alerts come late: {frames:,} records wait in {topic}", *unread))
    for topic, partitions in agents.values():
        held = [said.holds.get(topic, []) for said in heard.values() if said.holds is not None]
        alone = partitions - len({partition for parts in held for partition in parts})
        if lag.get(topic, 0) and len(held) == len(heard) and alone > 0:
            yield f"nobody reads {alone} of {partitions} partitions of {topic}: posts wait"
    name, said = max(heard.items(), key=lambda item: item[1].computes_s)
    if said.computes_s > LONG_S:
        yield f"worker {name} has computed one batch for {said.computes_s:.0f} s: alerts wait for it"
    name, said = max(heard.items(), key=lambda item: item[1].stands_s)
    if said.stands_s > STANDS_S:
        yield f"worker {name} has stood still for {said.stands_s:.0f} s: alerts wait for it"
    if unread:
        yield f"the most pressing posts are read first: {unread[0]}"
    for name, said in sorted(heard.items()):
        if said.message:
            yield f"worker {name}: {said.message}"


def _missing(known: Known) -> Iterator[Health]:
    """What does not come in. Said last: what ails the workers holds up the posts of all sources."""
    for name, source in sorted(known.sources.items()):
        if not source.missed(known.at):
            continue
        if (silent_s := source.silent_s(known.at)) > SILENT_S:
            yield Health("late", f"source {name} has not spoken for {silent_s:.0f} s: its posts do not come in")
        if source.message:
            openly = f"source {name} says that it is in trouble: its posts may not come in"
            yield Health("late", f"source {name}: {source.message}", openly)


def _held(heard: Iterable[WorkerStatus]) -> str:
    """What alerts an hour hold back, of the queries with the most. Round: what is read out with each change of it would
    be read out every second."""
    total = sum((Counter(said.held) for said in heard), Counter[str]())
    if not total:
        return ""
    told = [f"{query_id} {_at_least(n)}" for query_id, n in total.most_common(HELD_TOLD)]
    more = f" and {len(total) - HELD_TOLD} more queries" if len(total) > HELD_TOLD else ""
    return f"held back in the last hour by alerts an hour: {', '.join(told)}{more}"


def _at_least(n: int) -> str:
    """9, 30+, 1,000+: by its first digit."""
    power = 10 ** (len(str(n)) - 1)
    return str(n) if n < 10 else f"{n // power * power:,}+"


def _unread(put_by: int, waited: Sequence[float]) -> list[str]:
    """What is said of the posts that were only skimmed; nothing while they wait for moments."""
    waited_s = max(waited, default=0.0)
    if waited_s < NOTED_S:
        return []
    minutes = f"{waited_s / 60:.0f} min" if waited_s < 7200 else f"{waited_s / 3600:.0f} h"
    posts = f"{put_by:,} posts" if put_by else "posts"
    return [f"{posts} wait to be read in context, the oldest for {f'{waited_s:.0f} s' if waited_s < 120 else minutes}"]
