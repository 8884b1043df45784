"""Files of this machine, of object stores and of fsspec: found, opened, written and replaced.

`folders` has the common contract of all folders, and the extensions for storages and sinks: `local` and `object_folder`
implement folders of storages, `output_folders` folders of sinks. `checksums` has the checksums of the files of
storages. Sources find files by `discovery` and open them by `access`; `urls` opens the URLs of fsspec, and
`fsspec_adapter` reaches object stores where fsspec lacks a package for them.
"""
