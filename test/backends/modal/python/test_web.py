"""The HTTP contract over Modal in memory: validation, what callers may name, and the committed OpenAPI document."""

import importlib.util
import json
import os
import unittest
import unittest.mock

from memory_runtime import GATEWAY, MemoryRuntime, request_of

HAS_FASTAPI = importlib.util.find_spec("fastapi") is not None


@unittest.skipUnless(HAS_FASTAPI, "no FastAPI")
class WebTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        from crucible_gateway.policy import Policy
        from crucible_gateway.web import build

        self.runtime = MemoryRuntime()
        self.policy = Policy(secrets=("hub",))
        self.app = build(lambda: self.runtime, self.policy)

    async def call(self, method, path, body=None):
        """Runs one request through the ASGI app."""
        path, _, query = path.partition("?")
        text = b"" if body is None else json.dumps(body).encode()
        sent = []

        async def receive():
            return {"type": "http.request", "body": text, "more_body": False}

        async def send(message):
            sent.append(message)

        headers = [(b"content-type", b"application/json")]
        scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": headers}
        await self.app({**scope, "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http"}, receive, send)
        answer = b"".join(message.get("body", b"") for message in sent)
        return sent[0]["status"], json.loads(answer) if answer else None

    async def submit(self, **fields):
        return await self.call("PUT", "/v1/jobs/a-1", request_of(**fields).model_dump())

    async def test_answers_of_a_submission(self):
        self.assertEqual((await self.submit())[0], 202)
        self.assertEqual((await self.submit())[0], 200)
        status, problem = await self.submit(memory_mib=4096)
        self.assertEqual((status, problem["code"]), (409, "key-reused"))
        self.runtime.now = 3_000_000
        status, problem = await self.call("PUT", "/v1/jobs/b-1", request_of().model_dump())
        self.assertEqual((status, problem["code"]), (410, "too-late"))

    async def test_wrong_fields_are_named_without_their_values(self):
        body = {**request_of().model_dump(), "timeout_s": 86401, "gpus": "canary"}
        status, problem = await self.call("PUT", "/v1/jobs/a-1", body)
        self.assertEqual((status, problem["code"]), (422, "invalid"))
        self.assertIn("body.timeout_s", problem["message"])
        self.assertIn("body.gpus", problem["message"])
        self.assertNotIn("canary", problem["message"])

    async def test_rates_of_the_deployment_serve_where_modal_tells_none(self):
        from crucible_gateway import known_rates
        from crucible_gateway.runtime import RuntimeFailure
        from crucible_gateway.web import build

        async def refused():
            raise RuntimeFailure("PermissionDeniedError", "not from inside a container")

        async def unreachable():
            raise RuntimeFailure("ConnectionError", "no route")

        with unittest.mock.patch.dict(os.environ, {known_rates.VARIABLE: known_rates.dump({"gpu_hour_cost_t4": 0.59})}):
            known = known_rates.read()
        self.runtime.rates = refused
        self.assertEqual((await self.call("GET", "/v1/offers"))[1]["type"], "PermissionDeniedError")
        self.app = build(lambda: self.runtime, self.policy, known)
        status, rates = await self.call("GET", "/v1/offers")
        self.assertEqual((status, rates["usd"], rates["observed_at_ms"]), (200, {"gpu_hour_cost_t4": "0.59"}, known.observed_at_ms))
        self.runtime.rates = unreachable
        self.assertEqual((await self.call("GET", "/v1/offers"))[0], 502)

    async def test_keys_that_are_no_names_are_refused(self):
        self.assertEqual((await self.call("GET", "/v1/jobs/A_1"))[0], 422)

    async def test_callers_name_only_what_the_deployment_allows(self):
        wrong = [
            {"image": {"reference": "registry.example/secret:1"}},
            {"image": {"reference": "docker.io.evil.example/x"}},
            {"secrets": ["aws-admin"]},
            {"image": {"reference": "python", "secret": "aws-admin"}},
            {"volumes": {"/data": "payroll"}},
        ]
        for fields in wrong:
            with self.subTest(fields):
                status, problem = await self.call("PUT", "/v1/jobs/a-1", {**request_of().model_dump(), **fields})
                self.assertEqual((status, problem["code"]), (403, "not-allowed"))
        self.assertEqual(self.runtime.facts.entries, {})
        right = {"image": {"reference": "pytorch/pytorch:2", "secret": "hub"}, "secrets": ["hub"], "volumes": {"/c": "crucible-cache"}}
        self.assertEqual((await self.submit(**right))[0], 202)

    async def test_requirements_cannot_name_options_and_urls(self):
        for line in ("--index-url=https://evil.example", "-r other.txt", "x @ https://evil.example/x.whl", "torch; rm -rf /"):
            with self.subTest(line):
                body = {**request_of().model_dump(), "image": {"requirements": [line]}}
                self.assertEqual((await self.call("PUT", "/v1/jobs/a-1", body))[0], 422)
        self.assertEqual((await self.submit(image={"requirements": ["torch==2.9.0", "numpy>=2,<3", "uvicorn[standard]"]}))[0], 202)

    async def test_unknown_keys(self):
        for method, path in (("GET", "/v1/jobs/x-1"), ("GET", "/v1/jobs/x-1/logs")):
            status, problem = await self.call(method, path)
            self.assertEqual((status, problem["code"]), (404, "unknown-key"))
        status, job = await self.call("POST", "/v1/jobs/x-1/cancel")
        self.assertEqual((status, job["phase"]), (200, "cancelled"))

    async def test_volumes_outside_the_prefix_are_neither_listed_nor_deleted(self):
        status, found = await self.call("GET", "/v1/volumes?prefix=crucible-cache-a")
        self.assertEqual([item["name"] for item in found["items"]], ["crucible-cache-a"])
        self.assertEqual((await self.call("GET", "/v1/volumes?prefix=pay"))[0], 403)
        self.assertEqual((await self.call("DELETE", "/v1/volumes/payroll"))[0], 403)
        self.assertEqual((await self.call("DELETE", "/v1/volumes/crucible-cache-a"))[0], 204)
        self.assertEqual(self.runtime.deleted, ["crucible-cache-a"])

    async def test_the_committed_document_is_current(self):
        with open(os.path.join(GATEWAY, "openapi.json"), encoding="utf-8") as file:
            committed = json.load(file)
        self.assertEqual(self.app.openapi(), committed, "run: python openapi.py > openapi.json")


if __name__ == "__main__":
    unittest.main()
