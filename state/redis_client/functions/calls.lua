-- How a call brings its keys and arguments: one by one or, if there are many, packed; see packed_call.py.

-- The strings of a msgpack array, for a server without cmsgpack, such as fakeredis.
local function strings_read(packed)
  local strings, at = {}, 1
  local function number(width)
    local found = 0
    for i = at, at + width - 1 do
      found = found * 256 + string.byte(packed, i)
    end
    at = at + width
    return found
  end
  local head = number(1)
  local count = head == 0xdc and number(2) or head == 0xdd and number(4) or head - 0x90
  for i = 1, count do
    head = number(1)
    local length = head == 0xd9 and number(1) or head == 0xda and number(2) or head == 0xdb and number(4) or head - 0xa0
    strings[i] = string.sub(packed, at, at + length - 1)
    at = at + length
  end
  return strings
end

local function strings_of(packed)
  local has_cmsgpack, unpack_strings = pcall(function() return cmsgpack.unpack end)
  return (has_cmsgpack and unpack_strings or strings_read)(packed)
end

-- The keys and arguments of a call. A packed one has, after the mark, how many keys are packed, and the packed strings
-- in pieces.
local function opened(keys, argv)
  if argv[1] ~= 'packed' then
    return keys, argv
  end
  local strings, more = strings_of(table.concat(argv, '', 3)), tonumber(argv[2])
  if more == 0 then
    return keys, strings
  end
  local all, rest = {}, {}
  for i = 1, #keys do
    all[i] = keys[i]
  end
  for i = 1, more do
    all[#keys + i] = strings[i]
  end
  for i = more + 1, #strings do
    rest[i - more] = strings[i]
  end
  return all, rest
end

-- Registers a function of the library under its name, with flags or none.
local function register(name, callback, ...)
  redis.register_function{function_name = LIBRARY .. '_' .. name, flags = {...}, callback = function(keys, argv)
    return callback(opened(keys, argv))
  end}
end
