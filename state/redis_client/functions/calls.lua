-- How a call brings its keys and arguments: one by one or, if there are many, packed; see packed_call.py.

-- Adds the strings of a block to `strings`, of which there are `size`; returns how many there are then.
local function unpack_block(block, strings, size)
  local sub = string.sub
  local count, width, at = string.match(block, '^(%d+) (%d) ()')
  count, width = tonumber(count), tonumber(width)
  if not count then
    error('malformed block of ' .. #block .. ' bytes')
  end
  local first = at + count * width
  local lengths = unpack_numbers(sub(block, at, first - 1), width, count)
  for i = 1, count do
    local after = first + lengths[i]
    strings[size + i] = sub(block, first, after - 1)
    first = after
  end
  if first ~= #block + 1 then
    error('malformed block: ' .. #block .. ' bytes, expected ' .. first - 1)
  end
  return size + count
end

-- The keys and arguments of a call. In a packed one the blocks begin with the keys that are not declared.
local function opened(keys, argv)
  if argv[1] ~= 'packed' then
    return keys, argv
  end
  local strings, size = {}, 0
  for i = 3, #argv do
    size = unpack_block(argv[i], strings, size)
  end
  local more = tonumber(argv[2])
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
  for i = more + 1, size do
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
