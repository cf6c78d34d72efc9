"""Who repeats whom: exact repeats and reposts are folded into the first post that said it, by Redis or by a dict.

A claim is "I am the first with this text". An edited post gives its old text up and is never folded itself; a deleted
post gives up its text, a deleted account those of all its posts. So no post is folded into one that does not say it.

`place` (partition:offset:line) tells a redelivered frame from a repeat, so processing a frame twice gives the same
answer twice. One case differs: where the original was edited or deleted in between, what was a repeat the first time is
a post of its own the second time. A need is then told twice rather than lost.

Posts folded before their original was edited or deleted are not brought back: of a repeat only its id is kept. To keep whole
posts, their own edits and deletions, and the order in which they take each other's place, would cost Redis as much again
as folding does, and would count a post both as folded and as matched. The next one to say it is an original again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from redis.asyncio import Redis

from models.records import Deletion, account_of
from streams.stages import Claim, Verdict


class Folder(Protocol):
    """Answers claims, in order. Both implementations give the same answers (held by a test)."""

    async def claim(self, claims: Sequence[Claim | Deletion]) -> list[Verdict]:
        """One verdict per claim. A deletion between them has none; what follows it finds the post forgotten."""
        ...


class MemoryFolder:
    """For replay over a file: everything is remembered, nothing expires."""

    def __init__(self) -> None:
        self._by_text: dict[str, tuple[str, str]] = {}  # fingerprint → (post id, place)
        self._by_id: dict[str, tuple[str, str, str]] = {}  # post id → (first place, last place, fingerprint now)
        self._gone: set[str] = set()  # deleted ids: should one be an account's, its posts are originals no more

    async def claim(self, claims: Sequence[Claim | Deletion]) -> list[Verdict]:
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


# One round trip per frame; the script is atomic, so two workers that see the same text agree on who was first.
# KEYS: none (keys are built from the prefix: a single Redis, not a cluster). ARGV: prefix, ttl, then (kind, id, place,
# fingerprint, repost of) of each; kind "d" is a deletion, "u" an explicit edit. Values: text:F "post id \31 place",
# id:ID "first place \31 last place \31 fingerprint now", gone:ID 1.
_CLAIM = """
local prefix, ttl, out = ARGV[1], ARGV[2], {}

local function gone(id)
  return redis.call('EXISTS', prefix .. 'gone:' .. (string.match(id, '^([^/]+)/') or id)) == 1
end

local function mark(id)
  return string.match(redis.call('GET', prefix .. 'id:' .. id) or '', '^([^\\31]*)\\31([^\\31]*)\\31(.*)$')
end

local function holder(key)
  return string.match(redis.call('GET', key) or '', '^([^\\31]*)\\31(.*)$')
end

local function release(id, fingerprint)
  local text = prefix .. 'text:' .. fingerprint
  if holder(text) == id then redis.call('DEL', text) end
  redis.call('DEL', prefix .. 'id:' .. id)
end

for i = 3, #ARGV, 5 do
  local kind, id, place, fingerprint, repost = unpack(ARGV, i, i + 4)
  local begun, last, said = mark(id)
  if kind == 'd' then
    if said then release(id, said) end
    redis.call('SET', prefix .. 'gone:' .. id, 1, 'EX', ttl)
  else
    local text, repeats = prefix .. 'text:' .. fingerprint, nil
    local first, at = holder(text)
    if first and gone(first) then first = nil end
    if kind ~= 'u' and not (said and (last == place or said ~= fingerprint)) then
      if first and at ~= place then
        repeats = first
      elseif repost ~= '' and repost ~= id and mark(repost) and not gone(repost) then
        repeats = repost
      end
    end
    if repeats then
      out[#out + 1] = 'r' .. repeats
    else
      if said and said ~= fingerprint then release(id, said) end
      if not first then redis.call('SET', text, id .. '\\31' .. place, 'EX', ttl) end
      begun = begun or place
      redis.call('SET', prefix .. 'id:' .. id, begun .. '\\31' .. place .. '\\31' .. fingerprint, 'EX', ttl)
      out[#out + 1] = begun == place and 'n' or 'e'
    end
  end
end
return out
"""


class RedisFolder:
    """For workers: shared by all of them, forgets after `fold_s` seconds."""

    def __init__(self, redis: Redis, prefix: str, fold_s: float) -> None:
        self._prefix, self._fold_s = f"{prefix}fold:", max(1, int(fold_s))
        self._claim = redis.register_script(_CLAIM)

    async def claim(self, claims: Sequence[Claim | Deletion]) -> list[Verdict]:
        if not claims:
            return []
        answers = await self._claim(args=[self._prefix, self._fold_s, *(x for c in claims for x in _told(c))])
        return [_verdict(a.decode()) for a in answers]


def _told(claim: Claim | Deletion) -> tuple[str, ...]:
    if isinstance(claim, Deletion):
        return "d", claim.id, "", "", ""
    return "u" if claim.edit else "", claim.post_id, claim.place, claim.fingerprint, claim.repost_of or ""


def _verdict(answer: str) -> Verdict:
    return Verdict(repeats=answer[1:]) if answer[0] == "r" else Verdict(edits=answer == "e")
