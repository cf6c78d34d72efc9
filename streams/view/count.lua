-- Add to counters, once per stage, partition and origin. ARGV: prefix, stage:partition, origin, then (hash, field, n) of
-- each. Returns 0 if this origin, or a later one, was counted before. Names come from posts (sources, tags): of so many
-- in one hash the later ones are counted as "other", or whoever invents names fills Redis.
local MOST = 2000
local counted, field, at = ARGV[1] .. 'counted', ARGV[2], ARGV[3]
local last = redis.call('HGET', counted, field)
if last and last >= at then return 0 end
redis.call('HSET', counted, field, at)
for i = 4, #ARGV, 3 do
  local hash, name = ARGV[1] .. ARGV[i], ARGV[i + 1]
  if redis.call('HEXISTS', hash, name) == 0 and redis.call('HLEN', hash) >= MOST then name = 'other' end
  redis.call('HINCRBY', hash, name, ARGV[i + 2])
end
return 1
