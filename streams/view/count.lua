-- Add to counters, once per stage, partition and origin. ARGV: prefix, then of each: stage:partition, origin, how many
-- counters, (hash, field, n) of every one. Returns for each 0 if this origin, or a later one, was counted before, else 1.
-- Names come from posts (sources, tags): of so many in one hash the later ones are counted as "other", or whoever
-- invents names fills Redis.
local MOST = 2000
local counted, out, i = ARGV[1] .. 'counted', {}, 2
while i <= #ARGV do
  local field, at, first = ARGV[i], ARGV[i + 1], i + 3
  i = first + 3 * tonumber(ARGV[i + 2])
  local last = redis.call('HGET', counted, field)
  if last and last >= at then
    out[#out + 1] = 0
  else
    redis.call('HSET', counted, field, at)
    for j = first, i - 1, 3 do
      local hash, name = ARGV[1] .. ARGV[j], ARGV[j + 1]
      if redis.call('HEXISTS', hash, name) == 0 and redis.call('HLEN', hash) >= MOST then name = 'other' end
      redis.call('HINCRBY', hash, name, ARGV[j + 2])
    end
    out[#out + 1] = 1
  end
end
return out
