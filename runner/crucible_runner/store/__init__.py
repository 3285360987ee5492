"""The object store: its interface, a folder, S3, and the transfer of large objects."""
