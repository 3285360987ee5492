"""Runs on an MLflow tracking server, found by a tag that the program's own `start_run` gives them."""

import base64
import http.client
import json
import os
import re
import ssl
import urllib.error
import urllib.request
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional
from urllib.parse import unquote, urlsplit, urlunsplit

from ..http_requests import USER_AGENT
from .runs import MLFLOW, TrackedRun

JOB_TAG = "crucible.job"
ATTEMPT_TAG = "crucible.attempt"
_PARENT_TAG = "mlflow.parentRunId"
_TIMEOUT_SECONDS = 5.0
_ANSWER_BYTES_MAX = 16 * 1024 * 1024
_PAGES_MAX = 20
_EXPERIMENTS_PER_PAGE = 1000
_EXPERIMENTS_PER_SEARCH = 100
_RUNS_PER_PAGE = 100
_PLAIN = r"[\w-]{1,128}"
_YES = ("true", "1")
# Ways to log in that need libraries or files of the program.
_OTHER_LOGINS = ("MLFLOW_TRACKING_AUTH", "MLFLOW_TRACKING_AWS_SIGV4", "MLFLOW_TRACKING_CLIENT_CERT_PATH")


class NoAnswer(Exception):
    """Why the server cannot be asked, as the end of a sentence."""


class Server(NamedTuple):
    """A tracking server and how to log in, as MLflow reads them from the environment."""

    address: str
    """Without user and password."""
    headers: Dict[str, str]
    context: Optional[ssl.SSLContext]


def tagged_context(own: Mapping[str, str], job: str, attempt: int) -> Dict[str, str]:
    """Returns the variable by which MLflow tags new runs with the job; none if the job's own value is not a JSON object."""
    tags = {JOB_TAG: job, ATTEMPT_TAG: str(attempt)}
    try:
        present = json.loads(own.get("MLFLOW_RUN_CONTEXT") or "{}")
    except ValueError:
        return {}
    return {"MLFLOW_RUN_CONTEXT": json.dumps(dict(present, **tags))} if isinstance(present, dict) else {}


def server_of(own: Mapping[str, str], work: str) -> Optional[Server]:
    """Returns the server that the variables name; None without one. Raises `NoAnswer` for one that the runner cannot ask."""
    uri = own.get("MLFLOW_TRACKING_URI", "")
    if uri == "":
        return None
    if not uri.lower().startswith(("http://", "https://")):
        if uri.split(":")[0] in ("databricks", "databricks-uc", "uc"):
            raise NoAnswer("it is at Databricks, which needs MLflow itself")
        raise NoAnswer("MLFLOW_TRACKING_URI is not the address of a server: runs on this machine are lost with it")
    others = [name for name in _OTHER_LOGINS if own.get(name, "").lower() not in ("", "false", "0")]
    if others:
        raise NoAnswer("the login by %s needs MLflow itself" % others[0])
    try:
        parts = urlsplit(uri)
        host = parts.hostname or ""
        port = "" if parts.port is None else ":%d" % parts.port
    except ValueError as error:
        # The reason may quote a part of the address, such as a password.
        raise NoAnswer("MLFLOW_TRACKING_URI is not an address") from error
    shown = "[%s]" % host if ":" in host else host
    address = urlunsplit((parts.scheme, shown + port, parts.path.rstrip("/"), "", ""))
    headers = {"User-Agent": USER_AGENT, "Content-Type": "application/json"}
    login = _login(own, parts.username, parts.password)
    if login is not None:
        headers["Authorization"] = login
    workspace = own.get("MLFLOW_WORKSPACE")
    if workspace:
        headers["X-MLFLOW-WORKSPACE"] = workspace
    return Server(address, headers, _context(own, work) if parts.scheme.lower() == "https" else None)


def _login(own: Mapping[str, str], user: Optional[str], password: Optional[str]) -> Optional[str]:
    name, secret = own.get("MLFLOW_TRACKING_USERNAME"), own.get("MLFLOW_TRACKING_PASSWORD")
    if not (name and secret) and user is not None:
        name, secret = unquote(user), unquote(password or "")
    if name and secret is not None:
        pair = ("%s:%s" % (name, secret)).encode("utf-8")
        return "Basic " + base64.b64encode(pair).decode("ascii")
    token = own.get("MLFLOW_TRACKING_TOKEN")
    return "Bearer " + token if token else None


def _context(own: Mapping[str, str], work: str) -> ssl.SSLContext:
    certificates = own.get("MLFLOW_TRACKING_SERVER_CERT_PATH")
    try:
        context = ssl.create_default_context(cafile=os.path.join(work, certificates) if certificates else None)
    except OSError as error:
        raise NoAnswer("MLFLOW_TRACKING_SERVER_CERT_PATH cannot be read: %s" % error.strerror) from error
    if own.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in _YES:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def runs_of(server: Server, job: str) -> List[TrackedRun]:
    """Returns the job's top-level runs that are not deleted, oldest first. Raises `NoAnswer`."""
    try:
        return _search(server, job)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NoAnswer("its answer is not that of an MLflow server") from error


def _search(server: Server, job: str) -> List[TrackedRun]:
    found: Dict[str, Any] = {}
    ids = [each["experiment_id"] for each in _pages(server, "experiments", {"max_results": _EXPERIMENTS_PER_PAGE})]
    for at in range(0, len(ids), _EXPERIMENTS_PER_SEARCH):
        wanted = {
            "experiment_ids": ids[at : at + _EXPERIMENTS_PER_SEARCH],
            "filter": "tags.`%s` = '%s'" % (JOB_TAG, job),
            "max_results": _RUNS_PER_PAGE,
            "run_view_type": "ACTIVE_ONLY",
        }
        for run in _pages(server, "runs", wanted):
            if not all(re.fullmatch(_PLAIN, run["info"][name]) for name in ("run_id", "experiment_id")):
                raise ValueError("not an id of MLflow")
            tags = {tag.get("key") for tag in run.get("data", {}).get("tags", [])}
            if _PARENT_TAG not in tags:
                found[run["info"]["run_id"]] = run["info"]
    oldest_first = sorted(found.values(), key=lambda info: int(info.get("start_time") or 0))
    return [
        TrackedRun(
            MLFLOW,
            info["run_id"],
            "%s/#/experiments/%s/runs/%s" % (server.address, info["experiment_id"], info["run_id"]),
        )
        for info in oldest_first
    ]


def _pages(server: Server, what: str, wanted: Dict[str, Any]) -> Iterator[Any]:
    token: Optional[str] = None
    for _ in range(_PAGES_MAX):
        asked = wanted if token is None else dict(wanted, page_token=token)
        answer = _ask(server, "/api/2.0/mlflow/%s/search" % what, asked)
        yield from answer.get(what, [])
        token = answer.get("next_page_token")
        if not token:
            return


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The login must not go to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _ask(server: Server, path: str, wanted: Dict[str, Any]) -> Any:
    body = json.dumps(wanted).encode("utf-8")
    request = urllib.request.Request(server.address + path, body, server.headers)
    handlers: List[urllib.request.BaseHandler] = [_NoRedirect()]
    if server.context is not None:
        handlers.append(urllib.request.HTTPSHandler(context=server.context))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=_TIMEOUT_SECONDS) as response:
            answer = response.read(_ANSWER_BYTES_MAX + 1)
        if len(answer) > _ANSWER_BYTES_MAX:
            raise NoAnswer("its answer is too long")
        return json.loads(answer.decode("utf-8", "replace"))
    except urllib.error.HTTPError as error:
        error.close()
        raise NoAnswer("it answers %d to a search" % error.code) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise NoAnswer("it does not answer: %s" % reason) from error
    except ValueError as error:
        # The reason may quote the login.
        raise NoAnswer("its answer is not JSON, or the login has characters that a request cannot have") from error
