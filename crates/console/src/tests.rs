//! The console without a browser and without a broker: what it refuses, what it escapes, what it
//! says when there is nothing to show.

use crate::access::Access;
use crate::admin::find;
use crate::model::{Figures, Row};
use crate::server::{Console, Options, answer_to};
use axum::body::to_bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use std::net::SocketAddr;
use tokio_util::sync::CancellationToken;

const HOSTILE: &str = "<script>alert('x')</script>\"&";

/// Nobody listens on this port: what asks the broker is told so.
const NOBODY: &str = "127.0.0.1:1";

fn console(access: Access) -> Console {
    let address: SocketAddr = NOBODY.parse().expect("an address");
    let stopping = CancellationToken::new();
    Console::new(Options { http: address, admin: address, access, stopping })
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

async fn ask(
    console: &Console,
    method: Method,
    target: &str,
    headers: &[(&'static str, &str)],
    form: &str,
) -> Answer {
    let mut sent = HeaderMap::new();
    for (name, value) in headers {
        let value = HeaderValue::from_str(value).expect("a value");
        sent.insert(HeaderName::from_static(name), value);
    }
    let target = target.parse().expect("a target");
    let response = answer_to(console, method, target, sent, form.to_owned().into()).await;
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = to_bytes(response.into_body(), 1 << 20).await.expect("a whole answer");
    Answer { status, headers, text: String::from_utf8_lossy(&bytes).into_owned() }
}

async fn get(console: &Console, target: &str) -> Answer {
    ask(console, Method::GET, target, &[], "").await
}

fn token(text: &str) -> String {
    let (_, rest) = text.split_once("name=\"token\" value=\"").expect("a form has a token");
    rest[..32].to_owned()
}

#[test]
fn every_operation_that_a_page_names_is_in_the_list() {
    let sources = [
        include_str!("pages/apply.rs"),
        include_str!("pages/broker.rs"),
        include_str!("pages/dead_letters.rs"),
        include_str!("pages/messages.rs"),
        include_str!("pages/namespaces.rs"),
        include_str!("pages/overview.rs"),
        include_str!("pages/schemas.rs"),
        include_str!("pages/seek.rs"),
        include_str!("pages/subscription.rs"),
        include_str!("pages/topic.rs"),
        include_str!("pages/topics.rs"),
    ];
    let mut count = 0;
    for source in sources {
        let calls = source.match_indices("((\"").map(|(at, _)| source.split_at(at + 3));
        let asks = |before: &str| ["known", "read", ">"].iter().any(|end| before.ends_with(end));
        for (_, rest) in calls.filter(|(before, _)| asks(&before[..before.len() - 3])) {
            let words: Vec<&str> = rest.splitn(4, '"').collect();
            let (noun, verb) = (words[0], words[2]);
            assert!(find(noun, verb).is_some(), "`{noun} {verb}` is no operation");
            count += 1;
        }
    }
    assert!(count > 30, "only {count} were found");
}

#[tokio::test]
async fn every_answer_keeps_its_page_to_itself() {
    let console = console(Access::On);
    for (target, status) in [
        ("/operations", StatusCode::OK),
        ("/nowhere", StatusCode::NOT_FOUND),
        ("/topics/default/t", StatusCode::SERVICE_UNAVAILABLE),
        ("/assets/console.js", StatusCode::OK),
        ("/assets/../Cargo.toml", StatusCode::NOT_FOUND),
        ("/live/operations", StatusCode::NOT_FOUND),
        ("/outcomes/7", StatusCode::NOT_FOUND),
    ] {
        let answer = get(&console, target).await;
        assert_eq!(answer.status, status, "{target}");
        let policy = answer.headers[header::CONTENT_SECURITY_POLICY].to_str().expect("text");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{target}");
        assert_eq!(answer.headers[header::X_FRAME_OPTIONS], "DENY", "{target}");
        assert_eq!(answer.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "{target}");
    }
}

#[tokio::test]
async fn nothing_inline_and_nothing_from_elsewhere_is_on_a_page() {
    let console = console(Access::On);
    for target in ["/operations", "/operations/topics/create", "/apply", "/nowhere", "/"] {
        let text = get(&console, target).await.text;
        for wrong in
            [" style=", "<style", " onclick", " onload", "javascript:", "http://", "https://"]
        {
            let lines = text.replace("http://127.0.0.1:1", "");
            assert!(!lines.contains(wrong), "{target} has {wrong}");
        }
    }
}

#[tokio::test]
async fn a_form_of_somebody_else_does_nothing() {
    let console = console(Access::On);
    let page = get(&console, "/operations/topics/delete").await.text;
    let form = format!("token={}&arg.topic=/default/t", token(&page));
    let path = "/operations/topics/delete";
    let post = |headers: &'static [(&'static str, &'static str)], form: String| {
        let console = &console;
        async move { ask(console, Method::POST, path, headers, &form).await }
    };
    for (headers, form, why) in [
        (&[("host", NOBODY)][..], "arg.topic=/default/t".to_owned(), "gave out since it started"),
        (&[("host", NOBODY)][..], format!("token={}&arg.topic=/d/t", "0".repeat(32)), "gave out"),
        (
            &[("host", NOBODY), ("origin", "http://evil.example")][..],
            form.clone(),
            "another origin",
        ),
        (&[("host", NOBODY), ("origin", "null")][..], form.clone(), "another origin"),
        (&[("host", NOBODY), ("sec-fetch-site", "cross-site")][..], form.clone(), "another origin"),
        (&[("host", NOBODY), ("sec-fetch-site", "same-site")][..], form.clone(), "another origin"),
    ] {
        let answer = post(headers, form).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{headers:?}");
        assert!(answer.text.contains(why), "{headers:?}: {}", answer.text);
    }
    // One of ours is asked to confirm first, as it destroys.
    let ours =
        &[("host", NOBODY), ("origin", "http://127.0.0.1:1"), ("sec-fetch-site", "same-origin")];
    let answer = post(ours, form).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.text.contains("Yes, do it"), "{}", answer.text);
}

#[tokio::test]
async fn a_page_that_borrowed_a_name_reads_nothing() {
    let console = console(Access::On);
    for (host, status) in [
        ("127.0.0.1:1", StatusCode::OK),
        ("localhost:8080", StatusCode::OK),
        ("[::1]:8080", StatusCode::OK),
        ("danube.localhost", StatusCode::OK),
        ("evil.example", StatusCode::FORBIDDEN),
        ("127.0.0.1.evil.example:1", StatusCode::FORBIDDEN),
    ] {
        let answer = ask(&console, Method::GET, "/operations", &[("host", host)], "").await;
        assert_eq!(answer.status, status, "{host}");
    }
}

#[tokio::test]
async fn a_read_only_console_offers_and_does_nothing() {
    let console = console(Access::ReadOnly);
    let page = get(&console, "/operations/topics/create").await.text;
    assert!(page.contains("Read-only") && !page.contains(">Do it<"), "{page}");
    let form = format!("token={}&arg.topic=/default/t", token(&page));
    let answer = ask(&console, Method::POST, "/operations/topics/create", &[], &form).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert!(answer.text.contains("read-only"), "{}", answer.text);
    // The theme is the reader's own.
    let answer =
        ask(&console, Method::POST, "/theme", &[], &format!("{form}&theme=dark&then=/topics"))
            .await;
    assert_eq!(answer.headers[header::LOCATION], "/topics");
    assert!(answer.headers[header::SET_COOKIE].to_str().expect("text").starts_with("theme=dark;"));
    let elsewhere = format!("{form}&theme=x&then=//evil.example");
    let answer = ask(&console, Method::POST, "/theme", &[], &elsewhere).await;
    assert_eq!(answer.headers[header::LOCATION], "/");
}

#[tokio::test]
async fn hostile_text_stays_text() {
    let console = console(Access::On);
    let encoded = "%3Cscript%3Ealert('x')%3C%2Fscript%3E%22%26";
    for target in [
        format!("/topics/default/{encoded}"),
        format!("/topics/default/t/messages/{encoded}"),
        format!("/schemas/{encoded}"),
        format!("/operations/topics/seek?topic={encoded}&then={encoded}"),
        format!("/{encoded}"),
    ] {
        let answer = get(&console, &target).await;
        assert!(!answer.text.contains("<script>"), "{target}");
    }
    let form = get(&console, &format!("/operations/topics/seek?topic={encoded}")).await.text;
    assert!(form.contains("&lt;script&gt;alert('x')&lt;/script&gt;&quot;&amp;"), "{form}");
    let row = Row {
        topic: format!("/default/{HOSTILE}"),
        partitions: 0,
        delivery: HOSTILE.into(),
        intent: Some(HOSTILE.into()),
        wal_sync_mode: HOSTILE.into(),
        figures: Figures::default(),
    };
    let table = crate::pages::table_of_topics(&[row]).into_string();
    assert!(!table.contains("<script>") && table.contains("&lt;script&gt;"), "{table}");
    assert!(table.contains("/topics/default/%3Cscript%3E"), "{table}");
}

#[tokio::test]
async fn nothing_to_show_is_said_in_a_sentence() {
    let none = crate::pages::table_of_topics(&[]).into_string();
    assert!(none.contains("There is no topic yet."), "{none}");
    let answer = get(&console(Access::On), "/").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.text.contains("No broker answers at `http://127.0.0.1:1`"), "{}", answer.text);
    assert!(answer.text.contains("<h1>Not now</h1>"), "{}", answer.text);
}

#[test]
fn who_alone_reaches_it_may_act() {
    let of = |text: &str| Access::of_address(text.parse().expect("an address"));
    assert_eq!(of("127.0.0.1:8080"), Access::On);
    assert_eq!(of("[::1]:8080"), Access::On);
    assert_eq!(of("0.0.0.0:8080"), Access::ReadOnly);
    assert_eq!(of("10.0.0.7:8080"), Access::ReadOnly);
    assert_eq!(Access::parse("read-only"), Some(Access::ReadOnly));
    assert_eq!(Access::parse("yes"), None);
}
