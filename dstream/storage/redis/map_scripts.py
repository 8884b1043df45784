"""Lua scripts of maps. Their keys and arguments stand at each; see `scripts`."""

from __future__ import annotations

from dstream.storage.redis.scripts import CHUNKS, KEEP_SECONDS, LOST, Script

__all__ = ["CLEAR", "EVENTS", "GET", "PUBLISH", "SIZE", "SWAP"]

# `journal` is a key, or nil if none is kept. An empty value stands for no value: encoded values are never empty.
_CHANGE = """
local clock = redis.call('TIME')
local now = string.format('%d', clock[1] * 1000 + math.floor(clock[2] / 1000))
local function change(bucket, field, old, new)
  if new == '' then redis.call('HDEL', bucket, field) else redis.call('HSET', bucket, field, new) end
  if journal then
    local offset = redis.call('HINCRBY', meta, 'offset', 1)
    redis.call('XADD', journal, string.format('%.0f', offset) .. '-0', 'k', field, 'o', old, 'n', new, 't', now)
  end
end
"""

GET = Script.of("""
local out, at = {types}, 1
while at <= #ARGV[1] do
  local bucket, field
  bucket, field, at = struct.unpack('>I4I4c0', ARGV[1], at)
  out[#out + 1] = redis.call('HGET', KEYS[bucket], field)
end
return out
""")

SWAP = Script.of(
    "local journal = ARGV[3] == '1' and KEYS[2] or nil",
    _CHANGE,
    """
-- Make changes, provided that the types and all old values are what the caller saw.
if types ~= ARGV[1] then return 0 end
local changes, at = {}, 1
while at <= #ARGV[4] do
  local bucket, field, old, changes_it, new
  bucket, field, old, changes_it, new, at = struct.unpack('>I4I4c0I4c0BI4c0', ARGV[4], at)
  if (redis.call('HGET', KEYS[bucket], field) or '') ~= old then return 0 end
  if changes_it == 1 and not (old == '' and new == '') then
    changes[#changes + 1] = {KEYS[bucket], field, old, new}
  end
end
if ARGV[2] ~= types and #changes > 0 then redis.call('HSET', meta, 'types', ARGV[2]) end
for _, c in ipairs(changes) do change(c[1], c[2], c[3], c[4]) end
return 1
""",
)

CLEAR = Script.of(
    "local journal = ARGV[1] == '1' and KEYS[2] or nil",
    _CHANGE,
    """
for at = 3, #KEYS do
  if journal then
    local entries = redis.call('HGETALL', KEYS[at])
    for i = 1, #entries, 2 do change(KEYS[at], entries[i], entries[i + 1], '') end
  else
    redis.call('UNLINK', KEYS[at])
  end
end
return 1
""",
)

SIZE = Script.of("""
local size = 0
for at = 2, #KEYS do size = size + redis.call('HLEN', KEYS[at]) end
return size
""")

EVENTS = Script.of("""
-- ARGV: the first and the last offset that are wanted, and how many events at most.
return {types, redis.call('HGET', meta, 'offset') or '0',
        redis.call('XRANGE', KEYS[2], ARGV[1], ARGV[2], 'COUNT', ARGV[3])}
""")

PUBLISH = Script.of(
    CHUNKS,
    "local journal = ARGV[6] == '1' and KEYS[4] or nil",
    _CHANGE,
    f"""
-- Put what tasks have staged into the map.
-- KEYS: meta, jobs, temporary, journal, live buckets, then per staged bucket: entries, old values, values before merge.
-- ARGV: types seen, types now, job, epoch, 1 if the job has no name, journal, replace, number of live buckets, then
-- per staged bucket: position of its live bucket, number of entries, 1 if the old values must still be there.
-- Returns 'done', 'types' (they are not what the caller saw), or what is not as a task saw it.
local job, replace, lives = ARGV[3], ARGV[7] == '1', tonumber(ARGV[8])
if tonumber(redis.call('HGET', KEYS[2], job) or '0') >= tonumber(ARGV[4]) then return {{'done'}} end
if types ~= ARGV[1] then return {{'types'}} end
local stages = {{}}
for at = 9, #ARGV, 3 do
  local key = 4 + lives + (at - 9) + 1
  local stage = {{live = KEYS[4 + ARGV[at]], entries = KEYS[key], old = KEYS[key + 1], before = KEYS[key + 2]}}
  if redis.call('HLEN', stage.entries) ~= tonumber(ARGV[at + 1]) then return redis.error_reply('{LOST}') end
  stage.number, stage.merged = #stages, ARGV[at + 2] == '1'
  stages[#stages + 1] = stage
end

local differing = {{'changed'}}
for _, stage in ipairs(stages) do
  if stage.merged and not replace then
    local seen = redis.call('HGETALL', stage.old)
    if #seen ~= 2 * redis.call('HLEN', stage.entries) then return redis.error_reply('{LOST}') end
    for i = 1, #seen, 2 do
      local now = redis.call('HGET', stage.live, seen[i]) or ''
      if now ~= seen[i + 1] then differing[#differing + 1] = {{stage.number, seen[i], now}} end
    end
  end
end
if #differing > 1 then return differing end

if replace and journal then
  local stays = {{}}
  for _, stage in ipairs(stages) do
    for _, field in ipairs(redis.call('HKEYS', stage.entries)) do stays[stage.live .. ' ' .. field] = true end
  end
  for at = 5, 4 + lives do
    local entries = redis.call('HGETALL', KEYS[at])
    for i = 1, #entries, 2 do
      if not stays[KEYS[at] .. ' ' .. entries[i]] then change(KEYS[at], entries[i], entries[i + 1], '') end
    end
  end
elseif replace then
  for at = 5, 4 + lives do redis.call('UNLINK', KEYS[at]) end
end

for _, stage in ipairs(stages) do
  if stage.merged then
    -- An empty value removes an entry. A revision makes one where there is none, and nothing happens.
    local entries = redis.call('HGETALL', stage.entries)
    for i = 1, #entries, 2 do
      if entries[i + 1] == '' then
        local there = redis.call('HGET', stage.live, entries[i])
        if there then change(stage.live, entries[i], there, '') end
        redis.call('HDEL', stage.entries, entries[i])
      end
    end
  end
  if not journal and redis.call('EXISTS', stage.live) == 0 and redis.call('EXISTS', stage.entries) == 1 then
    redis.call('RENAME', stage.entries, stage.live)
    redis.call('PERSIST', stage.live)
  else
    local entries = redis.call('HGETALL', stage.entries)
    if journal then
      for i = 1, #entries, 2 do
        change(stage.live, entries[i], redis.call('HGET', stage.live, entries[i]) or '', entries[i + 1])
      end
    else
      in_chunks('HSET', stage.live, entries)
    end
  end
  for _, key in ipairs({{stage.entries, stage.old, stage.before}}) do
    redis.call('UNLINK', key)
    redis.call('ZREM', KEYS[3], key)
  end
end
if #stages > 0 and ARGV[2] ~= types then redis.call('HSET', meta, 'types', ARGV[2]) end
redis.call('HSET', KEYS[2], job, ARGV[4])
if ARGV[5] == '1' then redis.call('EXPIRE', KEYS[2], {KEEP_SECONDS}) end
return {{'done'}}
""",
)
