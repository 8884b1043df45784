"""Types as values and as columns: the classes that records become, and the columns that their fields fill.

For stored keys and values: `stored_types` has the contract and the scalars, `hints` makes types of annotations and of
values, `classes` looks up the classes that stored data names. For files that are read: `records` makes `decoders` of a
class, `factories` generates their functions. For files that are written: `columns` chooses the columns of items,
`file_column_types` has their types. For Arrow: `arrow` and `times` make Python values of it, `tables` makes tables of
items. `avro` and `avro_bounds` check the schemas of Avro files.
"""
