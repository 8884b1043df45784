"""The parts that all storages share: options, encoded entries, rows, files of state, and the checks of stored data."""
