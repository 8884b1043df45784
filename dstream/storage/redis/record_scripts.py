"""What runs inside the server for records: each is a hash, and a sorted set has the names of all."""

from __future__ import annotations

from dstream.storage.record_names import MOST_BYTES
from dstream.storage.redis.scripts import Script

__all__ = ["INDEX", "NAMES", "READ", "REMOVE", "WRITE", "record_key"]

INDEX = "{dstream:records}:index"
"""The names of all records. The braces keep it, and all records, on one node, so that a script may change both."""


def record_key(name: str) -> str:
    """Return the key of the hash of a record."""
    return f"{{dstream:records}}:r:{name}"


READ = Script.bare(f"""
-- Give the fields of a record, and whether its name is known; what is too large for a record is not handed over.
local fields = redis.call('HMGET', KEYS[1], 'version', 'token', 'sum')
local size = redis.call('HSTRLEN', KEYS[1], 'data')
local data = size <= {MOST_BYTES} and redis.call('HGET', KEYS[1], 'data')
local known = redis.call('ZSCORE', KEYS[2], ARGV[1]) and 1 or 0
return {{fields[1], fields[2], fields[3], data, redis.call('EXISTS', KEYS[1]), known, size}}
""")

WRITE = Script.bare("""
-- Replace a record that has the version before. A command that was sent twice meets its own token.
local known = redis.call('ZSCORE', KEYS[2], ARGV[1]) and 1 or 0
if redis.call('EXISTS', KEYS[1]) ~= known then return -1 end
local there = redis.call('HMGET', KEYS[1], 'version', 'token')
if there[1] == ARGV[2] and there[2] == ARGV[3] then return 1 end
if (there[1] or '0') ~= ARGV[6] then return 0 end
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'token', ARGV[3], 'sum', ARGV[4], 'data', ARGV[5])
return 1
""")

NAMES = Script.bare("return redis.call('ZRANGEBYLEX', KEYS[1], '[' .. ARGV[1], '(' .. ARGV[1] .. '\\255')")

REMOVE = Script.bare("""
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('UNLINK', KEYS[1])
return 1
""")
