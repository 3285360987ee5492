"""An S3 bucket as the store, and its requests."""
