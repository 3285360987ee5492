"""The command line."""

import argparse
import re
from typing import List

from .process.user import parse_user

_DESCRIPTION = "The program that runs one attempt of a Crucible job on a machine (docs/reference/runner-protocol.md)."


def main(arguments: List[str]) -> int:
    """`arguments` begins with the program's own path. Returns the exit code."""
    if arguments[1:2] == ["leash"]:
        from .process.leash import main as leash

        return leash(arguments[2:])
    if arguments[1:2] == ["machine-timer"]:
        from .machine_timer import main as machine_timer

        return machine_timer(*arguments[2:])
    options = _parser().parse_args(arguments[1:])
    from .process.guard import Options, Work, run_guarded

    return run_guarded(
        Options(
            store=options.store,
            job=options.job,
            attempt=options.attempt,
            root=options.root,
            secret_key_file=options.secret_key_file,
            grant_file=options.grant_file,
            power_off=options.power_off,
            notice_file=options.notice_file,
            has_notice_kill=options.notice_kill,
            user=options.user,
            job_root=options.job_root,
        ),
        Work(_run, _keep_time),
        arguments,
    )


def _run(options, post) -> int:
    # Only the runner itself imports everything, so that the guard stays small.
    from .runner import run

    return run(options, post)


def _keep_time(options, post) -> int:
    from .timekeeper import keep_time

    return keep_time(options, post)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="crucible-runner", description=_DESCRIPTION)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run one attempt to its end")
    run.add_argument(
        "--store", required=True, metavar="URL", help="the object store, such as file:///srv/crucible or s3://bucket/prefix"
    )
    run.add_argument("--job", required=True, metavar="ID", type=_job_id, help="the job's id")
    run.add_argument(
        "--attempt", required=True, metavar="N", type=_number, help="the attempt's number, from 1"
    )
    run.add_argument("--root", required=True, metavar="DIR", help="the machine's own directory")
    run.add_argument(
        "--secret-key-file", metavar="FILE", help="the key of the attempt's secrets, 64 hexadecimal digits"
    )
    run.add_argument(
        "--grant-file", metavar="FILE", help="credentials for the store to begin with (a grant), where it asks for some"
    )
    run.add_argument(
        "--power-off", metavar="COMMAND", help="run by sh after the attempt, whatever its outcome"
    )
    run.add_argument(
        "--notice-file", metavar="FILE", help="file of the provider's notice, instead of the one in the order"
    )
    run.add_argument(
        "--user", metavar="UID", type=_user, help="run the job's commands as this user and group; only root can (Linux)"
    )
    run.add_argument(
        "--job-root", metavar="DIR", help="the job's directory on this machine, the same for all its attempts (default: the machine's own)"
    )
    run.add_argument(
        "--notice-kill", action="store_true", help="end everything at the time of the notice"
    )
    return parser


def _job_id(text: str) -> str:
    if re.fullmatch(r"[0-9a-z][0-9a-z-]*", text) is None:
        raise argparse.ArgumentTypeError(
            "invalid job id %r: use lower-case letters, digits and dashes" % text
        )
    return text


def _user(text: str) -> int:
    try:
        return parse_user(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error))


def _number(text: str) -> int:
    if re.fullmatch(r"[1-9]\d*", text) is None:
        raise argparse.ArgumentTypeError("%r must be a whole number of at least 1" % text)
    return int(text)
