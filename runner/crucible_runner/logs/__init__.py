"""The log of an attempt: reading, masking and sending lines."""
