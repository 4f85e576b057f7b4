//! Flags and help, seen from outside: the text a user reads, and what a wrong flag gives.

use crate::harness::{Run, danube, danube_ok, danube_with};
use expect_test::{Expect, expect};

fn help(arguments: &[&str], expected: Expect) {
    let run = danube_with(&[arguments, &["--help"]].concat(), &[("COLUMNS", "100")]);
    assert_eq!(run.code, 0);
    // No line of this file ends with a space, though some of clap's do.
    let lines: Vec<&str> = run.stdout.trim_end().lines().map(str::trim_end).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[track_caller]
fn usage_error(arguments: &[&str], says: &str) -> Run {
    let run = danube(arguments);
    assert_eq!(run.code, 2, "{arguments:?}: {run:#?}");
    assert_eq!(run.stdout, "", "{arguments:?}: stdout is for results");
    assert!(run.stderr.starts_with("error: "), "{arguments:?}: {}", run.stderr);
    assert!(run.stderr.contains(says), "{arguments:?}: {}", run.stderr);
    run
}

#[test]
fn help_of_all() {
    help(
        &[],
        expect![[r#"
            A message broker: durable queues and streams, ready with one command

            Usage: danube <COMMAND>

            Commands:
              start        Run a broker
              produce      Publish messages to a topic
              consume      Receive messages of a topic and print them
              ctl          Create, describe and change topics, namespaces and metadata
              demo         Watch redelivery, dead letters and replay at work, with a broker of its own
              doctor       Explain the files of a stopped data directory, find damage and repair it
              bench        Measure a broker
              mcp          Let AI agents and assistants operate a broker (Model Context Protocol)
              completions  Print a script that completes commands in a shell
              man          Write man pages
              health       Ask a broker whether it is ready; exit code 0 says yes
              version      Print the version
              help         Print this message or the help of the given subcommand(s)

            Options:
              -h, --help     Print help
              -V, --version  Print version"#]],
    );
}

#[test]
fn help_of_start() {
    help(
        &["start"],
        expect![[r#"
            Run a broker

            Usage: danube start [OPTIONS]

            Options:
                  --mode <MODE>                  How this broker runs: alone, for now [default: standalone]
                  --data-dir <DIR>               Where everything is kept [default: ./danube-data]
                  --wal-dir <DIR>                Where the log is kept, if not in the data directory
                  --broker-addr <ADDR:PORT>      Where clients connect; port 0 picks a free one [default:
                                                 127.0.0.1:6650]
                  --admin-addr <ADDR:PORT>       Where `danube ctl` connects [default: 127.0.0.1:50051]
                  --http-addr <ADDR:PORT>        Where the console, /healthz, /readyz and /metrics are [default:
                                                 127.0.0.1:8080]
                  --advertised-addr <HOST:PORT>  What clients are told to connect to, if not the broker address
                  --console <HOW>                What the console may do: on, read-only, off, or auto: on where
                                                 only this machine reaches it, else read-only [default: auto]
                  --config-file <FILE>           A YAML file with any of these and more keys
                  --log-format <FORMAT>          How log lines on stderr look: text or json [default: text]
                  --log-level <LEVEL>            What is logged: a level, or directives such as
                                                 info,danube_broker=debug [default: info]
                  --otlp-endpoint <URL>          Where traces go (OTLP over gRPC), such as
                                                 http://localhost:4317; off without it
              -h, --help                         Print help"#]],
    );
}

#[test]
fn help_of_produce() {
    help(
        &["produce"],
        expect![[r#"
            Publish messages to a topic

            Usage: danube produce [OPTIONS] <--message <TEXT>|--file <FILE>>

            Options:
              -s, --service-addr <URL>
                      The broker's client address

                      [env: DANUBE_SERVICE_ADDR=]
                      [default: http://127.0.0.1:6650]

              -n, --producer-name <NAME>
                      The producer's name; the same name again is the same producer

                      [default: test_producer]

              -t, --topic <TOPIC>
                      The topic, made if it does not exist

                      [default: /default/test_topic]

              -m, --message <TEXT>
                      The text to publish; JSON where an Avro or Protobuf schema encodes it

              -f, --file <FILE>
                      The file to publish, as it is; where a schema encodes, each line of it is a message in
                      JSON

                  --schema-subject <SUBJECT>
                      The schema subject that messages follow; JSON is encoded by an Avro or Protobuf schema

                  --schema-version <N>
                      Follow this version [default: the latest]

                  --schema-min-version <N>
                      Follow the latest version, which must be at least this one

                  --schema-file <FILE>
                      Register this definition first, and follow it

                  --schema-type <TYPE>
                      The type of that definition: avro, json_schema, protobuf, string, number or bytes

              -a, --attributes <KEY:VALUE,…>
                      Attributes, such as `source:app-1,priority:high`

                  --key <KEY>
                      The routing key: messages of one key stay together and in order

              -p, --partitions <N>
                      How many partitions to publish to [default: those of the topic]

              -c, --count <N>
                      How often to publish it

                      [default: 1]

              -i, --interval <MS>
                      Pause between two messages, in milliseconds

                      [default: 500]

                  --reliable
                      Make the topic a reliable one if it does not exist: messages survive a crash

                  --wire <WIRE>
                      The protocol to speak

                      Possible values:
                      - native:     Streams of batches, `danube.stream.v1`
                      - compatible: One call per message, as the published clients do it

                      [default: native]

              -h, --help
                      Print help (see a summary with '-h')"#]],
    );
}

#[test]
fn help_of_consume() {
    help(
        &["consume"],
        expect![[r#"
            Receive messages of a topic and print them

            Usage: danube consume [OPTIONS] --subscription <NAME>

            Options:
              -s, --service-addr <URL>
                      The broker's client address

                      [env: DANUBE_SERVICE_ADDR=]
                      [default: http://127.0.0.1:6650]

              -t, --topic <TOPIC>
                      The topic; all its partitions are received

                      [default: /default/test_topic]

              -n, --consumer <NAME>
                      The consumer's name; the same name again takes over

                      [default: consumer_pubsub]

              -m, --subscription <NAME>
                      The subscription, made if it does not exist

                  --sub-type <TYPE>
                      Who of the subscription's consumers receives a message

                      Possible values:
                      - exclusive:  One consumer, everything in order
                      - shared:     All consumers in turn
                      - fail-over:  The consumer that has been there longest, and the next one when it goes
                      - key-shared: The consumer that has the message's key, one message of a key at a time

                      [default: shared]

                  --key-filter <PATTERN>
                      key-shared: receive only keys that match; may be given several times

                  --count <N>
                      Stop after this many messages

                  --timeout <SECONDS>
                      Stop when no message came for this long

                  --output <OUTPUT>
                      How to print messages

                      Possible values:
                      - text: For people
                      - json: For programs

                      [default: text]

                  --no-ack
                      Do not acknowledge: all messages stay with the subscription

                  --no-decode
                      Print payloads as they are, also those that an Avro or Protobuf schema decodes

                  --wire <WIRE>
                      The protocol to speak

                      Possible values:
                      - native:     Streams of batches, `danube.stream.v1`
                      - compatible: One call per message, as the published clients do it

                      [default: native]

              -h, --help
                      Print help (see a summary with '-h')"#]],
    );
}

#[test]
fn help_of_ctl() {
    help(
        &["ctl"],
        expect![[r#"
            Create, describe and change topics, namespaces and metadata

            Usage: danube ctl [OPTIONS] <COMMAND>

            Commands:
              topics      Topics and their subscriptions
              namespaces  Namespaces, which topics live in
              schemas     Schemas: subjects, their versions, and what they promise
              brokers     Brokers
              cluster     The cluster that brokers belong to
              metadata    The documents the broker keeps about all of it
              overview    Print what the broker does, what needs attention first, and its topics with their
                          figures
              apply       Make namespaces, schemas, topics and subscriptions what a manifest declares
              diff        Print what differs from a manifest; exit code 1 when something does
              export      Print what there is as a manifest; applied where it came from, it changes nothing
              drift       Print what is not as manifests declared it, and who changed it; exit code 1 when
                          something is
              context     The clusters that this machine knows by name
              help        Print this message or the help of the given subcommand(s)

            Options:
                  --endpoint <URL>
                      The broker's admin address [default: that of the context, else http://127.0.0.1:50051]

                      [env: DANUBE_ADMIN_ENDPOINT=]

                  --context <NAME>
                      The cluster to talk to, by its name in the context file

                      [env: DANUBE_CONTEXT=]

                  --output <FORMAT>
                      How to print the result

                      Possible values:
                      - table: For people
                      - json:  For programs
                      - yaml:  For programs and people

                      [default: table]

                  --watch[=<SECONDS>]
                      Print it again each time it has changed, looking every SECONDS

              -h, --help
                      Print help (see a summary with '-h')"#]],
    );
    help(
        &["ctl", "topics"],
        expect![[r#"
            Topics and their subscriptions

            Usage: danube ctl topics [OPTIONS] <COMMAND>

            Commands:
              create                 Create a topic, or all partitions of one
              describe               Print what a topic is, and where its subscriptions stand
              explain                Print every setting that holds for a topic and its subscriptions, and where
                                     each comes from
              configure              Set what a topic has beside its intent; what is not given stays
              list                   Print the topics of all namespaces, or of one
              delete                 Delete a topic with all its messages and subscriptions
              subscriptions          Print the names of a topic's subscriptions
              create-subscription    Create a subscription before its first consumer comes
              unsubscribe            Delete a subscription; its consumers are sent away
              get-failure-policy     Print what a subscription does with failures
              set-failure-policy     Change what a subscription does with failures; what is not given stays
              get-dispatch-config    Print how many messages of a subscription may be delivered and not
                                     acknowledged
              set-dispatch-config    Set how many messages of a subscription may be delivered and not
                                     acknowledged
              publish                Publish one message to a topic that exists
              peek                   Print messages of a topic without receiving them; nothing is left behind
              seek                   Put a subscription's cursor; what was delivered before and is not
                                     acknowledged is void
              replay-dlq             Publish dead letters again, to where they came from; run again, it goes on
                                     where it was
              why                    Print why a subscription does not move
              unload                 Let a broker put a topic out of its memory; its clients come back by
                                     themselves
              configure-schema       Set the schema subject of a topic and what becomes of messages that do not
                                     fit
              set-validation-policy  Set what becomes of messages that do not fit the topic's schema; the
                                     subject stays
              get-schema-config      Print the schema subject of a topic and how it validates
              help                   Print this message or the help of the given subcommand(s)

            Options:
                  --endpoint <URL>
                      The broker's admin address [default: that of the context, else http://127.0.0.1:50051]

                      [env: DANUBE_ADMIN_ENDPOINT=]

                  --context <NAME>
                      The cluster to talk to, by its name in the context file

                      [env: DANUBE_CONTEXT=]

                  --output <FORMAT>
                      How to print the result

                      Possible values:
                      - table: For people
                      - json:  For programs
                      - yaml:  For programs and people

                      [default: table]

                  --watch[=<SECONDS>]
                      Print it again each time it has changed, looking every SECONDS

              -h, --help
                      Print help (see a summary with '-h')"#]],
    );
    help(
        &["ctl", "topics", "create"],
        expect![[r#"
            Create a topic, or all partitions of one

            Usage: danube ctl topics create [OPTIONS] <TOPIC>

            Arguments:
              <TOPIC>
                      The topic: `/namespace/topic`, `namespace/topic` or, in --namespace, `topic`

            Options:
                  --endpoint <URL>
                      The broker's admin address [default: that of the context, else http://127.0.0.1:50051]

                      [env: DANUBE_ADMIN_ENDPOINT=]

                  --namespace <NAMESPACE>
                      The namespace of a topic that names none

                      [default: default]

                  --context <NAME>
                      The cluster to talk to, by its name in the context file

                      [env: DANUBE_CONTEXT=]

                  --intent <INTENT>
                      What it is for: realtime, event_stream, task_queue or audit_log, or another name of these

                  --output <FORMAT>
                      How to print the result

                      Possible values:
                      - table: For people
                      - json:  For programs
                      - yaml:  For programs and people

                      [default: table]

                  --partitions <N>
                      Make this many partitions of it

                  --dispatch-strategy <STRATEGY>
                      How it delivers; an intent says that by itself [default: non_reliable]

                      Possible values:
                      - non_reliable: In memory, to whoever listens now
                      - reliable:     Through the log, at least once

                  --watch[=<SECONDS>]
                      Print it again each time it has changed, looking every SECONDS

                  --schema-subject <SUBJECT>
                      The schema subject its messages follow

              -h, --help
                      Print help (see a summary with '-h')"#]],
    );
    help(
        &["ctl", "topics", "set-failure-policy"],
        expect![[r#"
            Change what a subscription does with failures; what is not given stays

            Usage: danube ctl topics set-failure-policy [OPTIONS] --subscription <NAME> <--max-redelivery-count <N>|--ack-timeout-ms <MS>|--base-redelivery-delay-ms <MS>|--max-redelivery-delay-ms <MS>|--backoff-strategy <STRATEGY>|--dead-letter-topic <TOPIC>|--poison-policy <POLICY>> <TOPIC>

            Arguments:
              <TOPIC>
                      The topic: `/namespace/topic`, `namespace/topic` or, in --namespace, `topic`

            Options:
                  --endpoint <URL>
                      The broker's admin address [default: that of the context, else http://127.0.0.1:50051]

                      [env: DANUBE_ADMIN_ENDPOINT=]

                  --namespace <NAMESPACE>
                      The namespace of a topic that names none

                      [default: default]

                  --context <NAME>
                      The cluster to talk to, by its name in the context file

                      [env: DANUBE_CONTEXT=]

              -s, --subscription <NAME>
                      The subscription

                  --max-redelivery-count <N>
                      Re-deliveries after the first delivery

                  --output <FORMAT>
                      How to print the result

                      Possible values:
                      - table: For people
                      - json:  For programs
                      - yaml:  For programs and people

                      [default: table]

                  --ack-timeout-ms <MS>
                      How long a consumer may hold a message, in milliseconds

                  --watch[=<SECONDS>]
                      Print it again each time it has changed, looking every SECONDS

                  --base-redelivery-delay-ms <MS>
                      Delay before the first re-delivery, in milliseconds

                  --max-redelivery-delay-ms <MS>
                      Longest delay before a re-delivery, in milliseconds

                  --backoff-strategy <STRATEGY>
                      How the delay grows

                      Possible values:
                      - fixed:       The same delay each time
                      - exponential: Twice the delay each time

                  --dead-letter-topic <TOPIC>
                      Where messages go that failed for good

                  --poison-policy <POLICY>
                      What becomes of messages that failed for good

                      Possible values:
                      - dead_letter: They go to the dead-letter topic
                      - block:       They stay and hold up what comes after them
                      - drop:        They are dropped

              -h, --help
                      Print help (see a summary with '-h')"#]],
    );
}

#[test]
fn help_of_bench() {
    help(
        &["bench"],
        expect![[r#"
            Measure a broker

            Usage: danube bench <COMMAND>

            Commands:
              publish  Publish, and measure until the acknowledgement
              consume  Fill a subscription, then measure how fast it is received and acknowledged
              e2e      Publish and receive at the same time, and measure from one end to the other
              fanout   Publish once, receive many times, and measure deliveries
              queue    Publish and work at the same time, each message to one of several workers
              topics   Publish one message to each of many topics, again and again
              suite    Run all workloads and print a table of them
              echo     Measure a bare gRPC echo with the same messages, for comparison
              log      Measure the log engine without a network, against the disk's own limits
              help     Print this message or the help of the given subcommand(s)

            Options:
              -h, --help  Print help"#]],
    );
    help(
        &["bench", "publish"],
        expect![[r#"
            Publish, and measure until the acknowledgement

            Usage: danube bench publish [OPTIONS]

            Options:
              -s, --service-addr <URL>
                      The broker's client address

                      [env: DANUBE_SERVICE_ADDR=]
                      [default: http://127.0.0.1:6650]

              -t, --topic <TOPIC>
                      The topic [default: a new one]

                  --reliable
                      Make the topic a reliable one; this is the default

                  --non-reliable
                      Make the topic a non-reliable one

                  --intent <INTENT>
                      Make the topic for this: realtime (in memory), event_stream (a crash loses nothing),
                      task_queue or audit_log (a loss of power loses nothing)

                  --endpoint <URL>
                      The broker's admin address, which --intent needs

                      [env: DANUBE_ADMIN_ENDPOINT=]
                      [default: http://127.0.0.1:50051]

                  --wire <WIRE>
                      The protocol to speak

                      Possible values:
                      - native:     Streams of batches, `danube.stream.v1`
                      - compatible: One call per message, as the published clients do it

                      [default: native]

                  --pid <PID>
                      The broker's process id: the report shows its CPU time and memory [default: whoever
                      listens at the client address on this machine]

                  --count <N>
                      How many messages

                  --seconds <SECONDS>
                      How long [default: 10]

                  --size <BYTES>
                      Size of a payload, in bytes

                      [default: 1024]

                  --in-flight <N>
                      Messages in flight, over all connections together

                      [default: 128]

                  --connections <N>
                      Connections that publish

                      [default: 1]

                  --batch <N>
                      Native wire: send batches of this many messages, waiting a little for the last of them
                      [default: whatever waits goes]

                  --warm-up <N>
                      Messages sent before the clock starts

                      [default: 5000]

                  --output <OUTPUT>
                      How to print the report

                      Possible values:
                      - text: For people
                      - json: For programs

                      [default: text]

                  --compare-echo
                      Measure a bare gRPC echo first, with the same load, and print the ratio

                  --compare-schema
                      Publish to two topics by turns, one of which enforces a schema, and print the ratio

              -h, --help
                      Print help (see a summary with '-h')"#]],
    );
}

#[test]
fn the_version_goes_to_stdout() {
    let expected = concat!("danube ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(danube_ok(&["version"]), expected);
    assert_eq!(danube_ok(&["--version"]), expected);
}

#[test]
fn the_version_for_programs_says_what_it_reads() {
    let told: serde_json::Value =
        serde_json::from_str(&danube_ok(&["version", "--json"])).expect("a JSON document");
    assert_eq!(told["version"], env!("CARGO_PKG_VERSION"));
    assert!(told["rustc"].as_str().expect("known").starts_with("rustc "), "{told}");
    assert!(told["target"].is_string() && told["build_date_epoch"].is_null(), "{told}");
    assert!(told.as_object().expect("a mapping").contains_key("commit"), "{told}");
    for format in ["record", "journal", "segment", "checkpoint", "catalog"] {
        assert!(told["formats"][format].is_u64(), "{told}");
    }
}

#[test]
fn wrong_flags_are_usage_errors() {
    usage_error(&["start", "--brokr-addr", "127.0.0.1:1"], "--brokr-addr");
    usage_error(&["consume"], "--subscription");
    usage_error(&["consume", "-m", "s", "--sub-type", "both"], "key-shared");
    usage_error(&["consume", "-m", "s", "--key-filter", "a*"], "--sub-type key-shared");
    usage_error(&["consume", "-m", "a/b"], "subscription name `a/b`");
    usage_error(&["consume", "-m", "s", "--count", "0"], "--count");
    usage_error(&["produce"], "--file");
    usage_error(&["produce", "-m", "x", "-f", "y"], "cannot be used with");
    usage_error(&["produce", "-m", "x", "-a", "novalue"], "key:value");
    usage_error(&["produce", "-m", "x", "-p", "0"], "--partitions");
    usage_error(&["produce", "-m", "x", "-t", "jobs"], "/namespace/topic");
    usage_error(&["produce", "-f", "/no/such/file"], "/no/such/file");
    usage_error(&["produce", "-m", "x", "-s", "https://h:1"], "TLS");
    usage_error(&["ctl", "topics", "create", "a b"], "`/default/a b`");
    usage_error(&["ctl", "topics", "create", "t", "--intent", "queue"], "task_queue");
    usage_error(&["ctl", "topics", "set-failure-policy", "t", "-s", "s"], "--poison-policy");
    usage_error(&["bench", "publish", "--size", "7"], "--size");
    usage_error(&["bench", "consume", "--non-reliable"], "non-reliable");
    usage_error(&["bench", "publish", "--count", "1", "--seconds", "1"], "cannot be used with");
}

#[test]
fn a_bench_counts_its_messages() {
    let flags = ["--count", "300", "--warm-up", "10", "--in-flight", "8", "--output", "json"];
    let report = danube_ok(&[&["bench", "echo"], &flags[..]].concat());
    let report: serde_json::Value = serde_json::from_str(&report).expect("a JSON document");
    assert_eq!(report["messages"], 300);
    assert_eq!(report["size_bytes"], 1024);
    assert!(report["latency_us"]["p50"].as_u64() <= report["latency_us"]["max"].as_u64());
}
