-- Planners of increments: what is stored is read, added to, and written back.

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
  local out, size, is_only_checked = {}, 0, section.is_only_checked
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
        return refuse(section, 'LIMIT', 'field ' .. shown(names[i]) .. ' would leave +-' .. decimal(MAX))
      end
    end
    if not is_only_checked then
      out[size + 1] = names[i]
      -- the server formats small numbers correctly, but may write a large one as 1e+15
      out[size + 2] = (total < 100000000 and total > -100000000) and total or text('%.0f', total)
      size = size + 2
    end
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
