"""Files of this machine, of object stores and behind fsspec: found, opened, written and replaced.

`folders` has the one contract of all places for files, and what storages and sinks need beside it: `local` and
`object_folder` have the folders of storages, `output_folders` those of sinks. `checksums` has those of the files of
storages. Sources find files by `discovery` and open them by `access`; `urls` opens the URLs of fsspec, and
`fsspec_adapter` reaches object stores where fsspec lacks a package for them.
"""
