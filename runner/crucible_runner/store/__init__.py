"""The object store: its interface, a folder, S3, and moving large objects."""
