"""Who crowds the page: whose alerts give way when there are too many, and who says the same in the same minute.

Pure: no clock, no I/O.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from hashlib import blake2b

from models.alerts import LEAST_LETTERS, crowd_of
from models.moments import epoch_s
from models.records import Alert, account_of

__all__ = ["Copies", "Crowds", "crowds_of_page", "whose"]

FIRST = 5  # of a crowd, or half of it where that is fewer, that do not give way; as in view/put_alerts.lua


class Crowds:
    """Who takes whose room: alerts by level and category, in there by source, in there by cluster and by account.

    When there are too many, the fullest room gives way, in it the source with the most, of that the biggest cluster or
    account, and of that the oldest but the FIRST: a flood pushes out itself, and whoever repeats the words of a call
    does not push out that call, which came before them. What is in no cluster yet counts as one crowd, and in it gives
    way the biggest of one text or account; a post that names neither author nor account is of none.

    rank: grows with every new alert, and stays with it.
    """

    def __init__(self) -> None:
        # → source → crowd → (rank, alert id) in order
        self._rooms: dict[tuple[str, str], dict[str, dict[str, list[tuple[int, str]]]]] = {}
        self._sizes: Counter[tuple[str, str]] = Counter()
        self._of_source: dict[tuple[str, str], Counter[str]] = {}
        self._gave_way: Counter[str] = Counter()  # of crowds that are still here

    def add(self, alert: Alert, rank: int) -> None:
        room, source = (alert.level, alert.category), alert.post.source
        crowds = self._rooms.setdefault(room, {}).setdefault(source, {})
        for crowd in _crowds_of(alert):
            insort(crowds.setdefault(crowd, []), (rank, alert.alert_id))
        self._sizes[room] += 1
        self._of_source.setdefault(room, Counter())[source] += 1

    def remove(self, alert: Alert, rank: int) -> None:
        room, source = (alert.level, alert.category), alert.post.source
        crowds = self._rooms[room][source]
        for crowd in _crowds_of(alert):
            del crowds[crowd][bisect_left(crowds[crowd], (rank, alert.alert_id))]
            if not crowds[crowd]:
                del crowds[crowd]
                self._gave_way.pop(_place(room, source, crowd), None)
        if not crowds:
            del self._rooms[room][source]
        self._sizes[room] -= 1
        self._of_source[room][source] -= 1
        if not self._of_source[room][source]:  # sources name themselves: there may be any number
            del self._of_source[room][source]

    def merge(self, gone: str, into: str) -> list[str]:
        """The alerts of one cluster are of another from here on; returns their ids."""
        was, now = f"cluster {gone}", f"cluster {into}"
        moved: list[str] = []
        for room, sources in self._rooms.items():
            for source, crowds in sources.items():
                if (found := crowds.pop(was, None)) is None:
                    continue
                crowds[now] = sorted(crowds.get(now, []) + found)
                if left := self._gave_way.pop(_place(room, source, was), 0):
                    self._gave_way[_place(room, source, now)] += left
                moved += [alert_id for _, alert_id in found]
        return moved

    def next_to_go(self) -> str:
        """Its alert id."""
        room = max(self._sizes, key=self._sizes.__getitem__)
        sources = self._of_source[room]
        source = max(sources, key=sources.__getitem__)
        crowds = self._rooms[room][source]
        crowd = max(crowds, key=lambda name: len(crowds[name]))
        if crowd == NO_CLUSTER:
            inner = max(
                (c for c in crowds if not c.startswith("cluster ")), key=lambda c: len(crowds[c]), default=crowd
            )
            crowd = inner if len(crowds[inner]) > 1 else crowd
        self._gave_way[_place(room, source, crowd)] += 1
        stay = 0 if crowd == NO_CLUSTER else min(FIRST, len(crowds[crowd]) // 2)
        return crowds[crowd][stay][1]

    def gave_way(self, alert: Alert) -> int:
        """How many alerts of its cluster, or of its account, had to go while some of them stayed."""
        room, source = (alert.level, alert.category), alert.post.source
        return max((self._gave_way[_place(room, source, crowd)] for crowd in crowds_of_page(alert)), default=0)


def _place(room: tuple[str, str], source: str, crowd: str) -> str:
    return "\x1f".join((*room, source, crowd))


class Copies:
    """Who says the same in the same minute: the mark of a campaign, or of a bot with many names.

    Marked is a text of LETTERS letters or more that ACCOUNTS accounts posted within WITHIN_S seconds, of which at least
    half had no other alert here. Digits, signs and spaces do not count: numbers make no copy another text. It is a mark
    and no more: neighbours who hand on one appeal look alike, so nothing is hidden or ranked by it.
    """

    LETTERS, ACCOUNTS, WITHIN_S = LEAST_LETTERS, 8, 60.0

    def __init__(self) -> None:
        self._said: dict[str, dict[str, float]] = {}  # letters → account → created_at of its last alert
        self._texts: dict[str, Counter[str]] = {}  # account → letters of its alerts, how many alerts each
        self._marked: dict[tuple[str, str], int] = {}  # letters, account → its mark when one of that minute gave way

    def add(self, alert: Alert, folded: str) -> None:
        letters, account = _letters(folded), _who(alert)
        self._texts.setdefault(account, Counter())[letters] += 1
        if len(letters) >= self.LETTERS:
            at = epoch_s(alert.post.created_at)
            self._said.setdefault(letters, {})[account] = at

    def give_way(self, alert: Alert, folded: str) -> None:
        """As `remove`, but who said the same in that minute keeps the mark: of a flood its first stay here alone."""
        letters, account = _letters(folded), _who(alert)
        if (letters, account) not in self._marked:  # else it is noted: looking through them for each would take long
            near = self._near(letters, account)
            for one in near:
                self._marked[letters, one] = max(len(near), self._marked.get((letters, one), 0))
        self.remove(alert, folded)

    def remove(self, alert: Alert, folded: str) -> None:
        letters, account = _letters(folded), _who(alert)
        texts = self._texts[account]
        texts[letters] -= 1
        if texts[letters]:
            return
        del texts[letters]
        self._marked.pop((letters, account), None)
        if not texts:
            del self._texts[account]
        if said := self._said.get(letters):
            del said[account]
            if not said:
                del self._said[letters]

    def of(self, alert: Alert, folded: str) -> int:
        """Accounts with these words around the time of this post, itself among them; 0 if that is no sign."""
        letters, account = _letters(folded), _who(alert)
        return max(len(self._near(letters, account)), self._marked.get((letters, account), 0))

    def _near(self, letters: str, account: str) -> list[str]:
        """Accounts with these words around the time of this one's; none if that is no sign."""
        said = self._said.get(letters, {})
        mine = said.get(account)
        if mine is None or len(said) < self.ACCOUNTS:
            return []
        near = [account for account, at in said.items() if abs(at - mine) <= self.WITHIN_S]
        new = sum(len(self._texts[account]) == 1 for account in near)
        return near if len(near) >= self.ACCOUNTS and 2 * new >= len(near) else []


def _letters(folded: str) -> str:
    return "".join(filter(str.isalpha, folded))


NO_CLUSTER = "cluster "


def _crowds_of(alert: Alert) -> tuple[str, ...]:
    who, what = _who(alert), crowd_of(alert)
    crowds = (f"cluster {what}",) if alert.cluster_id else (NO_CLUSTER, *([f"text {what}"] if what else []))
    return crowds if who == alert.post.id else (*crowds, f"account {who}")


def crowds_of_page(alert: Alert) -> list[str]:
    """Whose share of a page it takes."""
    return [crowd for crowd in _crowds_of(alert) if crowd != NO_CLUSTER]


def whose(alert: Alert, key: bytes) -> str:
    """Tells authors apart, and no more: a name that means nothing beside this key, so that no pseudonym leaves us.

    key: at most 64 bytes.
    """
    who = f"{alert.post.source}\x1f{_who(alert)}".encode(errors="replace")
    return blake2b(who, digest_size=6, key=key).hexdigest()


def _who(alert: Alert) -> str:
    """Whose it is: the author that the source told, else the account that the id names.

    An id alone is not enough: Mastodon's name the server, and everybody there would be one crowd; ids of partners often
    name nobody. Within a source, so that no source speaks for authors of another.
    """
    return alert.post.author or account_of(alert.post.id)
