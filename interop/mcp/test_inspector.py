"""`danube mcp` with the inspector of the Model Context Protocol in its command-line mode.

The inspector is a client of other authors in another language. Its strict mode reports every
input and output schema that some model's tool calling could not take. Node and the inspector are
named by the environment variables NODE and MCP_INSPECTOR.
"""

import asyncio
import json
import os
import unittest

from harness import PATIENCE_S, BrokerTest, binary


def _named(variable):
    path = os.environ.get(variable)
    if not path:
        raise AssertionError(f"{variable} is not set; `cargo xtask verify mcp-client` sets it")
    return path


class InspectorTest(BrokerTest):
    def stdio(self, *flags):
        return [binary(), *self.arguments(*flags)]

    async def run_inspector(self, target, method, *options):
        """Exit code, standard output and standard error of one run."""
        # Options of the server and of the inspector look alike, so they are kept apart by `--`.
        command = [_named("NODE"), _named("MCP_INSPECTOR"), "--cli", "--method", method, *options, "--"]
        process = await asyncio.create_subprocess_exec(
            *command, *target,
            env={**os.environ, "HOME": self.home},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        return process.returncode, out.decode(), err.decode()

    async def ask(self, target, method, *options):
        code, out, err = await self.run_inspector(target, method, *options)
        self.assertEqual(code, 0, f"{method}: {out}\n{err}")
        return json.loads(out)

    async def call(self, target, tool, **arguments):
        pairs = [f"{name}={value}" for name, value in arguments.items()]
        options = ["--tool-arg", *pairs] if pairs else []
        return await self.ask(target, "tools/call", "--tool-name", tool, *options)

    async def work(self, target):
        names = {tool["name"] for tool in (await self.ask(target, "tools/list", "--strict"))["tools"]}
        self.assertLessEqual({"create_topic", "explain_topic", "apply_manifest"}, names)
        self.assertFalse(names & {"delete_topic", "seek_subscription"})
        made = await self.call(target, "create_topic", name="/default/jobs", intent="task_queue")
        self.assertIn("/default/jobs", made["structuredContent"]["created"])
        explained = await self.call(target, "explain_topic", topic="/default/jobs")
        self.assertIn("power loss", explained["structuredContent"]["publish"])
        prompts = await self.ask(target, "prompts/list")
        self.assertIn("dead_letter_triage", {prompt["name"] for prompt in prompts["prompts"]})
        read = await self.ask(target, "resources/read", "--uri", "danube://manifests/default")
        self.assertIn("intent: task_queue", read["contents"][0]["text"])

    async def test_it_works_over_stdio(self):
        await self.work(self.stdio())

    async def test_it_works_over_http(self):
        async with self.serve() as url:
            await self.work([url])

    async def test_all_tools_can_be_taken_by_every_model(self):
        listed = await self.ask(self.stdio("--allow-destructive"), "tools/list", "--strict")
        self.assertIn("delete_topic", {tool["name"] for tool in listed["tools"]})

    async def test_a_refused_call_says_why(self):
        target = self.stdio()
        options = ["--tool-name", "describe_topic", "--tool-arg", "topic=/default/none"]
        _, out, err = await self.run_inspector(target, "tools/call", *options)
        self.assertIn("/default/none` not found", out + err)


if __name__ == "__main__":
    unittest.main()
