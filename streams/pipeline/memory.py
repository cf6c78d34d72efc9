"""The ports in memory, for replay and tests: the same answers as Redis gives (held by tests)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from models.records import Alert, account_of
from streams.pipeline.ports import KEPT_REPEATS, Claim, Gone, Verdict

__all__ = ["MemoryAlerts", "MemoryFolder"]


class MemoryFolder:
    """For replay over a file: everything is remembered, nothing expires. kept: repeats of one post."""

    def __init__(self, kept: int = KEPT_REPEATS) -> None:
        self._most = kept
        self._by_text: dict[str, tuple[str, str]] = {}  # fingerprint → (post id, place)
        self._by_id: dict[str, tuple[str, str, str]] = {}  # post id → (first place, last place, fingerprint now)
        self._gone: set[str] = set()  # deleted ids: should one be an account's, its posts are originals no more
        self._kept: dict[str, tuple[str, str, str, bytes]] = {}  # repeat → (place, fingerprint, what it repeats, post)
        self._of: dict[str, list[str]] = {}  # post id → its kept repeats, lowest ids first
        self._then: dict[tuple[str, str], tuple[str, str]] = {}  # post id, words → the last without room; what it says
        self._heads: dict[str, dict[str, None]] = {}  # account → its posts that have repeats, as they came
        self._mine: dict[str, set[str]] = {}  # account → its repeats
        self._raised: dict[str, set[str]] = {}  # place → what took the place of another there

    async def claim(self, claims: Sequence[Claim | Gone]) -> list[Verdict]:
        return self.claim_now(claims)

    def claim_now(self, claims: Sequence[Claim | Gone]) -> list[Verdict]:
        """The same, for who has no event loop."""
        return [self._one(claim) for claim in claims]

    def _one(self, claim: Claim | Gone) -> Verdict:
        if isinstance(claim, Gone):
            self._release(claim.post_id)
            for post_id in (claim.post_id, *self._mine.pop(claim.post_id, ())):
                self._drop(post_id)
            self._gone.add(claim.post_id)
            for head in [claim.post_id, *self._heads.get(claim.post_id, ())]:
                self._raise(head, claim.place)
            verdict = Verdict()
        else:
            verdict = self._claim(claim)
        raised = sorted(self._raised.get(claim.place, ()))
        again = [self._kept[i][3] for i in raised if i in self._kept and account_of(i) not in self._gone]
        return Verdict(verdict.repeats, verdict.edits, tuple(again))

    def _claim(self, claim: Claim) -> Verdict:
        first = self._by_text.get(claim.fingerprint)
        if first is not None and account_of(first[0]) in self._gone:
            first = None
        known = self._by_id.get(claim.post_id)
        target = None
        if not (claim.edit or (known is not None and (known[1] == claim.place or known[2] != claim.fingerprint))):
            at, said, by, _ = self._kept.get(claim.post_id, ("", "", "", b""))
            if (at, said) == (claim.place, claim.fingerprint) and by:  # delivered again
                return self._repeat(claim, by)
            of = claim.repost_of
            if first is not None and first[1] != claim.place:
                target = first[0]
            elif of is not None and of != claim.post_id and of in self._by_id and account_of(of) not in self._gone:
                target = of
            if target is not None and (repeats := self._room(claim, target)) is not None:
                return repeats
        if self._kept.get(claim.post_id, ("", claim.fingerprint))[1] != claim.fingerprint:
            self._drop(claim.post_id)
        says_another = known is not None and known[2] != claim.fingerprint
        if says_another:
            self._release(claim.post_id)
        if first is None:
            self._by_text[claim.fingerprint] = (claim.post_id, claim.place)
        begun = claim.place if known is None else known[0]
        self._by_id[claim.post_id] = (begun, claim.place, claim.fingerprint)
        if target is not None:
            self._then[target, claim.says] = (claim.post_id, claim.fingerprint)
        if says_another:
            self._raise(claim.post_id, claim.place)
        return Verdict(edits=begun != claim.place)

    def _room(self, claim: Claim, target: str) -> Verdict | None:
        """The repeat it is, of the post itself or of the last that found no room there; None where none has room."""
        head, fingerprint = self._then.get((target, claim.says), ("", ""))
        stands = self._by_id.get(head, ("", "", ""))[2] == fingerprint and account_of(head) not in self._gone
        for of in (target, head) if head and stands else (target,):
            how = "fold" if of == claim.post_id else self._fits(claim.post_id, of)
            if how == "keep":
                return self._repeat(claim, of)
            if how == "fold":
                return Verdict(repeats=of)
        return None

    def _fits(self, post_id: str, of: str) -> str:
        """ "keep" one more repeat; where its own account has enough there, "fold" it only; else let it "through"."""
        there, owner = self._of.get(of, []), account_of(of) + "/"
        own = sum(one.startswith(owner) for one in there) if of.startswith(owner) else 0
        if of.startswith(owner) and post_id.startswith(owner):
            if own >= self._most:
                return "fold"
        elif len(there) - own >= self._most:
            return "through"
        return "keep" if len(there) < 2 * self._most else "through"

    def _repeat(self, claim: Claim, of: str) -> Verdict:
        if account_of(claim.post_id) not in self._gone:
            self._let_go(claim.post_id)
            self._hold(claim.post_id, claim.place, claim.fingerprint, of, claim.post)
            self._add(of, claim.post_id)
        return Verdict(repeats=of)

    def _raise(self, of: str, place: str) -> None:
        """It says it no more: the first of its repeats that still does takes its place, the others repeat that one."""
        heir, raised = "", self._of.pop(of, [])
        self._heads.get(account_of(of), {}).pop(of, None)
        for post_id in raised:
            at, said, _, post = self._kept[post_id]
            self._hold(post_id, at, said, heir, post)
            if heir:
                self._add(heir, post_id)
                continue
            heir = post_id
            first = self._by_text.get(said)
            if first is None or account_of(first[0]) in self._gone:
                self._by_text[said] = (heir, at)
            self._by_id[heir] = (at, at, said)
            self._raised.setdefault(place, set()).add(heir)

    def _hold(self, post_id: str, place: str, fingerprint: str, of: str, post: bytes) -> None:
        self._kept[post_id] = (place, fingerprint, of, post)
        if account_of(post_id) != post_id:
            self._mine.setdefault(account_of(post_id), set()).add(post_id)

    def _add(self, of: str, post_id: str) -> None:
        self._of[of] = sorted({*self._of.get(of, ()), post_id})
        heads = self._heads.setdefault(account_of(of), {})
        heads.pop(of, None)
        heads[of] = None

    def _let_go(self, post_id: str) -> None:
        of = self._kept.get(post_id, ("", "", ""))[2]
        if post_id in self._of.get(of, ()):
            self._of[of].remove(post_id)

    def _drop(self, post_id: str) -> None:
        self._let_go(post_id)
        self._kept.pop(post_id, None)
        self._mine.get(account_of(post_id), set()).discard(post_id)

    def _release(self, post_id: str) -> None:
        *_, fingerprint = self._by_id.pop(post_id, ("",))
        if self._by_text.get(fingerprint, ("",))[0] == post_id:
            del self._by_text[fingerprint]


class MemoryAlerts:
    """For replay: the same answers as LiveView, from a dict."""

    def __init__(self) -> None:
        self.by_id: dict[str, Alert] = {}
        self._of_post: dict[str, list[str]] = {}
        self._gone: set[str] = set()

    async def mark_gone(self, post_ids: Sequence[str]) -> None:
        self._gone.update(post_ids)

    async def gone(self, post_ids: Iterable[str]) -> set[str]:
        return {p for p in post_ids if p in self._gone or account_of(p) in self._gone}

    async def alerts_of(self, post_ids: Iterable[str]) -> list[Alert]:
        return [self.by_id[a] for a in sorted({a for p in post_ids for a in self._of_post.get(p, ())})]

    async def put_alerts(self, alerts: Sequence[Alert]) -> list[Alert]:
        taken = []
        for alert in alerts:
            known = self.by_id.get(alert.alert_id)
            if known is None or known.revision < alert.revision:
                if known is None:
                    for owner in {alert.post.id, account_of(alert.post.id)}:
                        self._of_post.setdefault(owner, []).append(alert.alert_id)
                self.by_id[alert.alert_id] = alert
                taken.append(alert)
        return taken
