//! A consumer in a process of its own, to be killed or frozen.
//!
//! The process is this test's own binary, told to run [`plays`] and nothing else. Law: a puppet
//! acknowledges what it receives, but for what is to be held.

use crate::broker::Broker;
use crate::clients::*;
use danube_client::{DanubeClient, SubType};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// Tells the process which puppet it is.
const ROLE: &str = "DANUBE_PUPPET";
/// What begins like this is not acknowledged.
pub const HELD: &str = "held";

pub struct Puppet {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Puppet {
    /// A consumer of a Shared or KeyShared subscription, once it has its stream.
    pub async fn open(broker: &Broker, topic: &str, sub: &str, kind: &str, name: &str) -> Puppet {
        let binary = std::env::current_exe().expect("this test has a file");
        let mut child = Command::new(binary)
            .args(["--exact", "cases::puppet::plays", "--nocapture", "--test-threads=1"])
            .env(ROLE, format!("{} {topic} {sub} {kind} {name}", broker.url()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("this test can be run once more");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut puppet = Puppet { child, lines };
        assert_eq!(puppet.told().await, "ready");
        puppet
    }

    /// The next message that it received.
    pub async fn next(&mut self) -> String {
        self.told().await
    }

    async fn told(&mut self) -> String {
        loop {
            let line = within("a word of the puppet", self.lines.next_line()).await;
            let line = line.expect("a pipe can be read").expect("the puppet lives");
            if let Some(told) = line.strip_prefix("puppet: ") {
                return told.to_owned();
            }
        }
    }

    /// SIGKILL.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("our own child");
    }

    /// SIGSTOP: its connection stays open and nobody answers.
    pub async fn freeze(&self) {
        let pid = self.child.id().expect("it runs").to_string();
        let status = Command::new("kill").args(["-STOP", &pid]).status().await;
        assert!(status.expect("`kill` is on every Unix").success());
    }
}

/// What the process does; in the test's own process there is no role to play.
#[tokio::test]
async fn plays() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let [url, topic, sub, kind, name] = role.split(' ').collect::<Vec<_>>()[..] else {
        panic!("a role is five words, not {role}");
    };
    let client = DanubeClient::builder().service_url(url).build().await;
    let client = client.expect("a well-formed address");
    let kind = if kind == "shared" { SubType::Shared } else { SubType::KeyShared };
    let mut inbox = Who::new(topic, sub, kind, name).open(&client).await;
    // The first line begins where the name of this test stands.
    println!("\npuppet: ready");
    while let Some(message) = inbox.next_or_end().await {
        let payload = text(&message);
        println!("puppet: {payload}");
        if !payload.starts_with(HELD) {
            inbox.ack(&message).await;
        }
    }
}
