#!lua name=txbatch_5
--[[
Everything txbatch changes in Redis, as functions that check first and write last.

Lua does not roll back, so before its first write every function checks all that could fail: what is
stored, the arguments, and whether the caller may run each command it needs on that key. An error reply
therefore always means that nothing was changed. The version in the library name is the version of the
arguments below; a driver of another version loads its own library. FORMAT is the version of what is stored.

The owner's writes are one sequence. Each names the revision it expects and raises it by one, so it is
applied after exactly the writes whose answers its sender has seen, or not at all. A server that has lost
its last writes is at an earlier revision and takes nothing more from the owner that made them. What a
server holds is thus always a prefix of one history, and every prefix is consistent. A repeated call is
recognised by its digest and answers ALREADY. Only two things are changed by others: a drop takes the topology
over first, and `discard` removes a quarantined batch, which no write of the owner presumes to be there.

Keys, all with the hash tag {id}; every call declares those it touches:

  {id}:txbatch:control   hash
    fence                        "counter:nonce" of the owner, compared as an opaque string
    generation                   128-bit random, drawn at the first start of this topology
    committed                    last committed txid in decimal, "0" at first
    revision                     number of writes by all owners so far, in decimal
    last_call                    digest of the write that made this revision
    metadata_sum                 checksum over the whole metadata hash, computed and verified by the owner
    begun                        number of writes of several commands, each counted by its first command; the count
                                 starts at a number derived from the generation
    ended                        the value of `begun` that the last such write has found
    format                       version of this layout
    topology                     description of the topology, as of the last write; opaque here
    source_fingerprint           of the input, as of the last write
    told                         present only if the spout's committer had not heard of everything before the
                                 last commit: the last txid it had heard of then
    durable_fsync                last txid known to be on the server's disk
    durable_replica              last txid known to be on as many replicas as the run asked for
    history_from                 the lowest txid that may have a record in the history
    dropping                     present only while the topology is being dropped: how many calls have deleted keys
  {id}:txbatch:metadata  hash    "scope:txid" -> packed value; opaque here
  {id}:txbatch:receipts  hash    txid -> "attempt digest first last", for the most recent 1,024 txids;
                                 first and last are the txids of the group it was published with
  {id}:txbatch:history   hash    txid -> receipt, and metadata that was forgotten since: transaction_history.py
  {id}:txbatch:dead_letters  zset  tuples that bolts refused: score txid, member "txid.number:packed letter"; a
                                 state like the user's, but for its limit, and for drop_letters
  {id}:txbatch:quarantine hash   txid -> the batch that was set aside there; opaque here
  {id}:txbatch:pulse     hash    what the last run told of itself, for people to read: see run_pulse.py; opaque here, but for
    stories_from                 the lowest txid that may have a story
  {id}:txbatch:stories   hash    txid -> what the run told of the transaction; opaque here
  {id}:<name>            hash, string, set, zset, list or HyperLogLog: the user's state
  {id}:<name>:<part>     the same, one key for each part; the only keys that may expire

txids travel as decimal strings up to 2^53-1, where Lua's numbers are exact. Integers in state are
canonical decimals within the same bound; floats are finite.

Integer increments arrive as four strings for up to 1,000 fields: the lengths of their names, the names, the
deltas, and how wide these numbers are; see packed_increments.py. They are read by HMGET, added here and written back by
HSET. Measured on Valkey 9 with an append-only file, 20,000 fields, microseconds of the server's processor time a field:
HINCRBY per field 2.0; HMGET and HSET with an argument per name 1.6 (of which 0.25 to receive it), with all names in one
string 1.15; HINCRBY sent in pipelines of 100, without a function, 1.6. msgpack instead of lengths was no faster.

A server that lost the end of its append-only file in the middle of a write drops that write when it loads the file.
Redis 7 leaves the write's first commands in the file, though, and applies them at the next restart, together with
what was written since. `begun` is therefore counted up (HINCRBY, which adds whatever it finds) and `ended` is set to
what the write computed: once a write that nobody has heard of is applied under later ones, they differ for good. What is
applied may even be half a write, a drop, the next start and half a write of the new generation, all under a takeover of
the old one. If every generation counted from 0, the two counts could be equal, so each starts at a number of its own.
--]]

local FORMAT = '3'
local MAX = 9007199254740991
local OPERATIONS_LIMIT = 500000
local SECTION_LIMIT = 1000
local RECEIPTS = 1024
local PULSE_FORGETS = 5000
local HISTORY_FORGETS = 1000
local HISTORY_VALUE_LIMIT = 4096
local LOST_DROP = 'the server has lost a part of this drop'
local NO_METADATA = '0000000000000000'
local HYPERLOGLOG_REGISTERS, HYPERLOGLOG_HEAD, HYPERLOGLOG_DENSE = 16384, 16, 12304
local ABOUT = {int = 'an integer in plain decimal', float = 'a finite number'}

-- Integers of up to four characters seen so far; only a cache, so it may live as long as the library.
local memo = {}

local function shown(text)
  if #text > 100 then
    text = string.sub(text, 1, 100) .. '...'
  end
  return "'" .. text .. "'"
end

local function decimal(number)
  return string.format('%.0f', number)
end

-- The type of a key as TYPE reports it.
local function kind_of(key)
  return redis.call('TYPE', key).ok
end

-- nil if the key has that type or is missing, else a sentence.
local function wrong_kind(key, kind)
  local found = kind_of(key)
  if found ~= 'none' and found ~= kind then
    return 'key ' .. shown(key) .. ' is a ' .. found .. ' on the server, expected a ' .. kind
  end
  return nil
end

-- The integer, or nil and whether only its size is at fault.
local function parse_integer(text)
  local number = memo[text]
  if number then
    return number
  end
  if text ~= '0' and not string.find(text, '^-?[1-9]%d*$') then
    return nil, false
  end
  number = tonumber(text)
  if number > MAX or number < -MAX then
    return nil, true
  end
  if #text < 5 then
    memo[text] = number
  end
  return number
end

-- The finite float, or nil: tonumber alone would accept "0x10", " 1" and "nan".
local function parse_float(text)
  if string.find(text, '[^%d%.eE+-]') then
    return nil
  end
  local number = tonumber(text)
  if number and number - number == 0 then
    return number
  end
  return nil
end

-- The shortest of 15, 16 and 17 digits that reads back equal.
local function float_text(number)
  local text = string.format('%.15g', number)
  if tonumber(text) ~= number then
    text = string.format('%.16g', number)
    if tonumber(text) ~= number then
      text = string.format('%.17g', number)
    end
  end
  return text
end

-- The number plus each delta of a list like "0.1 0.2" in turn, and how many deltas there were.
local function add_floats(number, deltas)
  local single = tonumber(deltas)
  if single then
    return number + single, 1
  end
  local count = 0
  for delta in string.gmatch(deltas, '%S+') do
    number = number + tonumber(delta)
    count = count + 1
  end
  return number, count
end

local function refuse(section, status, sentence)
  return {status, 'state key ' .. shown(section.key) .. ' ' .. sentence}
end

local function refuse_stored(section, field, found, is_range)
  local at = section.kind == 'string' and 'holds ' or ('field ' .. shown(field) .. ' holds ')
  if is_range then
    return refuse(section, 'LIMIT', at .. shown(found) .. ', outside +-9007199254740991')
  end
  return refuse(section, 'TYPE', at .. shown(found) .. ', expected ' .. ABOUT[section.value_type])
end

-- nil if a value to be written has the declared type, else a refusal.
local function check_value(section, field, value)
  if section.value_type == 'int' then
    local number, is_range = parse_integer(value)
    if not number then
      return refuse_stored(section, field, value, is_range)
    end
  elseif section.value_type == 'float' and not parse_float(value) then
    return refuse(section, 'LIMIT', 'field ' .. shown(field) .. ' would become ' .. shown(value) .. ', not a finite number')
  end
  return nil
end

local function step(command, key, args, first, last)
  return {command = command, key = key, args = args, first = first, last = last}
end

-- Planners: each takes a section {key, kind, value_type, count, argv, at}, reads its arguments from
-- `at`, moves `at` past them, and returns a refusal, or nil and the step that writes.

-- With an option, that of ZADD: GT or LT.
local function plan_pairs(command, option)
  return function(section)
    local argv, first = section.argv, section.at
    local last = first + 2 * section.count - 1
    for i = first, last, 2 do
      local refusal = check_value(section, argv[i], argv[i + 1])
      if refusal then
        return refusal
      end
    end
    section.at = last + 1
    if command == 'ZADD' then
      local swapped = {option}
      for i = first, last, 2 do
        swapped[#swapped + 1] = argv[i + 1]
        swapped[#swapped + 1] = argv[i]
      end
      return nil, step(command, section.key, swapped, 1, #swapped)
    end
    return nil, step(command, section.key, argv, first, last)
  end
end

local function plan_values(command)
  return function(section)
    local first = section.at
    local last = first + section.count - 1
    for i = first, last do
      local refusal = check_value(section, '', section.argv[i])
      if refusal then
        return refusal
      end
    end
    section.at = last + 1
    return nil, step(command, section.key, section.argv, first, last)
  end
end

local function plan_delete(command)
  return function(section)
    local first = section.at
    section.at = first + section.count
    if command == 'DEL' then
      return nil, step(command, section.key, {}, 1, 0)
    end
    return nil, step(command, section.key, section.argv, first, section.at - 1)
  end
end

-- What is stored in fields[first..last].
local function stored(section, fields, first, last)
  if section.kind == 'string' then
    return {redis.call('GET', section.key)}
  end
  local command = section.kind == 'zset' and 'ZMSCORE' or 'HMGET'
  return redis.call(command, section.key, unpack(fields, first, last))
end

-- Signed numbers packed big-endian, in 1, 2 or 8 bytes each.
local function unpack_numbers(packed, width, count)
  local byte = string.byte
  if #packed ~= width * count then
    error('malformed numbers: ' .. #packed .. ' bytes, expected ' .. width * count)
  end
  local numbers = {}
  if width == 1 then
    numbers = {byte(packed, 1, count)}
    for i = 1, count do
      if numbers[i] > 127 then
        numbers[i] = numbers[i] - 256
      end
    end
  elseif width == 2 then
    local bytes = {byte(packed, 1, 2 * count)}
    for i = 1, count do
      local number = bytes[2 * i - 1] * 256 + bytes[2 * i]
      numbers[i] = number > 32767 and number - 65536 or number
    end
  else
    for i = 1, count do
      local a, b, c, d, e, f, g, h = byte(packed, 8 * i - 7, 8 * i)
      local high = ((a * 256 + b) * 256 + c) * 256 + d
      if high > 2147483647 then
        high = high - 4294967296
      end
      numbers[i] = high * 4294967296 + ((e * 256 + f) * 256 + g) * 256 + h
    end
  end
  return numbers
end

-- Names, of which the arguments hold width of the lengths, lengths, and all names with a newline between each two.
local function unpack_names(argv, at, count)
  local lengths, joined = unpack_numbers(argv[at + 1], tonumber(argv[at]), count), argv[at + 2]
  local names, first, sub = {}, 1, string.sub
  for i = 1, count do
    local after = first + lengths[i]
    names[i] = sub(joined, first, after - 1)
    first = after + 1
  end
  if first ~= #joined + 2 then
    error('malformed names: ' .. #joined .. ' bytes, expected ' .. first - 2)
  end
  return names
end

-- A refusal: one transaction of the group may have left the range, although all of them together do not.
local function refuse_reach(section, field, found, reach)
  return refuse(section, 'LIMIT', 'field ' .. shown(field) .. ' holds ' .. shown(found) .. ' and may leave its range: ' ..
    'the increments of this group add up to as much as ' .. reach)
end

-- Arguments: names, width of the deltas, deltas, and the reach: how far they may have moved a field on the way, "0" for
-- one transaction.
local function plan_integers(section)
  local argv, at, count = section.argv, section.at, section.count
  local names = unpack_names(argv, at, count)
  local deltas = unpack_numbers(argv[at + 4], tonumber(argv[at + 3]), count)
  local reach = argv[at + 5]
  local room = MAX - tonumber(reach)
  local found = stored(section, names, 1, count)
  local parse, known, text = parse_integer, memo, string.format
  if room < 9999 then
    known = {} -- cached numbers are in range, but perhaps not in this narrower one
  end
  local out, size = {}, 0
  for i = 1, count do
    local total, value = deltas[i], found[i]
    if total > MAX or total < -MAX then
      error('malformed increment: ' .. total)
    end
    if value then
      local number, is_range = known[value], nil
      if not number then
        number, is_range = parse(value)
        if not number then
          return refuse_stored(section, names[i], value, is_range)
        end
        if number > room or number < -room then
          return refuse_reach(section, names[i], value, reach)
        end
      end
      total = total + number
      if total > MAX or total < -MAX then
        return refuse(section, 'LIMIT', 'field ' .. shown(names[i]) .. ' would leave +-9007199254740991')
      end
    end
    out[size + 1] = names[i]
    -- the server formats small numbers correctly, but may write a large one as 1e+15
    out[size + 2] = (total < 100000000 and total > -100000000) and total or text('%.0f', total)
    size = size + 2
  end
  section.at = at + 6
  return nil, out
end

local function plan_floats(section)
  local argv, first, count = section.argv, section.at, section.count
  local found = stored(section, argv, first, first + count - 1)
  local out, added = {}, 0
  for i = 1, count do
    local field, number = argv[first + i - 1], 0
    if found[i] then
      number = parse_float(found[i])
      if not number then
        return refuse_stored(section, field, found[i], false)
      end
    end
    local total, deltas = add_floats(number, argv[first + count + i - 1])
    if total - total ~= 0 then
      return refuse(section, 'LIMIT', 'field ' .. shown(field) .. ' would leave the finite numbers')
    end
    out[2 * i - 1] = field
    out[2 * i] = float_text(total)
    added = added + deltas
  end
  section.at = first + 2 * count
  section.operations = added
  return nil, out
end

local function plan_increments(section)
  local refusal, out
  if section.value_type == 'int' then
    refusal, out = plan_integers(section)
  else
    refusal, out = plan_floats(section)
  end
  if refusal then
    return refusal
  elseif section.kind == 'string' then
    return nil, step('SET', section.key, {out[2]}, 1, 1)
  elseif section.kind == 'zset' then
    for i = 1, #out, 2 do
      out[i], out[i + 1] = out[i + 1], out[i]
    end
    return nil, step('ZADD', section.key, out, 1, #out)
  end
  return nil, step('HSET', section.key, out, 1, #out)
end

-- Fields whose increments a later transaction of the group has overwritten: on its own, each would have been checked.
local function plan_check(section)
  local argv, first, count = section.argv, section.at, section.count
  local reach = argv[first + count]
  local found = stored(section, argv, first, first + count - 1)
  local is_int, most = section.value_type == 'int', tonumber(reach)
  for i = 1, count do
    local field, value = argv[first + i - 1], found[i]
    if value then
      local number, is_range = parse_float(value), false
      if is_int then
        number, is_range = parse_integer(value)
      end
      if not number then
        return refuse_stored(section, field, value, is_range)
      end
      local total = math.abs(number) + most
      if total - total ~= 0 or (is_int and total > MAX) then
        return refuse_reach(section, field, value, reach)
      end
    end
  end
  section.at = first + count + 1
  return nil, nil
end

-- Refuses what would let a sorted set grow beyond its limit: the limit, and how many members the commit adds less
-- those it takes away; a set that is too large already may shrink.
local function plan_bound(section)
  local most, added = tonumber(section.argv[section.at]), tonumber(section.argv[section.at + 1])
  section.at = section.at + 2
  local held = redis.call('ZCARD', section.key)
  if added > 0 and held + added > most then
    local id = string.match(section.key, '{(.-)}')
    return refuse(section, 'LIMIT', 'holds ' .. decimal(held) .. ' dead letters of at most ' .. decimal(most) ..
      ', and ' .. decimal(added) .. ' more do not fit; look at them with `txbatch dead-letters list ' .. id ..
      '`, make room with `txbatch dead-letters drop ' .. id .. '`, or raise the limit with ' ..
      'builder.set_dead_letters(total=...)')
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
      return refuse(section, 'TYPE', 'lacks a dead letter that was to be replayed: it was dropped meanwhile, and ' ..
        'nothing was published; run the replay again for the others')
    end
  end
  return nil, step('ZREM', section.key, section.argv, first, section.at - 1)
end

-- Cuts a bounded state to its best members or last items, after everything else that is written to it: the places of
-- the first and the last one to remove from a sorted set, or to keep of a list.
local function plan_trim(command)
  return function(section)
    local argv, at = section.argv, section.at
    if not parse_integer(argv[at] or '') or not parse_integer(argv[at + 1] or '') then
      error('malformed trim')
    end
    section.at, section.operations = at + 2, 0
    return nil, step(command, section.key, argv, at, at + 1)
  end
end

-- Sets when the key goes, in milliseconds since 1970; one that has passed ends the key at once.
local function plan_expiry(section)
  local at = section.at
  if (parse_integer(section.argv[at] or '') or -1) < 0 then
    error('malformed expiry')
  end
  section.at, section.operations = at + 1, 0
  return nil, step('PEXPIREAT', section.key, section.argv, at, at)
end

-- How many registers a sparse HyperLogLog describes: runs of zeros in one or two bytes, runs of a value in one.
local function sparse_registers(runs)
  local count, at = 0, 1
  while at <= #runs do
    local first = string.byte(runs, at)
    if first >= 128 then
      count = count + first % 4 + 1
    elseif first < 64 then
      count = count + first + 1
    else
      at = at + 1
      count = count + (first - 64) * 256 + (string.byte(runs, at) or 0) + 1
    end
    at = at + 1
  end
  return count
end

-- A refusal unless PFADD will take the key: it looks into it only while it writes.
local function wrong_hyperloglog(section)
  local found = kind_of(section.key)
  if found == 'none' or (found == 'set' and not redis.acl_check_cmd) then -- fakeredis keeps a set
    return nil
  elseif found ~= 'string' then
    return {'TYPE', 'state key ' .. shown(section.key) .. ' is a ' .. found .. ' on the server, expected a HyperLogLog'}
  end
  local held = redis.call('GETRANGE', section.key, 0, HYPERLOGLOG_DENSE)
  local encoding = string.byte(held, 5)
  local is_sound = #held >= HYPERLOGLOG_HEAD and string.sub(held, 1, 4) == 'HYLL'
  if is_sound and encoding == 0 then
    is_sound = #held == HYPERLOGLOG_DENSE
  elseif is_sound then
    is_sound = encoding == 1 and sparse_registers(string.sub(held, HYPERLOGLOG_HEAD + 1)) == HYPERLOGLOG_REGISTERS
  end
  if not is_sound then
    return refuse(section, 'TYPE', 'holds a string that is not a HyperLogLog')
  end
  return nil
end

local planners = {
  ['zset bound'] = plan_bound,
  ['zset take'] = plan_taking_letters,
  ['hash admit'] = plan_admission,
  ['hash take'] = plan_taking,
  ['hash check'] = plan_check,
  ['string check'] = plan_check,
  ['zset check'] = plan_check,
  ['hash put'] = plan_pairs('HSET'),
  ['hash increment'] = plan_increments,
  ['hash delete'] = plan_delete('HDEL'),
  ['string put'] = plan_values('SET'),
  ['string increment'] = plan_increments,
  ['string delete'] = plan_delete('DEL'),
  ['set put'] = plan_values('SADD'),
  ['set delete'] = plan_delete('SREM'),
  ['zset put'] = plan_pairs('ZADD'),
  ['zset increment'] = plan_increments,
  ['zset delete'] = plan_delete('ZREM'),
  ['list delete'] = plan_delete('DEL'),
  ['list append'] = plan_values('RPUSH'),
  ['hyperloglog put'] = plan_values('PFADD'),
  ['zset raise'] = plan_pairs('ZADD', 'GT'),
  ['zset lower'] = plan_pairs('ZADD', 'LT'),
  ['zset trim'] = plan_trim('ZREMRANGEBYRANK'),
  ['list trim'] = plan_trim('LTRIM'),
  ['hash expire'] = plan_expiry,
  ['string expire'] = plan_expiry,
  ['set expire'] = plan_expiry,
  ['zset expire'] = plan_expiry,
  ['list expire'] = plan_expiry,
  ['hyperloglog expire'] = plan_expiry,
}

-- A refusal if the key has, or would get, another type than the section's.
local function check_kind(section, kinds)
  local known = kinds[section.key]
  if known == section.kind then
    return nil
  end
  if known then
    return refuse(section, 'TYPE', 'is used as a ' .. known .. ' and as a ' .. section.kind .. ' in one commit')
  end
  if section.kind == 'hyperloglog' then
    local refusal = wrong_hyperloglog(section)
    if refusal then
      return refusal
    end
  else
    local sentence = wrong_kind(section.key, section.kind)
    if sentence then
      return {'TYPE', 'state ' .. sentence}
    end
  end
  kinds[section.key] = section.kind
  return nil
end

-- Section: key index, kind, value type, operation, count, arguments. Returns a refusal or nil, steps.
local function plan_sections(keys, argv, at)
  local steps, kinds, operations = {}, {}, 0
  while at <= #argv do
    local section = {key = keys[tonumber(argv[at])], kind = argv[at + 1], value_type = argv[at + 2],
                     count = tonumber(argv[at + 4]), argv = argv, at = at + 5}
    local planner = planners[section.kind .. ' ' .. argv[at + 3]]
    if not section.key or not planner or section.count > SECTION_LIMIT then
      error('malformed section: ' .. section.kind .. ' ' .. argv[at + 3] .. ' of ' .. section.count)
    end
    operations = operations + section.count
    local refusal = check_kind(section, kinds)
    local planned
    if not refusal then
      refusal, planned = planner(section)
    end
    if refusal then
      return refusal
    end
    operations = operations + (section.operations or section.count) - section.count
    if operations > OPERATIONS_LIMIT then
      return {'LIMIT', 'commit has more than ' .. OPERATIONS_LIMIT .. ' operations; cut smaller transactions'}
    end
    steps[#steps + 1] = planned
    at = section.at
  end
  if at ~= #argv + 1 then
    error('malformed commit: ' .. #argv .. ' arguments, expected ' .. (at - 1))
  end
  return nil, steps
end

-- The counter of a fence, or nil.
local function fence_counter(fence)
  return tonumber(string.match(fence, '^(%d+):') or '')
end

-- Raises a NOPERM error unless the caller may run the command on the key; fakeredis cannot tell.
local function require_right(command, key)
  if not redis.acl_check_cmd then
    return
  end
  local known, allowed = pcall(redis.acl_check_cmd, command, key)
  if not known then
    error({err = 'NOPERM the server has no command ' .. command .. '; nothing was changed'})
  elseif not allowed then
    error({err = 'NOPERM this user may not run ' .. command .. ' on key ' .. shown(key) .. '; nothing was changed'})
  end
end

local function require_rights(key, ...)
  for _, command in ipairs({...}) do
    require_right(command, key)
  end
end

-- The start of every owner's call: fence generation revision; in a write also digest metadata_sum, and
-- source_fingerprint and topology, each empty unless this is the first write with a new one.
local function read_owner(argv)
  return {fence = argv[1], generation = argv[2], revision = tonumber(argv[3]), digest = argv[4], sum = argv[5],
          source = argv[6], topology = argv[7]}
end
local OWNER_WRITES = 7

-- Generations dropped since the library was loaded. Only messages depend on it: they tell a run why its state is gone.
local dropped, dropped_count = {}, 0

local function note_dropped(generation)
  if dropped_count >= 10000 then
    dropped, dropped_count = {}, 0
  end
  dropped[generation] = true
  dropped_count = dropped_count + 1
end

-- nil unless the server has applied part of a write that it had lost, else a sentence.
local function half_written(begun, ended)
  if begun == ended then
    return nil
  end
  return 'write ' .. shown(begun or '') .. ' was applied over ' .. shown(ended or '') .. ': part of a write that was lost ' ..
    'when the append-only file was cut'
end

-- The committed txid as stored, or nil and a sentence: the control hash may have lost the field.
local function committed_txid(control, found)
  if tonumber(found or '') then
    return found
  end
  local what = found and ('is ' .. shown(found) .. ', expected a number') or 'is gone'
  return nil, 'field ' .. shown('committed') .. ' of key ' .. shown(control) .. ' ' .. what
end

-- The first command of a write of several; the last one sets `ended` to what it notes.
local function begin_write(control, write, step)
  write.begun = decimal(redis.call('HINCRBY', control, 'begun', step or 1))
end

-- What the writes of a generation are counted from.
local function first_count(generation)
  return decimal(1 + (tonumber(string.sub(generation, 1, 8), 16) or 0))
end

-- nil and the committed txid if the caller owns the topology at the revision it expects, else a reply.
local function check_owner(control, owner)
  local sentence = wrong_kind(control, 'hash')
  if sentence then
    return {'TYPE', sentence}
  end
  local found = redis.call('HMGET', control, 'format', 'fence', 'generation', 'committed', 'dropping', 'revision',
    'last_call', 'begun', 'ended')
  if found[5] or (found[3] ~= owner.generation and dropped[owner.generation]) then
    return {'DROPPED', 'topology was dropped'}
  elseif not found[1] and not found[2] then
    return {'REGRESSED', 'key ' .. shown(control) .. ' is gone'}
  elseif found[1] ~= FORMAT then
    return {'VERSION', 'stored format is ' .. shown(found[1] or '') .. ', expected ' .. shown(FORMAT)}
  end
  sentence = half_written(found[8], found[9])
  if sentence then
    return {'TORN', sentence}
  end
  if found[3] ~= owner.generation then
    return {'REGRESSED', 'generation is ' .. shown(found[3] or '') .. ', expected ' .. shown(owner.generation)}
  elseif found[2] ~= owner.fence then
    local theirs, ours = fence_counter(found[2] or ''), fence_counter(owner.fence)
    if theirs and ours and theirs < ours then
      return {'REGRESSED', 'owner is ' .. shown(found[2]) .. ', older than ' .. shown(owner.fence)}
    end
    return {'FENCED', 'owner is ' .. shown(found[2] or '')}
  end
  local revision = tonumber(found[6])
  if not revision or revision < owner.revision then
    return {'REGRESSED', 'revision is ' .. shown(found[6] or '') .. ', expected ' .. decimal(owner.revision)}
  elseif revision == owner.revision + 1 and owner.digest and found[7] == owner.digest then
    return {'ALREADY', ''}
  elseif revision > owner.revision then
    return {'CONFLICT', 'revision is ' .. shown(found[6]) .. ' by another write, expected ' .. decimal(owner.revision)}
  end
  local committed
  committed, sentence = committed_txid(control, found[4])
  if not committed then
    return {'REGRESSED', sentence}
  end
  return nil, committed
end

-- The next revision, together with whatever else changes in the control hash.
local function write_control(control, owner, ...)
  local fields = {'revision', decimal(owner.revision + 1), 'last_call', owner.digest, 'metadata_sum', owner.sum, ...}
  local given = {source_fingerprint = owner.source, topology = owner.topology, ended = owner.begun}
  for name, value in pairs(given) do
    if value ~= '' then
      fields[#fields + 1] = name
      fields[#fields + 1] = value
    end
  end
  redis.call('HSET', control, unpack(fields))
end

local function put_pairs(key, argv, first, last)
  for i = first, last, SECTION_LIMIT do
    redis.call('HSET', key, unpack(argv, i, math.min(i + SECTION_LIMIT - 1, last)))
  end
end

local function delete_fields(key, argv, first, last)
  for i = first, last, SECTION_LIMIT do
    redis.call('HDEL', key, unpack(argv, i, math.min(i + SECTION_LIMIT - 1, last)))
  end
end

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

-- Deletes the fields of txids from `first` on and below `target`, at most so many; returns the first one left.
local function forget_below(key, first, target, most)
  local fields, last = {}, math.min(target, first + most) - 1
  for txid = first, last do
    fields[#fields + 1] = decimal(txid)
  end
  delete_fields(key, fields, 1, #fields)
  return math.max(first, last + 1)
end

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

-- Checks the right to run each command of the steps on its key, each pair once.
local function require_steps(steps)
  local proved = {}
  for _, write in ipairs(steps) do
    local right = write.command .. ' ' .. write.key
    if not proved[right] then
      require_right(write.command, write.key)
      proved[right] = true
    end
  end
end

--[[ KEYS control metadata receipts history state...
     ARGV fence generation revision digest metadata_sum source topology told kept first_txid count attempt...
          put_count (field value)... forget_count field... section...
          told is empty if the spout's committer has heard of everything before this group; the history has records of
          the last `kept` txids
     -> {status, sentence} --]]
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
  require_steps(steps)
  begin_write(control, owner)
  for _, write in ipairs(steps) do
    redis.call(write.command, write.key, unpack(write.args, write.first, write.last))
  end
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
  return {'OK', ''}
end

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

-- What the owner of the fence needs in order to continue.
local function acquired(control, metadata)
  local found = redis.call('HMGET', control, 'fence', 'generation', 'revision', 'committed', 'metadata_sum',
    'source_fingerprint', 'topology')
  local reply = {'OK', found[1], found[2], found[3], found[4], found[5], found[6] or '', found[7] or ''}
  for _, item in ipairs(redis.call('HGETALL', metadata)) do
    reply[#reply + 1] = item
  end
  return reply
end

local function start_first(keys, given)
  if redis.call('EXISTS', keys[2], keys[3], keys[4]) > 0 then
    return {'REGRESSED', 'key ' .. shown(keys[1]) .. ' is gone but metadata, receipts or quarantined batches are there'}
  end
  if given.previous_fence ~= '' then
    return {'RACED', ''}
  end
  local counted = first_count(given.generation)
  redis.call('HSET', keys[1], 'format', FORMAT, 'fence', '1:' .. given.nonce, 'generation', given.generation,
    'committed', '0', 'revision', '1', 'last_call', '', 'metadata_sum', NO_METADATA, 'begun', counted, 'ended', counted,
    'topology', given.topology, 'source_fingerprint', given.source)
  return acquired(keys[1], keys[2])
end

local function take_over(keys, given)
  local found = redis.call('HMGET', keys[1], 'format', 'fence', 'source_fingerprint', 'dropping', 'revision', 'topology',
    'begun', 'ended')
  if found[4] then
    return {'DROPPING', ''}
  elseif found[1] ~= FORMAT then
    return {'VERSION', 'stored format is ' .. shown(found[1] or '') .. ', expected ' .. shown(FORMAT)}
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
  if string.sub(fence, -#given.nonce - 1) == ':' .. given.nonce then
    return acquired(keys[1], keys[2])
  elseif fence ~= given.previous_fence then
    return {'RACED', fence}
  elseif found[3] ~= given.source and found[3] ~= given.accepted_source then
    return {'SOURCE_CHANGED', found[3] or '', given.source}
  elseif found[6] ~= given.topology and found[6] ~= given.accepted_topology then
    return {'TOPOLOGY_CHANGED', found[6] or '', given.topology}
  end
  local write = {}
  begin_write(keys[1], write)
  redis.call('HSET', keys[1], 'fence', decimal((fence_counter(fence) or 0) + 1) .. ':' .. given.nonce,
    'revision', decimal(tonumber(found[5]) + 1), 'last_call', '', 'ended', write.begun)
  return acquired(keys[1], keys[2])
end

--[[ KEYS control metadata receipts quarantine
     ARGV previous_fence nonce generation topology source_fingerprint accepted_topology accepted_source
          the accepted ones are what the caller found stored and agrees to replace, or empty
     -> {'OK', fence, generation, revision, committed, metadata sum, source fingerprint, topology, (field, value)...}
        or {'RACED', fence} {'DROPPING', ''} {'SOURCE_CHANGED' or 'TOPOLOGY_CHANGED', stored, given}
           {'REGRESSED' or 'VERSION' or 'TORN' or 'TYPE', sentence} --]]
local function acquire(keys, argv)
  local given = {previous_fence = argv[1], nonce = argv[2], generation = argv[3], topology = argv[4],
                 source = argv[5], accepted_topology = argv[6], accepted_source = argv[7]}
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
  if found[5] ~= FORMAT or found[6] or not found[1] or half_written(found[7], found[8]) then
    return {}
  end
  local reply = {found[1], found[2] or '', found[3] or '', found[4] or ''}
  for _, item in ipairs(redis.call('HGETALL', keys[2])) do
    reply[#reply + 1] = item
  end
  return reply
end

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
  local reply = {redis.call('HLEN', keys[2]), redis.call('HLEN', keys[4]), receipt or ''}
  for _, item in ipairs(redis.call('HGETALL', keys[1])) do
    reply[#reply + 1] = item
  end
  return reply
end

--[[ Takes the topology over for good: from then on only its drop may touch it.
     KEYS control metadata receipts
     ARGV previous_fence nonce
     -> {'OK', fence, topology} or {'RACED', fence}, with the current owner's fence; {'GONE', ''} without a control
        hash --]]
local function drop_begin(keys, argv)
  local control, previous_fence, nonce = keys[1], argv[1], argv[2]
  require_rights(control, 'HGET', 'HSET', 'DEL', 'UNLINK')
  require_right('DEL', keys[2])
  require_right('DEL', keys[3])
  if kind_of(control) ~= 'hash' then
    return {'GONE', ''}
  end
  local fence = redis.call('HGET', control, 'fence') or ''
  if string.sub(fence, -#nonce - 1) == ':' .. nonce then
    return {'OK', fence, redis.call('HGET', control, 'topology') or ''}
  elseif fence ~= previous_fence then
    return {'RACED', fence}
  end
  local ours = decimal((fence_counter(fence) or 0) + 1) .. ':' .. nonce
  redis.call('HSET', control, 'fence', ours, 'dropping', '0')
  note_dropped(redis.call('HGET', control, 'generation') or '')
  return {'OK', ours, redis.call('HGET', control, 'topology') or ''}
end

-- Whether the drop with that fence is under way; an empty fence stands for a control key that is missing or not a hash.
local function is_dropping(control, fence)
  if fence == '' then
    return kind_of(control) ~= 'hash'
  end
  return kind_of(control) == 'hash' and redis.call('HGET', control, 'fence') == fence
end

--[[ Deletes state keys. The calls of a drop are counted, so that one which the server has lost is missed.
     KEYS control state...
     ARGV fence number_of_this_call
     -> {status, sentence} --]]
local function drop_keys(keys, argv)
  if not is_dropping(keys[1], argv[1]) then
    return {'FENCED', 'this drop no longer owns the topology'}
  end
  local is_counted = argv[1] ~= ''
  if is_counted and tonumber(redis.call('HGET', keys[1], 'dropping') or 0) < tonumber(argv[2]) - 1 then
    return {'REGRESSED', LOST_DROP}
  end
  require_right('HSET', keys[1])
  for i = 2, #keys do
    require_right('UNLINK', keys[i])
  end
  redis.call('UNLINK', unpack(keys, 2))
  if is_counted then
    redis.call('HSET', keys[1], 'dropping', argv[2])
  end
  return {'OK', ''}
end

--[[ Deletes txbatch's own keys, the control key last: the topology is gone. The other keys are long deleted, or never
     were; they are in the same command because that is written to the append-only file whole, and half of a lost write
     that lies there and would create them goes with it.
     KEYS control metadata receipts key...
     ARGV fence number_of_calls_that_have_deleted_keys
     -> {status, sentence} --]]
local function drop_end(keys, argv)
  if kind_of(keys[1]) == 'none' and redis.call('EXISTS', keys[2], keys[3]) == 0 then
    return {'ALREADY', ''}
  elseif not is_dropping(keys[1], argv[1]) then
    return {'FENCED', 'this drop no longer owns the topology'}
  elseif argv[1] ~= '' and redis.call('HGET', keys[1], 'dropping') ~= argv[2] then
    return {'REGRESSED', LOST_DROP}
  end
  for _, key in ipairs(keys) do
    require_right('DEL', key)
  end
  local gone = {unpack(keys, 2)}
  gone[#gone + 1] = keys[1]
  redis.call('DEL', unpack(gone))
  return {'OK', ''}
end

local STAGED = {hash = 'HSET', zset = 'ZADD', set = 'SADD', list = 'RPUSH', string = 'SET'}

-- Appends at most SECTION_LIMIT items to a staged list, and one more, which it cuts off again at the length that the list
-- has to have: so items of the same call that a torn append-only file has put in before are cut off, too. A cut that takes
-- nothing away would not be in the file.
local function append_staged(key, argv, first)
  require_rights(key, 'LLEN', 'LTRIM')
  if #argv - first >= SECTION_LIMIT then
    error('malformed stage: ' .. #argv - first + 1 .. ' items')
  end
  local length = redis.call('LLEN', key) + #argv - first + 1
  redis.call('RPUSH', key, unpack(argv, first))
  redis.call('RPUSH', key, '')
  redis.call('LTRIM', key, 0, length - 1)
end

--[[ Adds entries to a staged key of an import. The calls are counted, so that one which the server has lost is missed.
     KEYS staging staged
     ARGV nonce number_of_this_call kind item...    kind is begin in the first call, which has no items
     -> {status, sentence} --]]
local function stage(keys, argv)
  local staging, call, kind = keys[1], tonumber(argv[2]), argv[3]
  local sentence = wrong_kind(staging, 'hash')
  if sentence then
    return {'TYPE', sentence}
  end
  local found = redis.call('HMGET', staging, 'nonce', 'calls')
  require_right('HSET', staging)
  if kind == 'begin' then
    redis.call('HSET', staging, 'nonce', argv[1], 'calls', '1')
    return {'OK', ''}
  elseif found[1] ~= argv[1] then
    return {'FENCED', 'another import has begun'}
  elseif found[2] == argv[2] then
    return {'ALREADY', ''}
  elseif tonumber(found[2]) ~= call - 1 then
    return {'REGRESSED', 'the server has lost a part of this import'}
  end
  local command = STAGED[kind]
  if not command then
    error('malformed stage: ' .. kind)
  end
  sentence = wrong_kind(keys[2], kind)
  if sentence then
    return {'TYPE', sentence}
  end
  require_right(command, keys[2])
  if kind == 'list' then
    append_staged(keys[2], argv, 4)
  else
    for i = 4, #argv, 2 * SECTION_LIMIT do
      redis.call(command, keys[2], unpack(argv, i, math.min(i + 2 * SECTION_LIMIT - 1, #argv)))
    end
  end
  redis.call('HSET', staging, 'calls', argv[2])
  return {'OK', ''}
end

--[[ Puts what an import has staged into the place of everything the topology held: in one step, or not at all.
     KEYS control staging staged... target... old...
     ARGV nonce generation previous_fence previous_revision calls groups staged_count expiry... (control field, value)...
          previous_fence and previous_revision are empty if there is no control hash; an expiry may be empty; groups is
          how many commits the staged receipts are of: the revision counts them, and an owner for each fence
     -> {status, sentence}; RACED if the topology was written since its keys were looked for --]]
local function restore(keys, argv)
  local control, staging, count = keys[1], keys[2], tonumber(argv[7])
  local sentence = wrong_kind(control, 'hash') or wrong_kind(staging, 'hash')
  if sentence then
    return {'TYPE', sentence}
  end
  local held = redis.call('HMGET', control, 'fence', 'revision', 'generation')
  if held[3] == argv[2] then -- perhaps a run has taken it over since
    return {'ALREADY', ''}
  elseif (held[1] or '') ~= argv[3] or (held[2] or '') ~= argv[4] then
    return {'RACED', ''}
  end
  local found = redis.call('HMGET', staging, 'nonce', 'calls')
  if found[1] ~= argv[1] then
    return {'FENCED', 'another import has begun'}
  elseif found[2] ~= argv[5] then
    return {'REGRESSED', 'the server has lost a part of this import'}
  end
  require_rights(control, 'HINCRBY', 'HSET', 'HDEL')
  require_right('UNLINK', staging)
  for i = 3, 2 + count do
    require_rights(keys[i], 'RENAME')
    require_rights(keys[i + count], 'RENAME', 'PEXPIREAT')
    if redis.call('EXISTS', keys[i]) == 0 then
      return {'REGRESSED', 'the server has lost a part of this import'}
    elseif argv[5 + i] ~= '' and not parse_integer(argv[5 + i]) then
      error('malformed expiry')
    end
  end
  for i = 3 + 2 * count, #keys do
    require_right('UNLINK', keys[i])
  end
  local stale, former = {}, redis.call('HGETALL', control)
  for i = 1, #former, 2 do
    if former[i] ~= 'begun' then
      stale[#stale + 1] = former[i]
    end
  end
  local write = {}
  begin_write(control, write, first_count(argv[2]))
  for i = 3 + 2 * count, #keys do
    redis.call('UNLINK', keys[i])
  end
  for i = 3, 2 + count do
    redis.call('RENAME', keys[i], keys[i + count])
    if argv[5 + i] ~= '' then
      redis.call('PEXPIREAT', keys[i + count], argv[5 + i])
    end
  end
  redis.call('UNLINK', staging)
  delete_fields(control, stale, 1, #stale)
  local owner = (fence_counter(held[1] or '') or 0) + 1
  redis.call('HSET', control, 'format', FORMAT, 'fence', decimal(owner) .. ':' .. argv[1], 'generation', argv[2],
    'revision', decimal(owner + tonumber(argv[6])), 'last_call', '', unpack(argv, 8 + count))
  redis.call('HSET', control, 'ended', write.begun)
  note_dropped(held[3] or '')
  return {'OK', ''}
end

--[[ All quarantined batches.
     KEYS quarantine
     -> {(txid, record)...} --]]
local function quarantined(keys, argv)
  local sentence = wrong_kind(keys[1], 'hash')
  if sentence then
    return redis.error_reply('TYPE ' .. sentence .. '; remove the key')
  end
  return redis.call('HGETALL', keys[1])
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

redis.register_function{function_name = 'txbatch_5_acquire', callback = acquire}
redis.register_function{function_name = 'txbatch_5_look', callback = look, flags = {'no-writes'}}
redis.register_function{function_name = 'txbatch_5_metadata', callback = store_metadata}
redis.register_function{function_name = 'txbatch_5_commit', callback = commit}
redis.register_function{function_name = 'txbatch_5_barrier', callback = barrier}
redis.register_function{function_name = 'txbatch_5_confirm', callback = confirm, flags = {'no-writes'}}
redis.register_function{function_name = 'txbatch_5_last_group', callback = last_group, flags = {'no-writes'}}
redis.register_function{function_name = 'txbatch_5_lacking', callback = lacking, flags = {'no-writes'}}
redis.register_function{function_name = 'txbatch_5_read', callback = read, flags = {'no-writes'}}
redis.register_function{function_name = 'txbatch_5_letters', callback = letters, flags = {'no-writes'}}
redis.register_function{function_name = 'txbatch_5_drop_letters', callback = drop_letters, flags = {'allow-oom'}}
redis.register_function{function_name = 'txbatch_5_pulse', callback = pulse}
redis.register_function{function_name = 'txbatch_5_status', callback = status, flags = {'no-writes'}}
redis.register_function{function_name = 'txbatch_5_quarantined', callback = quarantined, flags = {'no-writes'}}
redis.register_function{function_name = 'txbatch_5_discard', callback = discard, flags = {'allow-oom'}}
redis.register_function{function_name = 'txbatch_5_stage', callback = stage}
redis.register_function{function_name = 'txbatch_5_restore', callback = restore}
redis.register_function{function_name = 'txbatch_5_drop_begin', callback = drop_begin, flags = {'allow-oom'}}
redis.register_function{function_name = 'txbatch_5_drop_keys', callback = drop_keys, flags = {'allow-oom'}}
redis.register_function{function_name = 'txbatch_5_drop_end', callback = drop_end, flags = {'allow-oom'}}
