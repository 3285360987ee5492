"""Signs the return value of a function job, so that its sender knows which attempt wrote it."""

import hashlib
import hmac
from typing import Dict, List, Optional, Tuple

# Clients of the Python package send this secret. No command of the job gets it, so that no program can sign in the runner's place.
KEY = "FUNCTION_RESULT_SIGNING_KEY"
FOLDER = "crucible-function-result/"
VALUE = FOLDER + "value"
SIGNATURE = FOLDER + "signature"


def without_key(secrets: Dict[str, str]) -> Tuple[Dict[str, str], Optional[str]]:
    """Returns the secrets of the commands, and the key of the runner, if the order has one."""
    return {name: value for name, value in secrets.items() if name != KEY}, secrets.get(KEY)


def signature_of(key: str, attempt: int, kept: List[dict]) -> Optional[bytes]:
    """Returns the signature of the value among the kept artifacts, None without a value."""
    digest = next((each["sha256"] for each in kept if each["path"] == VALUE), None)
    if digest is None:
        return None
    text = "crucible-function-result\n%d\n%s" % (attempt, digest)
    return hmac.new(key.encode("utf-8"), text.encode("ascii"), hashlib.sha256).hexdigest().encode("ascii")
