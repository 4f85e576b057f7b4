"""The console in a real browser: a person finds out why a ledger stands still, mends the message and
replays it; and every page is readable, reachable and harmless.

DANUBE_CHROMIUM names the browser, DANUBE_PICTURES a folder for pictures of every page.
"""

import logging
import os
import pathlib
import unittest

from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import async_playwright, expect

from scene import BILLING, HOSTILE, JOBS, LETTERS, ORDERS, REASON, Scene

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 375, "height": 780}
PATIENCE_MS = 30_000
expect.set_options(timeout=PATIENCE_MS)
# It complains of a busy machine.
logging.getLogger("asyncio").setLevel(logging.ERROR)

MANIFEST = "topics:\n  - name: /agents/tasks\n    intent: task_queue\n"

PAGES = {
    "overview": "/",
    "topics": "/topics",
    "topic": f"/topics{ORDERS}",
    "topic-partitioned": "/topics/default/clicks",
    "topic-live": "/topics/default/gauges",
    "subscription": f"/topics{ORDERS}/subscriptions/{BILLING}",
    "seek": f"/topics{ORDERS}/subscriptions/{BILLING}/seek?by=offset&offset=3",
    "messages": f"/topics{ORDERS}/messages",
    "message": f"/topics{ORDERS}/messages/40",
    "dead-letters": f"/topics{LETTERS}/dead-letters",
    "dead-letter": f"/topics{LETTERS}/dead-letters/0",
    "dead-letter-hostile": f"/topics{LETTERS}/dead-letters/3",
    "dead-letter-bytes": f"/topics{LETTERS}/dead-letters/4",
    "schemas": "/schemas",
    "schema": "/schemas/order-events",
    "namespaces": "/namespaces",
    "namespace": "/namespaces/default",
    "broker": "/broker",
    "apply": "/apply",
    "operations": "/operations",
    "operation": f"/operations/topics/seek?topic={ORDERS}&subscription={BILLING}",
    "no-topic": "/topics/default/nowhere",
    "no-page": "/nowhere/at/all",
}


class Console(Scene):
    async def asyncSetUp(self):
        await super().asyncSetUp()
        self.playwright = await async_playwright().start()
        self.addAsyncCleanup(self.playwright.stop)
        self.browser = await self.playwright.chromium.launch(
            executable_path=os.environ["DANUBE_CHROMIUM"], args=["--no-sandbox"]
        )
        self.addAsyncCleanup(self.browser.close)
        self.pictures = pathlib.Path(os.environ["DANUBE_PICTURES"])
        self.pictures.mkdir(parents=True, exist_ok=True)

    async def open_page(self, size=WIDE, dark=False, script=True):
        context = await self.browser.new_context(
            base_url=self.console, viewport=size, java_script_enabled=script,
            color_scheme="dark" if dark else "light",
        )
        self.addAsyncCleanup(context.close)
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        # Whatever the browser complains of, and every window that code in a message would open.
        page.complaints = []
        page.on("pageerror", lambda error: page.complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: page.complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self.check_request(page, request))

        def on_console(message):
            if message.type in ("error", "warning") and "404" not in message.text:
                page.complaints.append(f"{message.type}: {message.text}")

        page.on("console", on_console)
        return page

    def check_request(self, page, request):
        if not request.url.startswith(self.console):
            page.complaints.append(f"asked elsewhere: {request.url}")

    async def picture(self, page, name):
        await page.screenshot(path=self.pictures / f"{name}.png", full_page=True)

    async def test_a_person_mends_a_blocked_ledger(self):
        page = await self.open_page()
        await page.goto("/")
        attention = page.locator(".attention li", has_text=ORDERS)
        await expect(attention).to_contain_text("Key blocked")
        await expect(attention).to_contain_text("order-7")
        await attention.get_by_role("link", name="Find the message").click()

        because = page.locator(".because")
        await expect(because).to_contain_text("Blocked since")
        await expect(because).to_contain_text("offset 40")
        await expect(because).to_contain_text("key order-7")
        await expect(because).to_contain_text("after 3 attempts")
        await expect(because).to_contain_text(REASON)
        await expect(page.locator(".why .tiles")).to_contain_text("6")
        await self.picture(page, "walk-1-blocked")
        await page.get_by_role("link", name="Read the message").click()
        await expect(page.locator("pre.payload")).to_contain_text("12,5O")

        # What is behind it goes on once it is out of the way.
        await page.go_back()
        await page.get_by_role("button", name="Create the dead-letter topic").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Done")
        await page.get_by_role("link", name="Go on").click()
        await page.get_by_role("button", name="Send it to the dead letters").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Done")
        await page.get_by_role("link", name="Go on").click()
        await expect(page.locator(".why").first).to_contain_text("Drained")
        await expect(page.locator("#pulse")).to_have_text("Live")

        await page.get_by_role("link", name="Dead letters").first.click()
        await expect(page.get_by_role("heading", name=REASON)).to_be_visible()
        await page.get_by_role("link", name="Mend and replay").click()
        await self.picture(page, "walk-2-mend")
        field = page.get_by_label("Payload")
        mended = (await field.input_value()).replace('"bad"', "41").replace('"12,5O"', "12.50")
        await field.fill(mended)
        await page.get_by_role("button", name="Replay it like this").click()
        await expect(page.locator(".notice.warn")).to_contain_text("going back does not undo it")
        await self.picture(page, "walk-3-confirm")
        await page.get_by_role("button", name="Yes, do it").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Done")
        came = await self.worked("the mended order", lambda m: b"12.50" in m.payload)
        self.assertEqual(came.payload.decode(), '{"order": 41, "total": 12.50}')
        self.assertEqual(came.routing_key, "order-7")
        self.assertEqual(came.attributes["x-replayed-from"], f"{ORDERS}-dlq")

        # Loading the outcome again does nothing twice.
        await page.reload()
        await page.get_by_role("link", name="Go on").click()
        await expect(page.locator("main")).to_contain_text("None waits")
        await page.goto("/")
        await expect(page.locator(".attention")).not_to_contain_text(ORDERS)
        await expect(page.locator(".tiles > div", has_text="Backlog").locator("dd").first).to_have_text("0")
        self.assertEqual(page.complaints, [])

    async def test_it_all_works_without_a_script(self):
        page = await self.open_page(script=False)
        await page.goto("/")
        await page.locator(".attention li", has_text=LETTERS).get_by_role("link", name="Read why and replay").click()
        await expect(page.get_by_role("heading", name=REASON)).to_be_visible()
        group = page.locator("section.group", has=page.get_by_role("heading", name=REASON))
        await expect(group).to_contain_text("4 letters")
        self.assertIn(HOSTILE, await page.locator("main").inner_text())
        await group.get_by_role("button", name="Replay this group").click()
        await expect(page.locator("pre.payload")).to_contain_text(JOBS)
        await page.get_by_role("link", name="No, leave it").click()
        await page.get_by_label("Theme").select_option("dark")
        await page.get_by_role("button", name="Set").click()
        self.assertEqual(await page.locator("html").get_attribute("data-theme"), "dark")
        await expect(page.get_by_role("heading", name="Dead letters")).to_be_visible()

        await page.goto("/apply")
        await page.get_by_label("Manifest").fill(MANIFEST)
        await page.get_by_role("button", name="Plan").click()
        await expect(page.locator(".plan")).to_contain_text("/agents/tasks")
        await self.picture(page, "walk-4-plan")
        await page.get_by_role("button", name="Apply it").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Done")
        await page.get_by_role("link", name="Go on").click()
        await expect(page.get_by_role("link", name="/agents/tasks", exact=True)).to_be_visible()

        await page.goto(PAGES["seek"])
        await expect(page.locator("main")).to_contain_text("come again that came before")
        self.assertEqual(page.complaints, [])

    async def test_what_moves_is_seen_without_a_reload(self):
        page = await self.open_page()
        await page.goto(f"/topics{JOBS}")
        await expect(page.locator("#pulse")).to_have_text("Live")
        kept = page.locator(".tiles > div", has_text="Kept").locator("dd").first
        await expect(kept).to_have_text("5")
        jobs = await self.producer(reliable=True, topic=JOBS, name="late")
        for number in range(7):
            await self.send(jobs, f"fine {number}")
        await expect(kept).to_have_text("12")
        # Whoever is in it with a keyboard keeps what is under the cursor.
        await page.locator("#live a").first.focus()
        await self.send(jobs, "one more")
        await expect(page.locator("#pulse")).to_have_text("Paused while you are in it")
        await expect(kept).to_have_text("12")
        await page.locator("main").focus()
        await expect(kept).to_have_text("13")
        self.assertEqual(page.complaints, [])

    async def test_a_keyboard_reaches_everything(self):
        page = await self.open_page()
        await page.goto("/topics")
        await page.keyboard.press("Tab")
        self.assertEqual(await page.evaluate("document.activeElement.textContent"), "Skip to content")
        await page.keyboard.press("Enter")
        self.assertEqual(await page.evaluate("document.activeElement.id"), "content")
        reached = set()
        for _ in range(60):
            await page.keyboard.press("Tab")
            shown = await page.evaluate(
                "(() => { const e = document.activeElement, s = getComputedStyle(e);"
                " return [e.tagName, e.textContent.trim(), s.outlineStyle]; })()"
            )
            if shown[0] == "BODY":
                break
            reached.add(shown[1])
            self.assertNotEqual(shown[2], "none", f"{shown[1]} does not show that it has the focus")
        self.assertIn(ORDERS, reached)

    async def test_every_page_is_readable_by_everybody(self):
        faults = []
        for look, size, dark in [
            ("wide", WIDE, False), ("dark", WIDE, True), ("phone", PHONE, False), ("phone-dark", PHONE, True),
        ]:
            page = await self.open_page(size=size, dark=dark)
            for name, path in PAGES.items():
                await page.goto(path)
                await self.picture(page, f"{name}-{look}")
                overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
                if overflow > 0:
                    faults.append(f"{name} {look}: {overflow} pixels wider than the window")
                await page.evaluate(AXE_SCRIPT)
                found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
                for violation in found["violations"]:
                    if violation["impact"] in ("serious", "critical"):
                        where = [node["target"] for node in violation["nodes"]][:3]
                        faults.append(f"{name} {look}: {violation['id']}: {violation['help']} {where}")
                text = await page.locator("body").inner_text()
                if not text.strip():
                    faults.append(f"{name} {look}: nothing is on it")
            faults += [f"{look}: {complaint}" for complaint in page.complaints]
            await page.context.close()
        self.assertEqual(faults, [], "\n".join(faults))


if __name__ == "__main__":
    unittest.main()
