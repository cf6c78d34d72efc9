-- ARGV: prefix, seconds to remember it, then ids of posts or accounts that are gone.
local p, ttl = ARGV[1], ARGV[2]
for i = 3, #ARGV do
  local id = ARGV[i]
  redis.call('SET', p .. 'gone:' .. id, 1, 'EX', ttl)
  redis.call('DEL', p .. 'link:' .. id)
  redis.call('ZREM', p .. 'of:' .. (string.match(id, '^([^/]+)/') or id), id)
  for _, post in ipairs(redis.call('ZRANGE', p .. 'of:' .. id, 0, -1)) do redis.call('DEL', p .. 'link:' .. post) end
  redis.call('DEL', p .. 'of:' .. id)
end
