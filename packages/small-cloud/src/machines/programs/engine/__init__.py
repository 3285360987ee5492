"""The engine behind a machine's `docker`."""
