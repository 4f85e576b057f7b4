//! A broker as a child process on addresses of its own.
//!
//! Law: a broker that goes out of scope leaves neither a process nor a file behind.

use danube_client::DanubeClient;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tonic::transport::{Channel, Endpoint};

use crate::clients::within;

/// A running broker, or one that was stopped and may be started again on the same addresses.
pub struct Broker {
    url: String,
    admin_url: String,
    data_dir: PathBuf,
    child: Option<Child>,
    log: Arc<Mutex<String>>,
    // Last, so that the process is gone before its directory is.
    _home: TempDir,
}

impl Broker {
    /// Starts a broker on an empty data directory and waits until it serves.
    pub async fn start() -> Broker {
        let home = tempfile::tempdir().expect("a temporary directory can be made");
        let host = own_loopback_address();
        let mut broker = Broker {
            url: format!("http://{host}:0"),
            admin_url: format!("http://{host}:0"),
            data_dir: home.path().join("data"),
            child: None,
            log: Arc::default(),
            _home: home,
        };
        broker.spawn().await;
        broker
    }

    /// Where clients connect.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A client of its own: another connection than every other client's.
    pub async fn client(&self) -> DanubeClient {
        let client = DanubeClient::builder().service_url(&self.url).build().await;
        client.expect("a well-formed address")
    }

    /// A bare connection to the client port, for generated stubs.
    pub async fn channel(&self) -> Channel {
        connect(&self.url).await
    }

    /// A bare connection to the admin port.
    pub async fn admin_channel(&self) -> Channel {
        connect(&self.admin_url).await
    }

    /// Runs `danube ctl` with these words, which must succeed; what it prints.
    pub async fn ctl(&self, words: &str) -> String {
        let mut ctl = Command::new(std::env::var_os("DANUBE_BIN").expect("it is set"));
        ctl.args(["ctl", "--endpoint", &self.admin_url]).args(words.split(' '));
        let output = within("danube ctl", ctl.env_remove("DANUBE_BIN").output()).await;
        let output = output.expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "danube ctl {words}: {stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// SIGKILL, then waits for the end.
    pub async fn kill(&mut self) {
        let mut child = self.child.take().expect("the broker is running");
        child.kill().await.expect("our own child");
    }

    /// SIGTERM, without waiting.
    pub async fn ask_to_stop(&self) {
        let pid = self.child.as_ref().and_then(Child::id).expect("the broker is running");
        let status = Command::new("kill").arg("-TERM").arg(pid.to_string()).status().await;
        assert!(status.expect("`kill` is on every Unix").success());
    }

    /// Waits until it has ended by itself.
    pub async fn ended(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("the broker is running");
        within("the broker ends", child.wait()).await.expect("our own child")
    }

    /// SIGTERM, then waits for the end.
    pub async fn terminate(&mut self) {
        self.ask_to_stop().await;
        let status = self.ended().await;
        assert!(status.success(), "after SIGTERM: {status}");
    }

    /// Starts it again on the same data directory and ports; it must be stopped.
    pub async fn restart(&mut self) {
        assert!(self.child.is_none(), "stop the broker before starting it again");
        let before = (self.url.clone(), self.admin_url.clone());
        self.spawn().await;
        assert_eq!(before, (self.url.clone(), self.admin_url.clone()), "a restart keeps the ports");
    }

    async fn spawn(&mut self) {
        let binary = std::env::var_os("DANUBE_BIN").expect(
            "DANUBE_BIN is not set: name the broker's binary in it, \
             for example DANUBE_BIN=/work/target/debug/danube",
        );
        let address = |url: &str| url.trim_start_matches("http://").to_owned();
        let host = address(&self.url);
        let host = host.split(':').next().expect("a first part");
        let mut child = Command::new(&binary)
            .arg("start")
            .args(["--broker-addr", &address(&self.url), "--admin-addr", &address(&self.admin_url)])
            .args(["--http-addr", &format!("{host}:0")])
            .arg("--data-dir")
            .arg(&self.data_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // It would be reported as a variable that configures nothing.
            .env_remove("DANUBE_BIN")
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|e| panic!("cannot run DANUBE_BIN={}: {e}", binary.display()));
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut stderr = BufReader::new(child.stderr.take().expect("piped")).lines();
        let log = Arc::clone(&self.log);
        tokio::spawn(async move {
            while let Ok(Some(line)) = stderr.next_line().await {
                let mut log = log.lock().expect("nobody panics with it");
                log.push_str(&line);
                log.push('\n');
            }
        });
        let mut line = String::new();
        within("the ready line", stdout.read_line(&mut line)).await.expect("a pipe can be read");
        let field = |key: &str| {
            let mut fields = line.trim_end().strip_prefix("danube ready ")?.split(' ');
            fields.find_map(|field| field.strip_prefix(key)).map(str::to_owned)
        };
        let (Some(url), Some(admin_url)) = (field("broker="), field("admin=")) else {
            let _ = child.wait().await;
            panic!("no ready line but {line:?}; stderr:\n{}", self.log());
        };
        (self.url, self.admin_url) = (url, admin_url);
        self.child = Some(child);
        // Nothing more is expected there; reading on keeps the pipe from filling up.
        tokio::spawn(async move { stdout.read_to_end(&mut Vec::new()).await });
    }

    fn log(&self) -> String {
        self.log.lock().expect("nobody panics with it").clone()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("stderr of the broker:\n{}", self.log());
        }
    }
}

async fn connect(url: &str) -> Channel {
    let endpoint = Endpoint::from_shared(url.to_owned()).expect("a well-formed address");
    within("a connection", endpoint.connect()).await.expect("the broker serves")
}

/// Each broker has a loopback address of its own, so that nobody takes its ports while it is down
/// between a stop and a restart. All of 127.0.0.0/8 is loopback on Linux; elsewhere it is not.
fn own_loopback_address() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    if !cfg!(target_os = "linux") {
        return "127.0.0.1".into();
    }
    let process = std::process::id();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("127.{}.{}.{}", 1 + (process >> 8) % 250, process & 0xff, 1 + count % 250)
}
