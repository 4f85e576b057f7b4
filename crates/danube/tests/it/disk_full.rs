//! A disk that is really full (case U14): a broker whose journal is on a file system of 16 MiB.
//!
//! Who may mount one, mounts it; who may not, does so in a namespace of his own.

use crate::harness::{Addresses, Node};
use crate::wire::{Control, Wire, message, offset_of, within};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::block_in_place;
use tonic::{Code, Status};

const BIG: &str = "/default/full-big";
const SMALL: &str = "/default/full-small";
/// Size of a large message, in bytes.
const MIB: usize = 1 << 20;
/// More large messages than fit.
const TRIES: usize = 24;

/// A file system of 16 MiB for the journal of a broker, with a file in it that can go.
struct Tight {
    at: TempDir,
    /// Keeps the namespace in which it is mounted; `None`: it is mounted for all to see.
    holder: Option<Child>,
}

impl Tight {
    fn make() -> Tight {
        let at = tempfile::tempdir().expect("a temporary directory can be made");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"])
            .arg(at.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let holder = match mounted {
            Ok(status) if status.success() => None,
            _ => Some(Tight::hold(at.path())),
        };
        let tight = Tight { at, holder };
        std::fs::write(tight.seen().join("filler"), vec![1; 6 * MIB]).expect("there is room");
        tight
    }

    /// A process in whose namespace it is mounted; says so before this returns.
    fn hold(at: &Path) -> Child {
        println!("this user may not mount; mounting in a namespace of its own");
        let script = "PATH=/usr/sbin:/usr/bin:/sbin:/bin; \
                      mount -t tmpfs -o size=16m tmpfs \"$0\" && echo mounted && exec sleep 1000";
        let mut holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
            .arg(at)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare of util-linux is there");
        let mut said = String::new();
        let stdout = holder.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut said).expect("a pipe can be read");
        assert_eq!(said, "mounted\n", "neither this user nor a namespace of its own may mount");
        holder
    }

    /// The file system as this process sees it.
    fn seen(&self) -> PathBuf {
        let at = self.at.path();
        match &self.holder {
            Some(holder) => {
                let root = PathBuf::from(format!("/proc/{}/root", holder.id()));
                root.join(at.strip_prefix("/").expect("temporary directories are absolute"))
            }
            None => at.to_path_buf(),
        }
    }

    fn start(&self) -> Node {
        let wal_dir = self.at.path().join("wal");
        let flags = ["--wal-dir", wal_dir.to_str().expect("a plain path")];
        match &self.holder {
            Some(holder) => {
                let pid = holder.id().to_string();
                let enter = ["nsenter", "--user", "--mount", "--preserve-credentials", "-t", &pid];
                Node::start_under(&enter, &flags)
            }
            None => Node::start_with(&flags),
        }
    }

    /// Fills what is left to the last byte.
    fn fill(&self) {
        let mut size = MIB;
        for part in 0.. {
            match std::fs::write(self.seen().join(format!("rest-{part}")), vec![1; size]) {
                Ok(()) => {}
                Err(_) if size > 1 => size /= 2,
                Err(_) => return,
            }
        }
    }

    /// Makes room again.
    fn free(&self) {
        for entry in std::fs::read_dir(self.seen()).expect("listed") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                std::fs::remove_file(path).expect("removed");
            }
        }
    }
}

impl Drop for Tight {
    fn drop(&mut self) {
        match &mut self.holder {
            Some(holder) => {
                // The namespace goes with its last process. Both fail only when it is gone already.
                let _ = holder.kill();
                let _ = holder.wait();
            }
            None => {
                // Lazily: a broker that is still going must not keep the mount.
                let _ = Command::new("umount").arg("-l").arg(self.at.path()).status();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_cleanly_and_goes_on_once_there_is_room() {
    let tight = Tight::make();
    let mut node = block_in_place(|| tight.start());
    let at = node.addresses().clone();
    let mut control = Control::connect(&at.admin).await;
    let mut wire = Wire::connect(&at.broker).await;
    for topic in [BIG, SMALL] {
        control.create_topic(topic, "task_queue").await;
        for subscription in ["now", "later"] {
            wire.subscribe(topic, subscription, "c").await.expect("subscribed");
        }
    }
    let mut big = Publisher::create(&mut wire, BIG).await;
    let mut small = Publisher::create(&mut wire, SMALL).await;
    small.send(&mut wire, 100).await.expect("there is room");

    // Until errors come, and a good while longer.
    let mut refused = 0;
    for _ in 0..TRIES {
        if let Err(status) = big.send(&mut wire, MIB).await {
            assert_is_retryable(&status);
            refused += 1;
        }
    }
    assert!(refused > 2 && big.acknowledged.len() > 2, "{refused} of {TRIES} are refused");

    // What does not need much room, or none, works.
    let early = small.acknowledged.len();
    small.send(&mut wire, 100).await.expect("a small message still has room");
    let seen = read(&mut wire, BIG, "now", big.acknowledged.len()).await;
    assert_eq!(numbers(&seen), big.acknowledged, "no half message, none lost");
    assert_eq!(read(&mut wire, SMALL, "now", early + 1).await.len(), early + 1);

    // Not one byte left: still no hang, and still no lie.
    block_in_place(|| tight.fill());
    for _ in 0..3 {
        if let Err(status) = big.send(&mut wire, MIB).await {
            assert_is_retryable(&status);
        }
    }

    // Publishing resumes by itself.
    block_in_place(|| tight.free());
    let before = big.acknowledged.len();
    within("publishing to resume", async {
        while big.send(&mut wire, MIB / 4).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    small.send(&mut wire, 100).await.expect("there is room again");
    let seen_after = read(&mut wire, BIG, "now", big.acknowledged.len() - before).await;
    let offsets: Vec<u64> = seen.iter().chain(&seen_after).map(|(offset, _)| *offset).collect();
    let expected: Vec<u64> = (0..big.acknowledged.len() as u64).collect();
    assert_eq!(offsets, expected, "no offset is left out or used twice");

    block_in_place(|| {
        node.kill();
        node.restart();
    });
    check_all(&at, &big, &small).await;
    assert!(!node.stderr().contains("damage"), "{}", node.stderr());
    drop(node);
}

/// After a restart everything acknowledged is there, once, and nothing else.
async fn check_all(at: &Addresses, big: &Publisher, small: &Publisher) {
    let mut wire = Wire::connect(&at.broker).await;
    for publisher in [big, small] {
        let count = publisher.acknowledged.len();
        let all = read(&mut wire, publisher.topic, "later", count).await;
        assert_eq!(numbers(&all), publisher.acknowledged, "{}", publisher.topic);
        let mut control = Control::connect(&at.admin).await;
        assert_eq!(control.backlog(publisher.topic, "later").await, 0);
    }
}

#[track_caller]
fn assert_is_retryable(status: &Status) {
    let retryable = [Code::ResourceExhausted, Code::Unavailable, Code::Aborted];
    assert!(retryable.contains(&status.code()), "{status:?}");
    assert!(!status.message().is_empty(), "{status:?}");
}

/// Sends numbered messages and remembers which were acknowledged.
struct Publisher {
    topic: &'static str,
    id: u64,
    next: u64,
    acknowledged: Vec<u64>,
}

impl Publisher {
    async fn create(wire: &mut Wire, topic: &'static str) -> Publisher {
        let id = wire.create_producer(topic, "p").await.expect("created");
        Publisher { topic, id, next: 0, acknowledged: Vec::new() }
    }

    async fn send(&mut self, wire: &mut Wire, len: usize) -> Result<(), Status> {
        let number = self.next;
        self.next += 1;
        let mut payload = number.to_le_bytes().to_vec();
        payload.resize(len, b'x');
        wire.send(message(self.topic, self.id, "p", payload)).await?;
        self.acknowledged.push(number);
        Ok(())
    }
}

/// Receives and acknowledges `count` messages; offset and number of each.
async fn read(wire: &mut Wire, topic: &str, subscription: &str, count: usize) -> Vec<(u64, u64)> {
    let id = wire.subscribe(topic, subscription, "c").await.expect("subscribed");
    let mut stream = wire.receive(id).await.expect("opened");
    let mut seen = Vec::new();
    while seen.len() < count {
        let next = within("a message", stream.message()).await;
        let message = next.expect("the stream goes on").expect("it has not ended");
        wire.ack(&message, subscription).await.expect("an ack needs little room");
        let number = message.payload.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        seen.push((offset_of(&message), number.expect("a number")));
    }
    seen
}

fn numbers(seen: &[(u64, u64)]) -> Vec<u64> {
    seen.iter().map(|(_, number)| *number).collect()
}
