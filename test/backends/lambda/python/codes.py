"""Prints every error code of a client that was generated from Lambda's OpenAPI document."""

import inspect
import json
import re
import sys

from lambda_ai_cloud_api_client import models

json.dump(
    sorted(
        {
            code
            for name, model in vars(models).items()
            if name.startswith("ApiError")
            for code in re.findall(r'code != "([^"]+)"', inspect.getsource(model))
        }
    ),
    sys.stdout,
)
