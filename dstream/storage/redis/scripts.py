"""What runs inside the server: Lua scripts, each of which runs alone. `map_scripts` and `list_scripts` have more.

Each gets the meta hash of a collection as its first key and begins by looking whether it is there: a destroyed
collection has none. Long arguments come packed: numbers and texts with their lengths, read by `struct.unpack`.
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
    "LOST",
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
"""How long staged data and pinned lists stay if nobody removes them."""


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script and the digest by which the server knows it."""

    source: str
    digest: str

    @staticmethod
    def of(*parts: str) -> Script:
        """Return a script that first makes sure that its collection is there."""
        return Script.bare(_HEAD, *parts)

    @staticmethod
    def bare(*parts: str) -> Script:
        """Return a script."""
        source = "".join(parts)
        return Script(source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


_HEAD = f"""
local meta = KEYS[1]
local types = redis.call('HGET', meta, 'types')
if not types then return redis.error_reply('{DESTROYED}') end
"""

# Lua hands over at most some thousand arguments at a time.
CHUNKS = """
local function in_chunks(command, key, values)
  for at = 1, #values, 4000 do
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

# What stands in a set of keys is input: only keys of the collection are removed.
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
