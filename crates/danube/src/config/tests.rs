//! Which layer wins, and what every error says.

use super::*;
use crate::failure::Exit;
use expect_test::{Expect, expect};
use std::io::Write;

fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

fn load(flags: &Flags, pairs: &[(&str, &str)]) -> Result<Settings, Failure> {
    Settings::load(flags, variables(pairs))
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    file.write_all(text.as_bytes()).expect("it can be written");
    file
}

/// The error, with the random path of the file taken out.
fn refused(flags: &Flags, pairs: &[(&str, &str)], expected: Expect) {
    let failure = load(flags, pairs).expect_err("this configuration is wrong");
    assert_eq!(failure.exit, Exit::Usage);
    let mut text = format!("{}\nhelp: {}", failure.message, failure.help.unwrap_or_default());
    if let Some(path) = &flags.config_file {
        text = text.replace(&path.display().to_string(), "FILE");
    }
    expected.assert_eq(&text);
}

fn in_file(text: &str, expected: Expect) {
    let file = file(text);
    let flags = Flags { config_file: Some(file.path().into()), ..Flags::default() };
    refused(&flags, &[], expected);
}

#[test]
fn without_anything_the_defaults_hold() {
    let settings = load(&Flags::default(), &[]).expect("defaults are fine");
    assert_eq!(format!("{:?}", settings.broker), format!("{:?}", BrokerOptions::default()));
    assert_eq!(settings.log_format, LogFormat::Text);
}

#[test]
fn flags_win_over_environment_over_file_over_defaults() {
    let file = file(
        "broker_addr: 127.0.0.1:1\nadmin_addr: 127.0.0.1:2\nhttp_addr: 127.0.0.1:3\n\
         storage:\n  cache_bytes: 10\n  journal_file_bytes: 20\n",
    );
    let flags = Flags {
        config_file: Some(file.path().into()),
        http_addr: Some("127.0.0.1:33".into()),
        ..Flags::default()
    };
    let environment = [
        ("DANUBE_ADMIN_ADDR", "127.0.0.1:22"),
        ("DANUBE_HTTP_ADDR", "127.0.0.1:23"),
        ("DANUBE_STORAGE__JOURNAL_FILE_BYTES", "40"),
    ];
    let broker = load(&flags, &environment).expect("well formed").broker;
    let ports = [broker.broker_addr, broker.admin_addr, broker.http_addr].map(|a| a.port());
    assert_eq!(ports, [1, 22, 33]);
    assert_eq!((broker.storage.cache_bytes, broker.storage.journal_file_bytes), (10, 40));
    let defaults = BrokerOptions::default();
    assert_eq!(broker.policies.max_message_size, defaults.policies.max_message_size);
}

#[test]
fn the_environment_names_the_file_and_a_flag_names_another() {
    let (one, two) = (file("data_dir: one\n"), file("data_dir: two\n"));
    let named = one.path().display().to_string();
    let environment = [("DANUBE_CONFIG_FILE", named.as_str())];
    let settings = load(&Flags::default(), &environment).expect("well formed");
    assert_eq!(settings.broker.data_dir, PathBuf::from("one"));
    let flags = Flags { config_file: Some(two.path().into()), ..Flags::default() };
    let settings = load(&flags, &environment).expect("well formed");
    assert_eq!(settings.broker.data_dir, PathBuf::from("two"));
}

#[test]
fn every_kind_of_value_is_taken_from_the_environment() {
    let environment = [
        ("DANUBE_DATA_DIR", "123"),
        ("DANUBE_AUTO_CREATE_TOPICS", "FALSE"),
        ("DANUBE_BOOTSTRAP_NAMESPACES", "agents, tools,"),
        ("DANUBE_ADVERTISED_ADDR", "http://broker-1.example.org:6650/"),
        ("DANUBE_DISPATCH__MAX_UNACKED_MESSAGES", "10000"),
        ("DANUBE_LOG_FORMAT", "json"),
    ];
    let settings = load(&Flags::default(), &environment).expect("well formed");
    assert_eq!(settings.broker.data_dir, PathBuf::from("123"));
    assert!(!settings.broker.auto_create_topics);
    assert_eq!(settings.broker.bootstrap_namespaces, ["agents", "tools"]);
    assert_eq!(settings.broker.advertised_addr.as_deref(), Some("broker-1.example.org:6650"));
    assert_eq!(settings.broker.dispatch.max_unacked_messages, 10_000);
    assert_eq!(settings.log_format, LogFormat::Json);
}

#[test]
fn variables_of_others_do_no_harm() {
    let environment = [
        ("DANUBE_ADMIN_ENDPOINT", "http://127.0.0.1:50051"),
        ("DANUBE_ADMIN_TOKEN", "x"),
        ("DANUBE_SERVICE_ADDR", "http://127.0.0.1:6650"),
        ("DANUBE_PORT_6650_TCP", "tcp://10.0.0.1:6650"),
        ("DANUBE_DATADIR", "typo"),
        ("PATH", "/bin"),
    ];
    let settings = load(&Flags::default(), &environment).expect("nothing of ours is wrong");
    assert_eq!(settings.unknown_variables, ["DANUBE_DATADIR", "DANUBE_PORT_6650_TCP"]);
}

#[test]
fn an_empty_file_sets_nothing() {
    for text in ["", "# only a comment\n", "---\n", "storage: {}\n"] {
        let file = file(text);
        let flags = Flags { config_file: Some(file.path().into()), ..Flags::default() };
        assert!(load(&flags, &[]).is_ok(), "{text:?}");
    }
}

#[test]
fn a_file_that_is_wrong_says_where() {
    in_file(
        "data_dir: d\ndata_dirs: d\n",
        expect![[r#"
            config file `FILE`: unknown field `data_dirs`, expected one of `mode`, `data_dir`, `wal_dir`, `broker_addr`, `admin_addr`, `http_addr`, `advertised_addr`, `auto_create_topics`, `bootstrap_namespaces`, `console`, `log_format`, `log_level`, `otlp_endpoint`, `dispatch`, `storage`, `policies`, `metrics` at line 2 column 1
            help: mend or remove the key; a key of a section stands indented under its name"#]],
    );
    in_file(
        "storage:\n  cache_bytes: 1\n  cach_bytes: 1\n",
        expect![[r#"
        config file `FILE`: storage: unknown field `cach_bytes`, expected one of `flush_interval_ms`, `flush_max_batch_bytes`, `sync_interval_ms`, `journal_file_bytes`, `cache_bytes` at line 3 column 3
        help: mend or remove the key; a key of a section stands indented under its name"#]],
    );
    in_file(
        "storage:\n  cache_bytes: lots\n",
        expect![[r#"
        config file `FILE`: storage.cache_bytes: invalid type: string "lots", expected u64 at line 2 column 16
        help: mend or remove the key; a key of a section stands indented under its name"#]],
    );
    in_file(
        "dispatch:\n  max_unacked_messages: -1\n",
        expect![[r#"
        config file `FILE`: dispatch.max_unacked_messages: invalid type: integer `-1`, expected u32 at line 2 column 25
        help: mend or remove the key; a key of a section stands indented under its name"#]],
    );
    in_file(
        "data_dir: [\n",
        expect![[r#"
        config file `FILE`: data_dir: invalid type: sequence, expected path string at line 1 column 11
        help: mend or remove the key; a key of a section stands indented under its name"#]],
    );
    in_file(
        "- data_dir\n",
        expect![[r#"
        config file `FILE`: invalid type: sequence, expected a mapping of keys to values
        help: mend or remove the key; a key of a section stands indented under its name"#]],
    );
    in_file(
        "broker_addr: localhost\n",
        expect![[r#"
        config file `FILE`: broker_addr `localhost` is not an address
        help: give an address and a port, such as `127.0.0.1:6650`; port 0 picks one"#]],
    );
    let flags = Flags { config_file: Some("/nowhere/danube.yml".into()), ..Flags::default() };
    refused(
        &flags,
        &[],
        expect![[r#"
        config file `FILE` cannot be read: No such file or directory (os error 2)
        help: give the path of a readable YAML file, or start without --config-file"#]],
    );
}

#[test]
fn a_variable_that_is_wrong_is_named() {
    let refused = |name, value, expected| refused(&Flags::default(), &[(name, value)], expected);
    refused(
        "DANUBE_STORAGE__CACHE_BYTES",
        "lots",
        expect![[r#"
        environment variable DANUBE_STORAGE__CACHE_BYTES is `lots`, not a whole number
        help: "#]],
    );
    refused(
        "DANUBE_STORAGE__CACH_BYTES",
        "1",
        expect![[r#"
            environment variable DANUBE_STORAGE__CACH_BYTES names no key of section `storage`
            help: unset it, or use one of DANUBE_STORAGE__FLUSH_INTERVAL_MS, DANUBE_STORAGE__FLUSH_MAX_BATCH_BYTES, DANUBE_STORAGE__SYNC_INTERVAL_MS, DANUBE_STORAGE__JOURNAL_FILE_BYTES, DANUBE_STORAGE__CACHE_BYTES"#]],
    );
    refused(
        "DANUBE_DISPATCH__MAX_UNACKED_MESSAGES",
        "5000000000",
        expect![[r#"
        environment variable DANUBE_DISPATCH__MAX_UNACKED_MESSAGES is `5000000000`, not in the range of this key
        help: "#]],
    );
    refused(
        "DANUBE_DISPATCH__MAX_UNACKED_MESSAGES",
        "0",
        expect![[r#"
        environment variable DANUBE_DISPATCH__MAX_UNACKED_MESSAGES: dispatch.max_unacked_messages `0` must be within 1 and 10000
        help: "#]],
    );
    refused(
        "DANUBE_AUTO_CREATE_TOPICS",
        "maybe",
        expect![[r#"
        environment variable DANUBE_AUTO_CREATE_TOPICS is `maybe`, not `true` or `false`
        help: "#]],
    );
    refused(
        "DANUBE_BOOTSTRAP_NAMESPACES",
        "agents,a b",
        expect![[r#"
        environment variable DANUBE_BOOTSTRAP_NAMESPACES: bootstrap_namespaces `a b` cannot be: namespace `a b` contains ' '; allowed are letters, digits, `_` and `-`
        help: "#]],
    );
    refused(
        "DANUBE_STORAGE__FLUSH_MAX_BATCH_BYTES",
        "0",
        expect![[r#"
        environment variable DANUBE_STORAGE__FLUSH_MAX_BATCH_BYTES: storage.flush_max_batch_bytes `0` must be at least 1
        help: "#]],
    );
    refused(
        "DANUBE_ADVERTISED_ADDR",
        "broker",
        expect![[r#"
        environment variable DANUBE_ADVERTISED_ADDR: advertised_addr `broker` is not a host and a port
        help: give what clients can reach, such as `broker-1.example.org:6650`"#]],
    );
}

#[test]
fn a_flag_that_is_wrong_is_named() {
    let text = |value: &str| Some(value.to_owned());
    refused(
        &Flags { mode: text("cluster"), ..Flags::default() },
        &[],
        expect![[r#"
        --mode: mode `cluster` is not available in this version
        help: use --mode standalone, or leave the flag out"#]],
    );
    refused(
        &Flags { mode: text("clustre"), ..Flags::default() },
        &[],
        expect![[r#"
        --mode: mode `clustre` is no mode
        help: use --mode standalone, or leave the flag out"#]],
    );
    refused(
        &Flags { broker_addr: text("127.0.0.1"), ..Flags::default() },
        &[],
        expect![[r#"
        --broker-addr: broker_addr `127.0.0.1` is not an address
        help: give an address and a port, such as `127.0.0.1:6650`; port 0 picks one"#]],
    );
    refused(
        &Flags { admin_addr: text("127.0.0.1:99999"), ..Flags::default() },
        &[],
        expect![[r#"
        --admin-addr: admin_addr `127.0.0.1:99999` is not an address
        help: give an address and a port, such as `127.0.0.1:6650`; port 0 picks one"#]],
    );
    refused(
        &Flags { http_addr: text("127.0.0.1:6650"), ..Flags::default() },
        &[],
        expect![[r#"
        --http-addr: http_addr `127.0.0.1:6650` is also the broker_addr
        help: give each of the three a port of its own"#]],
    );
    refused(
        &Flags { log_format: text("xml"), ..Flags::default() },
        &[],
        expect![[r#"
        --log-format: log_format `xml` is no log format; use `text` or `json`
        help: "#]],
    );
}

#[test]
fn a_host_name_is_an_address_and_port_0_may_repeat() {
    let text = |value: &str| Some(value.to_owned());
    let flags = Flags {
        broker_addr: text("localhost:0"),
        admin_addr: text("localhost:0"),
        http_addr: text("127.0.0.1:0"),
        ..Flags::default()
    };
    let broker = load(&flags, &[]).expect("well formed").broker;
    assert!(broker.broker_addr.ip().is_loopback());
}
