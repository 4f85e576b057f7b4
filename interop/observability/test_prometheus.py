"""A real Prometheus scrapes a broker under load; every rule is loaded and every query of the
dashboard has data.

The broker's binary is named by DANUBE_BIN, the folder of `prometheus` and `promtool` by
PROMETHEUS_BIN. Nothing but the standard library is needed.
"""

import itertools
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
# Nothing a test waits for takes this long unless it hangs.
PATIENCE_S = 90
# How often this Prometheus scrapes, and over how long the dashboard then takes rates.
SCRAPE_S = 1
RATE_INTERVAL = "10s"

_count = itertools.count(1)


def _own_loopback_address():
    """All of 127.0.0.0/8 is loopback on Linux; elsewhere it is not."""
    if sys.platform != "linux":
        return "127.0.0.1"
    process = os.getpid()
    return f"127.{1 + (process >> 8) % 250}.{process & 0xff}.{1 + next(_count) % 250}"


def _named(variable):
    value = os.environ.get(variable)
    if not value:
        raise AssertionError(f"{variable} is not set; `cargo xtask verify observability` sets it")
    return value


def _promtool(*arguments):
    tool = os.path.join(_named("PROMETHEUS_BIN"), "promtool")
    run = subprocess.run([tool, *arguments], capture_output=True, text=True)
    if run.returncode != 0:
        raise AssertionError(f"promtool {' '.join(arguments)}:\n{run.stdout}{run.stderr}")
    return run.stdout


def _expressions(dashboard):
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


class Rules(unittest.TestCase):
    def test_the_rules_and_the_configuration_are_well_formed(self):
        folder = DEPLOY / "prometheus"
        self.assertIn("SUCCESS", _promtool("check", "rules", str(folder / "alerts.yml")))
        self.assertIn("SUCCESS", _promtool("check", "config", str(folder / "prometheus.yml")))

    def test_each_alert_fires_when_it_should(self):
        tests = DEPLOY / "prometheus" / "alerts.test.yml"
        self.assertIn("SUCCESS", _promtool("test", "rules", str(tests)))
        tested = tests.read_text()
        for line in (DEPLOY / "prometheus" / "alerts.yml").read_text().splitlines():
            if line.strip().startswith("- alert:"):
                name = line.split(":")[1].strip()
                self.assertIn(f"alertname: {name}", tested, "no test of this alert")


class Scrape(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="danube-prometheus-")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        host = _own_loopback_address()
        self.danube = _named("DANUBE_BIN")
        self.environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith("DANUBE_") and name != "RUST_LOG"
        }
        broker = self.start(
            self.danube, "start", "--data-dir", os.path.join(self.home, "data"),
            "--broker-addr", f"{host}:0", "--admin-addr", f"{host}:0", "--http-addr", f"{host}:0",
            stdout=subprocess.PIPE,
        )
        line = broker.stdout.readline()
        self.addCleanup(broker.stdout.close)
        fields = dict(word.split("=", 1) for word in line.split()[2:])
        self.broker, self.admin, self.http = fields["broker"], fields["admin"], fields["http"]
        self.prometheus = self.start_prometheus(host)

    def start(self, *command, stdout=subprocess.DEVNULL):
        log = open(os.path.join(self.home, f"log-{next(_count)}"), "w")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=log, text=True,
            env=self.environment,
        )
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def start_prometheus(self, host):
        """The shipped configuration with another target and a faster pace."""
        with socket.socket() as probe:
            probe.bind((host, 0))
            port = probe.getsockname()[1]
        shutil.copy(DEPLOY / "prometheus" / "alerts.yml", self.home)
        shipped = (DEPLOY / "prometheus" / "prometheus.yml").read_text()
        ours = shipped.replace("127.0.0.1:8080", self.http.removeprefix("http://"))
        ours = ours.replace("15s", f"{SCRAPE_S}s")
        self.assertNotEqual(ours, shipped)
        path = os.path.join(self.home, "prometheus.yml")
        with open(path, "w") as file:
            file.write(ours)
        self.start(
            os.path.join(_named("PROMETHEUS_BIN"), "prometheus"),
            "--config.file", path, "--storage.tsdb.path", os.path.join(self.home, "tsdb"),
            "--web.listen-address", f"{host}:{port}",
        )
        return f"http://{host}:{port}"

    def ctl(self, *arguments):
        run = subprocess.run(
            [self.danube, "ctl", "--endpoint", self.admin, *arguments],
            capture_output=True, text=True, env=self.environment,
        )
        self.assertEqual(run.returncode, 0, f"{arguments}: {run.stdout}{run.stderr}")
        return run.stdout

    def produce(self, topic, *more):
        return [
            self.danube, "produce", "--service-addr", self.broker, "--topic", topic, "--reliable",
            "--message", '{"n": 1}', *more,
        ]

    def consume(self, topic, subscription, *more):
        return [
            self.danube, "consume", "--service-addr", self.broker, "--topic", topic,
            "--subscription", subscription, *more,
        ]

    def load(self):
        """Traffic with all that can go wrong on one broker, for as long as the test runs."""
        self.ctl("topics", "create", "/default/jobs", "--intent", "task_queue")
        self.ctl("topics", "create", "/default/poison", "--intent", "task_queue")
        self.ctl("topics", "create", "/default/ledger", "--intent", "audit_log")
        self.ctl("topics", "create", "/default/typed", "--intent", "event_stream")
        for topic, subscription in [("poison", "w"), ("ledger", "w"), ("jobs", "slow")]:
            self.ctl("topics", "create-subscription", f"/default/{topic}", "-s", subscription)
        for topic in ("poison", "ledger"):
            self.ctl(
                "topics", "set-failure-policy", f"/default/{topic}", "-s", "w",
                "--ack-timeout-ms", "1000", "--max-redelivery-count", "1",
                "--base-redelivery-delay-ms", "200", "--max-redelivery-delay-ms", "200",
            )
        self.ctl("schemas", "register", "order", "--schema-type", "json_schema",
                 "--schema", '{"type": "object", "required": ["id"]}')
        self.ctl("topics", "configure-schema", "/default/typed", "--subject", "order",
                 "--validation-policy", "enforce", "--enable-payload-validation")
        # A wrong call, so that there are refused ones.
        run = subprocess.run(
            [self.danube, "ctl", "--endpoint", self.admin, "topics", "describe", "/default/nothing"],
            capture_output=True, env=self.environment,
        )
        self.assertNotEqual(run.returncode, 0)
        self.start(*self.consume("/default/jobs", "quick"))
        self.start(*self.consume("/default/poison", "w", "--no-ack"))
        self.start(*self.consume("/default/ledger", "w", "--no-ack"))
        self.start(*self.produce("/default/jobs", "--count", "1000000", "--interval", "5"))
        self.start(*self.produce("/default/poison", "--count", "1000000", "--interval", "500",
                                 "--producer-name", "p"))
        self.start(*self.produce("/default/ledger", "--count", "3", "--producer-name", "l"))
        # Refused again and again, and each refusal is counted.
        refused = " ".join(f"'{word}'" for word in self.produce("/default/typed", "--count", "1"))
        self.start("sh", "-c", f"while :; do {refused}; done")

    def ask(self, expression):
        query = urllib.parse.urlencode({"query": expression}).encode()
        with urllib.request.urlopen(f"{self.prometheus}/api/v1/query", query, 10) as answer:
            return json.load(answer)["data"]["result"]

    def wait_for(self, what, expression):
        """The value of an expression once there is one."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                found = self.ask(expression)
            except OSError:
                # It is still starting.
                found = []
            if found:
                return float(found[0]["value"][1])
            # There is nothing to wait on but the next scrape.
            time.sleep(SCRAPE_S / 2)
        raise AssertionError(f"waited {PATIENCE_S} s in vain for {what}: {expression}")

    def test_every_query_of_the_dashboard_has_data_under_load(self):
        self.load()
        self.wait_for("a scrape", 'up{job="danube"} == 1')
        self.wait_for("dead letters", "danube_topic_dead_letters > 0")
        self.wait_for("a message that blocks", "danube_subscription_terminal_blocked > 0")
        self.wait_for("a refused publish", 'danube_producer_send_total{result="error"} > 0')
        self.wait_for("an old message", "danube_subscription_oldest_unacked_age_seconds > 5")
        self.wait_for("rates", f"rate(danube_subscription_dlq_total[{RATE_INTERVAL}]) > 0")

        dashboard = json.loads((DEPLOY / "grafana" / "danube.json").read_text())
        queries = list(_expressions(dashboard))
        self.assertGreater(len(queries), 40)
        for title, expression in queries:
            expression = expression.replace("$__rate_interval", RATE_INTERVAL)
            expression = expression.replace("$instance", ".*").replace("$topic", ".*")
            self.assertNotIn("$", expression)
            with self.subTest(panel=title, query=expression):
                self.wait_for(title, expression)
        # A quantile of nothing is not a number, which a panel would show as no data.
        latency = "sum by (le) (rate(danube_producer_send_latency_ms_bucket[10s]))"
        self.assertGreater(self.wait_for("latency", f"histogram_quantile(0.5, {latency})"), 0)

        self.look_at_the_alerts()
        self.look_at_the_scrape()

    def look_at_the_alerts(self):
        with urllib.request.urlopen(f"{self.prometheus}/api/v1/rules", timeout=10) as answer:
            groups = json.load(answer)["data"]["groups"]
        rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
        self.assertGreater(len(rules), 10)
        unhealthy = [rule for rule in rules.values() if rule["health"] == "err"]
        self.assertEqual(unhealthy, [])
        self.wait_for("an alert", 'ALERTS{alertname="DanubeDeadLetters",alertstate="firing"}')
        down = self.ask('ALERTS{alertname=~"DanubeDown|DanubeTopicDamaged|DanubeMessagesLost"}')
        self.assertEqual(down, [])

    def look_at_the_scrape(self):
        took = self.wait_for("its duration", "scrape_duration_seconds")
        samples = self.wait_for("its samples", "scrape_samples_scraped")
        print(f"\na scrape under load: {samples:.0f} samples in {took * 1000:.1f} ms")


if __name__ == "__main__":
    unittest.main()
