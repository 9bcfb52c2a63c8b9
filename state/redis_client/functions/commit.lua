-- Publishes a group of transactions: their states, metadata, receipts and history, in one step.

-- nil if the group follows the committed txid, else the reply; the revision vouches for the rest.
local function check_order(committed, group)
  if decimal(group.first) == decimal(tonumber(committed) + 1) then
    return nil
  end
  return {'ORDER', 'group ' .. decimal(group.first) .. '..' .. decimal(group.last) .. ' does not follow committed txid '
    .. committed}
end

-- first txid, number of attempts, attempt ids; returns the group and where ARGV continues.
local function read_group(argv, at, digest)
  local group = {first = tonumber(argv[at]), count = tonumber(argv[at + 1]), attempts = {}}
  group.last = group.first + group.count - 1
  if group.count < 1 or group.last > MAX then
    error('malformed group of ' .. group.count .. ' from ' .. argv[at])
  end
  for i = 1, group.count do
    group.attempts[i] = argv[at + 1 + i]
  end
  group.receipt = digest .. ' ' .. decimal(group.first) .. ' ' .. decimal(group.last)
  return group, at + 2 + group.count
end

local function write_receipts(receipts, group)
  local added, removed = {}, {}
  for i = math.max(1, group.count - RECEIPTS + 1), group.count do
    added[#added + 1] = decimal(group.first + i - 1)
    added[#added + 1] = group.attempts[i] .. ' ' .. group.receipt
  end
  put_pairs(receipts, added, 1, #added)
  for txid = math.max(1, group.first - RECEIPTS), group.last - RECEIPTS do
    removed[#removed + 1] = decimal(txid)
  end
  delete_fields(receipts, removed, 1, #removed)
end

-- Makes the planned changes; returns how many parts and fields had expired when they were written.
local function run_steps(steps)
  local expired = 0
  for _, write in ipairs(steps) do
    local done = redis.call(write.command, write.key, unpack(write.args, write.first, write.last))
    if write.command == 'PEXPIREAT' and done == 1 and redis.pcall('EXISTS', write.key) ~= 1 then
      expired = expired + 1
    elseif write.command == 'HPEXPIREAT' then
      for _, status in ipairs(done) do
        expired = expired + (status == 2 and 1 or 0)
      end
    end
  end
  return expired
end

--[[ KEYS control metadata receipts history state...
     ARGV fence generation revision digest metadata_sum source topology told kept first_txid count attempt...
          put_count (field value)... forget_count field... section...
          told is empty if the spout's committer has heard of everything before this group; the history has records of
          the last `kept` txids
     -> {status, sentence, cause}; with OK, how many parts and fields had expired when they were written --]]
local function commit(keys, argv)
  local control, metadata, receipts = keys[1], keys[2], keys[3]
  local owner = read_owner(argv)
  local reply, committed = check_owner(control, owner)
  if reply then
    return reply
  end
  local told = argv[OWNER_WRITES + 1]
  local kept = tonumber(argv[OWNER_WRITES + 2])
  local group, puts = read_group(argv, OWNER_WRITES + 3, owner.digest)
  reply = check_order(committed, group)
  if reply then
    return reply
  end
  local sentence = wrong_kind(metadata, 'hash') or wrong_kind(receipts, 'hash') or wrong_kind(keys[4], 'hash')
  if sentence then
    return {'TYPE', sentence}
  end
  local forgets = puts + 1 + 2 * tonumber(argv[puts])
  local sections = forgets + 1 + tonumber(argv[forgets])
  local steps
  reply, steps = plan_sections(keys, argv, sections)
  if reply then
    return reply
  end
  require_rights(control, 'HGET', 'HSET', 'HDEL', 'HINCRBY')
  require_rights(metadata, 'HMGET', 'HSET', 'HDEL')
  require_rights(receipts, 'HSET', 'HDEL')
  require_rights(keys[4], 'HGET', 'HSET', 'HDEL')
  if require_steps(steps) or kept == 0 or sections - forgets > SECTION_LIMIT then
    reply = refuse_moving(control)
    if reply then
      return reply
    end
  end
  begin_write(control, owner)
  local expired = run_steps(steps)
  local oldest = write_history(keys, group, kept, argv, forgets + 1, sections - 1)
  put_pairs(metadata, argv, puts + 1, forgets - 1)
  delete_fields(metadata, argv, forgets + 1, sections - 1)
  write_receipts(receipts, group)
  if told == '' then
    redis.call('HDEL', control, 'told')
    write_control(control, owner, 'history_from', oldest, 'committed', decimal(group.last))
  else
    write_control(control, owner, 'history_from', oldest, 'committed', decimal(group.last), 'told', told)
  end
  return {'OK', decimal(expired)}
end

register('commit', commit)
