"""A broker with something to see: a ledger that is blocked, a queue with dead letters, live metrics,
schemas, and names, keys and payloads that would be code if anything let them.

The load is made by the official Python client; the topics by `danube ctl`.
"""

import asyncio
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python"))

from danube import SubType  # noqa: E402

from harness import Broker, BrokerTestCase, within  # noqa: E402

ORDERS, BILLING = "/default/orders", "billing"
JOBS, LETTERS = "/default/jobs", "/default/jobs-dlq"
HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'&"
REASON = "total `12,5O` is not a number"

AVRO = [
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}',
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"},'
    '{"name":"total","type":["null","double"],"default":null}]}',
]


class Scene(BrokerTestCase):
    """A test with the whole scene; `self.console` is where the console is."""

    async def asyncSetUp(self):
        await super().asyncSetUp()
        self.console = f"http://{self.broker.listen[2]}"
        await self.make_topics()
        await self.make_load()

    async def ctl(self, *words, stdin=None):
        process = await asyncio.create_subprocess_exec(
            os.environ["DANUBE_BIN"], "ctl", "--endpoint", self.broker.admin_url, *words,
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )
        out, err = await within(f"ctl {words}", process.communicate(stdin and stdin.encode()))
        self.assertEqual(process.returncode, 0, f"ctl {words}: {err.decode()}")
        return out.decode()

    async def make_topics(self):
        await self.ctl("topics", "create", ORDERS, "--intent", "audit_log")
        await self.ctl("topics", "create", JOBS, "--intent", "task_queue")
        await self.ctl("topics", "create", "/default/gauges", "--intent", "realtime")
        await self.ctl("topics", "create", "/default/clicks", "--intent", "event_stream", "--partitions", "3")
        await self.ctl("namespaces", "create", "agents")
        for topic, subscription in [(ORDERS, BILLING), (JOBS, "workers")]:
            await self.ctl(
                "topics", "set-failure-policy", topic, "-s", subscription,
                "--max-redelivery-count", "2", "--base-redelivery-delay-ms", "50",
                "--max-redelivery-delay-ms", "100",
            )
        for definition in AVRO:
            await self.ctl(
                "schemas", "register", "order-events", "--schema-type", "avro", "--schema", definition
            )

    async def make_load(self):
        """One consumer per topic; what has `bad` in it is refused, all else is done."""
        self.done = []
        self.seen = asyncio.Event()
        for topic, subscription, kind in [
            (ORDERS, BILLING, SubType.KEY_SHARED), (JOBS, "workers", SubType.SHARED),
        ]:
            inbox = await self.open(kind=kind, topic=topic, subscription=subscription)
            self.keep(self.work(inbox))
        orders = await self.producer(reliable=True, topic=ORDERS, name="shop")
        jobs = await self.producer(reliable=True, topic=JOBS, name="shop")
        for number in range(40):
            await self.send_keyed(orders, f'{{"order": {number}, "total": 12.5}}', f"order-{number % 9}")
        await self.send_keyed(orders, '{"order": "bad", "total": "12,5O"}', "order-7")
        for number in range(5):
            await self.send_keyed(orders, f'{{"order": {number}, "total": 1.0}}', "order-7")
        for number in range(3):
            await self.send(jobs, f'{{"job": {number}, "bad": true}}', attributes={"source": "demo"})
        await self.send_keyed(jobs, HOSTILE + " bad", HOSTILE)
        await self.send(jobs, b"\x00\xff\xfe bad \x00\x01")
        await self.until("the ledger blocks", lambda d: d.subscriptions[0].backlog == 6, ORDERS)
        await self.until("jobs are dead letters", lambda d: d.subscriptions[0].backlog == 0, JOBS)

    def keep(self, work):
        task = asyncio.create_task(work)

        async def stop():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self.addAsyncCleanup(stop)

    async def work(self, inbox):
        while True:
            message = await inbox.queue.get()
            if b"bad" not in message.payload:
                self.done.append(message)
                self.seen.set()
                await inbox.ack(message)
            elif message.routing_key == HOSTILE:
                await inbox.nack(message, delay_ms=0, reason=HOSTILE)
            else:
                await inbox.nack(message, delay_ms=0, reason=REASON)

    async def worked(self, what, is_it):
        """Waits until a message that was done is the wanted one."""
        while True:
            found = [message for message in self.done if is_it(message)]
            if found:
                return found[0]
            self.seen.clear()
            await within(what, self.seen.wait())


__all__ = ["BILLING", "Broker", "HOSTILE", "JOBS", "LETTERS", "ORDERS", "REASON", "Scene"]
