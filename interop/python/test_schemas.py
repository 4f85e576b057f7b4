"""Schemas: the registry through the official client, producers that follow a subject, topics that
enforce one. Upstream's own schema tests, and what they depend on, are among these rows."""

import json

import grpc
from danube import CompatibilityMode, ProducerOptions, SchemaType, SubType

from harness import BrokerTestCase, within

USER = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


def schema(**more):
    return json.dumps({**USER, **more}).encode()


def with_name(required=False):
    changed = json.loads(json.dumps(USER))
    changed["properties"]["name"] = {"type": "string"}
    if required:
        changed["required"].append("name")
    return json.dumps(changed).encode()


class Registry(BrokerTestCase):
    async def register(self, data, subject="users", kind=SchemaType.JSON_SCHEMA):
        builder = self.client.schema().register_schema(subject)
        return await within("an id", builder.with_type(kind).with_schema_data(data).execute())

    async def refused(self, code, awaitable):
        with self.assertRaises(Exception) as raised:
            await within("a refusal", awaitable)
        error = raised.exception
        while not isinstance(error, grpc.RpcError) and error.__cause__ is not None:
            error = error.__cause__
        self.assertIsInstance(error, grpc.RpcError)
        self.assertEqual(error.code(), code)
        return error.details()

    async def test_register_and_read_back(self):
        schemas = self.client.schema()
        schema_id = await self.register(schema())
        self.assertEqual(await self.register(schema(title="the same")), schema_id)
        latest = await schemas.get_latest_schema("users")
        self.assertEqual((latest.schema_id, latest.version), (schema_id, 1))
        self.assertEqual(latest.schema_definition, schema())
        self.assertEqual(latest.schema_type, "json_schema")
        self.assertTrue(latest.fingerprint.startswith("sha256:"))
        self.assertEqual(await self.register(with_name()), schema_id)
        self.assertEqual(await schemas.list_versions("users"), [1, 2])
        first = await schemas.get_schema_version(schema_id, 1)
        self.assertEqual(first.schema_definition, schema())
        self.assertEqual((await schemas.get_schema_by_id(schema_id)).version, 2)
        await self.refused(grpc.StatusCode.NOT_FOUND, schemas.get_latest_schema("nobody"))

    async def test_compatibility(self):
        schemas = self.client.schema()
        await self.register(schema())
        check = lambda data, mode=None: schemas.check_compatibility(
            "users", data, SchemaType.JSON_SCHEMA, mode
        )
        self.assertEqual(await check(with_name()), (True, []))
        compatible, errors = await check(with_name(required=True))
        self.assertFalse(compatible)
        self.assertIn("#/required", " ".join(errors))
        self.assertTrue((await check(with_name(required=True), CompatibilityMode.FORWARD))[0])
        self.assertTrue((await check(b'{"type": "string"}', CompatibilityMode.NONE))[0])
        details = await self.refused(
            grpc.StatusCode.FAILED_PRECONDITION, self.register(with_name(required=True))
        )
        self.assertIn("version 1", details)
        self.assertTrue((await schemas.set_compatibility_mode("users", CompatibilityMode.NONE))[0])
        await self.register(b'{"type": "string"}')
        await self.refused(grpc.StatusCode.INVALID_ARGUMENT, self.register(b"{"))
        self.assertTrue((await schemas.delete_schema_version("users", 1))[0])
        self.assertEqual(await schemas.list_versions("users"), [2])

    async def schema_producer(self, name, follow):
        builder = self.client.new_producer().with_topic(self.topic).with_name(name)
        builder = follow(builder).with_options(ProducerOptions(max_retries=2, base_backoff_ms=10))
        producer = builder.build()
        await within("the producer", producer.create())
        self.addAsyncCleanup(producer.close)
        return producer

    async def test_producers_follow_a_subject(self):
        details = await self.refused(
            grpc.StatusCode.FAILED_PRECONDITION,
            self.schema_producer("p", lambda p: p.with_schema_subject("users")),
        )
        self.assertIn("not found", details)
        schema_id = await self.register(schema())
        await self.register(with_name())
        latest = await self.schema_producer("latest", lambda p: p.with_schema_subject("users"))
        pinned = await self.schema_producer("pinned", lambda p: p.with_schema_version("users", 1))
        minimum = await self.schema_producer(
            "minimum", lambda p: p.with_schema_min_version("users", 2)
        )
        inbox = await self.open(kind=SubType.EXCLUSIVE)
        await self.connected("c")
        for producer, version in ((latest, 2), (pinned, 1), (minimum, 2)):
            await self.send(producer, '{"id": 1}')
            message = await inbox.take()
            self.assertEqual((message.schema_id, message.schema_version), (schema_id, version))
        await self.register(b'"int"', subject="other", kind=SchemaType.AVRO)
        details = await self.refused(
            grpc.StatusCode.FAILED_PRECONDITION,
            self.schema_producer("q", lambda p: p.with_schema_subject("other")),
        )
        self.assertIn("users", details)

    async def test_a_topic_enforces(self):
        schemas = self.client.schema()
        await self.register(schema())
        plain = await self.producer(reliable=True)
        await self.send(plain, "anything")
        await schemas.configure_topic_schema(self.topic, "users", "enforce", True)
        config = await schemas.get_topic_schema_config(self.topic)
        self.assertEqual(config.schema_subject, "users")
        self.assertEqual((config.validation_policy, config.enable_payload_validation), ("enforce", True))
        # On the producer that is there, and at once.
        await self.refused(grpc.StatusCode.INVALID_ARGUMENT, plain.send(b'{"id": 1}'))
        tagged = await self.schema_producer("tagged", lambda p: p.with_schema_subject("users"))
        await self.send(tagged, '{"id": 1}')
        details = await self.refused(grpc.StatusCode.INVALID_ARGUMENT, tagged.send(b'{"id": "x"}'))
        self.assertIn("/id", details)
        await schemas.update_topic_validation_policy(self.topic, "warn", True)
        await self.send(tagged, '{"id": "x"}')
        await self.send(plain, "anything")
