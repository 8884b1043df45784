"""Files of this machine, of object stores and behind fsspec: found, opened, written and replaced.

Sources find files by `discovery` and open them by `access`; `urls` opens the URLs of fsspec. Sinks publish files in the
folders of `output_folders` and `fsspec_outputs`. Storages keep tables in `folders`, which `local` and `object_store`
implement; `checksums` has those of their files. `object_files` reaches object stores where fsspec lacks a package for
them.
"""
