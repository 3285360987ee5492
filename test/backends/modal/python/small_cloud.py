"""Calls of the small cloud for the control plane of the tests."""

import json

import aiohttp


class Refused(Exception):
    """The small cloud refuses a call; `code` is the name of a gRPC status."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        self.message = message


class SmallCloud:
    def __init__(self, endpoint, key, session):
        self._headers = {"authorization": "Bearer " + key}
        self._endpoint = endpoint
        self._session: aiohttp.ClientSession = session

    async def call(self, method, path, body=None):
        """Returns the answer. Raises `Refused`, and `aiohttp.ClientError` when the answer is lost."""
        async with self._session.request(method, self._endpoint + path, json=None if method in ("GET", "DELETE") else body or {}, headers=self._headers) as answer:
            text = await answer.text()
            found = json.loads(text) if text else {}
            if answer.status >= 400:
                raise Refused(found.get("code", "INTERNAL"), found.get("message", text))
            return found

    async def find(self, kind, name):
        return next((each for each in (await self.call("GET", "/" + kind))[kind] if each["name"] == name), None)
