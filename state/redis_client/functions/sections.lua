-- The sections of a commit, one for each operation on a state: all are planned before the first is written.

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
  ['stream append'] = plan_entry,
  ['stream trim'] = plan_stream_trim,
  ['hash expire'] = plan_expiry,
  ['hash expire_fields'] = plan_field_expiry,
  ['string expire'] = plan_expiry,
  ['set expire'] = plan_expiry,
  ['zset expire'] = plan_expiry,
  ['list expire'] = plan_expiry,
  ['stream expire'] = plan_expiry,
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

-- Section: key index, kind, value type, operation, count, arguments. Returns a refusal or nil, steps; those of
-- increments lack their arguments if they are only checked.
local function plan_sections(keys, argv, at, is_only_checked)
  local steps, kinds, tops, operations = {}, {}, {}, 0
  while at <= #argv do
    local section = {key = keys[tonumber(argv[at])], kind = argv[at + 1], value_type = argv[at + 2],
                     count = tonumber(argv[at + 4]), argv = argv, at = at + 5, tops = tops,
                     is_only_checked = is_only_checked}
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
      return {'LIMIT', 'commit has more than ' .. OPERATIONS_LIMIT .. ' operations', 'OPERATIONS'}
    end
    steps[#steps + 1] = planned
    at = section.at
  end
  if at ~= #argv + 1 then
    error('malformed commit: ' .. #argv .. ' arguments, expected ' .. (at - 1))
  end
  return nil, steps
end

local EMPTYING = {DEL = true, HDEL = true, HPEXPIREAT = true, SREM = true, ZREM = true}

-- Checks the right to run each command of the steps on its key, each pair once. Returns whether one of them may find a
-- key that an earlier one has emptied, so that it is gone.
local function require_steps(steps)
  local proved, emptied, may_meet_none = {}, {}, false
  for _, write in ipairs(steps) do
    may_meet_none = may_meet_none or emptied[write.key]
    emptied[write.key] = emptied[write.key] or EMPTYING[write.command]
    local right = write.command .. ' ' .. write.key
    if not proved[right] then
      require_right(write.command, write.key)
      proved[right] = true
    end
  end
  return may_meet_none
end
