-- Imports a topology: stages it in several calls, and puts it into place in one.

local STAGED = {hash = 'HSET', zset = 'ZADD', set = 'SADD', list = 'RPUSH', string = 'SET', stream = 'XADD'}

-- Appends at most SECTION_LIMIT items to a staged list, and one more, which it cuts off again at the length that the list
-- has to have: so items of the same call that a torn append-only file has put in before are cut off, too. A cut that takes
-- nothing away would not be in the file.
local function append_staged(key, argv, first)
  require_rights(key, 'LLEN', 'LTRIM')
  if #argv - first >= SECTION_LIMIT then
    error('malformed stage: ' .. #argv - first + 1 .. ' items')
  end
  local length = redis.call('LLEN', key) + #argv - first + 1
  redis.call('RPUSH', key, unpack(argv, first))
  redis.call('RPUSH', key, '')
  redis.call('LTRIM', key, 0, length - 1)
end

-- Adds entries to a staged stream, each given as id, number of fields, and these with their values; those that a torn
-- append-only file has put in before are there already.
local function add_staged(key, argv, first)
  local top, at = top_of(key), first
  while at <= #argv do
    local last = at + 1 + 2 * tonumber(argv[at + 1])
    if is_after(top, id_numbers(argv[at])) then
      redis.call('XADD', key, argv[at], unpack(argv, at + 2, last))
    end
    at = last + 1
  end
end

-- Puts a staged stream where the exported one was: its last id, and how many entries it was given. A server without the
-- command, such as fakeredis, leaves it where its entries end.
local function put_position(key, last_id, added)
  if redis.call('EXISTS', key) == 0 then
    redis.call('XADD', key, last_id, 'x', 'x')
    redis.call('XTRIM', key, 'MAXLEN', '0')
  end
  local done = redis.pcall('XSETID', key, last_id, 'ENTRIESADDED', added)
  if done.err and not string.find(string.lower(done.err), 'unknown', 1, true) then
    error(done)
  end
end

--[[ Adds entries to a staged key of an import. The calls are counted, so that one which the server has lost is missed.
     KEYS staging staged
     ARGV nonce number_of_this_call kind item...    kind is begin in the first call, which has no items
     -> {status, sentence} --]]
local function stage(keys, argv)
  local staging, call, kind = keys[1], tonumber(argv[2]), argv[3]
  local sentence = wrong_kind(staging, 'hash')
  if sentence then
    return {'TYPE', sentence}
  end
  local found = redis.call('HMGET', staging, 'nonce', 'calls')
  require_right('HSET', staging)
  if kind == 'begin' then
    redis.call('HSET', staging, 'nonce', argv[1], 'calls', '1')
    return {'OK', ''}
  elseif found[1] ~= argv[1] then
    return {'FENCED', 'another import has begun'}
  elseif found[2] == argv[2] then
    return {'ALREADY', ''}
  elseif tonumber(found[2]) ~= call - 1 then
    return {'REGRESSED', 'the server has lost a part of this import'}
  end
  if kind == 'expire_fields' then
    require_right('HPEXPIREAT', keys[2])
    for i = 4, #argv, 2 do
      sentence = refused_expiry(keys[2], argv[i + 1], argv[i])
      if sentence then
        return {'LIMIT', sentence}
      end
    end
    for i = 4, #argv, 2 do
      redis.call('HPEXPIREAT', keys[2], argv[i], 'FIELDS', '1', argv[i + 1])
    end
    redis.call('HSET', staging, 'calls', argv[2])
    return {'OK', ''}
  end
  if kind == 'position' then
    require_rights(keys[2], 'XADD', 'XTRIM', 'XSETID')
    put_position(keys[2], argv[4], argv[5])
    redis.call('HSET', staging, 'calls', argv[2])
    return {'OK', ''}
  end
  local command = STAGED[kind]
  if not command then
    error('malformed stage: ' .. kind)
  end
  sentence = wrong_kind(keys[2], kind)
  if sentence then
    return {'TYPE', sentence}
  end
  require_right(command, keys[2])
  if kind == 'list' then
    append_staged(keys[2], argv, 4)
  elseif kind == 'stream' then
    add_staged(keys[2], argv, 4)
  else
    for i = 4, #argv, 2 * SECTION_LIMIT do
      redis.call(command, keys[2], unpack(argv, i, math.min(i + 2 * SECTION_LIMIT - 1, #argv)))
    end
  end
  redis.call('HSET', staging, 'calls', argv[2])
  return {'OK', ''}
end

-- When a key goes, in milliseconds since 1970, or an empty text; and whether it may have gone with the last of its fields.
local function expiry_in(text)
  local mark, expiry = string.match(text, '^(~?)(%d*)$')
  if not expiry or (expiry ~= '' and not parse_integer(expiry)) then
    error('malformed expiry')
  end
  return expiry, mark ~= ''
end

local function put_into_place(staged, target, expiry)
  if redis.call('EXISTS', staged) == 0 then
    redis.call('UNLINK', target)
    return
  end
  redis.call('RENAME', staged, target)
  if expiry ~= '' then
    redis.call('PEXPIREAT', target, expiry)
  end
end

--[[ Puts what an import has staged into the place of everything the topology owned: in one step, or not at all.
     KEYS control staging staged... target... old...
     ARGV nonce generation previous_fence previous_revision calls groups staged_count expiry... (control field, value)...
          previous_fence and previous_revision are empty if there is no control hash; an expiry may be empty, and begins
          with ~ if the staged key may have gone with the last of its fields; groups is how many commits the staged
          receipts are of: the revision counts them, and an owner for each fence
     -> {status, sentence}; RACED if the topology was written since its keys were looked for, {'FOREIGN', key} if
        a target is there that it did not own --]]
local function restore(keys, argv)
  local control, staging, count = keys[1], keys[2], tonumber(argv[7])
  local sentence = wrong_kind(control, 'hash') or wrong_kind(staging, 'hash')
  if sentence then
    return {'TYPE', sentence}
  end
  local held = redis.call('HMGET', control, 'fence', 'revision', 'generation')
  if held[3] == argv[2] then -- perhaps a run has taken it over since
    return {'ALREADY', ''}
  elseif (held[1] or '') ~= argv[3] or (held[2] or '') ~= argv[4] then
    return {'RACED', ''}
  end
  local found = redis.call('HMGET', staging, 'nonce', 'calls')
  if found[1] ~= argv[1] then
    return {'FENCED', 'another import has begun'}
  elseif found[2] ~= argv[5] then
    return {'REGRESSED', 'the server has lost a part of this import'}
  end
  require_rights(control, 'HINCRBY', 'HSET', 'HDEL')
  require_right('UNLINK', staging)
  for i = 3, 2 + count do
    require_rights(keys[i], 'RENAME')
    require_rights(keys[i + count], 'RENAME', 'PEXPIREAT')
    local _, may_be_gone = expiry_in(argv[5 + i])
    if redis.call('EXISTS', keys[i]) == 0 and not may_be_gone then
      return {'REGRESSED', 'the server has lost a part of this import'}
    end
  end
  local is_old, is_target = {}, {}
  for i = 3 + 2 * count, #keys do
    require_right('UNLINK', keys[i])
    is_old[keys[i]] = redis.call('EXISTS', keys[i]) == 1
  end
  for i = 3 + count, 2 + 2 * count do
    is_target[keys[i]] = true
    if not is_old[keys[i]] and redis.call('EXISTS', keys[i]) == 1 then
      return {'FOREIGN', keys[i]}
    end
  end
  local stale, former = {}, redis.call('HGETALL', control)
  for i = 1, #former, 2 do
    if former[i] ~= 'begun' then
      stale[#stale + 1] = former[i]
    end
  end
  local write = {}
  begin_write(control, write, first_count(argv[2]))
  for i = 3 + 2 * count, #keys do
    if not is_target[keys[i]] then -- RENAME replaces it, but on a slot that moves it does not make one anew
      redis.call('UNLINK', keys[i])
    end
  end
  for i = 3, 2 + count do
    put_into_place(keys[i], keys[i + count], expiry_in(argv[5 + i]))
  end
  redis.call('UNLINK', staging)
  delete_fields(control, stale, 1, #stale)
  local revision = decimal((fence_counter(held[1] or '') or 0) + 1 + tonumber(argv[6]))
  redis.call('HSET', control, 'format', FORMAT, 'fence', next_fence(held[1] or '', revision, argv[1]), 'generation', argv[2],
    'revision', revision, 'last_call', '', unpack(argv, 8 + count))
  redis.call('HSET', control, 'ended', write.begun)
  note_dropped(held[3] or '')
  return {'OK', ''}
end

register('stage', stage)
register('restore', restore)
