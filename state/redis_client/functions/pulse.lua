-- What a run tells of itself while it is under way.

local PULSE_FORGETS = 5000

--[[ What a run tells of itself. Not one of the owner's writes: it changes no revision, nothing depends on it, and it may
     get lost. Only the owner may call it.
     KEYS control pulse stories
     ARGV fence generation kept count (field value)... (txid story)...
          count is that of the fields; stories ascend, and those of the last `kept` txids stay
     -> {'OK' or 'FENCED' or 'TYPE', sentence} --]]
local function pulse(keys, argv)
  local sentence = wrong_kind(keys[1], 'hash') or wrong_kind(keys[2], 'hash') or wrong_kind(keys[3], 'hash')
  if sentence then
    return {'TYPE', sentence}
  end
  local found = redis.call('HMGET', keys[1], 'fence', 'generation', 'dropping')
  if found[3] or found[1] ~= argv[1] or found[2] ~= argv[2] then
    return {'FENCED', ''}
  end
  require_rights(keys[2], 'HSET', 'HGET')
  require_rights(keys[3], 'HSET', 'HDEL')
  local stories = 5 + 2 * tonumber(argv[4])
  put_pairs(keys[2], argv, 5, stories - 1)
  local first = tonumber(redis.call('HGET', keys[2], 'stories_from') or argv[stories] or '')
  while stories < #argv and tonumber(argv[stories]) < first do
    stories = stories + 2 -- forgotten already: this call is late
  end
  if stories < #argv then
    put_pairs(keys[3], argv, stories, #argv)
    local target = tonumber(argv[#argv - 1]) - tonumber(argv[3]) + 1
    local left = forget_below(keys[3], first, target, #argv - stories + PULSE_FORGETS)
    redis.call('HSET', keys[2], 'stories_from', decimal(left))
  end
  return {'OK', ''}
end

register('pulse', pulse)
