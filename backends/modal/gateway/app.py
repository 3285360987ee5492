"""The gateway as a Modal app: `modal deploy app.py`, or `crucible setup modal`.

Two Functions: `web` answers HTTP requests that carry a proxy token, and `launch_job` creates Sandboxes. Sandboxes have a separate app, so
that ending them cannot end anything of another app. Both Functions scale to zero.
"""

import os

import modal

from crucible_gateway import known_rates, policy
from crucible_gateway.names import names_from

NAMES = names_from(os.environ)
POLICY = policy.from_environment()

app = modal.App(NAMES.app, tags={"component": "crucible-gateway"})
image = (
    modal.Image.debian_slim(python_version="3.12")
    .uv_pip_install("fastapi==0.165.0")
    .env({policy.VARIABLE: policy.dump(POLICY), **NAMES.variables(), **known_rates.variables()})
    .add_local_python_source("crucible_gateway")
)

# `Sandbox.create` with a GPU returns when Modal has scheduled it, after 21 minutes at most; building a large image comes before that.
LAUNCH_TIMEOUT_S = 60 * 60


@app.function(image=image, timeout=LAUNCH_TIMEOUT_S, max_containers=8, retries=0, cpu=0.25, memory=512)
@modal.concurrent(max_inputs=50)
async def launch_job(key: str, request: dict) -> str:
    from crucible_gateway.documents import JobRequest
    from crucible_gateway.launcher import launch
    from crucible_gateway.on_modal import ModalRuntime

    return await launch(ModalRuntime(NAMES), key, JobRequest.model_validate(request))


@app.function(image=image, min_containers=0, max_containers=2, scaledown_window=120, timeout=60, cpu=0.25, memory=512)
@modal.concurrent(max_inputs=100)
@modal.asgi_app(label=NAMES.label, requires_proxy_auth=True)
def web():
    from crucible_gateway.on_modal import ModalRuntime
    from crucible_gateway.web import build

    return build(lambda: ModalRuntime(NAMES), POLICY, known_rates.read())
