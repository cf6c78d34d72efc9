-- ARGV: prefix, ttl, then (post id, repeats to add) of each.
for i = 3, #ARGV, 2 do
  local key = ARGV[1] .. 'repeats:' .. ARGV[i]
  redis.call('INCRBY', key, ARGV[i + 1])
  redis.call('EXPIRE', key, ARGV[2])
end
return 0
