-- ARGV: prefix, most listed, retention, packed {id, revision, time seen, post id, account, place} of each, then the json of
-- each; a place is room \31 source \31 cluster \31 author, the last two empty where there is none, `cluster` its words' where
-- it is in none yet. Returns the indices taken.
-- The JSON is never a part of another string here, and of what is known the head is read alone: Lua hashes every byte of
-- every string it is given or makes, which was a sixth of what Redis did.
-- The list is capped, the alerts are not: a deletion or a cluster may come long after 2,000 newer alerts, and finds what is
-- still on the broker. So each is kept for `retention` after its last change (the changes of one minute count as one), listed
-- or not, and what finds it, by its post and by its account, as long as itself: an index holds nothing older than that, by the
-- clock of Redis, by which alerts expire.
-- One costs about 1.5 kB (measured: 0.9 kB of JSON, the rest keys and the two indices): with one post in twenty alerting
-- that is 75 bytes a post of `retention`.
-- The revision is read by pattern, decoding costs ten times that: within a text every quote is escaped.
local HEAD = 200 -- bytes of an alert's JSON that hold its id and its revision
local FIRST = 5 -- of a crowd that do not give way; as in streams/dashboard/crowds.py
local p, most, retention, out = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), {}
local same = math.min(60, retention / 100) -- seconds
local alerts, places, now = p .. 'alerts', p .. 'alert-places', tonumber(redis.call('TIME')[1])
-- As text: of each number that Lua gives it Redis writes 17 digits, .3 µs.
local at, from, expires = string.format('%d', now), string.format('(%d', now - retention), ARGV[3]

local function many(command, key, pairs) -- a call costs Lua more than what it does: one for all that go to the same key
  for first = 1, #pairs, 1000 do redis.call(command, key, unpack(pairs, first, math.min(first + 999, #pairs))) end
end

local new, times, where = {}, {}, {}
for i, alert in ipairs(cmsgpack.unpack(ARGV[4])) do
  local id, rev, seen, post, account, place = unpack(alert)
  local key, json = p .. 'alert:' .. id, ARGV[4 + i]
  local known = tonumber(string.match(redis.call('GETRANGE', key, 0, HEAD), '"revision":(%d+)')) -- nil: it is new
  if not known or known < rev then
    if not known then
      new[id] = true
      times[#times + 1] = seen
      times[#times + 1] = id
    end
    if new[id] or redis.call('ZSCORE', alerts, id) then
      where[#where + 1] = id
      where[#where + 1] = place
    end
    if known and redis.call('TTL', key) > retention - same then -- its cluster, a moment later: what finds it is as new
      redis.call('SET', key, json, 'KEEPTTL')
    else
      redis.call('SET', key, json, 'EX', expires)
      for _, owner in ipairs(post == account and {post} or {post, account}) do
        local of = p .. 'alerts-of:' .. owner
        if redis.call('EXPIRE', of, expires) == 1 then -- it held others before
          redis.call('ZADD', of, at, id)
          redis.call('ZREMRANGEBYSCORE', of, '-inf', from)
        else
          redis.call('ZADD', of, at, id)
          redis.call('EXPIRE', of, expires)
        end
      end
    end
    redis.call('PUBLISH', p .. 'live-alerts', json)
    out[#out + 1] = i - 1
  end
end
many('ZADD', alerts, times)
many('HSET', places, where)
local oldest_listed = redis.call('ZRANGE', alerts, 0, 0)[1]
while oldest_listed and redis.call('EXISTS', p .. 'alert:' .. oldest_listed) == 0 do -- a slow stream never fills the list
  redis.call('ZREM', alerts, oldest_listed)
  redis.call('HDEL', places, oldest_listed)
  oldest_listed = redis.call('ZRANGE', alerts, 0, 0)[1]
end
redis.call('EXPIRE', alerts, retention)
redis.call('EXPIRE', places, retention)
if redis.call('ZCARD', alerts) <= most then return out end

-- Over its cap the list gives way by a quarter at once: to sort out who takes milliseconds. The fullest room (level and category) does, in it
-- the source with most, of that the biggest cluster or author, and of that the oldest but the FIRST, as on the board
-- (streams/dashboard/crowds.py): a flood pushes out itself. What has no place, from an earlier version, is a room of its own.
local listed, where = redis.call('ZRANGE', alerts, 0, -1), {} -- oldest first
for first = 1, #listed, 1000 do
  for _, place in ipairs(redis.call('HMGET', places, unpack(listed, first, math.min(first + 999, #listed)))) do
    where[#where + 1] = place or '\31\31\31'
  end
end

local rooms, sources = {}, {} -- a source is its alerts' places in the list, the oldest first
for i = 1, #listed do
  local name = string.match(where[i], '^[^\31]*\31[^\31]*')
  local source = sources[name]
  if not source then
    local room_name = string.match(name, '^[^\31]*')
    local room = rooms[room_name] or {n = 0, sources = {}}
    source = {n = 0, listed = {}, gone = {}, next = 1, room = room}
    rooms[room_name], sources[name], room.sources[name] = room, source, source
  end
  source.n, source.room.n = source.n + 1, source.room.n + 1
  source.listed[source.n] = i
end

local function sized(source, crowd) -- crowds by size; one that has shrunk stands in an earlier place too
  local same = source.sizes[crowd.n]
  if same then same[#same + 1] = crowd else source.sizes[crowd.n] = {crowd} end
  if crowd.n > source.top then source.top = crowd.n end
end

local function left_by_one(source, crowd) -- where it was in one
  if not crowd then return end
  crowd.n = crowd.n - 1
  sized(source, crowd)
end

local lives = {}
local function living(name) -- of a cluster that was merged, the one it went into (put_clusters.lua); else itself
  if not lives[name] then
    lives[name] = name -- a circle, which nobody writes, would have no end
    local into = name ~= '' and redis.call('HGET', p .. 'cluster-into', name)
    lives[name] = into and living(into) or name
  end
  return lives[name]
end

-- Where two or more are of one cluster, or one author: most authors have one alert, and need no table.
local function crowds_of(source, named)
  local count, crowds, of = {}, {}, {}
  for _, name in ipairs(named) do count[name] = (count[name] or 0) + 1 end
  for i, name in ipairs(named) do
    if count[name] > 1 and name ~= '' then
      local crowd = crowds[name] or {n = 0, ids = {}, after = {}}
      crowds[name], of[i], crowd.n = crowd, crowd, crowd.n + 1
      crowd.ids[crowd.n] = i
    end
  end
  for _, crowd in pairs(crowds) do sized(source, crowd) end
  return of
end

local function sort_out(source) -- once one of it gives way
  source.sizes, source.top = {}, 0
  local clusters, authors = {}, {}
  for i, at in ipairs(source.listed) do
    local cluster, author = string.match(where[at], '^[^\31]*\31[^\31]*\31([^\31]*)\31(.*)$')
    clusters[i], authors[i] = living(cluster), author
  end
  source.in_cluster, source.of_author = crowds_of(source, clusters), crowds_of(source, authors)
end

local function biggest(parts)
  local found
  for _, part in pairs(parts) do
    if not found or part.n > found.n then found = part end
  end
  return found
end

local function biggest_crowd(source)
  while source.top > 1 do
    local same = source.sizes[source.top] or {}
    local crowd = same[#same]
    if not crowd then
      source.top = source.top - 1
    elseif crowd.n < source.top then
      same[#same] = nil
    else
      return crowd
    end
  end
end

local function next_to_go(source) -- its place in the source
  local crowd = biggest_crowd(source)
  if crowd then
    local gone, ids, after, at = source.gone, crowd.ids, crowd.after, 0
    for _ = 0, math.min(FIRST, math.floor(crowd.n / 2)) do -- past those that stay; who has gone is stepped over once
      local to = after[at] or at + 1
      if gone[ids[to]] then
        repeat to = after[to] or to + 1 until not gone[ids[to]]
        after[at] = to
      end
      at = to
    end
    return ids[at]
  end
  while source.gone[source.next] do source.next = source.next + 1 end
  return source.next
end

-- Rooms by how many they hold: where each of a thousand queries is a room, to look at all for each that goes takes 15 ms.
local levels, top, at_level, number = {}, 0, 1, 0
local function stands(room)
  levels[room.n] = levels[room.n] or {}
  table.insert(levels[room.n], room)
  top = math.max(top, room.n)
end
for _, room in pairs(rooms) do
  number = number + 1
  room.number = number
  stands(room)
end

local function before(one, other) return one.number < other.number end
table.sort(levels[top], before)
local function fullest() -- of several the first by number; it holds one less from then on
  while not levels[top] or not levels[top][at_level] do
    top, at_level = top - 1, 1
    if levels[top] then table.sort(levels[top], before) end
  end
  local room = levels[top][at_level]
  at_level, room.n = at_level + 1, room.n - 1
  stands(room)
  return room
end

local given_way = {}
local step = most < 100 and 0 or math.floor(most / 4) -- a short list, as tests have, gives way one by one
for _ = 1, #listed - (most - step) do
  local source = biggest(fullest().sources)
  if not source.sizes then sort_out(source) end
  local i = next_to_go(source)
  source.gone[i], source.n = true, source.n - 1
  left_by_one(source, source.in_cluster[i])
  left_by_one(source, source.of_author[i])
  given_way[#given_way + 1] = listed[source.listed[i]]
end
for first = 1, #given_way, 1000 do
  local last = math.min(first + 999, #given_way)
  redis.call('ZREM', alerts, unpack(given_way, first, last))
  redis.call('HDEL', places, unpack(given_way, first, last))
end
return out
