"""Publish and receive: both kinds of topics, all types of subscriptions, partitions, keys, nacks."""

import asyncio

from danube import SubType

from harness import ALL_TYPES, BrokerTestCase, numbered, texts


class RoundTrip(BrokerTestCase):
    async def round_trip(self, reliable):
        producer = await self.producer(reliable=reliable)
        inboxes = {}
        for kind in ALL_TYPES:
            inboxes[kind] = await self.open(kind=kind, subscription=kind.name)
            await self.connected("c", subscription=kind.name)
        attributes = {"colour": "blue", "größe": "42"}
        await self.send(producer, "hello", attributes=attributes)
        await self.send_keyed(producer, "keyed", "user-7")
        for kind, inbox in inboxes.items():
            with self.subTest(kind=kind):
                first, second = await inbox.take_many(2)
                self.assertEqual(first.payload, b"hello")
                self.assertEqual(dict(first.attributes), attributes)
                self.assertFalse(first.HasField("routing_key"))
                self.assertEqual(first.msg_id.topic_name, self.topic)
                self.assertEqual(first.msg_id.broker_addr, self.broker.url)
                self.assertEqual(first.subscription_name, kind.name)
                self.assertEqual((second.payload, second.routing_key), (b"keyed", "user-7"))

    async def test_reliable(self):
        await self.round_trip(reliable=True)

    async def test_non_reliable(self):
        await self.round_trip(reliable=False)

    async def test_a_publish_returns_its_request_id(self):
        producer = await self.producer(reliable=True)
        first = await self.send(producer, "one")
        self.assertEqual(await self.send(producer, "two"), first + 1)

    async def test_large_payloads(self):
        producer = await self.producer(reliable=True)
        inbox = await self.open(kind=SubType.EXCLUSIVE)
        payloads = [bytes([number]) * 100_000 for number in range(20)]
        for payload in payloads:
            await self.send(producer, payload)
        self.assertEqual([m.payload for m in await inbox.take_many(20)], payloads)


class SharingWork(BrokerTestCase):
    async def test_fan_out_to_exclusive_subscriptions(self):
        producer = await self.producer(reliable=False)
        inboxes = []
        for subscription in numbered("sub", 3):
            inboxes.append(await self.open(kind=SubType.EXCLUSIVE, subscription=subscription))
            await self.connected("c", subscription=subscription)
        await self.send_all(producer, numbered("m", 24))
        for inbox in inboxes:
            self.assertEqual(texts(await inbox.take_many(24)), numbered("m", 24))

    async def test_shared_consumers_take_turns(self):
        producer = await self.producer(reliable=True)
        names = numbered("c", 3)
        inboxes = [await self.open(kind=SubType.SHARED, name=name) for name in names]
        await self.connected(*names)
        await self.send_all(producer, numbered("m", 36))
        seen = []
        for inbox in inboxes:
            seen += texts(await inbox.take_many(12))
        self.assertEqual(sorted(seen), sorted(numbered("m", 36)))

    async def test_failover_hands_over(self):
        producer = await self.producer(reliable=True)
        first = await self.open(kind=SubType.FAILOVER, name="first")
        await self.connected("first")
        second = await self.open(kind=SubType.FAILOVER, name="second")
        await self.connected("first", "second")
        await self.send_all(producer, ["one", "two"])
        self.assertEqual((await first.take()).payload, b"one")
        held = await first.next()
        await first.close()
        self.assertEqual((await second.take()).msg_id, held.msg_id)
        await self.send(producer, "three")
        self.assertEqual((await second.take()).payload, b"three")

    async def test_exclusive_is_refused_to_another_name(self):
        await self.producer(reliable=True)
        await self.open(kind=SubType.EXCLUSIVE, name="holder")
        await self.connected("holder")
        other = self.consumer(kind=SubType.EXCLUSIVE, name="other")
        with self.assertRaises(Exception) as refused:
            await other.subscribe()
        self.assertEqual(refused.exception.code().name, "FAILED_PRECONDITION")


class Keys(BrokerTestCase):
    async def test_a_key_stays_with_one_consumer_in_order(self):
        producer = await self.producer(reliable=True)
        inboxes = {}
        for name in ("a", "b"):
            inboxes[name] = await self.open(kind=SubType.KEY_SHARED, name=name)
        await self.connected("a", "b")
        keys = numbered("key", 20)
        for round_ in range(3):
            for key in keys:
                await self.send_keyed(producer, f"{key}/{round_}", key)
        seen = {name: [] for name in inboxes}
        drained = self.until("all are acknowledged", lambda d: d.subscriptions[0].backlog == 0)

        async def acknowledge(name, inbox):
            while True:
                seen[name].append(await inbox.queue.get())
                await inbox.ack(seen[name][-1])

        tasks = [asyncio.create_task(acknowledge(*item)) for item in inboxes.items()]
        await drained
        for task in tasks:
            task.cancel()
        for name, messages in seen.items():
            self.assertTrue(messages, f"{name} has work")
            for key in {m.routing_key for m in messages}:
                self.assertEqual(
                    texts(m for m in messages if m.routing_key == key),
                    [f"{key}/{round_}" for round_ in range(3)],
                )

    async def test_filters(self):
        producer = await self.producer(reliable=True)
        eu = await self.open(kind=SubType.KEY_SHARED, name="eu", filters=["eu-*"])
        us = await self.open(kind=SubType.KEY_SHARED, name="us", filters=["us-?", "ca-?"])
        await self.connected("eu", "us")
        for key in ("eu-west", "us-1", "nobody", "ca-1", "eu-east"):
            await self.send_keyed(producer, key, key)
        self.assertEqual(sorted(texts(await eu.take_many(2))), ["eu-east", "eu-west"])
        self.assertEqual(sorted(texts(await us.take_many(2))), ["ca-1", "us-1"])
        await self.stays_empty(eu)
        await self.stays_empty(us)


class Partitions(BrokerTestCase):
    async def everything_arrives(self, reliable):
        producer = await self.producer(reliable=reliable, partitions=3)
        inbox = await self.open(kind=SubType.EXCLUSIVE)
        await self.connected("c")
        await self.send_all(producer, numbered("m", 30))
        messages = await inbox.take_many(30)
        self.assertEqual(sorted(texts(messages)), sorted(numbered("m", 30)))
        self.assertEqual(
            {m.msg_id.topic_name for m in messages},
            {f"{self.topic}-part-{i}" for i in range(3)},
        )

    async def test_reliable(self):
        await self.everything_arrives(reliable=True)

    async def test_non_reliable(self):
        await self.everything_arrives(reliable=False)

    async def test_a_key_stays_in_its_partition(self):
        producer = await self.producer(reliable=True, partitions=4)
        inbox = await self.open(kind=SubType.SHARED)
        for round_ in range(3):
            for key in numbered("key", 6):
                await self.send_keyed(producer, f"{key}/{round_}", key)
        partitions = {}
        for message in await inbox.take_many(18):
            partitions.setdefault(message.routing_key, set()).add(message.msg_id.topic_name)
        self.assertEqual([len(topics) for topics in partitions.values()], [1] * 6)


class Nacks(BrokerTestCase):
    async def test_a_nack_brings_the_same_message_again(self):
        producer = await self.producer(reliable=True)
        for kind in ALL_TYPES:
            with self.subTest(kind=kind):
                inbox = await self.open(kind=kind, subscription=kind.name)
                await self.send(producer, f"for {kind.name}")
                first = await inbox.next()
                await inbox.nack(first, delay_ms=0, reason="not now")
                again = await inbox.take()
                self.assertEqual((again.msg_id, again.payload), (first.msg_id, first.payload))
                await inbox.close()

    async def test_a_nack_on_a_non_reliable_topic_has_no_effect(self):
        producer = await self.producer(reliable=False)
        inbox = await self.open(kind=SubType.SHARED)
        await self.connected("c")
        await self.send(producer, "fleeting")
        await inbox.nack(await inbox.next())
        await self.stays_empty(inbox)
