//! A broker as a child process, and one-shot runs of the other commands.
//!
//! [`Node`] starts `danube start` on free ports of a loopback address of its own, learns the
//! ports from the ready line, and can be stopped, killed and started again on the same ports and
//! the same data directory. Law: a node that goes out of scope leaves no process behind.

// Which of these are used depends on the tests compiled in.
#![allow(dead_code)]

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tempfile::TempDir;

/// The binary under test.
pub const DANUBE: &str = env!("CARGO_BIN_EXE_danube");

/// The addresses of the ready line, as URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// Where clients connect, such as `http://127.1.2.3:34567`.
    pub broker: String,
    /// Where `danube ctl` connects.
    pub admin: String,
    /// Where `/healthz`, `/readyz` and `/metrics` are.
    pub http: String,
}

impl Addresses {
    /// Reads the ready line.
    fn parse(line: &str) -> Option<Addresses> {
        let fields = line.strip_prefix("danube ready ")?;
        let field = |key: &str| {
            fields.split(' ').find_map(|field| field.strip_prefix(key)).map(str::to_owned)
        };
        Some(Addresses {
            broker: field("broker=")?,
            admin: field("admin=")?,
            http: field("http=")?,
        })
    }
}

/// A running broker, or one that was stopped and may be started again.
pub struct Node {
    data_dir: PathBuf,
    flags: Vec<String>,
    /// A program that starts the broker, and its arguments; empty: nothing in between.
    under: Vec<String>,
    addresses: Addresses,
    running: Option<Running>,
    stderr: Arc<Mutex<String>>,
    // Last, so that the process is gone before its directory is.
    _home: TempDir,
}

struct Running {
    child: Child,
    readers: Vec<JoinHandle<()>>,
}

impl Node {
    /// Starts a broker with a fresh data directory and waits until it serves.
    pub fn start() -> Node {
        Node::start_with(&[])
    }

    /// As [`start`](Node::start), with more flags for `danube start`.
    pub fn start_with(flags: &[&str]) -> Node {
        Node::start_under(&[], flags)
    }

    /// As [`start_with`](Node::start_with), through a program that runs the broker in its place.
    pub fn start_under(under: &[&str], flags: &[&str]) -> Node {
        let home = tempfile::tempdir().expect("a temporary directory can be made");
        let data_dir = home.path().join("data");
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let host = own_loopback_address();
        let listen = [format!("{host}:0"), format!("{host}:0"), format!("{host}:0")];
        let stderr = Arc::default();
        let under: Vec<String> = under.iter().map(|word| (*word).to_owned()).collect();
        let (running, addresses) = spawn(&under, &data_dir, &listen, &flags, &stderr);
        Node { data_dir, flags, under, addresses, running: Some(running), stderr, _home: home }
    }

    /// The addresses it serves on; the same ones after a restart.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Its data directory.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.running.as_ref().expect("the node is running").child.id()
    }

    /// What it wrote to stderr so far, over all its lives.
    pub fn stderr(&self) -> String {
        self.stderr.lock().expect("a reader never panics").clone()
    }

    /// Sends a signal and does not wait.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id is positive"), signal).expect("our own child");
    }

    /// SIGTERM, then waits for the end.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// SIGKILL, then waits for the end.
    pub fn kill(&mut self) -> ExitStatus {
        self.signal(Signal::KILL);
        self.wait()
    }

    /// Waits until it ends by itself or by a signal already sent.
    pub fn wait(&mut self) -> ExitStatus {
        let mut running = self.running.take().expect("the node is running");
        let status = running.child.wait().expect("our own child");
        for reader in running.readers {
            reader.join().expect("a reader never panics");
        }
        status
    }

    /// Starts it again with the same data directory, ports and flags; it must be stopped.
    pub fn restart(&mut self) {
        assert!(self.running.is_none(), "stop the node before starting it again");
        let Addresses { broker, admin, http } = &self.addresses;
        let listen = [broker, admin, http].map(|url| url.replace("http://", ""));
        let (running, addresses) =
            spawn(&self.under, &self.data_dir, &listen, &self.flags, &self.stderr);
        assert_eq!(addresses, self.addresses, "a restart keeps the ports");
        self.running = Some(running);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            // Both fail only when it ended by itself, which is what is wanted here.
            let _ = running.child.kill();
            let _ = running.child.wait();
            if std::thread::panicking() {
                eprintln!("stderr of the broker:\n{}", self.stderr());
            }
        }
    }
}

/// Each node has a loopback address of its own, so that nobody takes its ports while it is down
/// between a kill and a restart. All of 127.0.0.0/8 is loopback on Linux; elsewhere it is not.
fn own_loopback_address() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    if !cfg!(target_os = "linux") {
        return "127.0.0.1".into();
    }
    let process = std::process::id();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("127.{}.{}.{}", 1 + (process >> 8) % 250, process & 0xff, 1 + count % 250)
}

/// Starts the process and returns once it printed its ready line.
fn spawn(
    under: &[String],
    data_dir: &Path,
    listen: &[String; 3],
    flags: &[String],
    log: &Arc<Mutex<String>>,
) -> (Running, Addresses) {
    let mut child = command_under(under)
        .arg("start")
        .args(["--broker-addr", &listen[0], "--admin-addr", &listen[1], "--http-addr", &listen[2]])
        .arg("--data-dir")
        .arg(data_dir)
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let stderr = BufReader::new(child.stderr.take().expect("piped"));
    let log_reader = std::thread::spawn({
        let log = Arc::clone(log);
        move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut log = log.lock().expect("a reader never panics");
                log.push_str(&line);
                log.push('\n');
            }
        }
    });
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a pipe can be read");
    let Some(addresses) = Addresses::parse(line.trim_end()) else {
        let _ = child.kill();
        let status = child.wait().expect("our own child");
        log_reader.join().expect("a reader never panics");
        let log = log.lock().expect("a reader never panics");
        panic!("no ready line but {line:?}; {status}; stderr:\n{log}");
    };
    // Nothing more is expected on stdout; reading on keeps the pipe from filling up.
    let rest_reader = std::thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = stdout.read_to_end(&mut rest);
    });
    (Running { child, readers: vec![log_reader, rest_reader] }, addresses)
}

/// The binary with an environment free of `DANUBE_*` and of logging settings.
pub fn command() -> Command {
    command_under(&[])
}

fn command_under(under: &[String]) -> Command {
    let mut command = match under.split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments).arg(DANUBE);
            command
        }
        None => Command::new(DANUBE),
    };
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("DANUBE_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    command
}

/// What an HTTP GET of `url` answers, head and body. The scheme is `http` and the server closes.
#[track_caller]
pub fn get(url: &str) -> String {
    let rest = url.strip_prefix("http://").expect("a URL");
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host).expect("the broker listens");
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer
}

/// How a run ended.
#[derive(Debug)]
pub struct Run {
    /// Exit code; -1 after a signal.
    pub code: i32,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs `danube` with these arguments to its end.
pub fn danube(arguments: &[&str]) -> Run {
    danube_with(arguments, &[])
}

/// Runs `danube` with these arguments and environment variables to its end.
pub fn danube_with(arguments: &[&str], environment: &[(&str, &str)]) -> Run {
    command()
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built for this test")
        .into()
}

/// Runs `danube` and requires exit code 0; returns stdout.
#[track_caller]
pub fn danube_ok(arguments: &[&str]) -> String {
    let run = danube(arguments);
    assert_eq!(run.code, 0, "danube {arguments:?} failed: {}{}", run.stdout, run.stderr);
    run.stdout
}
