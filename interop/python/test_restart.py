"""The broker goes and comes back on the same ports; the client keeps its ids and goes on."""

import asyncio

import grpc
from danube import SubType

from harness import BrokerTestCase, numbered, within


class Restart(BrokerTestCase):
    async def bounce(self, clean):
        if clean:
            await self.broker.terminate()
        else:
            await self.broker.kill()
        await self.broker.restart()

    async def send_again(self, producer, payload):
        """Sends although the connection may break under the call."""

        async def sending():
            while True:
                try:
                    return await producer.send(payload.encode())
                except grpc.aio.AioRpcError:
                    await asyncio.sleep(0.05)

        await within("an acknowledgement", sending())

    async def clients_survive(self, kind, clean):
        producer = await self.producer(reliable=True, client=await self.new_client())
        inbox = await self.open(kind=kind)
        id_before = inbox.consumer._consumers[self.topic].consumer_id
        await self.send_all(producer, numbered("m", 6))
        settled = {m.payload.decode() for m in await inbox.take_many(3)}
        await self.bounce(clean)
        for payload in numbered("n", 6):
            await self.send_again(producer, payload)
        # Some of these came before the restart and waited in the client; their acks count anyway.
        seen = set()
        while len(seen) < 9:
            message = await inbox.next()
            # The ack may be the first call over the new connection.
            await self.ack_again(inbox, message)
            seen.add(message.payload.decode())
        self.assertEqual(seen & settled, set(), "acknowledged before the restart")
        self.assertEqual(seen | settled, {*numbered("m", 6), *numbered("n", 6)})
        self.assertEqual(inbox.consumer._consumers[self.topic].consumer_id, id_before)
        await self.until("nothing is left", lambda d: d.subscriptions[0].backlog == 0)

    async def ack_again(self, inbox, message):
        async def acknowledging():
            while True:
                try:
                    return await inbox.consumer.ack(message)
                except grpc.aio.AioRpcError:
                    await asyncio.sleep(0.05)

        await within("the answer to an ack", acknowledging())

    async def test_exclusive_survives_a_kill(self):
        await self.clients_survive(SubType.EXCLUSIVE, clean=False)

    async def test_exclusive_survives_a_termination(self):
        await self.clients_survive(SubType.EXCLUSIVE, clean=True)

    async def test_shared_survives_a_kill(self):
        await self.clients_survive(SubType.SHARED, clean=False)

    async def test_key_shared_survives_a_kill(self):
        await self.clients_survive(SubType.KEY_SHARED, clean=False)

    async def test_failover_survives_a_termination(self):
        await self.clients_survive(SubType.FAILOVER, clean=True)

    async def test_non_reliable_survives_a_kill(self):
        producer = await self.producer(reliable=False, client=await self.new_client())
        inbox = await self.open(kind=SubType.SHARED)
        await self.connected("c")
        await self.send(producer, "before")
        self.assertEqual((await inbox.take()).payload, b"before")
        await self.bounce(clean=False)
        await self.connected("c")
        await self.send_again(producer, "after")
        self.assertEqual((await inbox.next()).payload, b"after")
