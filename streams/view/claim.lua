-- One round trip per frame; the script is atomic, so two workers that see the same text agree on who was first.
-- KEYS: none (keys are built from the prefix: a single Redis, not a cluster). ARGV: prefix, ttl, then (kind, id, place,
-- fingerprint, repost of) of each; kind "d" is a deletion, "u" an explicit edit. Values: text:F "post id \31 place",
-- id:ID "first place \31 last place \31 fingerprint now", gone:ID 1.
local prefix, ttl, out = ARGV[1], ARGV[2], {}

local function gone(id)
  return redis.call('EXISTS', prefix .. 'gone:' .. (string.match(id, '^([^/]+)/') or id)) == 1
end

local function mark(id)
  return string.match(redis.call('GET', prefix .. 'id:' .. id) or '', '^([^\31]*)\31([^\31]*)\31(.*)$')
end

local function holder(key)
  return string.match(redis.call('GET', key) or '', '^([^\31]*)\31(.*)$')
end

local function release(id, fingerprint)
  local text = prefix .. 'text:' .. fingerprint
  if holder(text) == id then redis.call('DEL', text) end
  redis.call('DEL', prefix .. 'id:' .. id)
end

for i = 3, #ARGV, 5 do
  local kind, id, place, fingerprint, repost = unpack(ARGV, i, i + 4)
  local begun, last, said = mark(id)
  if kind == 'd' then
    if said then release(id, said) end
    redis.call('SET', prefix .. 'gone:' .. id, 1, 'EX', ttl)
  else
    local text, repeats = prefix .. 'text:' .. fingerprint, nil
    local first, at = holder(text)
    if first and gone(first) then first = nil end
    if kind ~= 'u' and not (said and (last == place or said ~= fingerprint)) then
      if first and at ~= place then
        repeats = first
      elseif repost ~= '' and repost ~= id and mark(repost) and not gone(repost) then
        repeats = repost
      end
    end
    if repeats then
      out[#out + 1] = 'r' .. repeats
    else
      if said and said ~= fingerprint then release(id, said) end
      if not first then redis.call('SET', text, id .. '\31' .. place, 'EX', ttl) end
      begun = begun or place
      redis.call('SET', prefix .. 'id:' .. id, begun .. '\31' .. place .. '\31' .. fingerprint, 'EX', ttl)
      out[#out + 1] = begun == place and 'n' or 'e'
    end
  end
end
return out
