-- Drops a topology: takes it over for good, deletes its states in several calls, and then its own keys.

local LOST_DROP = 'the server has lost a part of this drop'

--[[ Takes the topology over for good: from then on only its drop may touch it.
     KEYS control metadata receipts
     ARGV previous_fence token
     -> {'OK', fence, topology} or {'RACED', fence}, with the current owner's fence; {'GONE', ''} without a control
        hash --]]
local function drop_begin(keys, argv)
  local control, previous_fence, token = keys[1], argv[1], argv[2]
  require_rights(control, 'HGET', 'HSET', 'DEL', 'UNLINK')
  require_right('DEL', keys[2])
  require_right('DEL', keys[3])
  if kind_of(control) ~= 'hash' then
    return {'GONE', ''}
  end
  local fence = redis.call('HGET', control, 'fence') or ''
  if has_made(token, fence) then
    return {'OK', fence, redis.call('HGET', control, 'topology') or ''}
  elseif fence ~= previous_fence then
    return {'RACED', fence}
  end
  local ours = next_fence(fence, redis.call('HGET', control, 'revision') or '0', token)
  redis.call('HSET', control, 'fence', ours, 'dropping', '0')
  note_dropped(redis.call('HGET', control, 'generation') or '')
  return {'OK', ours, redis.call('HGET', control, 'topology') or ''}
end

-- Whether the drop with that fence is under way; an empty fence stands for a control key that is missing or not a hash.
local function is_dropping(control, fence)
  if fence == '' then
    return kind_of(control) ~= 'hash'
  end
  return kind_of(control) == 'hash' and redis.call('HGET', control, 'fence') == fence
end

--[[ Deletes state keys. The calls of a drop are counted, so that one which the server has lost is missed.
     KEYS control state...
     ARGV fence number_of_this_call
     -> {status, sentence} --]]
local function drop_keys(keys, argv)
  if not is_dropping(keys[1], argv[1]) then
    return {'FENCED', 'this drop no longer owns the topology'}
  end
  local is_counted = argv[1] ~= ''
  if is_counted and tonumber(redis.call('HGET', keys[1], 'dropping') or 0) < tonumber(argv[2]) - 1 then
    return {'REGRESSED', LOST_DROP}
  end
  require_right('HSET', keys[1])
  for i = 2, #keys do
    require_right('UNLINK', keys[i])
  end
  redis.call('UNLINK', unpack(keys, 2))
  if is_counted then
    redis.call('HSET', keys[1], 'dropping', argv[2])
  end
  return {'OK', ''}
end

--[[ Deletes txbatch's own keys, the control key last: the topology is gone. The other keys are long deleted, or never
     were; they are in the same command because that is written to the append-only file whole, and half of a lost write
     that lies there and would create them goes with it.
     KEYS control metadata receipts key...
     ARGV fence number_of_calls_that_have_deleted_keys
     -> {status, sentence} --]]
local function drop_end(keys, argv)
  if kind_of(keys[1]) == 'none' and redis.call('EXISTS', keys[2], keys[3]) == 0 then
    return {'ALREADY', ''}
  elseif not is_dropping(keys[1], argv[1]) then
    return {'FENCED', 'this drop no longer owns the topology'}
  elseif argv[1] ~= '' and redis.call('HGET', keys[1], 'dropping') ~= argv[2] then
    return {'REGRESSED', LOST_DROP}
  end
  for _, key in ipairs(keys) do
    require_right('DEL', key)
  end
  local gone = {unpack(keys, 2)}
  gone[#gone + 1] = keys[1]
  redis.call('DEL', unpack(gone))
  return {'OK', ''}
end

register('drop_begin', drop_begin, 'allow-oom')
register('drop_keys', drop_keys, 'allow-oom')
register('drop_end', drop_end, 'allow-oom')
