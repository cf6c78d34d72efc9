-- ARGV: prefix, then ids of posts or accounts. Returns the JSON of their known alerts, each once.
local p, seen, out = ARGV[1], {}, {}
for i = 2, #ARGV do
  for _, id in ipairs(redis.call('ZRANGE', p .. 'alerts-of:' .. ARGV[i], 0, -1)) do
    local json = not seen[id] and redis.call('GET', p .. 'alert:' .. id)
    if json then out[#out + 1] = json end
    seen[id] = true
  end
end
return out
