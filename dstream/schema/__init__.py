"""Types as values and as columns: the classes that records become, and the columns that their fields fill.

`types`, `scalar_types`, `containers` and `record_types` have the family of column types; `type_inference` makes them of
annotations and values, for files, tables of Arrow and collections. `columns` has the columns of files of items,
`tables` makes tables of Arrow of items. For what is read: `record_decoders` makes `decoders` of a class, `factories`
generates their functions, `text_forms` has the text forms, `encoders` the form in JSON, `arrow_decoders` and `times`
make Python values of Arrow's, `classes` looks up the classes that stored data name. `avro` checks the schemas of Avro
files, and bounds their records.
"""
