"""Operations: the calls of the user, and the operations of engines for them.

`streams` contains what they have in common and the operations on one stream, `sort_limit` those on order and length,
`elementwise` those on single items, `keyed` those by key, `pairs` those on two streams, `unbounded` those without an
end, `ends` the ends of plans. `calls` has those of the user that are rewritten as other operations.
"""
