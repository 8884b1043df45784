"""Joins of two inputs: by key, by position, by an interval of time, or by the nearest item.

`pairs` has joins, cogroups and zips of the two inputs of one task, `hash` the tables of their keys in memory and on
disk, `columns` the same for keys in columns, `lookup` the table that a hash join broadcasts. `intervals` joins streams
by event time, `nearest` by a distance. `key_index` is a hash table in arrays.
"""
