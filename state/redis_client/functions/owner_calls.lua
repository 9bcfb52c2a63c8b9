-- The owner's other calls, between commits.

--[[ KEYS control metadata
     ARGV fence generation revision digest metadata_sum source topology put_count (field value)... forget_count field...
     -> {status, sentence} --]]
local function store_metadata(keys, argv)
  local owner = read_owner(argv)
  local reply = check_owner(keys[1], owner)
  if reply then
    return reply
  end
  local sentence = wrong_kind(keys[2], 'hash')
  if sentence then
    return {'TYPE', sentence}
  end
  local puts = OWNER_WRITES + 1
  local forgets = puts + 1 + 2 * tonumber(argv[puts])
  if #argv ~= forgets + tonumber(argv[forgets]) then
    error('malformed metadata: ' .. #argv .. ' arguments')
  end
  require_rights(keys[1], 'HSET', 'HINCRBY')
  require_rights(keys[2], 'HSET', 'HDEL')
  reply = #argv - forgets > SECTION_LIMIT and refuse_moving(keys[1])
  if reply then
    return reply
  end
  begin_write(keys[1], owner)
  put_pairs(keys[2], argv, puts + 1, forgets - 1)
  delete_fields(keys[2], argv, forgets + 1, #argv)
  write_control(keys[1], owner)
  return {'OK', ''}
end

--[[ A small write of the owner, for WAIT to wait for: it vouches for everything up to the last write of its own
     connection. A repeated call writes again, because the first one may have been on another connection.
     KEYS control
     ARGV fence generation revision digest metadata_sum source topology field txid
          field is durable_fsync or durable_replica, and txid what was confirmed before; both may be empty
     -> {status, sentence} --]]
local function barrier(keys, argv)
  local control, owner = keys[1], read_owner(argv)
  local reply = check_owner(control, owner)
  if reply and reply[1] ~= 'ALREADY' then
    return reply
  end
  require_right('HSET', control)
  local field, txid = argv[OWNER_WRITES + 1], argv[OWNER_WRITES + 2]
  if field == '' then
    write_control(control, owner)
  else
    write_control(control, owner, field, txid)
  end
  return reply or {'OK', ''}
end

--[[ Tells whether everything the owner has written is still there; changes nothing.
     KEYS control
     ARGV fence generation revision
     -> {status, sentence} --]]
local function confirm(keys, argv)
  return check_owner(keys[1], read_owner(argv)) or {'OK', ''}
end

--[[ What the spout's committer may not have heard of: the last committed group, or everything after `told`; answers
     only the owner.
     KEYS control receipts
     ARGV fence generation revision
     -> {status, sentence, (txid, receipt)...} --]]
local function last_group(keys, argv)
  local refusal, committed = check_owner(keys[1], read_owner(argv))
  if refusal then
    return refusal
  end
  local sentence = wrong_kind(keys[2], 'hash')
  if sentence then
    return {'TYPE', sentence}
  end
  local reply = {'OK', ''}
  local last = redis.call('HGET', keys[2], committed)
  if not last then
    return reply
  end
  local told = redis.call('HGET', keys[1], 'told')
  local first = told and tonumber(told) + 1 or tonumber(string.match(last, '(%d+) %d+$'))
  for txid = math.max(first, tonumber(committed) - RECEIPTS + 1), tonumber(committed) do
    reply[#reply + 1] = decimal(txid)
    reply[#reply + 1] = redis.call('HGET', keys[2], decimal(txid)) or ''
  end
  return reply
end

register('metadata', store_metadata)
register('barrier', barrier)
register('confirm', confirm, 'no-writes')
register('last_group', last_group, 'no-writes')
