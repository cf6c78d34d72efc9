-- One round trip per frame; the script is atomic, so two workers that see the same text agree on who was first.
-- KEYS: none (keys are built from the prefix: a single Redis, not a cluster). ARGV: prefix, ttl, repeats kept of a post,
-- packed (kind, id, place, fingerprint, repost of, what it says) of each, then the post of each, empty of a deletion; kind "d"
-- is a deletion, "u" an explicit edit. Values: text:F "post id \31 place", id:ID "first place \31 last place \31 fingerprint now", gone:ID 1, kept:ID of a
-- repeat "place \31 fingerprint \31 what it repeats \31 post", of:ID zset of a post's kept repeats, then:ID \31 SAYS "post id
-- \31 fingerprint" of the last one that found no room there, heads:ACCOUNT zset of its posts that have repeats,
-- mine:ACCOUNT zset of its repeats that are kept, both by when that was noted, raised:PLACE zset of those that took the
-- place of what was edited or deleted there. Answers: {verdict, post, …} of each.
local prefix, ttl, most, out = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), {}
local claims = cmsgpack.unpack(ARGV[4])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1e6 + tonumber(clock[2]) -- microseconds; one more with each note
-- In how many milliseconds what is written now is forgotten: as text, so that a SET takes it as it is (.5 µs).
local lasts = string.format('%d', ttl * 1e3)

local held = {} -- what stands under a key, as far as it was read or written here; false: nothing

local function get(key)
  if held[key] == nil then held[key] = redis.call('GET', key) end
  return held[key] or ''
end

local function set(key, value, ...)
  redis.call('SET', key, value, ...)
  held[key] = value
end

local function del(key)
  redis.call('DEL', key)
  held[key] = false
end

local any_raised = false -- has anything taken the place of another at one of these places, before or now?

local function account(id)
  return string.match(id, '^([^/]+)/') or id
end

local function gone(id)
  return redis.call('EXISTS', prefix .. 'gone:' .. account(id)) == 1
end

local function mark(id)
  return string.match(get(prefix .. 'id:' .. id), '^([^\31]*)\31([^\31]*)\31(.*)$')
end

local function pair(key) -- a post id, and what stands behind it
  return string.match(get(key), '^([^\31]*)\31(.*)$')
end

local function kept(id)
  return string.match(get(prefix .. 'kept:' .. id), '^([^\31]*)\31([^\31]*)\31([^\31]*)\31(.*)$')
end

local function note(key, id) -- what was noted longer ago than it can be remembered goes, though the account goes on
  now = now + 1
  redis.call('ZADD', prefix .. key, now, id)
  redis.call('ZREMRANGEBYSCORE', prefix .. key, '-inf', now - ttl * 1e6)
  redis.call('EXPIRE', prefix .. key, ttl)
end

local function hold(id, of, place, fingerprint, post)
  set(prefix .. 'kept:' .. id, table.concat({place, fingerprint, of, post}, '\31'), 'PX', lasts)
  if account(id) ~= id then note('mine:' .. account(id), id) end
end

local function add(key, id)
  redis.call('ZADD', prefix .. key, 0, id)
  redis.call('EXPIRE', prefix .. key, ttl)
end

local function let_go(id)
  local _, _, of = kept(id)
  if of and of ~= '' then redis.call('ZREM', prefix .. 'of:' .. of, id) end
end

local function drop(id)
  let_go(id)
  del(prefix .. 'kept:' .. id)
  redis.call('ZREM', prefix .. 'mine:' .. account(id), id)
end

local function release(id, fingerprint)
  local text = prefix .. 'text:' .. fingerprint
  if pair(text) == id then del(text) end
  del(prefix .. 'id:' .. id)
end

local function keep(id, of, place, fingerprint, post)
  if gone(id) then return end
  let_go(id)
  hold(id, of, place, fingerprint, post)
  add('of:' .. of, id)
  note('heads:' .. account(of), of)
end

-- What becomes of one more repeat of a post: "keep" it, where its own account has enough there "fold" it only, else it goes
-- "through" as a post of its own. The account's own and those of others take each other no room.
local function fits(id, of)
  local key, owner = prefix .. 'of:' .. of, account(of)
  local all, own = redis.call('ZCARD', key), 0
  if owner ~= of then own = redis.call('ZLEXCOUNT', key, '[' .. owner .. '/', '(' .. owner .. '0') end -- 0 follows on /
  if owner ~= of and string.sub(id, 1, #owner + 1) == owner .. '/' then
    if own >= most then return 'fold' end
  elseif all - own >= most then
    return 'through'
  end
  return all < 2 * most and 'keep' or 'through'
end

-- Whom it repeats, and how: the post itself, or the last one that found no room there, as long as that says the same.
local function room(id, of, says)
  local how = fits(id, of)
  if how ~= 'through' then return of, how end
  local head, fingerprint = pair(prefix .. 'then:' .. of .. '\31' .. says)
  if not head or gone(head) then return nil end
  local _, _, said = mark(head)
  if said ~= fingerprint then return nil end
  if head == id then return id, 'fold' end
  how = fits(id, head)
  if how == 'through' then return nil end
  return head, how
end

-- The post says it no more: the first of its repeats that still does takes its place, and the others repeat that one.
local function raise(of, place)
  local heir, others = nil, {} -- with a score before each, as they are added
  for _, id in ipairs(redis.call('ZRANGE', prefix .. 'of:' .. of, 0, -1)) do
    local at, said, by, post = kept(id)
    if by == of and not gone(id) then -- else it is forgotten
      if heir then
        set(prefix .. 'kept:' .. id, table.concat({at, said, heir, post}, '\31'), 'KEEPTTL')
        others[#others + 1] = 0
        others[#others + 1] = id
      else
        heir = id
        hold(id, '', at, said, post)
        any_raised = true
        local text = prefix .. 'text:' .. said
        local first = pair(text)
        if not first or gone(first) then set(text, id .. '\31' .. at, 'PX', lasts) end
        set(prefix .. 'id:' .. id, at .. '\31' .. at .. '\31' .. said, 'PX', lasts)
        add('raised:' .. place, id)
      end
    end
  end
  del(prefix .. 'of:' .. of)
  redis.call('ZREM', prefix .. 'heads:' .. account(of), of)
  if #others > 0 then
    redis.call('ZADD', prefix .. 'of:' .. heir, unpack(others))
    redis.call('EXPIRE', prefix .. 'of:' .. heir, ttl)
    note('heads:' .. account(heir), heir)
  end
end

for first = 1, #claims, 300 do -- one question for three hundred posts, not three for each
  local keys = {}
  for i = first, math.min(first + 299, #claims) do
    local _, id, _, fingerprint = unpack(claims[i])
    keys[#keys + 1] = prefix .. 'id:' .. id
    keys[#keys + 1] = prefix .. 'text:' .. fingerprint
    keys[#keys + 1] = prefix .. 'kept:' .. id
  end
  for i, value in ipairs(redis.call('MGET', unpack(keys))) do held[keys[i]] = value end
end

for first = 1, #claims, 1000 do -- most frames are read once, and nothing of theirs was ever raised
  local places = {}
  for i = first, math.min(first + 999, #claims) do places[#places + 1] = prefix .. 'raised:' .. claims[i][3] end
  any_raised = any_raised or redis.call('EXISTS', unpack(places)) > 0
end

for i, claim in ipairs(claims) do
  local kind, id, place, fingerprint, repost, says = unpack(claim)
  local post = ARGV[4 + i] -- not packed with the rest: Lua hashes every byte of every string it makes
  local begun, last, said = mark(id)
  local verdict = 'n'
  if kind == 'd' then
    if said then release(id, said) end
    drop(id)
    for _, one in ipairs(redis.call('ZRANGE', prefix .. 'mine:' .. id, 0, -1)) do drop(one) end
    set(prefix .. 'gone:' .. id, 1, 'PX', lasts)
    raise(id, place)
    for _, head in ipairs(redis.call('ZRANGE', prefix .. 'heads:' .. id, 0, -1)) do raise(head, place) end
  else
    local text, target, repeats, how = prefix .. 'text:' .. fingerprint, nil, nil, nil
    local first, at = pair(text)
    local was, before, by = kept(id)
    if first and gone(first) then first = nil end
    if kind ~= 'u' and not (said and (last == place or said ~= fingerprint)) then
      if was == place and before == fingerprint and by ~= '' then
        repeats, how = by, 'keep' -- delivered again
      elseif first and at ~= place then
        target = first
      elseif repost ~= '' and repost ~= id and mark(repost) and not gone(repost) then
        target = repost
      end
      if target == id then
        repeats, how = id, 'fold'
      elseif target then
        repeats, how = room(id, target, says)
      end
    end
    if repeats then
      if how == 'keep' then keep(id, repeats, place, fingerprint, post) end
      verdict = 'r' .. repeats
    else
      if before and before ~= fingerprint then drop(id) end
      if said and said ~= fingerprint then release(id, said) end
      if not first then set(text, id .. '\31' .. place, 'PX', lasts) end
      begun = begun or place
      set(prefix .. 'id:' .. id, begun .. '\31' .. place .. '\31' .. fingerprint, 'PX', lasts)
      if target then set(prefix .. 'then:' .. target .. '\31' .. says, id .. '\31' .. fingerprint, 'PX', lasts) end
      if said and said ~= fingerprint then raise(id, place) end
      verdict = begun == place and 'n' or 'e'
    end
  end
  local answer = {verdict}
  for _, id in ipairs(any_raised and redis.call('ZRANGE', prefix .. 'raised:' .. place, 0, -1) or {}) do
    local at, _, _, raised = kept(id)
    if at and not gone(id) then answer[#answer + 1] = raised end
  end
  out[#out + 1] = answer
end
return out
