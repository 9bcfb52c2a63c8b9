-- Answers for anybody: the committed values, the rights of the caller.

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
register('lacking', lacking, 'no-writes')
