"""Who repeats whom: exact repeats and reposts are folded into the first post that said it, by Redis or by a dict.

A claim is "I am the first with this text". `place` (partition:offset:line) tells a redelivered frame from a repeat,
so processing a frame twice gives the same answer twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from redis.asyncio import Redis

from streams.stages import Claim, Verdict


class Folder(Protocol):
    """Answers claims, in order. Both implementations give the same answers (held by a test)."""

    async def claim(self, claims: Sequence[Claim]) -> list[Verdict]: ...

    async def release(self, post_ids: Iterable[str]) -> None:
        """Forget deleted posts: the next one to say the same is a post of its own again."""
        ...


class MemoryFolder:
    """For replay over a file: everything is remembered, nothing expires."""

    def __init__(self) -> None:
        self._by_text: dict[str, tuple[str, str]] = {}  # fingerprint → (post id, place)
        self._by_id: dict[str, tuple[str, str]] = {}  # post id → (place, fingerprint)

    async def claim(self, claims: Sequence[Claim]) -> list[Verdict]:
        return [self._claim(c) for c in claims]

    def _claim(self, claim: Claim) -> Verdict:
        first = self._by_text.get(claim.fingerprint)
        if first is not None and first[1] != claim.place:
            return Verdict(repeats=first[0])
        if claim.repost_of is not None and claim.repost_of != claim.post_id and claim.repost_of in self._by_id:
            return Verdict(repeats=claim.repost_of)
        self._by_text.setdefault(claim.fingerprint, (claim.post_id, claim.place))
        known = self._by_id.setdefault(claim.post_id, (claim.place, claim.fingerprint))
        return Verdict(edits=known[0] != claim.place)

    async def release(self, post_ids: Iterable[str]) -> None:
        for post_id in post_ids:
            _, fingerprint = self._by_id.pop(post_id, ("", ""))
            if self._by_text.get(fingerprint, ("",))[0] == post_id:
                del self._by_text[fingerprint]


# One round trip per frame; the script is atomic, so two workers that see the same text agree on who was first.
# KEYS: none (keys are built from the prefix: a single Redis, not a cluster). Values are "post id \31 place".
_CLAIM = """
local prefix, ttl, out = ARGV[1], ARGV[2], {}
for i = 3, #ARGV, 4 do
  local id, place, text, repost = ARGV[i], ARGV[i + 1], prefix .. 'text:' .. ARGV[i + 2], ARGV[i + 3]
  local mark = prefix .. 'id:' .. id
  local first = redis.call('GET', text)
  local cut = first and string.find(first, '\\31', 1, true)
  if first and string.sub(first, cut + 1) ~= place then
    out[#out + 1] = 'r' .. string.sub(first, 1, cut - 1)
  elseif repost ~= '' and repost ~= id and redis.call('EXISTS', prefix .. 'id:' .. repost) == 1 then
    out[#out + 1] = 'r' .. repost
  else
    redis.call('SET', text, id .. '\\31' .. place, 'NX', 'EX', ttl)
    redis.call('SET', mark, place .. '\\31' .. ARGV[i + 2], 'NX', 'EX', ttl)
    local known = redis.call('GET', mark)
    local stop = string.find(known, '\\31', 1, true)
    out[#out + 1] = string.sub(known, 1, stop - 1) == place and 'n' or 'e'
  end
end
return out
"""

_RELEASE = """
local prefix = ARGV[1]
for i = 2, #ARGV do
  local mark = prefix .. 'id:' .. ARGV[i]
  local known = redis.call('GET', mark)
  if known then
    local text = prefix .. 'text:' .. string.sub(known, string.find(known, '\\31', 1, true) + 1)
    local first = redis.call('GET', text)
    if first and string.sub(first, 1, string.find(first, '\\31', 1, true) - 1) == ARGV[i] then
      redis.call('DEL', text)
    end
    redis.call('DEL', mark)
  end
end
"""


class RedisFolder:
    """For workers: shared by all of them, forgets after `fold_s` seconds."""

    def __init__(self, redis: Redis, prefix: str, fold_s: float) -> None:
        self._prefix, self._fold_s = f"{prefix}fold:", max(1, int(fold_s))
        self._claim = redis.register_script(_CLAIM)
        self._release = redis.register_script(_RELEASE)

    async def claim(self, claims: Sequence[Claim]) -> list[Verdict]:
        if not claims:
            return []
        flat = [x for c in claims for x in (c.post_id, c.place, c.fingerprint, c.repost_of or "")]
        answers = await self._claim(args=[self._prefix, self._fold_s, *flat])
        return [_verdict(a.decode()) for a in answers]

    async def release(self, post_ids: Iterable[str]) -> None:
        ids = list(post_ids)
        if ids:
            await self._release(args=[self._prefix, *ids])


def _verdict(answer: str) -> Verdict:
    return Verdict(repeats=answer[1:]) if answer[0] == "r" else Verdict(edits=answer == "e")
