-- ARGV: prefix, most listed, ttl, retention, then (id, revision, time seen, json, post id, account) of each. Returns the indices taken.
-- The list is capped, the alerts are not: a deletion or a cluster may come long after 2,000 newer alerts. One costs about
-- 1.5 kB of Redis (measured: 0.9 kB of JSON, the rest keys and the two indices): with one post in twenty alerting that is
-- 75 bytes a post, a sixth of what folding takes to remember every post as long. `fold_h` bounds both.
-- Every key expires: a listed alert after `retention`, as on the broker, one that is no longer listed or withdrawn after ttl.
-- Revision and status are read by pattern, decoding costs ten times that: within a text every quote is escaped.
local p, most, ttl, retention, out = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), {}
for i = 5, #ARGV, 6 do
  local id, rev, seen, json = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), ARGV[i + 3]
  local known = redis.call('GET', p .. 'alert:' .. id)
  if not known or tonumber(string.match(known, '"revision":(%d+)')) < rev then
    if not known then redis.call('ZADD', p .. 'alerts', seen, id) end
    local gone = string.find(json, '"status":"withdrawn"', 1, true) or not redis.call('ZSCORE', p .. 'alerts', id)
    redis.call('SET', p .. 'alert:' .. id, json, 'EX', gone and ttl or retention)
    for owner = i + 4, i + 5 do
      local key = p .. 'alerts-of:' .. ARGV[owner]
      redis.call('ZADD', key, seen, id)
      redis.call('ZREMRANGEBYSCORE', key, '-inf', seen - ttl)
      redis.call('EXPIRE', key, ttl)
    end
    redis.call('PUBLISH', p .. 'live', '{"alert":' .. json .. '}')
    out[#out + 1] = (i - 5) / 6
  end
end
redis.call('EXPIRE', p .. 'alerts', retention)
local over = redis.call('ZCARD', p .. 'alerts') - most
if over > 0 then
  for _, id in ipairs(redis.call('ZRANGE', p .. 'alerts', 0, over - 1)) do
    redis.call('EXPIRE', p .. 'alert:' .. id, ttl)
  end
  redis.call('ZREMRANGEBYRANK', p .. 'alerts', 0, over - 1)
end
return out
