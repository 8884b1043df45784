"""Lua scripts of lists. Keys: meta, items, temporary; a job has its own first ones. See `scripts`."""

from __future__ import annotations

from dstream.storage.redis.scripts import CHUNKS, KEEP_SECONDS, LOST, Script

__all__ = ["EXTEND", "PIN", "PUBLISH", "READ", "READ_PINNED", "READ_VIEW", "SIZE", "SPLICE", "VIEW"]

# Splits pin an epoch. Appending leaves it, since splits know their places; any other change first keeps a copy
# if somebody pinned it.
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

SIZE = Script.of("return redis.call('LLEN', KEYS[2])")

READ = Script.of("return {types, redis.call('LRANGE', KEYS[2], ARGV[1], ARGV[2])}")

VIEW = Script.of("return {types, redis.call('HGET', meta, 'version') or '0', redis.call('LLEN', KEYS[2])}")

READ_VIEW = Script.of("""
if (redis.call('HGET', meta, 'version') or '0') ~= ARGV[1] then return 0 end
return {types, redis.call('LRANGE', KEYS[2], ARGV[2], ARGV[3])}
""")

PIN = Script.of("""
local epoch = redis.call('HGET', meta, 'epoch') or '0'
redis.call('HSET', meta, 'pinned', epoch)
return {types, epoch, redis.call('LLEN', KEYS[2])}
""")

READ_PINNED = Script.of(f"""
-- ARGV: epoch, first and last position.
local items = KEYS[2]
if (redis.call('HGET', meta, 'epoch') or '0') ~= ARGV[1] then items = items .. ':' .. ARGV[1] end
if redis.call('EXISTS', items) == 0 then return redis.error_reply('{LOST}') end
return {{types, redis.call('LRANGE', items, ARGV[2], ARGV[3])}}
""")

EXTEND = Script.of(
    CHUNKS,
    """
-- ARGV: types seen, types now, items.
if types ~= ARGV[1] then return 0 end
if types ~= ARGV[2] then redis.call('HSET', meta, 'types', ARGV[2]) end
for at = 3, #ARGV do redis.call("RPUSH", KEYS[2], ARGV[at]) end
redis.call('HINCRBY', meta, 'version', 1)
return 1
""",
)

SPLICE = Script.of(
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

PUBLISH = Script.of(
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
