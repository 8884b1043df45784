"""Files as sources and sinks: their formats, readers and writers, and the publication of a job's files.

Reading:

- `sources`: the base of the sources: options, splits, bad records, and files read as one item.
- `splits`: the division of files among tasks.
- `lines`: lines in an encoding, in blocks.
- `text`: lines of text and of JSON as sources, and lines appended to files of a folder.
- `text_columns`: blocks of lines as rows in columns.
- `json_lines`: lines of JSON, as values and as items of classes.
- `json_columns`: blocks of JSON lines as columns.
- `csv`, `csv_lines`: rows of CSV as items, and blocks of their lines.
- `csv_columns`: blocks of CSV as columns.
- `parquet`, `open_parquet`: rows of Parquet, and batches of its row groups within a memory bound.
- `avro`, `avro_blocks`: records of Avro, and its blocks, decompressed.

Writing:

- `sinks`: the targets and jobs of sinks, in the driver.
- `writers`: the staged files of the tasks.
- `publication`: the state of an output folder, receipts of staged files, and their commit.
- `format_choice`: the choice of the format by argument or by suffix.
- `formats`: the contract of a format, compression, and lines of text and of JSON.
- `csv_output`: lines of CSV.
- `columnar_output`: Parquet and Avro.
- `delta`: Delta tables.
"""
