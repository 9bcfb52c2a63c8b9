-- How a run becomes the owner: of a new topology, or of one that it takes over.

local NO_METADATA = '0000000000000000'

-- What the owner of the fence needs in order to continue.
local function acquired(control, metadata)
  local found = redis.call('HMGET', control, 'fence', 'generation', 'revision', 'committed', 'metadata_sum',
    'source_fingerprint', 'topology')
  return append_hash({'OK', found[1], found[2], found[3], found[4], found[5], found[6] or '', found[7] or ''}, metadata)
end

local function start_first(keys, given)
  if redis.call('EXISTS', keys[2], keys[3], keys[4]) > 0 then
    return {'REGRESSED', 'key ' .. shown(keys[1]) .. ' is gone but metadata, receipts or quarantined batches are there'}
  end
  if given.previous_fence ~= '' then
    return {'RACED', ''}
  end
  local counted, fence = first_count(given.generation), next_fence(given.above, '1', given.token)
  redis.call('HSET', keys[1], 'format', format_of(given.topology), 'fence', fence,
    'generation', given.generation, 'committed', '0', 'revision', decimal(fence_counter(fence)), -- no fewer writes than starts
    'last_call', '', 'metadata_sum', NO_METADATA, 'begun', counted, 'ended', counted, 'topology', given.topology, 'source_fingerprint', given.source)
  return acquired(keys[1], keys[2])
end

local function take_over(keys, given)
  local found = redis.call('HMGET', keys[1], 'format', 'fence', 'source_fingerprint', 'dropping', 'revision', 'topology',
    'begun', 'ended')
  if found[4] then
    return {'DROPPING', ''}
  elseif other_format(found[1]) then
    return other_format(found[1])
  end
  for _, field in ipairs({'fence', 'generation', 'committed', 'revision', 'metadata_sum'}) do
    if redis.call('HEXISTS', keys[1], field) == 0 then
      return {'REGRESSED', 'field ' .. shown(field) .. ' of key ' .. shown(keys[1]) .. ' is gone'}
    end
  end
  local sentence = half_written(found[7], found[8])
  if sentence then
    return {'TORN', sentence}
  end
  local fence = found[2] or ''
  if has_made(given.token, fence) then
    return acquired(keys[1], keys[2])
  elseif fence ~= given.previous_fence then
    return {'RACED', fence}
  elseif found[3] ~= given.source and found[3] ~= given.accepted_source then
    return {'SOURCE_CHANGED', found[3] or '', given.source}
  elseif found[6] ~= given.topology and found[6] ~= given.accepted_topology then
    return {'TOPOLOGY_CHANGED', found[6] or '', given.topology}
  end
  local write, revision = {}, decimal(tonumber(found[5]) + 1)
  begin_write(keys[1], write)
  redis.call('HSET', keys[1], 'fence', next_fence(fence, revision, given.token), 'revision', revision, 'last_call', '',
    'format', format_of(found[6] or ''), 'ended', write.begun)
  return acquired(keys[1], keys[2])
end

--[[ KEYS control metadata receipts quarantine
     ARGV previous_fence token generation topology source_fingerprint accepted_topology accepted_source above
          the token is this request's alone; it may be executed more than once
          a first start takes a fence above the one that is given, if any
          the accepted ones are what the caller found stored and agrees to replace, or empty
     -> {'OK', fence, generation, revision, committed, metadata sum, source fingerprint, topology, (field, value)...}
        or {'RACED', fence} {'DROPPING', ''} {'SOURCE_CHANGED' or 'TOPOLOGY_CHANGED', stored, given}
           {'REGRESSED' or 'VERSION' or 'TORN' or 'TYPE', sentence} --]]
local function acquire(keys, argv)
  local given = {previous_fence = argv[1], token = argv[2], generation = argv[3], topology = argv[4],
                 source = argv[5], accepted_topology = argv[6], accepted_source = argv[7], above = argv[8] or ''}
  local sentence = wrong_kind(keys[1], 'hash') or wrong_kind(keys[2], 'hash') or wrong_kind(keys[3], 'hash')
  if sentence then
    return {'TYPE', sentence}
  end
  require_rights(keys[1], 'HMGET', 'HSET', 'HINCRBY')
  require_right('HGETALL', keys[2])
  if kind_of(keys[1]) == 'none' then
    return start_first(keys, given)
  end
  return take_over(keys, given)
end

--[[ What `acquire` would take over; changes nothing.
     KEYS control metadata
     -> {} if there is nothing that it would take over; else
        {committed, source fingerprint, topology, metadata sum, (field, value)...} --]]
local function look(keys, argv)
  if kind_of(keys[1]) ~= 'hash' or wrong_kind(keys[2], 'hash') then
    return {}
  end
  local found = redis.call('HMGET', keys[1], 'committed', 'source_fingerprint', 'topology', 'metadata_sum', 'format',
    'dropping', 'begun', 'ended')
  if other_format(found[5]) or found[6] or not found[1] or half_written(found[7], found[8]) then
    return {}
  end
  return append_hash({found[1], found[2] or '', found[3] or '', found[4] or ''}, keys[2])
end

register('acquire', acquire)
register('look', look, 'no-writes')
