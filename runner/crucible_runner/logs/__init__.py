"""The log of an attempt: reading, redacting and sending lines."""
