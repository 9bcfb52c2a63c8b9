-- Who may write: the fence, the generation and the revision, which every call of the owner names.

-- The counter of a fence, or nil.
local function fence_counter(fence)
  return tonumber(string.match(fence, '^(%d+):') or '')
end

-- The fence of an owner that takes over from `fence` by the request with this token, in the write that makes `revision`.
-- The token names one request, which names the fence that it replaces, and both fences name their revisions. So each
-- stands for one history, even if a request is executed again after the server has lost what it had done.
local function next_fence(fence, revision, token)
  return decimal((fence_counter(fence) or 0) + 1) .. ':' .. revision .. ':' .. token
end

-- Whether the request with this token has made the fence.
local function has_made(token, fence)
  return string.sub(fence, -#token - 1) == ':' .. token
end

-- Whether an owner is older than the one expected, or is the same by a write that was lost and made again.
local function is_before(fence, expected)
  local theirs, ours = fence_counter(fence), fence_counter(expected)
  return theirs and ours and (theirs < ours or theirs == ours and has_made(string.match(expected, '[^:]*$'), fence))
end

-- The start of every owner's call: fence generation revision; in a write also digest metadata_sum, and
-- source_fingerprint and topology, each empty unless this is the first write with a new one.
local function read_owner(argv)
  return {fence = argv[1], generation = argv[2], revision = tonumber(argv[3]), digest = argv[4], sum = argv[5],
          source = argv[6], topology = argv[7]}
end
local OWNER_WRITES = 7

-- Generations dropped since the library was loaded. Only messages depend on it: they tell a run why its state is gone.
local dropped, dropped_count = {}, 0

local function note_dropped(generation)
  if dropped_count >= 10000 then
    dropped, dropped_count = {}, 0
  end
  dropped[generation] = true
  dropped_count = dropped_count + 1
end

-- nil unless the server holds part of a write, else a sentence.
local function half_written(begun, ended)
  if begun == ended then
    return nil
  end
  return 'write ' .. shown(begun or '') .. ' was applied over ' .. shown(ended or '') .. ': the server holds ' ..
    'part of a write'
end

-- The committed txid as stored, or nil and a sentence: the control hash may have lost the field.
local function committed_txid(control, found)
  if tonumber(found or '') then
    return found
  end
  local what = found and ('is ' .. shown(found) .. ', expected a number') or 'is gone'
  return nil, 'field ' .. shown('committed') .. ' of key ' .. shown(control) .. ' ' .. what
end

-- nil unless the slot of this key is being handed to another node, else an error that has the call repeated: on a slot
-- that moves, a command fails if its key is missing, and be it EXISTS, because the key might be on the other node.
local function refuse_moving(key)
  local found = redis.pcall('EXISTS', key .. ':')
  local said = type(found) == 'table' and found.err
  if said and string.find(said, 'non local key', 1, true) then
    return redis.error_reply('TRYAGAIN the slot of key ' .. shown(key) .. ' is moving; nothing was changed')
  end
  return nil
end

-- The first command of a write of several; the last one sets `ended` to what it notes.
local function begin_write(control, write, step)
  write.begun = decimal(redis.call('HINCRBY', control, 'begun', step or 1))
end

-- What the writes of a generation are counted from.
local function first_count(generation)
  return decimal(1 + (tonumber(string.sub(generation, 1, 8), 16) or 0))
end

-- nil and the committed txid if the caller owns the topology at the revision it expects, else a reply.
local function check_owner(control, owner)
  local sentence = wrong_kind(control, 'hash')
  if sentence then
    return {'TYPE', sentence}
  end
  local found = redis.call('HMGET', control, 'format', 'fence', 'generation', 'committed', 'dropping', 'revision',
    'last_call', 'begun', 'ended')
  if found[5] or (found[3] ~= owner.generation and dropped[owner.generation]) then
    return {'DROPPED', 'topology was dropped'}
  elseif not found[1] and not found[2] then
    return {'REGRESSED', 'key ' .. shown(control) .. ' is gone', 'KEY_GONE'}
  elseif other_format(found[1]) then
    return other_format(found[1])
  end
  sentence = half_written(found[8], found[9])
  if sentence then
    return {'TORN', sentence}
  end
  if found[3] ~= owner.generation then
    return {'REGRESSED', 'generation is ' .. shown(found[3] or '') .. ', expected ' .. shown(owner.generation)}
  elseif found[2] ~= owner.fence then
    if is_before(found[2] or '', owner.fence) then
      return {'REGRESSED', 'owner is ' .. shown(found[2]) .. ', expected ' .. shown(owner.fence)}
    end
    return {'FENCED', 'owner is ' .. shown(found[2] or '')}
  end
  local revision = tonumber(found[6])
  if not revision or revision < owner.revision then
    return {'REGRESSED', 'revision is ' .. shown(found[6] or '') .. ', expected ' .. decimal(owner.revision)}
  elseif revision == owner.revision + 1 and owner.digest and found[7] == owner.digest then
    return {'ALREADY', ''}
  elseif revision > owner.revision then
    return {'CONFLICT', 'revision is ' .. shown(found[6]) .. ' by another write, expected ' .. decimal(owner.revision)}
  end
  local committed
  committed, sentence = committed_txid(control, found[4])
  if not committed then
    return {'REGRESSED', sentence, 'FIELD_DAMAGED'}
  end
  return nil, committed
end

-- The next revision, together with whatever else changes in the control hash.
local function write_control(control, owner, ...)
  local fields = {'revision', decimal(owner.revision + 1), 'last_call', owner.digest, 'metadata_sum', owner.sum, ...}
  local format = owner.topology == '' and '' or format_of(owner.topology)
  local given = {source_fingerprint = owner.source, topology = owner.topology, format = format, ended = owner.begun}
  for name, value in pairs(given) do
    if value ~= '' then
      fields[#fields + 1] = name
      fields[#fields + 1] = value
    end
  end
  redis.call('HSET', control, unpack(fields))
end
