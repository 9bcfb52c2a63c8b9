-- Planners of what was set aside: dead letters and quarantined batches, which a commit adds or takes.

-- Refuses what would let a sorted set grow beyond its limit: the limit, and how many members the commit adds less
-- those it takes away; a set that is too large already may shrink.
local function plan_bound(section)
  local most, added = tonumber(section.argv[section.at]), tonumber(section.argv[section.at + 1])
  section.at = section.at + 2
  local held = redis.call('ZCARD', section.key)
  if added > 0 and held + added > most then
    return refuse(section, 'LIMIT', 'holds ' .. decimal(held) .. ' dead letters of at most ' .. decimal(most) ..
      ', and ' .. decimal(added) .. ' more do not fit', 'LETTERS_FULL')
  end
  return nil, nil
end

-- The hash of quarantined batches takes one more, unless it is full: limit, txid, record.
local function plan_admission(section)
  local argv, at = section.argv, section.at
  local count = redis.call('HLEN', section.key)
  if count >= tonumber(argv[at]) then
    return {'FULL', decimal(count)}
  end
  section.at, section.operations = at + 3, 0
  return nil, step('HSET', section.key, argv, at + 1, at + 2)
end

-- A quarantined batch is replayed: its record must still be there, and goes.
local function plan_taking(section)
  local txid = section.argv[section.at]
  if redis.call('HEXISTS', section.key, txid) == 0 then
    return {'GONE', txid}
  end
  section.at, section.operations = section.at + 1, 0
  return nil, step('HDEL', section.key, {txid}, 1, 1)
end

-- Dead letters are replayed: they must still be there, and go.
local function plan_taking_letters(section)
  local first = section.at
  section.at = first + section.count
  local found = redis.call('ZMSCORE', section.key, unpack(section.argv, first, section.at - 1))
  for i = 1, section.count do
    if not found[i] then
      return refuse(section, 'TYPE', 'lacks a dead letter that was to be replayed: it was dropped meanwhile',
        'LETTER_GONE')
    end
  end
  return nil, step('ZREM', section.key, section.argv, first, section.at - 1)
end
