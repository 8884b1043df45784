"""Files as sources and sinks: their formats, readers and writers, and the publication of a job's files.

Reading: `sources` has the contract of a format, `splits` divides the work among tasks. `lines` and `text` read lines,
`csv` and `csv_lines` rows, `parquet` and `open_parquet` Parquet, `avro` and `avro_blocks` Avro.
Writing: `sinks` has the job in the driver, `writers` the tasks' part, `publication` the commit. `format_choice` chooses
among `formats` (lines, those of CSV in `csv_output`), `columnar_output` (Parquet, Avro) and `delta`.
"""
