"""A bucket of S3 as the store, and the requests that it takes."""
