//! What is wrong is refused with one clear error, and harms nothing: the broker serves on.

use crate::harness::{Node, Run, command, danube};
use crate::wire::{Wire, message, offset_of, within};
use danube_wire::proto::danube::{AckRequest, NackRequest};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use tokio::task::block_in_place;
use tonic::{Code, Status};

/// One message there and back.
async fn serves(node: &Node) {
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let topic = "/default/still-serving";
    let producer = wire.create_producer(topic, "p").await.expect("created");
    let consumer = wire.subscribe(topic, "s", "c").await.expect("subscribed");
    let mut stream = wire.receive(consumer).await.expect("opened");
    wire.send(message(topic, producer, "p", b"alive".to_vec())).await.expect("sent");
    let delivered = within("a message", stream.message()).await.expect("goes on").expect("goes on");
    assert_eq!(delivered.payload, "alive");
    assert!(delivered.msg_id.is_some() && offset_of(&delivered) < 1_000);
    wire.ack(&delivered, "s").await.expect("acknowledged");
}

/// One clear sentence: a single `error:` line with all of `words` in it, nothing on stdout, no
/// panic, and a non-zero exit code.
#[track_caller]
fn refused(run: &Run, code: i32, words: &[&str]) {
    assert_eq!(run.code, code, "{run:#?}");
    assert_eq!(run.stdout, "", "stdout is for results");
    let errors = run.stderr.lines().filter(|line| line.starts_with("error:")).count();
    assert_eq!(errors, 1, "one error: {}", run.stderr);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    for word in words {
        assert!(run.stderr.contains(word), "{word:?} is missing from: {}", run.stderr);
    }
}

#[track_caller]
fn is(code: Code, words: &[&str], refusal: &Status) {
    assert_eq!(refusal.code(), code, "{refusal}");
    for word in words {
        assert!(refusal.message().contains(word), "{word:?} is missing from: {refusal}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_names_are_invalid_arguments() {
    let node = block_in_place(Node::start);
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let too_long = format!("/default/{}", "x".repeat(256));
    for topic in
        ["", "orders", "/orders", "/a/b/c", "//b", "/a/", "/a/..", "/a/b c", "/a/b\0", &too_long]
    {
        let refusal = wire.create_producer(topic, "p").await.expect_err(topic);
        is(Code::InvalidArgument, &["topic"], &refusal);
        let refusal = wire.subscribe(topic, "s", "c").await.expect_err(topic);
        is(Code::InvalidArgument, &["topic"], &refusal);
    }
    let topic = "/default/fine";
    wire.create_producer(topic, "p").await.expect("created");
    for name in ["", "a/b", "a\nb", &"x".repeat(256)] {
        let refusal = wire.create_producer(topic, name).await.expect_err(name);
        is(Code::InvalidArgument, &["producer"], &refusal);
        let refusal = wire.subscribe(topic, name, "c").await.expect_err(name);
        is(Code::InvalidArgument, &["subscription"], &refusal);
        let refusal = wire.subscribe(topic, "s", name).await.expect_err(name);
        is(Code::InvalidArgument, &["consumer"], &refusal);
    }
    serves(&node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_topics_and_namespaces_are_said_to_be_unknown() {
    let node = block_in_place(Node::start);
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let refusal = wire.subscribe("/default/nowhere", "s", "c").await.expect_err("unknown");
    is(Code::NotFound, &["/default/nowhere"], &refusal);
    let refusal = wire.create_producer("/nowhere/topic", "p").await.expect_err("unknown");
    is(Code::NotFound, &["nowhere"], &refusal);
    serves(&node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_oversize_message_is_an_invalid_argument() {
    let node = block_in_place(Node::start);
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let topic = "/default/size";
    let producer = wire.create_producer(topic, "p").await.expect("created");
    for len in [4 << 20, 5 << 20, 9 << 20] {
        let oversize = message(topic, producer, "p", vec![0; len]);
        let refusal = wire.send(oversize).await.expect_err("too large");
        is(Code::InvalidArgument, &[&((4 << 20) - (64 << 10)).to_string()], &refusal);
    }
    let many = (0..100_000).map(|i| (format!("key-{i}"), "v".repeat(60))).collect();
    let mut by_attributes = message(topic, producer, "p", Vec::new());
    by_attributes.attributes = many;
    is(Code::InvalidArgument, &[], &wire.send(by_attributes).await.expect_err("too large"));
    serves(&node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acks_of_nothing_are_invalid_arguments() {
    let node = block_in_place(Node::start);
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let ack = AckRequest { subscription_name: "s".into(), ..AckRequest::default() };
    let refusal = within("Ack", wire.consumers.ack(ack)).await.expect_err("no message id");
    is(Code::InvalidArgument, &[], &refusal);
    let nack = NackRequest { subscription_name: "s".into(), ..NackRequest::default() };
    let refusal = within("Nack", wire.consumers.nack(nack)).await.expect_err("no message id");
    is(Code::InvalidArgument, &[], &refusal);
    let without_id = danube_wire::proto::danube::StreamMessage::default();
    is(Code::InvalidArgument, &[], &wire.send(without_id).await.expect_err("no message id"));
    serves(&node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_not_the_protocol_harm_nothing() {
    let node = block_in_place(Node::start);
    let at = node.addresses().clone();
    for url in [&at.broker, &at.admin, &at.http] {
        for garbage in
            [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &[0xff; 4096], b"PRI * HTTP/2.0\r\n"]
        {
            let mut socket =
                TcpStream::connect(url.trim_start_matches("http://")).expect("it listens");
            // The broker may have hung up before all of it was written.
            let _ = socket.write_all(garbage);
        }
    }
    serves(&node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_say_what_is_wrong() {
    let node = block_in_place(Node::start);
    let at = node.addresses().clone();
    let home = tempfile::tempdir().expect("a temporary directory can be made");
    let large = home.path().join("large");
    std::fs::write(&large, vec![b'x'; 5 << 20]).expect("written");
    let large = large.to_str().expect("a plain path");
    block_in_place(|| {
        let broker = at.broker.as_str();
        let admin = ["--endpoint", at.admin.as_str()];
        let ctl = |arguments: &[&str]| danube(&[&["ctl"], &admin[..], arguments].concat());

        refused(
            &danube(&["produce", "-s", broker, "-t", "orders", "-m", "x"]),
            2,
            &["`orders`", "/namespace/topic"],
        );
        refused(&danube(&["consume", "-s", broker, "-t", "/a/b/c", "-m", "s"]), 2, &["`/a/b/c`"]);
        refused(
            &danube(&["consume", "-s", broker, "-t", "/default/nowhere", "-m", "s"]),
            1,
            &["/default/nowhere"],
        );
        refused(
            &danube(&["produce", "-s", broker, "-t", "/nowhere/t", "-m", "x"]),
            1,
            &["nowhere"],
        );
        refused(
            &danube(&["produce", "-s", broker, "-t", "/default/t", "--file", large]),
            1,
            &["/default/t"],
        );
        refused(
            &danube(&["produce", "-s", broker, "--file", "/no/such/file"]),
            2,
            &["/no/such/file"],
        );
        refused(
            &ctl(&["topics", "create", "/default/t", "--intent", "fast"]),
            2,
            &["`fast`", "task_queue"],
        );
        refused(&ctl(&["topics", "describe", "/default/nowhere"]), 1, &["/default/nowhere"]);
        refused(&ctl(&["topics", "delete", "/default/nowhere"]), 1, &["/default/nowhere"]);

        let wrong_flag = danube(&["start", "--brokr-addr", "127.0.0.1:0"]);
        refused(&wrong_flag, 2, &["--brokr-addr"]);
        refused(&danube(&["start", "--broker-addr", "nonsense"]), 2, &["nonsense"]);
        refused(&danube(&["publish"]), 2, &["publish"]);

        // Nobody listens there: a port that was free a moment ago, on an address of its own.
        let nobody = TcpListener::bind("127.250.0.1:0").expect("a free port").local_addr();
        let nobody = format!("http://{}", nobody.expect("bound"));
        refused(&danube(&["produce", "-s", &nobody, "-m", "x"]), 3, &[&nobody]);
        refused(&danube(&["ctl", "--endpoint", &nobody, "topics", "list"]), 3, &[&nobody]);
    });
    serves(&node).await;
}

/// Runs `danube start`, which is expected to refuse by itself.
fn start(flags: &[&str]) -> Run {
    let child = command().arg("start").args(flags).stdin(Stdio::null()).output();
    child.expect("the binary was built for this test").into()
}

const ANY_PORTS: [&str; 6] =
    ["--broker-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_on_one_data_directory_is_refused() {
    let node = block_in_place(Node::start);
    let data_dir = node.data_dir().to_str().expect("a plain path").to_owned();
    let second = block_in_place(|| start(&[&ANY_PORTS[..], &["--data-dir", &data_dir]].concat()));
    refused(&second, 1, &[&data_dir]);
    serves(&node).await;
}

#[test]
fn a_busy_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken.local_addr().map(|at| (taken, at.to_string())).expect("bound");
    for flag in ["--broker-addr", "--admin-addr", "--http-addr"] {
        let home = tempfile::tempdir().expect("a temporary directory can be made");
        let data_dir = home.path().join("data");
        let mut flags = ANY_PORTS;
        let at = flags.iter().position(|f| *f == flag).expect("one of them");
        flags[at + 1] = &taken.1;
        let run = start(&[&flags[..], &["--data-dir", data_dir.to_str().expect("plain")]].concat());
        refused(&run, 1, &[&taken.1]);
    }
}

#[test]
fn a_data_directory_that_cannot_be_written_is_named() {
    let home = tempfile::tempdir().expect("a temporary directory can be made");
    // A file stands in the way, which stops even an administrator.
    let file = home.path().join("file");
    std::fs::write(&file, "precious").expect("written");
    for data_dir in [file.clone(), file.join("below")] {
        let data_dir = data_dir.to_str().expect("a plain path");
        let run = start(&[&ANY_PORTS[..], &["--data-dir", data_dir]].concat());
        refused(&run, 1, &[data_dir]);
    }
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "precious");
    // Where permissions mean something to whoever runs this test.
    let sealed = home.path().join("sealed");
    std::fs::create_dir(&sealed).expect("made");
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o555);
    std::fs::set_permissions(&sealed, permissions).expect("set");
    if std::fs::write(sealed.join("probe"), "").is_err() {
        let data_dir = sealed.join("data");
        let data_dir = data_dir.to_str().expect("a plain path");
        refused(&start(&[&ANY_PORTS[..], &["--data-dir", data_dir]].concat()), 1, &[data_dir]);
    }
}
