"""The parts that all storages share.

- `options`: options and names of collections and records, and the errors of vanished ones.
- `encoded_entries`: entries and items in encoded form.
- `named_folders`: folders whose errors name the collection, trust in pickles, and the files of the state of a job.
"""
