-- ARGV: prefix, most kept, retention (all keys expire so long after the last change), packed (id, version, time of the
-- last post, is it gone, what it was merged into or nothing) of each, then the json of each.
local p, most = ARGV[1], tonumber(ARGV[2])
for i, event in ipairs(cmsgpack.unpack(ARGV[4])) do
  local id, ver, at, gone, into = unpack(event)
  local json = ARGV[4 + i]
  local known = redis.call('HGET', p .. 'cluster-ver', id)
  if not known or tonumber(known) < ver then
    redis.call('HSET', p .. 'cluster-ver', id, ver)
    if gone then
      redis.call('HDEL', p .. 'cluster', id)
      redis.call('ZREM', p .. 'clusters', id)
      redis.call('ZADD', p .. 'clusters-gone', at, id)
      if into ~= '' then redis.call('HSET', p .. 'cluster-into', id, into) end
    else
      redis.call('HSET', p .. 'cluster', id, json)
      redis.call('ZADD', p .. 'clusters', at, id)
    end
    redis.call('PUBLISH', p .. 'live-clusters', json)
  end
end
for _, key in ipairs({'cluster', 'cluster-into', 'cluster-ver', 'clusters', 'clusters-gone'}) do redis.call('EXPIRE', p .. key, ARGV[3]) end
local over = redis.call('ZCARD', p .. 'clusters') - most
if over > 0 then
  for _, id in ipairs(redis.call('ZRANGE', p .. 'clusters', 0, over - 1)) do
    redis.call('HDEL', p .. 'cluster', id)
    redis.call('HDEL', p .. 'cluster-ver', id)
    redis.call('ZREM', p .. 'clusters', id)
  end
end
-- A late word must not bring back what is gone, so its version stays; of four times as many as are kept, the newest.
over = redis.call('ZCARD', p .. 'clusters-gone') - 4 * most
if over > 0 then
  for _, id in ipairs(redis.call('ZRANGE', p .. 'clusters-gone', 0, over - 1)) do
    redis.call('HDEL', p .. 'cluster-ver', id)
    redis.call('HDEL', p .. 'cluster-into', id)
  end
  redis.call('ZREMRANGEBYRANK', p .. 'clusters-gone', 0, over - 1)
end
return 0
