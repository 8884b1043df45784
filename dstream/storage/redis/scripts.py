"""Lua scripts of collections, maps and lists; each runs alone inside the server.

Each gets the meta hash of a collection as its first key and begins by checking whether it exists: a destroyed
collection has none. Long arguments are packed: numbers and strings with their lengths, read by `struct.unpack`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

__all__ = [
    "ABORT",
    "CHUNKS",
    "DESTROY",
    "DESTROYED",
    "IS_DONE",
    "KEEP_SECONDS",
    "LIST_EXTEND",
    "LIST_PIN",
    "LIST_PUBLISH",
    "LIST_READ",
    "LIST_READ_PINNED",
    "LIST_READ_VIEW",
    "LIST_SIZE",
    "LIST_SPLICE",
    "LIST_VIEW",
    "LOST",
    "MAP_CLEAR",
    "MAP_EVENTS",
    "MAP_GET",
    "MAP_PUBLISH",
    "MAP_SIZE",
    "MAP_SWAP",
    "NOW",
    "REGISTER",
    "SETTLE",
    "TYPES",
    "VACUUM",
    "Script",
]


DESTROYED = "DSTREAM destroyed"
LOST = "DSTREAM lost"
KEEP_SECONDS = 86_400
"""Seconds for which staged data and pinned lists are retained if no process removes them."""


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script and the digest by which the server finds it."""

    source: str
    digest: str

    @staticmethod
    def of(*parts: str) -> Script:
        """Return a script that first checks that its collection exists."""
        return Script.bare(_HEAD, *parts)

    @staticmethod
    def bare(*parts: str) -> Script:
        """Return a script."""
        source = "".join(parts)
        # Redis names scripts by SHA-1, which an OpenSSL under FIPS refuses where it may be for security.
        return Script(source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


_HEAD = f"""
local meta = KEYS[1]
local types = redis.call('HGET', meta, 'types')
if not types then return redis.error_reply('{DESTROYED}') end
"""

# Lua passes at most a few thousand arguments at a time.
CHUNKS = """
local function in_chunks(command, key, values, first)
  for at = first or 1, #values, 4000 do
    redis.call(command, key, unpack(values, at, math.min(at + 3999, #values)))
  end
end
"""

REGISTER = Script.bare("""
-- Let a name stand for another collection, provided that it stands for what the caller saw ('' for nothing).
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
if ARGV[3] == '' then redis.call('HDEL', KEYS[1], ARGV[1]) else redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) end
return 1
""")

# The contents of a set of keys are input: only keys of the collection are removed.
_IS_OWN = """
local function is_own(key)
  local beginning = string.sub(meta, 1, -5)
  return string.sub(key, 1, #beginning) == beginning
end
"""

DESTROY = Script.of(
    _IS_OWN,
    """
for _, key in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  if is_own(key) then redis.call('UNLINK', key) end
end
for _, key in ipairs(KEYS) do redis.call('UNLINK', key) end
return 1
""",
)

SETTLE = Script.of("""
if types ~= ARGV[1] then return 0 end
redis.call('HSET', meta, 'types', ARGV[2])
return 1
""")

TYPES = Script.of("return types")

NOW = Script.of("return redis.call('TIME')[1]")

VACUUM = Script.of(
    _IS_OWN,
    """
local before = redis.call('TIME')[1] - ARGV[1]
local stale = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', before)
for _, key in ipairs(stale) do
  if is_own(key) then redis.call('UNLINK', key) end
  redis.call('ZREM', KEYS[2], key)
end
return #stale
""",
)

# A hash has the last epoch that was committed of each job.
IS_DONE = Script.of("return tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or '0') >= tonumber(ARGV[2])")

ABORT = Script.of("""
for _, key in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  if string.sub(key, 1, #ARGV[1]) == ARGV[1] then redis.call('UNLINK', key) redis.call('ZREM', KEYS[2], key) end
end
""")


# `journal` is a key, or nil if there is none. An empty value means no value: encoded values are never empty.
_MAP_CHANGE = """
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

MAP_GET = Script.of("""
local out, at = {types}, 1
while at <= #ARGV[1] do
  local bucket, field
  bucket, field, at = struct.unpack('>I4I4c0', ARGV[1], at)
  out[#out + 1] = redis.call('HGET', KEYS[bucket], field)
end
return out
""")

MAP_SWAP = Script.of(
    "local journal = ARGV[3] == '1' and KEYS[2] or nil",
    _MAP_CHANGE,
    """
-- Make changes, provided that the types are what the caller saw, and all old values, unless ARGV[5] is 1.
if types ~= ARGV[1] then return 0 end
local changes, at = {}, 1
while at <= #ARGV[4] do
  local bucket, field, old, changes_it, new
  bucket, field, old, changes_it, new, at = struct.unpack('>I4I4c0I4c0BI4c0', ARGV[4], at)
  local there = redis.call('HGET', KEYS[bucket], field) or ''
  if ARGV[5] == '1' then old = there elseif there ~= old then return 0 end
  if changes_it == 1 and not (old == '' and new == '') then
    changes[#changes + 1] = {KEYS[bucket], field, old, new}
  end
end
if ARGV[2] ~= types and #changes > 0 then redis.call('HSET', meta, 'types', ARGV[2]) end
for _, c in ipairs(changes) do change(c[1], c[2], c[3], c[4]) end
return 1
""",
)

MAP_CLEAR = Script.of(
    "local journal = ARGV[1] == '1' and KEYS[2] or nil",
    _MAP_CHANGE,
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

MAP_SIZE = Script.of("""
local size = 0
for at = 2, #KEYS do size = size + redis.call('HLEN', KEYS[at]) end
return size
""")

MAP_EVENTS = Script.of("""
-- ARGV: the first and the last offset that are wanted, and how many events at most.
return {types, redis.call('HGET', meta, 'offset') or '0',
        redis.call('XRANGE', KEYS[2], ARGV[1], ARGV[2], 'COUNT', ARGV[3])}
""")

MAP_PUBLISH = Script.of(
    CHUNKS,
    "local journal = ARGV[6] == '1' and KEYS[4] or nil",
    _MAP_CHANGE,
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


# Splits pin an epoch. Appending retains it, since splits have their ranges; any other change first saves a copy if the
# epoch is pinned.
_KEEP = f"""
local function keep()
  local epoch = redis.call('HGET', meta, 'epoch') or '0'
  if redis.call('HGET', meta, 'pinned') == epoch then
    local copy = items .. ':' .. epoch
    redis.call('COPY', items, copy)
    redis.call('EXPIRE', copy, {KEEP_SECONDS})
    redis.call('ZADD', temporary, redis.call('TIME')[1], copy)
  end
  redis.call('HINCRBY', meta, 'epoch', 1)
end
"""

_ITEMS = """
local items, temporary = KEYS[2], KEYS[3]
"""

LIST_SIZE = Script.of("return redis.call('LLEN', KEYS[2])")

LIST_READ = Script.of("return {types, redis.call('LRANGE', KEYS[2], ARGV[1], ARGV[2])}")

LIST_VIEW = Script.of("return {types, redis.call('HGET', meta, 'version') or '0', redis.call('LLEN', KEYS[2])}")

LIST_READ_VIEW = Script.of("""
if (redis.call('HGET', meta, 'version') or '0') ~= ARGV[1] then return 0 end
return {types, redis.call('LRANGE', KEYS[2], ARGV[2], ARGV[3])}
""")

LIST_PIN = Script.of("""
local epoch = redis.call('HGET', meta, 'epoch') or '0'
redis.call('HSET', meta, 'pinned', epoch)
return {types, epoch, redis.call('LLEN', KEYS[2])}
""")

LIST_READ_PINNED = Script.of(f"""
-- ARGV: epoch, first and last position.
local items = KEYS[2]
if (redis.call('HGET', meta, 'epoch') or '0') ~= ARGV[1] then items = items .. ':' .. ARGV[1] end
if redis.call('EXISTS', items) == 0 then return redis.error_reply('{LOST}') end
return {{types, redis.call('LRANGE', items, ARGV[2], ARGV[3])}}
""")

LIST_EXTEND = Script.of(
    CHUNKS,
    """
-- ARGV: types seen, types now, items.
if types ~= ARGV[1] then return 0 end
if types ~= ARGV[2] then redis.call('HSET', meta, 'types', ARGV[2]) end
in_chunks('RPUSH', KEYS[2], ARGV, 3)
redis.call('HINCRBY', meta, 'version', 1)
return 1
""",
)

LIST_SPLICE = Script.of(
    _ITEMS,
    CHUNKS,
    _KEEP,
    """
-- Replace a stretch of the list that the caller saw. ARGV: version seen, types seen, types now, start, stop, and the
-- new items packed.
if (redis.call('HGET', meta, 'version') or '0') ~= ARGV[1] or types ~= ARGV[2] then return 0 end
local size, start, stop = redis.call('LLEN', items), tonumber(ARGV[4]), tonumber(ARGV[5])
local new, at = {}, 1
while at <= #ARGV[6] do new[#new + 1], at = struct.unpack('>I4c0', ARGV[6], at) end

if start == size then
  in_chunks('RPUSH', items, new)
else
  keep()
  if #new == stop - start then
    for i = 1, #new do redis.call('LSET', items, start + i - 1, new[i]) end
  elseif size - stop <= start then
    local tail = redis.call('LRANGE', items, stop, -1)
    if start == 0 then redis.call('UNLINK', items) else redis.call('LTRIM', items, 0, start - 1) end
    in_chunks('RPUSH', items, new)
    in_chunks('RPUSH', items, tail)
  else
    local head = start == 0 and {} or redis.call('LRANGE', items, 0, start - 1)
    redis.call('LTRIM', items, stop, -1)
    for _, item in ipairs(new) do head[#head + 1] = item end
    local reversed = {}
    for i = #head, 1, -1 do reversed[#reversed + 1] = head[i] end
    in_chunks('LPUSH', items, reversed)
  end
end
if types ~= ARGV[3] then redis.call('HSET', meta, 'types', ARGV[3]) end
redis.call('HINCRBY', meta, 'version', 1)
return 1
""",
)

LIST_PUBLISH = Script.of(
    _ITEMS,
    CHUNKS,
    _KEEP,
    f"""
-- Append what tasks have staged. KEYS: meta, items, temporary, jobs, then the staged lists.
-- ARGV: types seen, types now, job, epoch, 1 if the job has no name, replace, then the size of each staged list.
-- Returns 1, or 0 if the types are not what the caller saw.
if tonumber(redis.call('HGET', KEYS[4], ARGV[3]) or '0') >= tonumber(ARGV[4]) then return 1 end
if types ~= ARGV[1] then return 0 end
for at = 5, #KEYS do
  if redis.call('LLEN', KEYS[at]) ~= tonumber(ARGV[at + 2]) then return redis.error_reply('{LOST}') end
end
if ARGV[6] == '1' then
  keep()
  redis.call('UNLINK', items)
end
for at = 5, #KEYS do
  if redis.call('EXISTS', items) == 0 then
    redis.call('RENAME', KEYS[at], items)
    redis.call('PERSIST', items)
  else
    for from = 0, tonumber(ARGV[at + 2]) - 1, 4000 do
      redis.call('RPUSH', items, unpack(redis.call('LRANGE', KEYS[at], from, from + 3999)))
    end
    redis.call('UNLINK', KEYS[at])
  end
  redis.call('ZREM', temporary, KEYS[at])
end
if types ~= ARGV[2] then redis.call('HSET', meta, 'types', ARGV[2]) end
redis.call('HINCRBY', meta, 'version', 1)
redis.call('HSET', KEYS[4], ARGV[3], ARGV[4])
if ARGV[5] == '1' then redis.call('EXPIRE', KEYS[4], {KEEP_SECONDS}) end
return 1
""",
)
