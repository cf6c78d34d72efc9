-- ARGV: prefix, seconds, then (id, account, link) of each. Without a link one that is there stays so long.
-- What is kept longer already is not shortened: records come again, and out of order. Nothing is kept of what is gone.
-- The index goes by the clock of Redis, by which links expire: one that lost a link would leave it to a closed account.
local p, ttl, now = ARGV[1], tonumber(ARGV[2]), tonumber(redis.call('TIME')[1])
for i = 3, #ARGV, 3 do
  local id, account, link = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local key, of = p .. 'link:' .. id, p .. 'of:' .. account
  if redis.call('EXISTS', p .. 'gone:' .. id, p .. 'gone:' .. account) == 0 then
    local left = redis.call('TTL', key)
    if link ~= '' and left < ttl then redis.call('SET', key, link, 'EX', ttl) end
    if link == '' and left > 0 and left < ttl then redis.call('EXPIRE', key, ttl) end
    if id ~= account and (link ~= '' or left > 0) then
      redis.call('ZADD', of, now + math.max(left, ttl), id)
      redis.call('ZREMRANGEBYSCORE', of, '-inf', now)
      redis.call('EXPIRE', of, math.max(redis.call('TTL', of), left, ttl))
    end
  end
end
