-- Add to counters, once per stage, partition and origin. ARGV: prefix, retention (how long a hash stays after it was last
-- written), packed {stage:partition, origin, {{hash, field, n}, …}} of each. Returns for each 0 if this origin, or a later one,
-- was counted before, else 1.
-- Names come from posts (sources, tags): of so many in one hash the later ones are counted as "other", or whoever
-- invents names fills Redis.
local MOST = 2000
local prefix, retention, counted, out = ARGV[1], tonumber(ARGV[2]), ARGV[1] .. 'counted', {}
local last, sums, order = {}, {}, {} -- written once a call: frames of one post have most counters in common

local function stays(key) -- longer, where somebody says so (a trial's)
  if redis.call('TTL', key) < retention then redis.call('EXPIRE', key, retention) end
end

for _, one in ipairs(cmsgpack.unpack(ARGV[3])) do
  local field, at, told = unpack(one)
  local before = last[field] or redis.call('HGET', counted, field)
  if before and before >= at then
    out[#out + 1] = 0
  else
    last[field] = at
    for _, add in ipairs(told) do
      local hash, name, n = unpack(add)
      local key = hash .. '\31' .. name
      if not sums[key] then
        sums[key] = {hash, name, 0}
        order[#order + 1] = sums[key]
      end
      sums[key][3] = sums[key][3] + n
    end
    out[#out + 1] = 1
  end
end
for field, at in pairs(last) do redis.call('HSET', counted, field, at) end
if next(last) then stays(counted) end
local written = {}
for _, sum in ipairs(order) do
  local hash, name, n = prefix .. sum[1], sum[2], sum[3]
  if redis.call('HEXISTS', hash, name) == 0 and redis.call('HLEN', hash) >= MOST then name = 'other' end
  redis.call('HINCRBY', hash, name, n)
  if not written[hash] then stays(hash) end
  written[hash] = true
end
return out
