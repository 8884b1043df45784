"""Operations: the calls of the user, and the operations of engines for them.

`streams` contains the base classes and the operations on one stream, `sort_limit` those on order and length,
`elementwise` those on single items, `keyed` those by key, `pairs` those on two streams, `unbounded` those without an
end, `ends` the ends of plans. `calls` has the user's calls that are rewritten as other operations.
"""
