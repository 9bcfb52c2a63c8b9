-- What the sections of a commit do to a state: each planner checks everything, and returns the command that writes.

local ABOUT = {int = 'an integer in plain decimal', float = 'a finite number'}

-- `cause` is one of commit.py's, or nil where the status says enough.
local function refuse(section, status, sentence, cause)
  return {status, 'state key ' .. shown(section.key) .. ' ' .. sentence, cause}
end

local function refuse_stored(section, field, found, is_range)
  local at = section.kind == 'string' and 'holds ' or ('field ' .. shown(field) .. ' holds ')
  if is_range then
    return refuse(section, 'LIMIT', at .. shown(found) .. ', outside +-' .. decimal(MAX))
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

-- What is stored in fields[first..last].
local function stored(section, fields, first, last)
  if section.kind == 'string' then
    return {redis.call('GET', section.key)}
  end
  local command = section.kind == 'zset' and 'ZMSCORE' or 'HMGET'
  return redis.call(command, section.key, unpack(fields, first, last))
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

-- The two numbers of an entry's id.
local function id_numbers(id)
  local first, second = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(first), tonumber(second)
end

local function is_after(top, first, second)
  return first > top[1] or (first == top[1] and second > top[2])
end

-- The numbers of the id below which a stream takes no entry any more, even if the one that had it is gone.
local function top_of(key)
  if redis.call('EXISTS', key) == 1 then
    local about = redis.call('XINFO', 'STREAM', key)
    for i = 1, #about, 2 do
      if about[i] == 'last-generated-id' then
        return {id_numbers(about[i + 1])}
      end
    end
  end
  return {0, 0}
end

-- One entry of a stream: its id, and so many fields with their values.
local function plan_entry(section)
  local argv, at, tops = section.argv, section.at, section.tops
  local first, second = id_numbers(argv[at])
  local top = tops[section.key] or top_of(section.key)
  if not is_after(top, first, second) then
    return refuse(section, 'TYPE', 'has had an entry ' .. decimal(top[1]) .. '-' .. decimal(top[2]) .. ', so it takes no '
      .. argv[at] .. ' of this transaction: only the topology may add to it')
  end
  tops[section.key] = {first, second}
  for i = at + 2, at + 2 * section.count, 2 do
    local refusal = check_value(section, argv[i - 1], argv[i])
    if refusal then
      return refusal
    end
  end
  section.at, section.operations = at + 1 + 2 * section.count, 1
  return nil, step('XADD', section.key, argv, at, section.at - 1)
end

local function plan_stream_trim(section)
  local most = section.argv[section.at]
  if not parse_integer(most or '') then
    error('malformed trim')
  end
  section.at, section.operations = section.at + 1, 0
  return nil, step('XTRIM', section.key, {'MAXLEN', most}, 1, 2)
end

-- The latest time at which this server has let fields go: Redis takes none after the year 4199, Valkey does.
local latest_taken = 0

-- nil if the server lets fields go then, else a sentence. It is asked with a key that is missing, as no part is named so.
local function refused_expiry(key, field, time)
  if tonumber(time) <= latest_taken then
    return nil
  end
  local done = redis.pcall('HPEXPIREAT', key .. '::', time, 'FIELDS', '1', field)
  if not done.err then
    latest_taken = tonumber(time)
  elseif string.find(done.err, 'non local key', 1, true) then
    error({err = 'TRYAGAIN the slot of key ' .. shown(key) .. ' is moving; nothing was changed'})
  elseif string.find(done.err, 'expire time', 1, true) then
    return 'field ' .. shown(field) .. ' was given the expiry ' .. time .. ' ms, later than this server takes: on ' ..
      'Redis the year 4199 is the last; give None, and the field stays'
  end
  return nil
end

-- Sets when fields go; those whose time has passed go at once.
local function plan_field_expiry(section)
  local argv, at = section.argv, section.at
  if (parse_integer(argv[at] or '') or -1) < 0 then
    error('malformed expiry')
  end
  local sentence = refused_expiry(section.key, argv[at + 1], argv[at])
  if sentence then
    return refuse(section, 'LIMIT', sentence)
  end
  local args = {argv[at], 'FIELDS', decimal(section.count)}
  for i = at + 1, at + section.count do
    args[#args + 1] = argv[i]
  end
  section.at = at + 1 + section.count
  return nil, step('HPEXPIREAT', section.key, args, 1, #args)
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
