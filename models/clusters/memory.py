"""What the clusterer remembers about single posts and about ids that are gone. Every map is bounded, oldest out."""

from __future__ import annotations

import hashlib
from base64 import b32encode
from collections.abc import Collection, Iterator, Sequence

from models.clusters.cluster import Member
from models.clusters.trail import Ledger
from models.records import Post, account_of

__all__ = ["Memory", "cluster_id"]

GONE = 20_000  # deletions: a post is as long on its way as a worker has it in hand; at 30 a second eleven minutes
ID_CHARS = 12  # 60 bits: among a million clusters two meet by chance with probability 4e-7, and then one is re-hashed


def cluster_id(post: Post, attempt: int, salt: str) -> str:
    """The id of a cluster this post founds: a hash, so that replay and redelivery give the same one.

    An edited post may found a second cluster; the moment of the edit keeps their ids apart.
    """
    founded = post.id if post.kind == "create" else f"{post.id}\n{post.seen_at!r}"
    key = f"{founded}\n{attempt}" if attempt else founded
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8, key=salt.encode()).digest()
    return "c" + b32encode(digest).decode().lower()[:ID_CHARS]


class Memory:
    """Post → cluster, repeat → cluster, cluster → the one it went into; and what was deleted."""

    def __init__(self, posts: int, members: int, ids: int) -> None:
        self.keep_posts = posts
        self.placed: Ledger[str] = Ledger("placed", posts)  # post id → cluster id at arrival
        self.members: Ledger[Member] = Ledger("members", members)  # the newest of them, whole
        self.outlived: dict[str, str] = {}  # posts that `placed` forgot and a cluster may still show → that cluster
        self.repeats: Ledger[str] = Ledger("repeats", posts)  # repeat id → id of the cluster it was counted in
        self.accounts: set[str] = set()  # that these may be of; some whose posts were all forgotten are in it too
        self.redirects: Ledger[str] = Ledger("redirects", ids)  # merged away → into
        self.retired: Ledger[None] = Ledger("retired", ids)  # expired: kept so that no id is given twice
        self.gone: Ledger[None] = Ledger("gone", GONE)  # hashes of posts and accounts: nothing here names what is gone

    def remember(self, member: Member, cluster: str) -> Sequence[tuple[str, str]]:
        """Returns the posts whose place is forgotten for it, and that place at their arrival."""
        forgotten = self.placed.put(member.post_id, cluster)
        self._hear_of(member.post_id)
        self.members.put(member.post_id, member)
        return forgotten

    def forget(self, post_id: str) -> Member | None:
        """Drop a post; returns it if it was still remembered whole."""
        self.placed.forget(post_id)
        self.outlived.pop(post_id, None)
        return self.members.forget(post_id)

    def knows(self, post_id: str) -> bool:
        """Is this post, or repeat, to leave before it comes again?"""
        return post_id in self.placed or post_id in self.repeats or post_id in self.outlived

    def bar(self, deleted: Collection[str]) -> None:
        """Posts or accounts were deleted: what of them comes later is too late."""
        for name in deleted:
            self.gone.put(_hash(name), None)

    def is_gone(self, post_id: str) -> bool:
        """Was this post or repeat deleted, or its account, before it came? Another worker may have had it in hand."""
        if not self.gone:
            return False
        account = account_of(post_id)
        return _hash(post_id) in self.gone or (account != post_id and _hash(account) in self.gone)

    def named_by(self, deleted: Collection[str]) -> Iterator[list[str]]:
        """For each deletion in turn the ids it takes along: the post's own, or those of all posts and repeats of an
        account. Whoever asks takes them out before asking on; some may be gone by then.

        Accounts' are found by reading through all (0.1 s at most, measured), once for all that are deleted, and an
        account is not looked for again until it posts again: rare, as most that close have none here.
        """
        found: dict[str, list[str]] = {}
        for name in deleted:
            if name in self.placed or name in self.repeats or name not in self.accounts:
                yield [name]
                continue
            if name not in found:
                found = self._of_accounts(self.accounts.intersection(deleted))
            self.accounts.discard(name)
            yield [name, *found.pop(name)]  # a post may be called so too, and only be shown any more

    def _of_accounts(self, accounts: Collection[str]) -> dict[str, list[str]]:
        """The ids of each, oldest first."""
        found: dict[str, list[str]] = {account: [] for account in accounts}
        for known in (sorted(self.outlived), self.placed, self.repeats):  # the first have no order that is saved
            for post_id in known:
                account, slash, _ = post_id.partition("/")
                if slash and account in found:
                    found[account].append(post_id)
        return found

    def _hear_of(self, post_id: str) -> None:
        if (account := account_of(post_id)) != post_id:
            self.accounts.add(account)
            if len(self.accounts) > 3 * self.keep_posts:
                self.find_accounts()

    def find_accounts(self) -> None:
        """Start over from what is remembered."""
        every = (self.outlived, self.placed, self.repeats)
        self.accounts = {account_of(p) for known in every for p in known if "/" in p}

    def repeat(self, repeat_id: str, cluster: str) -> None:
        self.repeats.put(repeat_id, cluster)
        self._hear_of(repeat_id)

    def cluster_of(self, post_id: str) -> str | None:
        """Where a post is now, or what a repeat was counted in."""
        placed = self.repeats.get(post_id) or self.placed.get(post_id)
        return None if placed is None else self.find(placed)

    def find(self, cluster: str) -> str:
        """Follow redirects to the cluster that lives on; an id that was never merged is its own answer."""
        root = cluster
        while root in self.redirects:
            root = self.redirects[root]
        while cluster != root:  # path compression: the next look-up is one step (saved or not, it leads to the same)
            self.redirects[cluster], cluster = root, self.redirects[cluster]
        return root

    def redirect(self, gone: str, into: str) -> None:
        self.redirects.put(gone, into)

    def retire(self, gone: str) -> None:
        self.retired.put(gone, None)

    def is_taken(self, cluster: str) -> bool:
        return cluster in self.redirects or cluster in self.retired


def _hash(name: str) -> str:
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
