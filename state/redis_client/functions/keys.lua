--[[
Everything txbatch changes in Redis, as functions that check first and write last.

Lua does not roll back, so before its first write every function checks all that could fail: what is
stored, the arguments, and whether the caller may run each command it needs on that key. An error reply
therefore always means that nothing was changed. The version in the library name is the version of the
arguments below; a driver of another version loads its own library. FORMAT is the version of what is stored in one slot,
SHARDED_FORMAT that of a topology over many.

The files of this folder are joined into one, in the order that function_library.py gives; what is local in one is
seen by all after it. LIBRARY, FORMAT, MAX and the other constants that Python has too come from there.

The owner's writes are one sequence. Each names the revision it expects and raises it by one, so it is
applied after exactly the writes whose answers its sender has seen, or not at all. A server that has lost
its last writes is at an earlier revision and takes nothing more from the owner that made them. What a
server holds is thus always a prefix of one history, and every prefix is consistent. A repeated call is
recognised by its digest and answers ALREADY. Only two things are changed by others: a drop takes the topology
over first, and `discard` removes a quarantined batch, which no write of the owner presumes to be there.

Keys, all with the hash tag {id}; every call declares those it touches, as far as there is room (calls.lua):

  {id}:txbatch:control   hash
    fence                        "counter:revision:token" of the owner: the revision at which it took over, and the token of
                                 the request that did so
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
    durable_service              last txid of a run that ended well and whose user said that the service is durable
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
  {id}:<name>            hash, string, set, zset, list, stream or HyperLogLog: the user's state
  {id}:<name>:<part>     the same, one key for each part; the only keys that may expire

txids travel as decimal strings up to 2^53-1, where Lua's numbers are exact. Integers in state are
canonical decimals within the same bound; floats are finite.

Integer increments arrive as four strings for up to 1,000 fields: the lengths of their names, the names, the
deltas, and how wide these numbers are; see packed_writes.py. They are read by HMGET, added here and written back by
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

local function shown(text)
  if #text > 100 then
    text = string.sub(text, 1, 100) .. '...'
  end
  return "'" .. text .. "'"
end

local function decimal(number)
  return string.format('%.0f', number)
end

-- The format of what is stored of a topology with that description.
local function format_of(topology)
  return string.find(topology, '"shards": %d') and SHARDED_FORMAT or FORMAT
end

-- nil if this version reads the format, else a reply.
local function other_format(found)
  if found == FORMAT or found == SHARDED_FORMAT then
    return nil
  end
  return {'VERSION', 'stored format is ' .. shown(found or '') .. ', expected ' .. shown(FORMAT)}
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

-- Raises a NOPERM error unless the caller may run the command on the key; fakeredis cannot tell.
local function require_right(command, key)
  if not redis.acl_check_cmd then
    return
  end
  local words = {}
  for word in string.gmatch(command, '[^|]+') do
    words[#words + 1] = word
  end
  words[#words + 1] = key
  local known, allowed = pcall(redis.acl_check_cmd, unpack(words))
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

-- Adds all fields and values of a hash to a reply.
local function append_hash(reply, key)
  for _, item in ipairs(redis.call('HGETALL', key)) do
    reply[#reply + 1] = item
  end
  return reply
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

-- Deletes the fields of txids from `first` on and below `target`, at most so many; returns the first one left.
local function forget_below(key, first, target, most)
  local fields, last = {}, math.min(target, first + most) - 1
  for txid = first, last do
    fields[#fields + 1] = decimal(txid)
  end
  delete_fields(key, fields, 1, #fields)
  return math.max(first, last + 1)
end
