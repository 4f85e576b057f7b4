"""A broker as a child process, and what every test does with the official Python client.

The broker's binary is named by the environment variable DANUBE_BIN. Each broker has a data
directory and a loopback address of its own, so that nobody takes its ports while it is down between
a stop and a restart.
"""

import asyncio
import itertools
import logging
import os
import shutil
import signal
import sys
import tempfile
import unittest

import grpc
from danube import (
    ConsumerOptions,
    DanubeClientBuilder,
    DispatchStrategy,
    ProducerOptions,
    SubType,
)
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# Nothing a test waits for takes this long unless it hangs.
PATIENCE_S = 60
# How long a test watches that something does not come. Too short a time can only hide a fault.
WATCH_S = 0.3

# While a broker is down the client reports each attempt to reach it, thousands of times.
logging.getLogger("danube").setLevel(logging.CRITICAL)

_count = itertools.count(1)


def _own_loopback_address():
    """All of 127.0.0.0/8 is loopback on Linux; elsewhere it is not."""
    if sys.platform != "linux":
        return "127.0.0.1"
    process = os.getpid()
    return f"127.{1 + (process >> 8) % 250}.{process & 0xff}.{1 + next(_count) % 250}"


async def within(what, awaitable):
    """Awaits; fails when it hangs."""
    try:
        return await asyncio.wait_for(awaitable, PATIENCE_S)
    except asyncio.TimeoutError:
        raise AssertionError(f"waited {PATIENCE_S} s in vain for {what}") from None


class Broker:
    """A running broker, or one that was stopped and may be started again on the same addresses."""

    @classmethod
    async def start(cls):
        broker = cls()
        broker.home = tempfile.mkdtemp(prefix="danube-interop-")
        host = _own_loopback_address()
        broker.listen = [f"{host}:0", f"{host}:0", f"{host}:0"]
        try:
            await broker._spawn()
        except BaseException:
            shutil.rmtree(broker.home, ignore_errors=True)
            raise
        return broker

    async def _spawn(self):
        binary = os.environ.get("DANUBE_BIN")
        if not binary:
            raise AssertionError("DANUBE_BIN is not set: name the broker's binary in it")
        client, admin, http = self.listen
        self.log = tempfile.TemporaryFile()
        self.process = await asyncio.create_subprocess_exec(
            binary, "start",
            "--broker-addr", client, "--admin-addr", admin, "--http-addr", http,
            "--data-dir", os.path.join(self.home, "data"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=self.log,
            # DANUBE_BIN would be reported as a variable that configures nothing.
            env={name: value for name, value in os.environ.items() if name != "DANUBE_BIN"},
        )
        line = (await within("the ready line", self.process.stdout.readline())).decode().strip()
        if not line.startswith("danube ready "):
            await self.kill()
            self.log.seek(0)
            raise AssertionError(f"no ready line but {line!r}; stderr:\n{self.log.read().decode()}")
        fields = dict(field.split("=", 1) for field in line.split(" ")[2:] if "=" in field)
        self.url, self.admin_url = fields["broker"], fields["admin"]
        self.listen = [fields[key].removeprefix("http://") for key in ("broker", "admin", "http")]

    async def kill(self):
        """SIGKILL, then waits for the end."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def terminate(self):
        """SIGTERM, then waits for the end."""
        self.process.send_signal(signal.SIGTERM)
        code = await within("the broker ends", self.process.wait())
        if code != 0:
            raise AssertionError(f"after SIGTERM: exit code {code}")

    async def restart(self):
        """Starts it again on the same data directory and ports; it must be stopped."""
        before = list(self.listen)
        self.log.close()
        await self._spawn()
        if self.listen != before:
            raise AssertionError(f"a restart keeps the ports: {self.listen} after {before}")

    async def close(self):
        await self.kill()
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)


def _describe_messages():
    """The part of our own `danube.control.v1.DescribeTopic` that tests look at."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="interop/describe.proto", package="danube.interop", syntax="proto3"
    )

    def message(name, *fields):
        described = file.message_type.add(name=name)
        for number, field_name, kind, repeated in fields:
            added = described.field.add(name=field_name, number=number)
            added.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
            if isinstance(kind, str):
                added.type, added.type_name = field.TYPE_MESSAGE, f".danube.interop.{kind}"
            else:
                added.type = kind

    message("Request", (1, "name", field.TYPE_STRING, False))
    message(
        "Response",
        (3, "delivery", field.TYPE_STRING, False),
        (8, "subscriptions", "Subscription", True),
    )
    message(
        "Subscription",
        (2, "name", field.TYPE_STRING, False),
        (5, "backlog", field.TYPE_UINT64, False),
        (9, "consumers", "Consumer", True),
    )
    message("Consumer", (1, "name", field.TYPE_STRING, False), (3, "connected", field.TYPE_BOOL, False))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return [
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"danube.interop.{name}"))
        for name in ("Request", "Response")
    ]


_DescribeRequest, _DescribeResponse = _describe_messages()


class Inbox:
    """A consumer that subscribed and whose stream is being opened."""

    def __init__(self, consumer, queue):
        self.consumer = consumer
        self.queue = queue

    async def next(self):
        """The next message, not acknowledged."""
        return await within("a message", self.queue.get())

    async def take(self):
        """The next message, acknowledged."""
        message = await self.next()
        await self.ack(message)
        return message

    async def take_many(self, count):
        return [await self.take() for _ in range(count)]

    async def ack(self, message):
        await within("the answer to an ack", self.consumer.ack(message))

    async def nack(self, message, **options):
        await within("the answer to a nack", self.consumer.nack(message, **options))

    async def close(self):
        await within("the close", self.consumer.close())


class BrokerTestCase(unittest.IsolatedAsyncioTestCase):
    """A test with a broker of its own, `self.broker`, and a client of it, `self.client`."""

    topic = "/default/python"

    async def asyncSetUp(self):
        self.broker = await Broker.start()
        self.addAsyncCleanup(self.broker.close)
        self.client = await self.new_client()

    async def new_client(self):
        """A client of its own: another connection than every other client's."""
        client = await DanubeClientBuilder().service_url(self.broker.url).build()

        async def close():
            for connection in client.connection_manager._connections.values():
                await connection.channel.close()

        self.addAsyncCleanup(close)
        return client

    async def producer(self, *, reliable, topic=None, name="p", partitions=0, client=None):
        strategy = DispatchStrategy.RELIABLE if reliable else DispatchStrategy.NON_RELIABLE
        producer = (
            (client or self.client)
            .new_producer()
            .with_topic(topic or self.topic)
            .with_name(name)
            .with_dispatch_strategy(strategy)
            .with_partitions(partitions)
            # More patience than the default, so that a restart on a busy machine fits in.
            .with_options(ProducerOptions(max_retries=200, base_backoff_ms=50, max_backoff_ms=200))
            .build()
        )
        await within("the producer", producer.create())
        self.addAsyncCleanup(producer.close)
        return producer

    def consumer(self, *, kind, topic=None, subscription="s", name="c", filters=(), client=None):
        """The official consumer, not yet subscribed."""
        return (
            (client or self.client)
            .new_consumer()
            .with_topic(topic or self.topic)
            .with_consumer_name(name)
            .with_subscription(subscription)
            .with_subscription_type(kind)
            .with_key_filters(list(filters))
            .with_options(ConsumerOptions(max_retries=200, base_backoff_ms=50, max_backoff_ms=200))
            .build()
        )

    async def open(self, **who):
        """Subscribes and starts to receive."""
        consumer = self.consumer(**who)
        await within("a subscription", consumer.subscribe())
        inbox = Inbox(consumer, await within("a stream", consumer.receive()))
        self.addAsyncCleanup(consumer.close)
        return inbox

    async def send(self, producer, payload, **options):
        if isinstance(payload, str):
            payload = payload.encode()
        return await within("an acknowledgement", producer.send(payload, **options))

    async def send_keyed(self, producer, payload, key):
        return await within(
            "an acknowledgement", producer.send_with_key(payload.encode(), None, key)
        )

    async def send_all(self, producer, payloads):
        for payload in payloads:
            await self.send(producer, payload)

    async def describe(self, topic=None):
        async with grpc.aio.insecure_channel(self.broker.admin_url.removeprefix("http://")) as channel:
            call = channel.unary_unary(
                "/danube.control.v1.Control/DescribeTopic",
                request_serializer=_DescribeRequest.SerializeToString,
                response_deserializer=_DescribeResponse.FromString,
            )
            return await within("DescribeTopic", call(_DescribeRequest(name=topic or self.topic)))

    async def until(self, what, as_wanted, topic=None):
        """Waits until a description of the topic is as wanted."""
        for _ in range(3000):
            last = await self.describe(topic)
            if as_wanted(last):
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"waited in vain until {what}: {last}")

    async def connected(self, *names, subscription="s", topic=None):
        """Waits until these consumers, and no others, have a stream open on a subscription, in
        every partition that has the subscription."""

        def as_wanted(description):
            found = [s for s in description.subscriptions if s.name == subscription]
            return bool(found) and all(
                sorted(c.name for c in s.consumers if c.connected) == sorted(names) for s in found
            )

        await self.until(f"{names} are connected", as_wanted, topic)

    async def stays_empty(self, inbox):
        """Watches that nothing comes."""
        try:
            message = await asyncio.wait_for(inbox.queue.get(), WATCH_S)
        except asyncio.TimeoutError:
            return
        self.fail(f"came and should not have: {message}")


def texts(messages):
    return [message.payload.decode() for message in messages]


def numbered(prefix, count):
    return [f"{prefix}-{i}" for i in range(count)]


ALL_TYPES = (SubType.EXCLUSIVE, SubType.SHARED, SubType.FAILOVER, SubType.KEY_SHARED)
