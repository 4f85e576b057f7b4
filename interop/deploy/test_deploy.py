"""The chart and the Dockerfile, as far as a machine without a cluster and a container runtime can try
them: Helm's own engine lints and renders, hadolint lints, and what comes out is held against the
binary named by DANUBE_BIN.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import helm_python
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "danube"


def render(values=None, namespace="queues"):
    with helm_python.Chart.load(str(CHART)) as chart:
        files = chart.render(values or {}, name="shop", namespace=namespace, is_install=True)
    documents = {}
    for name, text in files.items():
        if name.endswith(".txt"):
            continue
        for document in yaml.safe_load_all(text):
            if document:
                documents[document["kind"], document["metadata"]["name"]] = document
    return documents


class Chart(unittest.TestCase):
    def test_helm_finds_nothing_to_say(self):
        report = helm_python.lint(str(CHART), strict=True)
        grave = [message for message in report["messages"] if message["severity"] > 1]
        self.assertEqual((grave, report["errors"]), ([], []))

    def test_what_it_makes_by_default(self):
        documents = render()
        self.assertEqual(
            sorted(documents),
            [
                ("ConfigMap", "shop-danube"),
                ("Service", "shop-danube"),
                ("Service", "shop-danube-headless"),
                ("ServiceAccount", "shop-danube"),
                ("StatefulSet", "shop-danube"),
            ],
        )
        spec = documents["StatefulSet", "shop-danube"]["spec"]
        self.assertEqual(spec["replicas"], 1)
        pod = spec["template"]["spec"]
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        self.assertFalse(pod["enableServiceLinks"])
        container = pod["containers"][0]
        self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
        self.assertEqual(container["securityContext"]["capabilities"], {"drop": ["ALL"]})
        environment = {entry["name"]: entry["value"] for entry in container["env"]}
        self.assertEqual(
            environment["DANUBE_ADVERTISED_ADDR"], "shop-danube.queues.svc:6650"
        )
        # The volume is where the broker is told to keep everything.
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        self.assertEqual(mounts["data"], environment["DANUBE_DATA_DIR"])
        # Services find the pod, and the ports that they name are the container's.
        labels = spec["template"]["metadata"]["labels"]
        ports = {port["name"] for port in container["ports"]}
        for (kind, name), document in documents.items():
            if kind == "Service":
                self.assertLessEqual(document["spec"]["selector"].items(), labels.items(), name)
                for port in document["spec"]["ports"]:
                    self.assertIn(port["targetPort"], ports, name)

    def test_the_other_switches(self):
        documents = render({
            "service": {"admin": {"enabled": True}, "type": "LoadBalancer"},
            "serviceMonitor": {"enabled": True},
            "advertisedAddr": "queue.example.org:6650",
            "persistence": {"storageClass": "fast", "size": "100Gi"},
            "extraEnv": [{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://collector:4317"}],
            "fullnameOverride": "queue",
        })
        self.assertIn(("Service", "queue-admin"), documents)
        self.assertIn(("ServiceMonitor", "queue"), documents)
        spec = documents["StatefulSet", "queue"]["spec"]
        claim = spec["volumeClaimTemplates"][0]["spec"]
        self.assertEqual(claim["storageClassName"], "fast")
        self.assertEqual(claim["resources"]["requests"]["storage"], "100Gi")
        names = [entry["name"] for entry in spec["template"]["spec"]["containers"][0]["env"]]
        self.assertIn("OTEL_EXPORTER_OTLP_ENDPOINT", names)

    def test_values_that_cannot_be_are_refused(self):
        for values in [
            {"replicas": 3},
            {"service": {"type": "Banana"}},
            {"config": {"data_dir": "/somewhere/else"}},
            {"persistence": {"size": "many"}},
        ]:
            with self.subTest(values=values):
                self.assertRefused(values)

    def assertRefused(self, values):
        report = helm_python.lint(str(CHART), values)
        grave = [message for message in report["messages"] if message["severity"] > 2]
        self.assertTrue(grave or report["errors"], "it was taken")

    def test_the_broker_takes_the_configuration(self):
        """The rendered file and variables start the binary, but for where it keeps things."""
        documents = render({"config": {"log_format": "json", "policies": {"max_message_size": 1000}}})
        text = documents["ConfigMap", "shop-danube"]["data"]["danube.yml"]
        container = documents["StatefulSet", "shop-danube"]["spec"]["template"]["spec"]["containers"][0]
        with tempfile.TemporaryDirectory() as home:
            path = os.path.join(home, "danube.yml")
            pathlib.Path(path).write_text(text)
            variables = {entry["name"]: entry["value"] for entry in container["env"]}
            for name, value in variables.items():
                if value.startswith("0.0.0.0:"):
                    variables[name] = "127.0.0.1:0"
            variables["DANUBE_DATA_DIR"] = os.path.join(home, "data")
            self.assertEqual(container["args"][:2], ["start", "--config-file"])
            broker = subprocess.Popen(
                [os.environ["DANUBE_BIN"], "start", "--config-file", path],
                env={"PATH": os.environ["PATH"], **variables},
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            try:
                self.assertTrue(broker.stdout.readline().startswith("danube ready "))
            finally:
                broker.terminate()
                _, errors = broker.communicate(timeout=30)
            self.assertEqual(broker.returncode, 0, errors)
            for line in errors.splitlines():
                json.loads(line)


class Image(unittest.TestCase):
    dockerfile = (ROOT / "Dockerfile").read_text()

    def test_the_linter_finds_nothing_to_say(self):
        hadolint = os.path.join(os.path.dirname(sys.executable), "hadolint")
        run = subprocess.run([hadolint, str(ROOT / "Dockerfile")], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout), (0, ""), run.stderr)

    def test_it_does_not_run_as_root_and_probes_itself(self):
        lines = self.dockerfile.splitlines()
        self.assertIn("USER 10001", lines)
        probe = next(line for line in lines if line.startswith("HEALTHCHECK"))
        command = json.loads(probe[probe.index("CMD") + 3:])
        self.assertEqual(command, ["danube", "health"])
        # The verb exists, and says no where no broker is.
        run = subprocess.run(
            [os.environ["DANUBE_BIN"], *command[1:], "--http-addr", "127.0.0.1:1"],
            capture_output=True, text=True,
        )
        self.assertEqual(run.returncode, 3, run.stderr)

    def test_what_it_copies_is_there(self):
        for line in self.dockerfile.splitlines():
            words = line.split()
            if words[:1] == ["COPY"] and not words[1].startswith("--"):
                self.assertTrue((ROOT / words[1]).exists(), line)


if __name__ == "__main__":
    unittest.main()
