"""The Modal gateway of Crucible: starts, reads and ends one Sandbox per attempt. Only `on_modal` imports `modal`."""

# Version of the HTTP contract. Raised by changes that an older caller cannot work with.
API = 1

# What this gateway can do beyond the calls that every gateway of this API has. Callers read it in `/v1/health`.
FEATURES = ("logs", "requirements", "volumes")
