-- Dead letters and quarantined batches, for people who look at them or remove them.

--[[ A page of dead letters and the state they belong to.
     KEYS control letters
     ARGV first_txid last_txid limit    the txids may be -inf and +inf
     -> {committed txid or '', generation or '', letters stored, letters from first to last txid, (member, txid)...} --]]
local function letters(keys, argv)
  local sentence = wrong_kind(keys[1], 'hash') or wrong_kind(keys[2], 'zset')
  if sentence then
    return redis.error_reply('TYPE ' .. sentence)
  end
  local found = redis.call('HMGET', keys[1], 'committed', 'generation')
  local reply = {found[1] or '', found[2] or '', redis.call('ZCARD', keys[2]),
                 redis.call('ZCOUNT', keys[2], argv[1], argv[2])}
  local page = redis.call('ZRANGEBYSCORE', keys[2], argv[1], argv[2], 'WITHSCORES', 'LIMIT', '0', argv[3])
  for i = 1, #page, 2 do
    reply[#reply + 1] = page[i]
    reply[#reply + 1] = decimal(tonumber(page[i + 1]))
  end
  return reply
end

--[[ Deletes the dead letters of all transactions up to a committed one, or some of them. Needs no fence: no commit ever adds letters
     there again, so it does not matter what a run does meanwhile. The generation protects a topology started since.
     KEYS control letters
     ARGV generation last_txid (member)...
          with members only these, which are of transactions up to last_txid
     -> {'OK', number of letters deleted} or {'REGRESSED' or 'ORDER' or 'TYPE', sentence} --]]
local function drop_letters(keys, argv)
  local sentence = wrong_kind(keys[1], 'hash') or wrong_kind(keys[2], 'zset')
  if sentence then
    return {'TYPE', sentence}
  end
  local found = redis.call('HMGET', keys[1], 'committed', 'generation')
  if found[2] ~= argv[1] then
    return {'REGRESSED', 'the topology was dropped, or started again, since its letters were looked at'}
  end
  local committed, lost = committed_txid(keys[1], found[1])
  if not committed then
    return {'REGRESSED', lost}
  elseif tonumber(argv[2]) > tonumber(committed) then
    return {'ORDER', 'txid ' .. argv[2] .. ' is not committed; the last one is ' .. committed}
  end
  if #argv > 2 then
    require_right('ZREM', keys[2])
    local count = 0
    for i = 3, #argv do
      count = count + redis.call('ZREM', keys[2], argv[i])
    end
    return {'OK', decimal(count)}
  end
  require_right('ZREMRANGEBYSCORE', keys[2])
  return {'OK', decimal(redis.call('ZREMRANGEBYSCORE', keys[2], '-inf', argv[2]))}
end

--[[ Removes a quarantined batch for good, unless it is another one than the caller has seen. Anybody may call it at
     any time: a replay that commits later finds the record gone, and one that has committed has taken it.
     KEYS quarantine
     ARGV txid record
     -> {'OK' or 'GONE' or 'CONFLICT', ''} --]]
local function discard(keys, argv)
  local sentence = wrong_kind(keys[1], 'hash')
  if sentence then
    return {'TYPE', sentence}
  end
  require_right('HDEL', keys[1])
  local found = redis.call('HGET', keys[1], argv[1])
  if not found then
    return {'GONE', ''}
  elseif found ~= argv[2] then
    return {'CONFLICT', ''}
  end
  redis.call('HDEL', keys[1], argv[1])
  return {'OK', ''}
end

register('letters', letters, 'no-writes')
register('drop_letters', drop_letters, 'allow-oom')
register('discard', discard, 'allow-oom')
