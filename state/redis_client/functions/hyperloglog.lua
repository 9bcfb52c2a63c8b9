-- Whether a string is a HyperLogLog: the server itself would notice only while it writes.

local HYPERLOGLOG_REGISTERS, HYPERLOGLOG_HEAD, HYPERLOGLOG_DENSE = 16384, 16, 12304

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
