-- ARGV: prefix, most listed, ttl, retention, then (id, revision, time seen, json, post id, account, room, source, cluster,
-- author) of each; the last two empty where there is none. Returns the indices taken.
-- The list is capped, the alerts are not: a deletion or a cluster may come long after 2,000 newer alerts. One costs about
-- 1.5 kB of Redis (measured: 0.9 kB of JSON, the rest keys and the two indices): with one post in twenty alerting that is
-- 75 bytes a post, a sixth of what folding takes to remember every post as long. `fold_h` bounds both.
-- Where the list is over its cap the fullest room (level and category) gives way, in it the source with most, of that the
-- biggest cluster or author, and of that the oldest, as on the board (streams/dashboard/crowds.py): a flood pushes out itself.
-- Every key expires: a listed alert after `retention`, as on the broker, one that is no longer listed or withdrawn after ttl.
-- Revision and status are read by pattern, decoding costs ten times that: within a text every quote is escaped.
local p, most, ttl, retention, out = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), {}
local alerts, places, rooms = p .. 'alerts', p .. 'alert-places', p .. 'alert-rooms'
local newest = 0

local function add(key, member, n)
  if tonumber(redis.call('ZINCRBY', key, n, member)) <= 0 then redis.call('ZREM', key, member) end
  redis.call('EXPIRE', key, retention)
end

-- Count an alert where its place says, n = 1, or no longer, n = -1. The crowd '' is all of a source.
local function count(id, place, seen, n)
  local room, source, cluster, author = string.match(place, '^([^\31]*)\31([^\31]*)\31([^\31]*)\31(.*)$')
  local within = room .. '\31' .. source
  add(rooms, room, n)
  add(p .. 'alert-sources:' .. room, source, n)
  for _, crowd in ipairs({'', cluster ~= '' and 'c' .. cluster, author ~= '' and 'a' .. author}) do
    if crowd then
      local key = p .. 'alert-crowd:' .. within .. '\31' .. crowd
      if n > 0 then redis.call('ZADD', key, seen, id) else redis.call('ZREM', key, id) end
      redis.call('EXPIRE', key, retention)
      if crowd ~= '' then add(p .. 'alert-crowds:' .. within, crowd, n) end
    end
  end
end

local function move(id, place, seen)
  local before = redis.call('HGET', places, id)
  if before == place then return end
  if before then count(id, before, seen, -1) end
  if place then
    redis.call('HSET', places, id, place)
    count(id, place, seen, 1)
  elseif before then
    redis.call('HDEL', places, id)
  end
end

local function unlist(id)
  move(id, nil, 0)
  redis.call('ZREM', alerts, id)
  redis.call('EXPIRE', p .. 'alert:' .. id, ttl)
end

local function next_to_go()
  local room = redis.call('ZREVRANGE', rooms, 0, 0)[1] or ''
  local source = redis.call('ZREVRANGE', p .. 'alert-sources:' .. room, 0, 0)[1] or ''
  local within = room .. '\31' .. source
  local crowd, n = unpack(redis.call('ZREVRANGE', p .. 'alert-crowds:' .. within, 0, 0, 'WITHSCORES'))
  if tonumber(n or 0) < 2 then crowd = '' end
  local id = redis.call('ZRANGE', p .. 'alert-crowd:' .. within .. '\31' .. crowd, 0, 0)[1]
  return id or redis.call('ZRANGE', alerts, 0, 0)[1]
end

for i = 5, #ARGV, 10 do
  local id, rev, seen, json = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), ARGV[i + 3]
  local known = redis.call('GET', p .. 'alert:' .. id)
  if not known or tonumber(string.match(known, '"revision":(%d+)')) < rev then
    if not known then redis.call('ZADD', alerts, seen, id) end
    local listed = redis.call('ZSCORE', alerts, id)
    local gone = string.find(json, '"status":"withdrawn"', 1, true) or not listed
    redis.call('SET', p .. 'alert:' .. id, json, 'EX', gone and ttl or retention)
    if listed then move(id, table.concat({unpack(ARGV, i + 6, i + 9)}, '\31'), listed) end
    for owner = i + 4, i + 5 do
      local key = p .. 'alerts-of:' .. ARGV[owner]
      redis.call('ZADD', key, seen, id)
      redis.call('ZREMRANGEBYSCORE', key, '-inf', seen - ttl)
      redis.call('EXPIRE', key, ttl)
    end
    redis.call('PUBLISH', p .. 'live', '{"alert":' .. json .. '}')
    newest = math.max(newest, seen)
    out[#out + 1] = (i - 5) / 10
  end
end
for _, key in ipairs({alerts, places, rooms}) do redis.call('EXPIRE', key, retention) end
if redis.call('ZCARD', alerts) > most then
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', alerts, '-inf', newest - retention)) do unlist(id) end
  if redis.call('HLEN', places) < redis.call('ZCARD', alerts) then -- listed by an earlier version: one crowd of its own
    for _, id in ipairs(redis.call('ZRANGE', alerts, 0, -1)) do
      if redis.call('HEXISTS', places, id) == 0 then move(id, '\31\31\31', redis.call('ZSCORE', alerts, id)) end
    end
  end
  for _ = 1, redis.call('ZCARD', alerts) - most do unlist(next_to_go()) end
end
return out
