-- ARGV: key, seconds until it expires, token, then the places. Adds the token to each place's attempts, once however often
-- this is asked: a Redis that was frozen carries out every question that was asked meanwhile. Returns how many each has.
local key, token, out = ARGV[1], ARGV[3] .. ' ', {}
for i = 4, #ARGV do
  local tokens = redis.call('HGET', key, ARGV[i]) or ''
  if not string.find(tokens, token, 1, true) then
    tokens = tokens .. token
    redis.call('HSET', key, ARGV[i], tokens)
  end
  local _, count = string.gsub(tokens, ' ', '')
  out[#out + 1] = count
end
redis.call('EXPIRE', key, ARGV[2])
return out
