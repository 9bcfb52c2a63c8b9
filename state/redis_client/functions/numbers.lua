-- Numbers as they are stored, and as the arguments bring them: one by one, or packed for many fields.

-- Integers of up to four characters seen so far; only a cache, so it may live as long as the library.
local memo = {}

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
