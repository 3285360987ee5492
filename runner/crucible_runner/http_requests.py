"""Helpers shared by all HTTP requests of the runner."""

USER_AGENT = "crucible-runner"
# Status codes after which the same request may succeed later.
RETRYABLE_STATUS = (408, 425, 429, 500, 502, 503, 504)
