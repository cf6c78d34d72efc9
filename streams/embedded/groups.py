"""Consumer groups: Kafka's classic protocol as a state machine, without any bytes.

    Empty ──join──► PreparingRebalance ──all joined──► CompletingRebalance ──leader synced──► Stable
                          ▲                                                                     │
                          └── a member joins, leaves, or is not heard of for its session ◄──────┘

Everything runs on the broker's event loop; timers are the loop's.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from kafka import errors

__all__ = ["Group", "Member"]


@dataclass(eq=False)
class Member:
    """One consumer. `waiting`: for the answer to its JoinGroup or SyncGroup."""

    id: str
    client_id: str
    session_s: float
    rebalance_s: float
    protocols: dict[str, bytes]
    assignment: bytes = b""
    waiting: asyncio.Future | None = None
    expiry: asyncio.TimerHandle | None = None

    def wait(self) -> asyncio.Future:
        """What it waits for; its session does not end meanwhile."""
        self.rest()
        self.waiting = asyncio.get_running_loop().create_future()
        return self.waiting

    def rest(self) -> None:
        if self.expiry:
            self.expiry.cancel()

    def answer(self, error: Exception | None = None) -> None:
        """End its wait."""
        if self.waiting and not self.waiting.done():
            self.waiting.set_exception(error) if error else self.waiting.set_result(None)
        self.waiting = None


@dataclass(eq=False)
class Group:
    """A consumer group. `offsets`: what is committed, (topic, partition) → (offset, note)."""

    id: str
    state: str = "Empty"
    generation: int = 0
    protocol_type: str = ""
    protocol: str = ""
    leader: str = ""
    members: dict[str, Member] = field(default_factory=dict)
    welcomed: set[str] = field(default_factory=set)  # ids given to newcomers that have yet to join with them (KIP-394)
    offsets: dict[tuple[str, int], tuple[int, str]] = field(default_factory=dict)
    timer: asyncio.TimerHandle | None = None

    async def join(self, new: Member, protocol_type: str) -> None:
        """Wait for the next generation. Raises UnknownMemberIdError or InconsistentGroupProtocolError."""
        others = [m.protocols for m in self.members.values() if m.id != new.id]
        if others and protocol_type != self.protocol_type or not set(new.protocols).intersection(*others):
            raise errors.InconsistentGroupProtocolError(f"{protocol_type} {list(new.protocols)}")
        if new.id in self.welcomed:
            self.welcomed.remove(new.id)
            self.members[new.id] = new
        member = self.check(new.id)
        unchanged = member is not new and member.protocols == new.protocols
        self.protocol_type, member.protocols = protocol_type, new.protocols
        if unchanged and (self.state == "CompletingRebalance" or self.state == "Stable" and self.leader != member.id):
            return  # it missed our answer: tell it again
        member.answer(errors.UnknownMemberIdError("joined again"))
        self._prepare()
        joined = member.wait()
        self._complete()
        await joined

    def _prepare(self) -> None:
        """Start a rebalance, if none is under way."""
        if self.state != "PreparingRebalance":
            self.state = "PreparingRebalance"
            for member in [m for m in self.members.values() if m.waiting]:
                member.answer(errors.RebalanceInProgressError())
                self._hear(member)
            wait_s = max((m.rebalance_s for m in self.members.values()), default=0)
            self.timer = asyncio.get_running_loop().call_later(wait_s, self._complete, True)

    def _complete(self, late: bool = False) -> None:
        """The next generation, once all have joined; `late`: without those who have not."""
        if not late and not all(m.waiting for m in self.members.values()):
            return
        self.timer.cancel()
        for member in [m for m in self.members.values() if not m.waiting]:
            self.members.pop(member.id).rest()
        self.generation += 1
        self.state = "CompletingRebalance" if self.members else "Empty"
        if self.members:
            self.leader = self.leader if self.leader in self.members else next(iter(self.members))
            common = set.intersection(*(set(m.protocols) for m in self.members.values()))
            self.protocol = next(p for p in self.members[self.leader].protocols if p in common)
        for member in self.members.values():
            member.assignment = b""
            member.answer()
            self._hear(member)

    async def sync(self, member_id: str, generation: int, plan: dict[str, bytes]) -> bytes:
        """The member's assignment; the leader brings everyone's as `plan`. Raises as `check`."""
        member = self.check(member_id, generation)
        if self.state == "PreparingRebalance":
            raise errors.RebalanceInProgressError()
        if self.state == "CompletingRebalance" and member_id != self.leader:
            await member.wait()
        elif self.state == "CompletingRebalance":
            self.state = "Stable"
            for other in self.members.values():
                other.assignment = plan.get(other.id, b"")
                other.answer()
                self._hear(other)
        return member.assignment

    def check(self, member_id: str, generation: int | None = None) -> Member:
        """The member, heard of just now. Raises UnknownMemberIdError or IllegalGenerationError."""
        if member_id not in self.members:
            raise errors.UnknownMemberIdError(member_id)
        if generation not in (None, self.generation):
            raise errors.IllegalGenerationError(f"{generation}, not {self.generation}")
        if not self.members[member_id].waiting:
            self._hear(self.members[member_id])
        return self.members[member_id]

    def may_commit(self, member_id: str, generation: int) -> None:
        """Raises as `check`, or RebalanceInProgressError. Without members everyone may, under no generation."""
        if generation >= 0 or self.members:
            self.check(member_id, generation)
            if self.state == "CompletingRebalance":
                raise errors.RebalanceInProgressError()

    def _hear(self, member: Member) -> None:
        member.rest()
        member.expiry = asyncio.get_running_loop().call_later(member.session_s, self.drop, member)

    def drop(self, member: Member) -> None:
        """It left, or its session is over."""
        member.rest()
        self.members.pop(member.id, None)
        member.answer(errors.UnknownMemberIdError(member.id))
        self._prepare()
        self._complete()
