"""What all HTTP requests of the runner share."""

USER_AGENT = "crucible-runner"
# Answers after which the same request may succeed later.
RETRYABLE_STATUS = (408, 425, 429, 500, 502, 503, 504)
