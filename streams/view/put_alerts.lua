-- ARGV: prefix, most listed, retention, packed {id, revision, time seen, json, post id, account, place} of each; a place
-- is room \31 source \31 cluster \31 author, the last two
-- empty where there is none, `cluster` its words' where it is in none yet. Returns the indices taken.
-- The list is capped, the alerts are not: a deletion or a cluster may come long after 2,000 newer alerts, and finds what is
-- still on the broker. So each is kept for `retention` after its last change, listed or not, and what finds it, by its post and
-- by its account, as long as itself: an index holds nothing older than that, by the clock of Redis, by which alerts expire.
-- One costs about 1.5 kB (measured: 0.9 kB of JSON, the rest keys and the two indices): with one post in twenty alerting
-- that is 75 bytes a post of `retention`.
-- The revision is read by pattern, decoding costs ten times that: within a text every quote is escaped.
local p, most, retention, out = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), {}
local alerts, places, now = p .. 'alerts', p .. 'alert-places', tonumber(redis.call('TIME')[1])
for i, alert in ipairs(cmsgpack.unpack(ARGV[4])) do
  local id, rev, seen, json, post, account, place = unpack(alert)
  local known = redis.call('GET', p .. 'alert:' .. id)
  if not known or tonumber(string.match(known, '"revision":(%d+)')) < rev then
    if not known then redis.call('ZADD', alerts, seen, id) end
    redis.call('SET', p .. 'alert:' .. id, json, 'EX', retention)
    if not known or redis.call('ZSCORE', alerts, id) then redis.call('HSET', places, id, place) end
    for _, owner in ipairs({post, account}) do
      local key = p .. 'alerts-of:' .. owner
      redis.call('ZADD', key, now, id)
      redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. now - retention)
      redis.call('EXPIRE', key, retention)
    end
    redis.call('PUBLISH', p .. 'live', '{"alert":' .. json .. '}')
    out[#out + 1] = i - 1
  end
end
local oldest_listed = redis.call('ZRANGE', alerts, 0, 0)[1]
while oldest_listed and redis.call('EXISTS', p .. 'alert:' .. oldest_listed) == 0 do -- a slow stream never fills the list
  redis.call('ZREM', alerts, oldest_listed)
  redis.call('HDEL', places, oldest_listed)
  oldest_listed = redis.call('ZRANGE', alerts, 0, 0)[1]
end
redis.call('EXPIRE', alerts, retention)
redis.call('EXPIRE', places, retention)
if redis.call('ZCARD', alerts) <= most then return out end

-- Over its cap the list gives way by a quarter at once: to sort out who takes 10 ms. The fullest room (level and category) does, in it the source
-- with most, of that the biggest cluster or author, and of that the oldest, as on the board (streams/dashboard/crowds.py):
-- a flood pushes out itself. What has no place, from an earlier version, is a room of its own.
local listed, where = redis.call('ZRANGE', alerts, 0, -1), {} -- oldest first
for first = 1, #listed, 1000 do
  for _, place in ipairs(redis.call('HMGET', places, unpack(listed, first, math.min(first + 999, #listed)))) do
    where[#where + 1] = place or '\31\31\31'
  end
end

local rooms, at, left = {}, {}, #listed

local function within(parts, name)
  if not parts[name] then parts[name] = {n = 0, sources = {}, ids = {}, crowds = {}, sizes = {}, top = 0, next = 1} end
  parts[name].n = parts[name].n + 1
  return parts[name]
end

for i, id in ipairs(listed) do
  local name, from, cluster, author = string.match(where[i], '^([^\31]*)\31([^\31]*)\31([^\31]*)\31(.*)$')
  local room = within(rooms, name)
  local source = within(room.sources, from)
  source.ids[source.n] = id
  at[id] = {room = room, source = source}
  for _, crowd in ipairs({cluster ~= '' and 'c' .. cluster or false, author ~= '' and 'a' .. author or false}) do
    if crowd then
      local one = within(source.crowds, crowd)
      one.ids[one.n] = id
      table.insert(at[id], one)
    end
  end
end

local function biggest(parts)
  local found
  for _, part in pairs(parts) do
    if not found or part.n > found.n then found = part end
  end
  return found
end

local function sized(source, crowd) -- crowds by size; one that has shrunk stands in an earlier place too
  source.sizes[crowd.n] = source.sizes[crowd.n] or {}
  table.insert(source.sizes[crowd.n], crowd)
  source.top = math.max(source.top, crowd.n)
end

for _, room in pairs(rooms) do
  for _, source in pairs(room.sources) do
    for _, crowd in pairs(source.crowds) do sized(source, crowd) end
  end
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
  return source
end

local function oldest(part)
  while not at[part.ids[part.next]] do part.next = part.next + 1 end
  return part.ids[part.next]
end

local given_way = {}
local step = most < 100 and 0 or math.floor(most / 4) -- a short list, as tests have, gives way one by one
while left > most - step do
  local source = biggest(biggest(rooms).sources)
  local id = oldest(biggest_crowd(source))
  local mine = at[id]
  at[id], left = nil, left - 1
  mine.room.n, source.n = mine.room.n - 1, source.n - 1
  for _, crowd in ipairs(mine) do
    crowd.n = crowd.n - 1
    sized(source, crowd)
  end
  given_way[#given_way + 1] = id
end
for first = 1, #given_way, 1000 do
  local last = math.min(first + 999, #given_way)
  redis.call('ZREM', alerts, unpack(given_way, first, last))
  redis.call('HDEL', places, unpack(given_way, first, last))
end
return out
