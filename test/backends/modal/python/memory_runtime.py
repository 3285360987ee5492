"""Modal in memory, for tests of the gateway that need neither Modal nor its package."""

import asyncio
import os
import sys

GATEWAY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../backends/modal/gateway")
sys.path.insert(0, GATEWAY)

from crucible_gateway.documents import JobRequest  # noqa: E402
from crucible_gateway.launcher import launch  # noqa: E402
from crucible_gateway.runtime import ListedSandbox, RuntimeFailure, Volume  # noqa: E402


class MemoryFacts:
    def __init__(self):
        self.entries = {}
        self.waiting = {}

    async def put_once(self, name, value):
        await asyncio.sleep(0)
        if name in self.entries:
            return False
        self.entries[name] = value
        return True

    async def get(self, name):
        await asyncio.sleep(0)
        return self.entries.get(name)

    async def replace(self, name, value):
        self.entries[name] = value

    async def add_pending(self, key, tags):
        self.waiting[key] = tags

    async def remove_pending(self, key):
        self.waiting.pop(key, None)

    async def pending(self):
        return dict(self.waiting)


class MemoryRuntime:
    sdk = "memory"
    environment = "main"

    def __init__(self):
        self.facts = MemoryFacts()
        self.now = 1_000_000
        self.created = []
        self.exit_codes = {}
        self.tags = {}
        self.calls = {}
        self.failures = []
        self.spawn_failures = []
        self.slept = []
        self.deleted = []
        self.is_launching = asyncio.Event()
        self.is_launching.set()
        self.spawned = 0

    def now_ms(self):
        return self.now

    async def sleep(self, seconds):
        self.slept.append(seconds)

    async def spawn_launch(self, key, request):
        if self.spawn_failures:
            raise RuntimeFailure(*self.spawn_failures.pop(0))
        self.spawned += 1
        call_id = "fc-%d" % self.spawned
        self.calls[call_id] = asyncio.ensure_future(launch(self, key, request))
        return call_id

    async def launch_state(self, call_id):
        return "over" if self.calls[call_id].done() else "pending"

    async def create_sandbox(self, key, request, tags):
        if self.failures:
            raise RuntimeFailure(*self.failures.pop(0))
        sandbox_id = "sb-%d" % (len(self.created) + 1)
        self.created.append((key, request))
        self.tags[sandbox_id] = tags
        self.exit_codes[sandbox_id] = None
        await self.is_launching.wait()
        return sandbox_id

    async def find(self, tags):
        return [
            ListedSandbox(sandbox_id, own)
            for sandbox_id, own in self.tags.items()
            if self.exit_codes[sandbox_id] is None and tags.items() <= own.items()
        ]

    async def exit_code(self, sandbox_id):
        if sandbox_id not in self.exit_codes:
            raise RuntimeFailure("NotFoundError", "no such sandbox")
        return self.exit_codes[sandbox_id]

    async def terminate(self, sandbox_id):
        if self.exit_codes.get(sandbox_id, 0) is None:
            self.exit_codes[sandbox_id] = 137

    async def logs(self, sandbox_id, lines):
        return ["line %d" % i for i in range(5)][-lines:]

    async def rates(self):
        return {"gpu_hour_cost_h100": "3.95"}

    async def volumes(self, prefix):
        return [Volume(name, 7) for name in ("crucible-cache-a", "crucible-cache-b") if name.startswith(prefix)]

    async def delete_volume(self, name):
        self.deleted.append(name)


def request_of(**fields):
    return JobRequest(**{"owner": "dep", "command": ["true"], "cpu": 1, "memory_mib": 512, "timeout_s": 60, "send_by_ms": 2_000_000, **fields})
