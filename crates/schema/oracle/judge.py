"""Has the stored pairs of ../tests/pairs judged by other people's tools, and prints where we differ.

Run by hand, in a virtual environment of its own; nothing of this is needed to build or to test:

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install avro==1.12.2 fastavro jsonsubschema
    (mkdir -p /tmp/buf && cd /tmp/buf && npm install --ignore-scripts @bufbuild/buf-linux-x64)
    /tmp/oracle/bin/python judge.py --buf /tmp/buf/node_modules/@bufbuild/buf-linux-x64/bin/buf

What is printed as a disagreement is explained in ../../../docs/schemas.md, "Where others differ".
"""

import argparse
import io
import json
import pathlib
import signal
import subprocess
import tempfile
import warnings

warnings.filterwarnings("ignore")
PAIRS = pathlib.Path(__file__).parent.parent / "tests" / "pairs"


class Tally:
    """Counts the verdicts of one judge and keeps the disagreements."""

    def __init__(self, judge):
        self.judge, self.agree, self.silent, self.differ = judge, 0, [], []

    def add(self, what, ours, theirs):
        if theirs is None or isinstance(theirs, str):
            self.silent.append(f"{what}: {theirs or 'no answer'}")
        elif ours == theirs:
            self.agree += 1
        else:
            self.differ.append(f"{what}: ours {word(ours)}, theirs {word(theirs)}")

    def print(self):
        print(f"\n{self.judge}: {self.agree} agree, {len(self.differ)} differ, {len(self.silent)} not judged")
        for line in self.differ:
            print(f"  differs  {line}")
        for line in self.silent:
            print(f"  silent   {line}")


def word(compatible):
    return "compatible" if compatible else "breaks"


def load(name):
    return json.loads((PAIRS / name).read_text())


def avro_static(writer, reader):
    from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
    from avro.schema import parse

    try:
        result = ReaderWriterCompatibilityChecker().get_compatibility(
            parse(json.dumps(reader)), parse(json.dumps(writer))
        )
    except Exception as error:  # the judge's own trouble is a missing answer
        return f"{type(error).__name__}: {error}"[:90]
    return result.compatibility is SchemaCompatibilityType.compatible


def avro_decoded(writer, reader):
    """Really writes data with the one schema and reads it with the other."""
    import fastavro
    from fastavro.utils import generate_many

    try:
        # Twice, because parsing notes names in what it parses.
        write_as = fastavro.parse_schema(json.loads(json.dumps(writer)))
        read_as = fastavro.parse_schema(json.loads(json.dumps(reader)))
        values = list(generate_many(write_as, 40))
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:90]
    for value in values:
        data = io.BytesIO()
        try:
            fastavro.schemaless_writer(data, write_as, value)
        except Exception as error:
            return f"does not write: {error}"[:90]
        data.seek(0)
        try:
            fastavro.schemaless_reader(data, write_as, read_as)
        except Exception:
            return False
    return True


def json_subset(writer, reader):
    from jsonsubschema import isSubschema

    def late(*_):
        raise TimeoutError("too slow")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(10)
    try:
        answer = isSubschema(json.loads(json.dumps(writer)), json.loads(json.dumps(reader)))
        return answer if isinstance(answer, bool) else "does not know"
    except BaseException as error:
        return f"{type(error).__name__}: {error}".replace("\n", " ")[:90]
    finally:
        signal.alarm(0)


def buf_breaking(buf, old, new, rules):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("old", old), ("new", new)):
            inside = pathlib.Path(folder, name)
            inside.mkdir()
            (inside / "m.proto").write_text(text)
            (inside / "buf.yaml").write_text("version: v2\n")
        config = json.dumps({"version": "v2", "breaking": {"use": [rules]}})
        run = subprocess.run(
            [buf, "breaking", f"{folder}/new", "--against", f"{folder}/old", "--config", config],
            capture_output=True, text=True, timeout=60,
        )
        if run.returncode == 0:
            return True
        if run.returncode == 100 and "previously present" not in run.stderr:
            return False
        return run.stderr.strip().splitlines()[-1][:90] if run.stderr else False


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--buf", help="path of the buf binary; without it Protobuf is left out")
    buf = arguments.parse_args().buf

    static, decoded = Tally("Avro, PyPI avro (static)"), Tally("Avro, fastavro (by decoding)")
    for pair in load("avro.json"):
        for mode, writer, reader in (("backward", pair["old"], pair["new"]), ("forward", pair["new"], pair["old"])):
            what = f"{pair['name']}, {mode}"
            static.add(what, pair[mode], avro_static(writer, reader))
            decoded.add(what, pair[mode], avro_decoded(writer, reader))
    static.print()
    decoded.print()

    subset = Tally("JSON Schema strict, jsonsubschema")
    for pair in load("json.json"):
        for mode, writer, reader in (("backward", pair["old"], pair["new"]), ("forward", pair["new"], pair["old"])):
            subset.add(f"{pair['name']}, {mode}", pair[f"strict_{mode}"], json_subset(writer, reader))
    subset.print()

    if buf:
        wire, names = Tally("Protobuf wire, buf WIRE"), Tally("Protobuf json, buf WIRE_JSON")
        for pair in load("protobuf.json"):
            # buf knows no direction: what breaks either way breaks.
            both = pair["wire"] if "wire" in pair else pair["backward"] and pair["forward"]
            wire.add(pair["name"], both, buf_breaking(buf, pair["old"], pair["new"], "WIRE"))
            if "json" in pair:
                names.add(pair["name"], pair["json"], buf_breaking(buf, pair["old"], pair["new"], "WIRE_JSON"))
        wire.print()
        names.print()


if __name__ == "__main__":
    main()
