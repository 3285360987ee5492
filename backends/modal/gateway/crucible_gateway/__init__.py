"""The Modal gateway of Crucible: starts, reads and ends one Sandbox per attempt. Only `on_modal` imports `modal`."""

# Version of the HTTP contract. Raised by changes that an older caller cannot work with.
API = 1

# Features of this gateway beyond the common calls of the API. Callers read them in `/v1/health`.
FEATURES = ("logs", "requirements", "volumes")
