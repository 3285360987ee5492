"""The location of S3 and the credentials for it: from the environment of the job, and from the AWS files of this machine's user."""

import configparser
import os
from typing import Dict, Mapping, NamedTuple, Optional

from ...endings import Failed
from .sigv4 import Credentials

_REGION_DEFAULT = "us-east-1"


class Access(NamedTuple):
    credentials: Optional[Credentials]
    """None for anonymous requests."""
    region: str
    endpoint: Optional[str]
    """A server other than AWS, such as `http://127.0.0.1:9000`."""

    @property
    def words(self) -> str:
        """Describes, for people, how the requests are signed."""
        if self.credentials is None:
            return "without credentials: none in the job's env or secrets, nor in ~/.aws/credentials"
        return "signed with " + self.credentials.origin


def find_access(job: Mapping[str, str], home: Optional[str]) -> Access:
    """`job` has the job's variables and secrets; `home` is the folder with `.aws`, if it exists. Raises `Failed('no-input')` for half of a
    pair of keys."""
    profile = job.get("AWS_PROFILE") or "default"
    told = _read_profile(job, home, profile)
    return Access(
        _job_credentials(job) or _profile_credentials(told, profile),
        job.get("AWS_REGION") or job.get("AWS_DEFAULT_REGION") or told.get("region") or _REGION_DEFAULT,
        (job.get("AWS_ENDPOINT_URL_S3") or job.get("AWS_ENDPOINT_URL") or "").rstrip("/") or None,
    )


def _job_credentials(job: Mapping[str, str]) -> Optional[Credentials]:
    key_id, secret = job.get("AWS_ACCESS_KEY_ID"), job.get("AWS_SECRET_ACCESS_KEY")
    if not key_id and not secret:
        return None
    if not key_id or not secret:
        missing = "AWS_SECRET_ACCESS_KEY" if key_id else "AWS_ACCESS_KEY_ID"
        raise Failed("no-input", "the job has one AWS key but not the other: add %s to its secrets" % missing)
    origin = "AWS_ACCESS_KEY_ID from the job's env or secrets"
    return Credentials(key_id, secret, job.get("AWS_SESSION_TOKEN") or None, origin)


def _profile_credentials(told: Mapping[str, str], profile: str) -> Optional[Credentials]:
    key_id, secret = told.get("aws_access_key_id"), told.get("aws_secret_access_key")
    if not key_id or not secret:
        return None
    origin = "the profile %s of ~/.aws/credentials" % profile
    return Credentials(key_id, secret, told.get("aws_session_token") or None, origin)


def _read_profile(job: Mapping[str, str], home: Optional[str], profile: str) -> Dict[str, str]:
    """Returns a profile's settings from both files; the credentials file takes precedence."""
    folder = os.path.join(home, ".aws") if home else ""
    in_config = profile if profile == "default" else "profile " + profile
    told: Dict[str, str] = {}
    for variable, name, section in (
        ("AWS_CONFIG_FILE", "config", in_config),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile),
    ):
        path = job.get(variable) or (os.path.join(folder, name) if folder else "")
        parser = configparser.RawConfigParser(strict=False)
        try:
            if path and parser.read(path, encoding="utf-8") and parser.has_section(section):
                told.update(parser.items(section))
        except (configparser.Error, UnicodeDecodeError) as error:
            raise Failed("no-input", "the file %s is invalid: %s" % (path, error)) from error
    return told
