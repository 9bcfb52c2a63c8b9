-- A shard of a topology over many slots: it stages its part of a group, home decides the group by `commit`, and the shard
-- applies what it has staged. See sharded_store.py.
--
-- Its control hash has of the fields of home's those of an owner (fence, generation, revision, last_call, begun, ended,
-- format), and committed is the last txid that it has applied; topology and source_fingerprint are home's as of that
-- txid, so that a home that has lost it gets back what its decisions were made on. It also has
--   chain      digest of everything that was decided up to that txid, as home has it
-- Next to it are
--   staged     hash: the part of a group that may be decided: chain, last, decision, keys, sections; and the copy of
--              another shard's part, or ''
--   decisions  list: the calls by which home has decided what was applied here, the last ones
--   copies     list: the parts of other shards, on another server, of the same groups; its bytes are the field copied
--   pause      string that expires: somebody reads all shards, and asks that no further group begins

--[[ Takes a shard over for the owner of home.
     KEYS control staged control_of_a_topology decisions copies
     ARGV fence generation topology          the fence is home's
     -> {'OK', revision, committed, chain, source fingerprint, topology, chain of what is staged, its packed keys}
        or {'RACED', fence} {'OTHER_LIFE', generation} {'DROPPING', ''} {'FOREIGN', key}
           {'VERSION' or 'TORN' or 'TYPE', sentence} --]]
local function take_shard(keys, argv)
  local control, fence, generation, topology = keys[1], argv[1], argv[2], argv[3]
  local sentence = wrong_kind(control, 'hash') or wrong_kind(keys[2], 'hash')
  if sentence then
    return {'TYPE', sentence}
  elseif redis.call('EXISTS', keys[3]) == 1 then
    return {'FOREIGN', keys[3]}
  end
  require_rights(control, 'HMGET', 'HSET', 'HINCRBY')
  require_right('DEL', keys[2])
  local found = redis.call('HMGET', control, 'format', 'fence', 'generation', 'revision', 'begun', 'ended', 'dropping',
    'committed')
  if kind_of(control) == 'none' then
    if redis.call('EXISTS', keys[2], keys[4], keys[5]) > 0 then
      return {'REGRESSED', 'key ' .. shown(control) .. ' is gone but what it has staged or applied is there'}
    end
    local counted = first_count(generation)
    redis.call('HSET', control, 'format', SHARDED_FORMAT, 'fence', fence, 'generation', generation, 'revision', '1', 'last_call', '',
      'committed', '0', 'chain', '', 'topology', topology, 'begun', counted, 'ended', counted)
  elseif found[7] then
    return {'DROPPING', ''}
  elseif other_format(found[1]) then
    return other_format(found[1])
  elseif not (found[2] and found[3] and tonumber(found[4] or '') and tonumber(found[8] or '')) then
    return {'REGRESSED', 'a field of key ' .. shown(control) .. ' is gone'}
  elseif half_written(found[5], found[6]) then
    return {'TORN', half_written(found[5], found[6])}
  elseif found[3] ~= generation and found[8] ~= '0' then -- else home has lost its first start: nothing is applied here
    return {'OTHER_LIFE', found[3]}
  elseif found[2] ~= fence then
    if (fence_counter(found[2]) or 0) >= fence_counter(fence) then
      return {'RACED', found[2]}
    end
    local write = {}
    begin_write(control, write)
    if found[3] ~= generation then
      redis.call('DEL', keys[2])
      redis.call('HSET', control, 'topology', topology)
    end
    redis.call('HSET', control, 'fence', fence, 'generation', generation, 'revision', decimal(tonumber(found[4]) + 1),
      'last_call', '', 'format', SHARDED_FORMAT, 'ended', write.begun)
  end
  local own = redis.call('HMGET', control, 'revision', 'committed', 'chain', 'source_fingerprint', 'topology')
  local part = redis.call('HMGET', keys[2], 'chain', 'keys')
  return {'OK', own[1], own[2], own[3] or '', own[4] or '', own[5] or '', part[1] or '', part[2] or ''}
end

--[[ Checks a shard's part of a group as a commit would, and stores it; nothing of it can be seen.
     KEYS control staged pause copies state...
     ARGV fence generation revision digest '' '' '' chain last_txid decision packed_keys packed_sections copy waits
          waits is empty if a pause that somebody asks for has lasted long enough
     -> {status, sentence, cause}, or {'PAUSED', ''} --]]
local function stage_part(keys, argv)
  local control, staged, owner = keys[1], keys[2], read_owner(argv)
  local reply = check_owner(control, owner)
  if reply then
    return reply
  end
  local at, steps = OWNER_WRITES + 1, nil
  if argv[at + 6] ~= '' and redis.call('EXISTS', keys[3]) == 1 then
    local left = redis.pcall('PTTL', keys[3]) -- an error if this user may not ask
    if type(left) ~= 'number' or (left > 0 and left <= PAUSE_MAX_MS) then -- else no reader has set it
      return {'PAUSED', ''}
    end
  end
  reply, steps = plan_sections(keys, strings_of(argv[at + 4]), 1, true)
  if reply then
    return reply
  end
  require_rights(control, 'HSET', 'HINCRBY')
  require_rights(staged, 'HSET', 'DEL')
  require_steps(steps)
  begin_write(control, owner)
  redis.call('HSET', staged, 'chain', argv[at], 'last', argv[at + 1], 'decision', argv[at + 2], 'keys', argv[at + 3],
    'sections', argv[at + 4], 'copy', argv[at + 5])
  write_control(control, owner)
  return {'OK', ''}
end

-- Adds a copy, and keeps of all as many as may be kept and have room, but the last one always.
local function keep_copy(control, copies, copy, most, room)
  local count, total = redis.call('RPUSH', copies, copy), tonumber(redis.call('HGET', control, 'copied') or '')
  if not total then -- an earlier version has not counted them
    total = 0
    for _, each in ipairs(redis.call('LRANGE', copies, 0, -2)) do
      total = total + #each
    end
  end
  total = total + #copy
  while count > 1 and (count > most or total > room) do
    total, count = total - #redis.call('LRANGE', copies, 0, 0)[1], count - 1
    redis.call('LTRIM', copies, 1, -1)
  end
  redis.call('HSET', control, 'copied', decimal(total))
end

--[[ Applies what is staged, if it is the part of the group that was decided.
     KEYS control staged decisions copies state...  the states in the order in which they were given when it was staged
     ARGV fence generation revision digest '' source_fingerprint topology chain decisions_kept copied_bytes
     -> {status, sentence}; with OK, how many parts and fields had expired when they were written --]]
local function apply_part(keys, argv)
  local control, staged, decisions, copies, owner = keys[1], keys[2], keys[3], keys[4], read_owner(argv)
  local reply = check_owner(control, owner)
  if reply then
    return reply
  end
  local chain, kept = argv[OWNER_WRITES + 1], tonumber(argv[OWNER_WRITES + 2])
  local part = redis.call('HMGET', staged, 'chain', 'last', 'decision', 'sections', 'copy')
  if part[1] ~= chain then
    return {'REGRESSED', 'staged is ' .. shown(part[1] or '') .. ', decided was ' .. shown(chain)}
  end
  local steps
  reply, steps = plan_sections(keys, strings_of(part[4]), 1)
  if reply then
    return reply
  end
  require_rights(decisions, 'RPUSH', 'LTRIM')
  require_rights(copies, 'RPUSH', 'LTRIM', 'LRANGE')
  if require_steps(steps) then
    reply = refuse_moving(control)
    if reply then
      return reply
    end
  end
  begin_write(control, owner)
  local expired = run_steps(steps)
  redis.call('RPUSH', decisions, part[3])
  redis.call('LTRIM', decisions, -kept, -1)
  if part[5] ~= '' then
    keep_copy(control, copies, part[5], kept, tonumber(argv[OWNER_WRITES + 3]))
  end
  redis.call('DEL', staged)
  write_control(control, owner, 'committed', part[2], 'chain', chain)
  return {'OK', decimal(expired)}
end

register('take_shard', take_shard)
register('stage_part', stage_part)
register('apply_part', apply_part, 'allow-oom')
