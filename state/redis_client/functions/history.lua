-- The history: a record of each of the last transactions, with the metadata that was forgotten since.

local HISTORY_FORGETS = 1000

-- Moves metadata fields that are about to be forgotten into the records of their transactions: for each field a line
-- with the lengths of scope and value, then both. A value that is too long is left out, and its length is negative.
local function move_metadata(metadata, history, records, target, argv, start, stop)
  for first = start, stop, SECTION_LIMIT do
    local last = math.min(first + SECTION_LIMIT - 1, stop)
    local values = redis.call('HMGET', metadata, unpack(argv, first, last))
    for i = first, last do
      local scope, txid = string.match(argv[i], '^(.*):(%d+)$')
      local value = values[i - first + 1]
      if value and tonumber(txid) >= target and scope ~= 'replayed' and string.sub(scope, 1, 5) ~= 'note.' then
        local record = records.by_txid[txid]
        if not record then
          record = redis.call('HGET', history, txid)
          if record then
            records.txids[#records.txids + 1] = txid
          end
        end
        if record then
          local text, length = value, #value
          if length > HISTORY_VALUE_LIMIT then
            text, length = '', -length
          end
          records.by_txid[txid] = record .. '\n' .. #scope .. ' ' .. decimal(length) .. '\n' .. scope .. text
        end
      end
    end
  end
end

-- Records the group in the history, with the metadata that its commit forgets of transactions below; forgets the
-- oldest, a bounded number. Returns the lowest txid that may have a record now.
local function write_history(keys, group, kept, argv, start, stop)
  local control, metadata, history = keys[1], keys[2], keys[4]
  local oldest = tonumber(redis.call('HGET', control, 'history_from') or '') or group.first
  local target = math.max(1, group.last - kept + 1)
  local records = {txids = {}, by_txid = {}}
  for i = math.max(1, target - group.first + 1), group.count do
    local txid = decimal(group.first + i - 1)
    records.txids[#records.txids + 1] = txid
    records.by_txid[txid] = group.attempts[i] .. ' ' .. group.receipt
  end
  move_metadata(metadata, history, records, target, argv, start, stop)
  local added = {}
  for _, txid in ipairs(records.txids) do
    added[#added + 1] = txid
    added[#added + 1] = records.by_txid[txid]
  end
  put_pairs(history, added, 1, #added)
  return decimal(forget_below(history, oldest, target, group.count + HISTORY_FORGETS))
end
