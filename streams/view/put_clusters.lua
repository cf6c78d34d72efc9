-- ARGV: prefix, most kept, retention (all three keys expire so long after the last change), then (id, version, time of the last post, json, "gone" or empty) of each.
local p, most = ARGV[1], tonumber(ARGV[2])
for i = 4, #ARGV, 5 do
  local id, ver = ARGV[i], tonumber(ARGV[i + 1])
  local known = redis.call('HGET', p .. 'cluster-ver', id)
  if not known or tonumber(known) < ver then
    redis.call('HSET', p .. 'cluster-ver', id, ARGV[i + 1])
    if ARGV[i + 4] == 'gone' then
      redis.call('HDEL', p .. 'cluster', id)
      redis.call('ZREM', p .. 'clusters', id)
    else
      redis.call('HSET', p .. 'cluster', id, ARGV[i + 3])
      redis.call('ZADD', p .. 'clusters', ARGV[i + 2], id)
    end
    redis.call('PUBLISH', p .. 'live', '{"cluster":' .. ARGV[i + 3] .. '}')
  end
end
for _, key in ipairs({'cluster', 'cluster-ver', 'clusters'}) do redis.call('EXPIRE', p .. key, ARGV[3]) end
local over = redis.call('ZCARD', p .. 'clusters') - most
if over > 0 then
  for _, id in ipairs(redis.call('ZRANGE', p .. 'clusters', 0, over - 1)) do
    redis.call('HDEL', p .. 'cluster', id)
    redis.call('HDEL', p .. 'cluster-ver', id)
    redis.call('ZREM', p .. 'clusters', id)
  end
end
return 0
