"""The ground of all storages: options, encoded entries, rows, and the checks of stored data."""
