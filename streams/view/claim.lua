-- One round trip per frame; the script is atomic, so two workers that see the same text agree on who was first.
-- KEYS: none (keys are built from the prefix: a single Redis, not a cluster). ARGV: prefix, ttl, repeats kept of a post,
-- packed (kind, id, place, fingerprint, repost of, post) of each; kind "d" is a deletion, "u" an explicit edit. Values:
-- text:F "post id \31 place", id:ID "first place \31 last place \31 fingerprint now", gone:ID 1, kept:ID of a repeat "place
-- \31 fingerprint \31 what it repeats \31 post", of:ID zset of a post's kept repeats, heads:ACCOUNT zset of its posts that have some,
-- raised:PLACE zset of those that took the place of what was edited or deleted there. Answers: {verdict, post, …} of each.
local prefix, ttl, most, out = ARGV[1], ARGV[2], tonumber(ARGV[3]), {}

local function account(id)
  return string.match(id, '^([^/]+)/') or id
end

local function gone(id)
  return redis.call('EXISTS', prefix .. 'gone:' .. account(id)) == 1
end

local function mark(id)
  return string.match(redis.call('GET', prefix .. 'id:' .. id) or '', '^([^\31]*)\31([^\31]*)\31(.*)$')
end

local function holder(key)
  return string.match(redis.call('GET', key) or '', '^([^\31]*)\31(.*)$')
end

local function kept(id)
  return string.match(redis.call('GET', prefix .. 'kept:' .. id) or '', '^([^\31]*)\31([^\31]*)\31([^\31]*)\31(.*)$')
end

local function hold(id, of, place, fingerprint, post)
  redis.call('SET', prefix .. 'kept:' .. id, table.concat({place, fingerprint, of, post}, '\31'), 'EX', ttl)
end

local function add(key, id)
  redis.call('ZADD', prefix .. key, 0, id)
  redis.call('EXPIRE', prefix .. key, ttl)
end

local function release(id, fingerprint)
  local text = prefix .. 'text:' .. fingerprint
  if holder(text) == id then redis.call('DEL', text) end
  redis.call('DEL', prefix .. 'id:' .. id)
end

local function keep(id, of, place, fingerprint, post)
  hold(id, of, place, fingerprint, post)
  add('of:' .. of, id)
  add('heads:' .. account(of), of)
  for _, over in ipairs(redis.call('ZRANGE', prefix .. 'of:' .. of, most, -1)) do
    redis.call('ZREM', prefix .. 'of:' .. of, over)
    local _, _, by = kept(over)
    if by == of then redis.call('DEL', prefix .. 'kept:' .. over) end
  end
end

-- The post says it no more: the first of its repeats that still does takes its place, and the others repeat that one.
local function raise(of, place)
  local heir = nil
  for _, id in ipairs(redis.call('ZRANGE', prefix .. 'of:' .. of, 0, -1)) do
    local at, said, by, post = kept(id)
    if by == of and not gone(id) then -- else it repeats another one by now
      if heir then
        hold(id, heir, at, said, post)
        add('of:' .. heir, id)
      else
        heir = id
        hold(id, '', at, said, post)
        local text = prefix .. 'text:' .. said
        local first = holder(text)
        if not first or gone(first) then redis.call('SET', text, id .. '\31' .. at, 'EX', ttl) end
        redis.call('SET', prefix .. 'id:' .. id, at .. '\31' .. at .. '\31' .. said, 'EX', ttl)
        add('raised:' .. place, id)
      end
    end
  end
  redis.call('DEL', prefix .. 'of:' .. of)
  redis.call('ZREM', prefix .. 'heads:' .. account(of), of)
  if heir and redis.call('EXISTS', prefix .. 'of:' .. heir) == 1 then add('heads:' .. account(heir), heir) end
end

for _, claim in ipairs(cmsgpack.unpack(ARGV[4])) do
  local kind, id, place, fingerprint, repost, post = unpack(claim)
  local begun, last, said = mark(id)
  local verdict = 'n'
  if kind == 'd' then
    if said then release(id, said) end
    redis.call('DEL', prefix .. 'kept:' .. id)
    redis.call('SET', prefix .. 'gone:' .. id, 1, 'EX', ttl)
    raise(id, place)
    for _, head in ipairs(redis.call('ZRANGE', prefix .. 'heads:' .. id, 0, -1)) do raise(head, place) end
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
      if repeats ~= id then keep(id, repeats, place, fingerprint, post) end
      verdict = 'r' .. repeats
    else
      local _, before = kept(id)
      if before and before ~= fingerprint then redis.call('DEL', prefix .. 'kept:' .. id) end
      if said and said ~= fingerprint then release(id, said) end
      if not first then redis.call('SET', text, id .. '\31' .. place, 'EX', ttl) end
      begun = begun or place
      redis.call('SET', prefix .. 'id:' .. id, begun .. '\31' .. place .. '\31' .. fingerprint, 'EX', ttl)
      if said and said ~= fingerprint then raise(id, place) end
      verdict = begun == place and 'n' or 'e'
    end
  end
  local answer = {verdict}
  for _, id in ipairs(redis.call('ZRANGE', prefix .. 'raised:' .. place, 0, -1)) do
    local at, _, _, raised = kept(id)
    if at and not gone(id) then answer[#answer + 1] = raised end
  end
  out[#out + 1] = answer
end
return out
