-- ARGV: key, then (place, token) of each. Takes the token out of the place's attempts.
for i = 2, #ARGV, 2 do
  local tokens = redis.call('HGET', ARGV[1], ARGV[i])
  if tokens then
    local left = string.gsub(tokens, ARGV[i + 1] .. ' ', '')
    if left == '' then redis.call('HDEL', ARGV[1], ARGV[i]) else redis.call('HSET', ARGV[1], ARGV[i], left) end
  end
end
return 0
