"""The ports in memory, for replay and tests: the same answers as Redis gives (held by tests)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from models.records import Alert, Deletion, account_of
from streams.pipeline.ports import Claim, Verdict

__all__ = ["MemoryFolder"]


class MemoryFolder:
    """For replay over a file: everything is remembered, nothing expires."""

    def __init__(self) -> None:
        self._by_text: dict[str, tuple[str, str]] = {}  # fingerprint → (post id, place)
        self._by_id: dict[str, tuple[str, str, str]] = {}  # post id → (first place, last place, fingerprint now)
        self._gone: set[str] = set()  # deleted ids: should one be an account's, its posts are originals no more

    async def claim(self, claims: Sequence[Claim | Deletion]) -> list[Verdict]:
        return self.claim_now(claims)

    def claim_now(self, claims: Sequence[Claim | Deletion]) -> list[Verdict]:
        """The same, for who has no event loop."""
        verdicts = []
        for claim in claims:
            if isinstance(claim, Deletion):
                self._release(claim.id)
                self._gone.add(claim.id)
            else:
                verdicts.append(self._claim(claim))
        return verdicts

    def _claim(self, claim: Claim) -> Verdict:
        first = self._by_text.get(claim.fingerprint)
        if first is not None and account_of(first[0]) in self._gone:
            first = None
        known = self._by_id.get(claim.post_id)
        if not (claim.edit or (known is not None and (known[1] == claim.place or known[2] != claim.fingerprint))):
            if first is not None and first[1] != claim.place:
                return Verdict(repeats=first[0])
            of = claim.repost_of
            if of is not None and of != claim.post_id and of in self._by_id and account_of(of) not in self._gone:
                return Verdict(repeats=of)
        if known is not None and known[2] != claim.fingerprint:
            self._release(claim.post_id)
        if first is None:
            self._by_text[claim.fingerprint] = (claim.post_id, claim.place)
        begun = claim.place if known is None else known[0]
        self._by_id[claim.post_id] = (begun, claim.place, claim.fingerprint)
        return Verdict(edits=begun != claim.place)

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
