"""What the clusterer remembers about single posts and about ids that are gone. Every map is bounded, oldest out."""

from __future__ import annotations

import hashlib
from base64 import b32encode

from models.clusters.cluster import Member
from models.clusters.trail import Ledger
from models.records import Post, account_of

__all__ = ["Memory", "cluster_id"]

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
    """Post → cluster, repeat → original, cluster → the one it went into."""

    def __init__(self, posts: int, members: int, ids: int) -> None:
        self.keep_posts = posts
        self.placed: Ledger[str] = Ledger("placed", posts)  # post id → cluster id at arrival
        self.members: Ledger[Member] = Ledger("members", members)  # the newest of them, whole
        self.repeats: Ledger[str] = Ledger("repeats", posts)  # repeat id → original's post id
        self.accounts: set[str] = set()  # that these may be of; some whose posts were all forgotten are in it too
        self.redirects: Ledger[str] = Ledger("redirects", ids)  # merged away → into
        self.retired: Ledger[None] = Ledger("retired", ids)  # expired: kept so that no id is given twice

    def remember(self, member: Member, cluster: str) -> None:
        self.placed.put(member.post_id, cluster)
        self._hear_of(member.post_id)
        self.members.put(member.post_id, member)

    def forget(self, post_id: str) -> Member | None:
        """Drop a post; returns it if it was still remembered whole."""
        self.placed.forget(post_id)
        return self.members.forget(post_id)

    def named_by(self, deleted: str) -> list[str]:
        """The ids a deletion takes along: the post's own, or those of all posts and repeats of an account, oldest
        first.

        An account's are found by reading through all (0.1 s at most, measured): rare, as most that close have none
        here.
        """
        if deleted in self.placed or deleted in self.repeats or deleted not in self.accounts:
            return [deleted]
        begin = deleted + "/"
        return [p for known in (self.placed, self.repeats) for p in known if p.startswith(begin)]

    def _hear_of(self, post_id: str) -> None:
        if (account := account_of(post_id)) != post_id:
            self.accounts.add(account)
            if len(self.accounts) > 3 * self.keep_posts:
                self.find_accounts()

    def find_accounts(self) -> None:
        """Start over from what is remembered."""
        self.accounts = {account_of(p) for known in (self.placed, self.repeats) for p in known if "/" in p}

    def repeat(self, repeat_id: str, of: str) -> None:
        self.repeats.put(repeat_id, of)
        self._hear_of(repeat_id)

    def cluster_of(self, post_id: str) -> str | None:
        """Where a post, or the original of a repeat, is now."""
        placed = self.placed.get(self.repeats.get(post_id, post_id))
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
