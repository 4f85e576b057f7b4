"""`danube mcp` with the official Python client of the Model Context Protocol, over both transports.

The client checks every result against the output schema of its tool, so each call here is a test
of that schema too.
"""

import asyncio
import contextlib
import json
import unittest

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from harness import PATIENCE_S, BrokerTest, binary

class McpTest(BrokerTest):
    @contextlib.asynccontextmanager
    async def stdio(self, *flags):
        server = StdioServerParameters(command=binary(), args=self.arguments(*flags))
        async with stdio_client(server) as (read, write):
            async with ClientSession(read, write) as session:
                self.handshake = await session.initialize()
                yield session

    @contextlib.asynccontextmanager
    async def http(self, *flags):
        async with self.serve(*flags) as url:
            async with streamable_http_client(url) as streams:
                async with ClientSession(streams[0], streams[1]) as session:
                    self.handshake = await session.initialize()
                    yield session

    async def call(self, session, name, arguments=None):
        result = await asyncio.wait_for(session.call_tool(name, arguments or {}), PATIENCE_S)
        self.assertFalse(result.is_error, f"{name}: {result.content}")
        return result.structured_content

    async def refused(self, session, name, arguments):
        result = await asyncio.wait_for(session.call_tool(name, arguments), PATIENCE_S)
        self.assertTrue(result.is_error, f"{name}: {result.content}")
        return result.content[0].text

    async def work(self, session):
        """The seed's two calls as they are printed there, and what they lead to."""
        await self.call(session, "create_namespace", {"namespace": "agents"})
        audit = {"name": "/agents/tool-audit", "intent": "audit_log", "partitions": 1}
        created = await self.call(session, "create_topic", audit)
        self.assertEqual(created["created"], ["/agents/tool-audit-part-0"])
        await self.call(session, "create_topic", {"name": "/agents/tasks", "intent": "task_queue"})
        policy = {
            "topic": "/agents/tasks",
            "subscription": "planner-workers",
            "max_redelivery_count": 5,
            "ack_timeout_ms": 60000,
            "base_redelivery_delay_ms": 1000,
            "max_redelivery_delay_ms": 60000,
            "backoff_strategy": "exponential",
            "dead_letter_topic": "/agents/tasks-dlq",
            "poison_policy": "dead_letter",
        }
        await self.call(session, "set_subscription_failure_policy", policy)
        named = {"topic": "/agents/tasks", "subscription": "planner-workers"}
        got = await self.call(session, "get_subscription_failure_policy", named)
        self.assertEqual(got["result"]["ack_timeout_ms"], 60000)
        described = await self.call(session, "describe_topic", {"topic": "/agents/tool-audit"})
        self.assertEqual(described["intent"]["intent"], "audit_log")
        message = {"topic": "/agents/tasks", "message": "hello", "attribute": ["source=test"]}
        await self.call(session, "publish_message", message)
        peeked = await self.call(session, "peek_messages", {"topic": "/agents/tasks"})
        self.assertEqual(peeked["result"][0]["payload"], "hello")
        explained = await self.call(session, "explain_topic", {"topic": "/agents/tasks"})
        self.assertIn("power loss", explained["publish"])

    async def test_the_seeds_examples_work_over_stdio(self):
        async with self.stdio() as session:
            self.assertIn("create and set policies", self.handshake.instructions)
            await self.work(session)

    async def test_the_seeds_examples_work_over_http(self):
        async with self.http() as session:
            await self.work(session)

    async def test_every_tool_that_reads_gives_what_its_schema_says(self):
        async with self.stdio() as session:
            await self.call(session, "create_topic", {"name": "/default/t", "intent": "task_queue"})
            schema = {"subject": "s", "schema_type": "string", "schema_definition": ""}
            await self.call(session, "register_schema", schema)
            await self.call(session, "create_subscription", {"topic": "/default/t", "subscription": "w"})
            known = {
                "topic": "/default/t", "subscription": "w", "subject": "s", "namespace": "default",
                "key": "/topics/default/t/delivery", "manifest": "topics: [{name: /default/u}]",
                "schema_type": "string", "schema_definition": "",
            }
            listed = await session.list_tools()
            reading = [tool for tool in listed.tools if tool.annotations.read_only_hint]
            self.assertGreater(len(reading), 15)
            for tool in reading:
                self.assertIsNotNone(tool.output_schema, tool.name)
                wanted = tool.input_schema.get("required", [])
                arguments = {name: known[name] for name in wanted}
                if tool.name in ("get_schema", "schema_history", "check_schema_compatibility"):
                    properties = tool.input_schema["properties"]
                    for name in ("subject", "schema_type", "schema_definition"):
                        if name in properties:
                            arguments[name] = known[name]
                if tool.name == "get_topic_schema_config":
                    continue  # the topic has none
                with self.subTest(tool.name):
                    await self.call(session, tool.name, arguments)

    async def test_a_manifest_is_planned_applied_and_read_back(self):
        manifest = "namespaces: [agents]\ntopics: [{name: /agents/t, intent: task_queue}]\n"
        async with self.stdio() as session:
            dry = await self.call(session, "apply_manifest", {"manifest": manifest, "dry_run": True})
            self.assertEqual(dry["summary"]["create"], 2)
            real = await self.call(session, "apply_manifest", {"manifest": manifest})
            for planned, done in zip(dry["items"], real["items"]):
                self.assertEqual((planned["action"], planned["name"]), (done["action"], done["name"]))
            again = await self.call(session, "apply_manifest", {"manifest": manifest})
            self.assertEqual(again["summary"]["unchanged"], 2)
            wrong = await self.refused(session, "apply_manifest", {"manifest": "topcs: []"})
            self.assertIn("did you mean `topics`?", wrong)

    async def test_read_only_offers_nothing_that_writes(self):
        async with self.stdio("--read-only") as session:
            self.assertIn("Read-only", self.handshake.instructions)
            names = {tool.name for tool in (await session.list_tools()).tools}
            self.assertIn("describe_topic", names)
            self.assertFalse(names & {"create_topic", "apply_manifest", "delete_topic"})
            with self.assertRaisesRegex(Exception, "no tool `create_topic` is offered"):
                await session.call_tool("create_topic", {"name": "/default/t"})

    async def test_what_destroys_is_offered_on_demand_and_wants_to_be_confirmed(self):
        async with self.stdio() as session:
            names = {tool.name for tool in (await session.list_tools()).tools}
            self.assertFalse(names & {"delete_topic", "unsubscribe", "seek_subscription", "replay_dlq"})
        async with self.stdio("--allow-destructive") as session:
            await self.call(session, "create_topic", {"name": "/default/t", "intent": "task_queue"})
            why = await self.refused(session, "delete_topic", {"topic": "/default/t"})
            self.assertIn("was not confirmed", why)
            await self.call(session, "delete_topic", {"topic": "/default/t", "confirm": True})

    async def test_every_call_leaves_a_line(self):
        async with self.stdio() as session:
            await self.call(session, "create_topic", {"name": "/default/t"})
            await self.refused(session, "create_topic", {"name": "/default/t"})
        with open(self.audit_log, encoding="utf-8") as log:
            lines = [json.loads(line) for line in log]
        self.assertEqual([line["outcome"] for line in lines], ["asked", "ok", "asked", "failed"])
        self.assertEqual(lines[0]["tool"], "create_topic")
        self.assertEqual(lines[0]["arguments"], {"name": "/default/t"})

    async def test_prompts_and_resources(self):
        async with self.stdio() as session:
            await self.call(session, "create_topic", {"name": "/default/jobs", "intent": "task_queue"})
            prompts = {prompt.name for prompt in (await session.list_prompts()).prompts}
            self.assertEqual(
                prompts,
                {"cluster_health_check", "dead_letter_triage", "manage_schema_evolution"},
            )
            triage = await session.get_prompt("dead_letter_triage", {"topic": "/default/jobs"})
            self.assertIn("/default/jobs-dlq", triage.messages[0].content.text)
            uris = {str(resource.uri) for resource in (await session.list_resources()).resources}
            self.assertIn("danube://topics/default/jobs", uris)
            manifest = await session.read_resource("danube://manifests/default")
            self.assertIn("intent: task_queue", manifest.contents[0].text)
            topic = await session.read_resource("danube://topics/default/jobs")
            self.assertIn("described", json.loads(topic.contents[0].text))


if __name__ == "__main__":
    unittest.main()
