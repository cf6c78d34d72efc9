-- ARGV: key, owner, retention, the save before this one or "" for a whole one, this save, how many parts to forget, their
-- names, then (name, bytes) of each to write.
-- Returns 1, or 0 if what the parts belong to is gone or older, or -1 if another worker has taken the state over.
local key, owner = ARGV[1], redis.call('HGET', ARGV[1], 'owner')
if owner and owner ~= ARGV[2] then return -1 end
if ARGV[4] == '' then
  redis.call('DEL', key)
  redis.call('HSET', key, 'owner', ARGV[2])
elseif redis.call('HGET', key, 'save') ~= ARGV[4] then
  return 0
end
redis.call('HSET', key, 'save', ARGV[5])
local first = 7 + tonumber(ARGV[6])
for i = 7, first - 1 do redis.call('HDEL', key, ARGV[i]) end
for i = first, #ARGV, 2 do redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
redis.call('EXPIRE', key, ARGV[3])
return 1
