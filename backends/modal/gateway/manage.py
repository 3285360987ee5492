"""Deploys and removes the gateway with the user's own Modal credentials, for `crucible setup modal`.

`manage.py PREFIX COMMAND`, one line of JSON on stdout: `survey`, `deploy`, `stop`, `create-token`, `delete-token ID`. Modal reads its credentials from the
environment or from `~/.modal.toml`. The secret of a new token is printed here only, and never anywhere else.
"""

import json
import os
import subprocess
import sys

from crucible_gateway.names import PREFIX, names_from


def survey(names):
    import modal

    workspace = modal.Workspace.from_context().hydrate()
    tokens = [token.token_id for token in workspace.proxy_tokens.list() if token.name == names.app]
    try:
        url = modal.Function.from_name(names.app, "web").hydrate().get_web_url()
    except modal.exception.NotFoundError:
        url = None
    return {"workspace": workspace.name, "environment": _environment(), "sdk": modal.__version__, "url": url, "tokens": tokens}


def deploy(_names):
    _tell_rates()
    import app

    app.app.deploy()
    return {"url": app.web.get_web_url()}


def _tell_rates():
    """Gives the deployment the workspace's rates; without them, the gateway asks Modal itself."""
    import modal

    from crucible_gateway import known_rates

    try:
        rates = modal.Workspace.from_context().billing.rates()
    except modal.exception.Error as error:
        print("the workspace's rates are unknown: %s" % error, file=sys.stderr)
        return
    os.environ[known_rates.VARIABLE] = known_rates.dump(rates)


def stop(names):
    command = [sys.executable, "-m", "modal", "app", "stop", names.app, "--yes"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0 and "already stopped" not in done.stdout:
        raise RuntimeError(done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "modal app stop failed")
    return {}


def create_token(names):
    import modal

    token = modal.Workspace.from_context().proxy_tokens.create(name=names.app)
    return {"key": token.token_id, "secret": token.token_secret}


def delete_token(_names, token_id):
    import modal

    try:
        modal.Workspace.from_context().proxy_tokens.delete(token_id)
    except modal.exception.NotFoundError:
        pass  # somebody else has deleted it
    return {}


def _environment():
    import modal

    return modal.config.config.get("environment") or "main"


# `Workspace`, which knows tokens and rates, came with this version of the client.
CLIENT_AT_LEAST = (1, 6)


class OutdatedClient(Exception):
    pass


def check_client():
    import modal

    found = tuple(int(part) for part in modal.__version__.split(".")[:2])
    if found < CLIENT_AT_LEAST:
        raise OutdatedClient("modal %s, but set-up needs %d.%d or newer" % (modal.__version__, *CLIENT_AT_LEAST))


COMMANDS = {"survey": survey, "deploy": deploy, "stop": stop, "create-token": create_token, "delete-token": delete_token}


def main(arguments):
    # Modal prints its progress: only the answer goes to the real stdout.
    answer, sys.stdout = sys.stdout, sys.stderr
    prefix, command, *rest = arguments
    os.environ[PREFIX] = prefix
    try:
        check_client()
        found = COMMANDS[command](names_from(os.environ), *rest)
    except ModuleNotFoundError as error:
        found = {"error": {"type": "ModuleNotFoundError", "message": str(error)}}
    except Exception as error:
        found = {"error": {"type": type(error).__name__, "message": str(error)}}
    print(json.dumps(found), file=answer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
