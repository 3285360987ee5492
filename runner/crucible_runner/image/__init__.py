"""Container images: credentials and pulling."""
