//! The console of a real broker, over plain HTTP: a poisoned ledger is visible with its reason, a
//! mended message is replayed, and what is not one of its own forms does nothing.

use crate::harness::{Node, danube_ok};
use crate::tools::topics_ok;
use danube_sdk::{Client, Consumer, NewMessage, Position};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tokio::task::block_in_place;

const LEDGER: &str = "/default/ledger";
const LETTERS: &str = "/default/ledger-dlq";
const HOSTILE: &str = "<script>alert(1)</script>";

/// An answer: status, head, body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    /// The value of a header.
    fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map_or("", |(_, v)| v)
    }

    /// The token of a form on the page.
    fn token(&self) -> &str {
        let (_, rest) = self.body.split_once("name=\"token\" value=\"").expect("a page has forms");
        &rest[..32]
    }
}

/// A browser that knows nothing but addresses.
struct Browser<'a> {
    node: &'a Node,
}

impl Browser<'_> {
    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let address = self.node.addresses().http.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).expect("it listens");
        let len = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: \
             application/x-www-form-urlencoded\r\nContent-Length: {len}\r\n{headers}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers in text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "")
    }

    /// Sends a form with its token, confirms where it is asked, and reads what became of it.
    fn send(&self, path: &str, fields: &str) -> String {
        let token = self.get("/operations/topics/create").token().to_owned();
        let form = format!("token={token}&{fields}");
        let mut answer = self.ask("POST", path, "", &form);
        if answer.status == 200 {
            assert!(answer.body.contains("Yes, do it"), "{}", answer.body);
            answer = self.ask("POST", path, "", &format!("{form}&confirmed=yes"));
        }
        assert_eq!(answer.status, 303, "{}", answer.body);
        self.get(answer.header("location")).body
    }

    /// Waits until a page has that on it.
    async fn until(&self, path: &str, wanted: &str) -> String {
        for _ in 0..3_000 {
            let page = block_in_place(|| self.get(path).body);
            if page.contains(wanted) {
                return page;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{path} never had {wanted:?}: {}", self.get(path).body);
    }
}

/// Takes messages in; what has `bad` in it is refused.
async fn work(consumer: &Consumer, count: usize) -> Vec<String> {
    let mut done = Vec::new();
    while done.len() < count {
        let message = consumer.next().await.expect("received");
        let text = String::from_utf8(message.payload().to_vec()).expect("text");
        if text.contains("bad") {
            let reason = format!("no number {HOSTILE}");
            consumer.nack(&message, Duration::ZERO, reason).await.expect("taken");
        } else {
            done.push(text);
            consumer.ack(&message).await.expect("acknowledged");
        }
    }
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_key_is_found_mended_and_replayed() {
    let node = block_in_place(Node::start);
    let browser = Browser { node: &node };
    block_in_place(|| {
        topics_ok(&node, &["create", LEDGER, "--intent", "audit_log"]);
        topics_ok(&node, &["create", LETTERS, "--intent", "event_stream"]);
        let policy = ["--max-redelivery-count", "1", "--base-redelivery-delay-ms", "10"];
        topics_ok(&node, &[&["set-failure-policy", LEDGER, "-s", "audit"][..], &policy].concat());
    });
    let client = Client::connect(&node.addresses().broker).await.expect("connected");
    let keyless = Vec::<String>::new();
    let consumer = client.consumer(LEDGER, "audit").key_shared(keyless).start(Position::Earliest);
    let consumer = consumer.subscribe().await.expect("subscribed");
    let producer = client.producer(LEDGER).open().await.expect("opened");
    for (key, text) in [("a", "1"), ("b", "bad"), ("b", "behind"), ("c", "2"), (HOSTILE, "3")] {
        producer.send_message(NewMessage::new(text).key(key)).await.expect("stored");
    }
    let done = work(&consumer, 3).await;
    assert_eq!(done, ["1", "2", "3"], "other keys go on");

    let page = "/topics/default/ledger/subscriptions/audit";
    let worker = tokio::spawn(async move {
        let done = work(&consumer, 2).await;
        (consumer, done)
    });
    let seen = browser.until(page, "Key blocked").await;
    for wanted in
        [">offset\u{a0}1<", "<code>b</code>", "after 2 attempts", "no number &lt;script&gt;"]
    {
        assert!(seen.contains(wanted), "{wanted}: {seen}");
    }
    assert!(!seen.contains(HOSTILE), "{seen}");
    let overview = browser.until("/", "Find the message").await;
    assert!(overview.contains("Key blocked"), "{overview}");

    let release = "arg.topic=/default/ledger&arg.subscription=audit&arg.poison_policy=dead_letter";
    let release = block_in_place(|| browser.send("/operations/topics/set-failure-policy", release));
    assert!(release.contains("<h1>Done</h1>"), "{release}");
    browser.until(page, "Drained").await;
    let letters = "/topics/default/ledger-dlq/dead-letters";
    let waiting = browser.until(letters, "1 dead letter waits").await;
    assert!(waiting.contains("Replay this group") && !waiting.contains(HOSTILE), "{waiting}");

    let mended = "arg.topic=/default/ledger-dlq&arg.offset=0&arg.payload=mended%0D%0Aby+hand";
    let mended = block_in_place(|| browser.send("/operations/topics/replay-dlq", mended));
    assert!(mended.contains("<h1>Done</h1>"), "{mended}");
    browser.until(letters, "None waits").await;
    let (_consumer, done) = worker.await.expect("no panic");
    assert_eq!(done, ["behind", "mended\nby hand"]);
    browser.until("/", "Nothing needs attention.").await;
    block_in_place(|| {
        let admin = &node.addresses().admin;
        let line = ["ctl", "--endpoint", admin, "overview", "--search", "LEDGER", "--sort", "name"];
        let told = danube_ok(&line);
        assert!(told.contains("Nothing needs attention.") && told.contains(LETTERS), "{told}");
        assert!(danube_ok(&[&line[..], &["--skip", "1"]].concat()).contains(LETTERS));
        assert!(!danube_ok(&[&line[..], &["--skip", "2"]].concat()).contains(LEDGER));
    });
}

#[test]
fn many_topics_are_searched_sorted_and_cut_by_the_broker() {
    let node = Node::start();
    let browser = Browser { node: &node };
    let topic = |n| format!("  - {{name: /default/t-{n:03}, intent: audit_log}}\n");
    let manifest = format!("topics:\n{}", (0..120).map(topic).collect::<String>());
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), manifest).expect("written");
    let path = file.path().to_str().expect("text");
    danube_ok(&["ctl", "--endpoint", &node.addresses().admin, "apply", "-f", path]);
    let last = browser.get("/topics?page=3").body;
    assert!(last.contains("120 topics, page 3 of 3") && last.contains("/default/t-119"), "{last}");
    assert!(!last.contains("/default/t-099<") && last.contains("rel=\"prev\""), "{last}");
    let found = browser.get("/topics?search=T-05&sort=backlog").body;
    assert!(found.contains("10 topics of 120") && found.contains("/default/t-059"), "{found}");
    assert!(browser.get("/topics?search=nothing").body.contains("No topic has that in its name"));
    assert!(browser.get("/topics?page=9").body.contains("past the end"));
    let unknown = browser.get("/topics?sort=colour");
    assert!(unknown.body.contains("topics cannot be sorted by `colour`") || unknown.status == 400);
    assert_eq!(browser.get("/topics?namespace=default&search=t-007").status, 200);
}

#[test]
fn what_is_not_a_form_of_ours_does_nothing() {
    let node = Node::start();
    let browser = Browser { node: &node };
    topics_ok(&node, &["create", LEDGER, "--intent", "audit_log"]);
    let page = browser.get("/topics/default/ledger");
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
    let delete = "arg.topic=/default/ledger&confirmed=yes";
    let with_token = format!("token={}&{delete}", page.token());
    let path = "/operations/topics/delete";
    for (headers, form) in [
        ("", delete),
        ("Origin: http://evil.example\r\n", with_token.as_str()),
        ("Sec-Fetch-Site: cross-site\r\n", with_token.as_str()),
    ] {
        let answer = browser.ask("POST", path, headers, form);
        assert_eq!(answer.status, 403, "{headers}: {}", answer.body);
    }
    assert_eq!(browser.ask("GET", path, "", "").status, 200, "a link only shows the form");
    assert_eq!(browser.get("/topics/default/ledger").status, 200, "it is still there");
    let answer = browser.ask("POST", path, "", &with_token);
    assert_eq!(answer.status, 303, "{}", answer.body);
    assert_eq!(browser.get("/topics/default/ledger").status, 404, "now it is not");
}

#[test]
fn a_console_may_be_read_only_or_off() {
    let node = Node::start_with(&["--console", "read-only"]);
    let browser = Browser { node: &node };
    let token = browser.get("/").token().to_owned();
    let form = format!("token={token}&arg.topic=/default/t");
    let answer = browser.ask("POST", "/operations/topics/create", "", &form);
    assert_eq!(answer.status, 403, "{}", answer.body);
    assert!(answer.body.contains("read-only"), "{}", answer.body);

    let node = Node::start_with(&["--console", "off"]);
    let browser = Browser { node: &node };
    assert_eq!(browser.get("/").status, 404);
    assert_eq!(browser.get("/healthz").status, 200, "what others ask is still answered");
}

#[test]
fn a_broker_that_is_watched_stops_at_once() {
    let mut node = Node::start();
    let address = node.addresses().http.trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).expect("it listens");
    write!(stream, "GET /live/ HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("it reads");
    let mut seen = Vec::new();
    let mut some = [0; 4_096];
    while !seen.windows(11).any(|part| part == b"event: live") {
        let len = stream.read(&mut some).expect("it sends");
        assert!(len > 0, "it ended: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&some[..len]);
    }
    assert!(node.terminate().success());
    assert!(!node.stderr().contains("did not drain"), "{}", node.stderr());
}
