"""A broker of its own for each test, and `danube mcp` in front of it.

The binary is named by the environment variable DANUBE_BIN.
"""

import asyncio
import contextlib
import itertools
import os
import shutil
import sys
import tempfile
import unittest

# Nothing a test waits for takes this long unless it hangs.
PATIENCE_S = 60

_count = itertools.count(1)


def own_loopback_address():
    """All of 127.0.0.0/8 is loopback on Linux; elsewhere it is not."""
    if sys.platform != "linux":
        return "127.0.0.1"
    process = os.getpid()
    return f"127.{1 + (process >> 8) % 250}.{process & 0xff}.{1 + next(_count) % 250}"


def binary():
    binary = os.environ.get("DANUBE_BIN")
    if not binary:
        raise AssertionError("DANUBE_BIN is not set: name the broker's binary in it")
    return binary


async def ready(process, word):
    line = await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)
    for field in line.decode().split():
        if field.startswith(word + "="):
            return field[len(word) + 1:]
    raise AssertionError(f"no {word} address in {line!r}")


async def end(process):
    if process.returncode is None:
        process.terminate()
        await asyncio.wait_for(process.wait(), PATIENCE_S)


class BrokerTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.home = tempfile.mkdtemp(prefix="danube-mcp-")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        host = own_loopback_address()
        self.broker = await asyncio.create_subprocess_exec(
            binary(), "start",
            "--broker-addr", f"{host}:0", "--admin-addr", f"{host}:0", "--http-addr", f"{host}:0",
            "--data-dir", os.path.join(self.home, "data"),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )
        self.admin = await ready(self.broker, "admin")
        self.addAsyncCleanup(end, self.broker)
        self.audit_log = os.path.join(self.home, "audit.jsonl")

    def arguments(self, *flags):
        return ["mcp", "--endpoint", self.admin, "--audit-log", self.audit_log, *flags]

    @contextlib.asynccontextmanager
    async def serve(self, *flags):
        """`danube mcp` over HTTP; yields its address."""
        process = await asyncio.create_subprocess_exec(
            binary(), *self.arguments("--http", f"{own_loopback_address()}:0", *flags),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            yield await ready(process, "http")
        finally:
            await end(process)
