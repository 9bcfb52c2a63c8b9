-- Answers for anybody: the committed values, the state of the topology, the rights of the caller.

--[[ KEYS control state
     ARGV kind field...
     -> {committed txid, fence, value or nil...}; for a set, '1' stands for a member --]]
local function read(keys, argv)
  local found = redis.call('HMGET', keys[1], 'committed', 'fence', 'begun', 'ended')
  local torn = half_written(found[3], found[4])
  if torn then
    return redis.error_reply('TORN ' .. torn)
  elseif not found[1] then
    return redis.error_reply('REGRESSED key ' .. shown(keys[1]) .. ' is gone')
  end
  local kind, reply = argv[1], {found[1], found[2] or ''}
  local sentence = wrong_kind(keys[2], kind)
  if sentence then
    return redis.error_reply('TYPE state ' .. sentence)
  end
  if kind == 'string' then
    reply[3] = redis.call('GET', keys[2])
    return reply
  end
  local command = ({hash = 'HMGET', set = 'SMISMEMBER', zset = 'ZMSCORE'})[kind]
  for i = 2, #argv, SECTION_LIMIT do
    local values = redis.call(command, keys[2], unpack(argv, i, math.min(i + SECTION_LIMIT - 1, #argv)))
    for j, value in ipairs(values) do
      if kind == 'set' then
        value = value == 1 and '1'
      end
      reply[i + j] = value
    end
  end
  return reply
end

--[[ KEYS control metadata receipts quarantine
     -> {number of metadata fields, number of quarantined batches, receipt of the last committed txid or '',
         (field, value) of control...} --]]
local function status(keys, argv)
  for i = 1, 4 do
    local sentence = wrong_kind(keys[i], 'hash')
    if sentence then
      local remedy = '; remove the key, or start over with `txbatch drop ' .. string.match(keys[1], '{(.-)}') .. '`'
      return redis.error_reply('TYPE ' .. sentence .. remedy)
    end
  end
  local committed = redis.call('HGET', keys[1], 'committed')
  local receipt = committed and redis.call('HGET', keys[3], committed)
  return append_hash({redis.call('HLEN', keys[2]), redis.call('HLEN', keys[4]), receipt or ''}, keys[1])
end

--[[ KEYS any key of the topology
     ARGV command...
     -> the commands that this user may not run on it, or that the server lacks --]]
local function lacking(keys, argv)
  local found = {}
  for _, command in ipairs(argv) do
    if not pcall(require_right, command, keys[1]) then
      found[#found + 1] = command
    end
  end
  return found
end

register('read', read, 'no-writes')
register('status', status, 'no-writes')
register('lacking', lacking, 'no-writes')
