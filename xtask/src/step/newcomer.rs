//! Step `newcomer`: does what README's tour says, literally, in a clean clone of HEAD.
//!
//! The clone lies at one fixed place under the build folder and has a build folder of its own there,
//! so that only our own crates are built again the next time. Commands and the data directory are those of the tour; the
//! ports are free ones, which the commands learn from the environment, since somebody's broker may
//! have the usual ones.
//!
//! Law: what the tour starts is ended again, by its process group, whatever happens.

use super::tour::{self, Act, Block};
use crate::ground::Ground;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use xshell::cmd;

/// A first release build on a small machine takes minutes.
const BUILD_PATIENCE: Duration = Duration::from_secs(40 * 60);
/// How long after the last block an expected line may take.
const SHOW_PATIENCE: Duration = Duration::from_secs(60);
/// How long a terminal may take to end when asked to; the product promises five seconds.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// The number of the signal that asks a terminal to end.
const TERMINATED: i32 = 15;
/// Lines of a terminal that may wait to be read.
const LINES_MAX: usize = 4096;

/// Clones HEAD and takes the tour.
pub fn run(ground: &Ground) -> Result<()> {
    let clone = Checkout::fresh(ground)?;
    let readme = ground.shell()?.read_file(clone.root.join("README.md"))?;
    let blocks = tour::read(&readme)?;
    if blocks.is_empty() {
        bail!("README has no tour to take");
    }
    Tour::new("README.md", &clone.root, &clone.target, addresses()?).take(&blocks)
}

/// A clean clone of HEAD.
///
/// Its build folder is not the one that the steps share: cargo takes what lies below a build folder
/// for a part of it and would think the release build of the checkout itself as fresh as the clone's,
/// whatever was changed there since.
pub struct Checkout {
    pub root: PathBuf,
    pub target: PathBuf,
}

impl Checkout {
    /// Clones anew.
    pub fn fresh(ground: &Ground) -> Result<Checkout> {
        let shell = ground.shell()?;
        if !cmd!(shell, "git status --porcelain").quiet().read()?.is_empty() {
            eprintln!(
                "the tree has changes that are not committed; the clone of HEAD has them not"
            );
        }
        let checkout = Checkout::place(ground);
        let (root, clone) = (&ground.root, &checkout.root);
        shell.remove_path(clone)?;
        cmd!(shell, "git clone --quiet --local {root} {clone}").run()?;
        Ok(checkout)
    }

    /// The clone that an earlier step made of the same HEAD, else a fresh one.
    pub fn again(ground: &Ground) -> Result<Checkout> {
        let shell = ground.shell()?;
        let checkout = Checkout::place(ground);
        let head = |root: &Path| cmd!(shell, "git -C {root} rev-parse HEAD").quiet().read();
        match checkout.root.is_dir() && head(&checkout.root).ok() == head(&ground.root).ok() {
            true => Ok(checkout),
            false => Checkout::fresh(ground),
        }
    }

    fn place(ground: &Ground) -> Checkout {
        let home = ground.target.join("newcomer");
        Checkout { root: home.join("checkout"), target: home.join("target") }
    }
}

/// Free addresses, under the names by which the commands look for them.
pub fn addresses() -> Result<Vec<(&'static str, String)>> {
    // All are held before the first is let go, so that they differ.
    let free = || TcpListener::bind("127.0.0.1:0").context("cannot find a free port");
    let (broker, admin, http) = (free()?, free()?, free()?);
    let (broker, admin, http) = (broker.local_addr()?, admin.local_addr()?, http.local_addr()?);
    Ok(vec![
        ("DANUBE_BROKER_ADDR", broker.to_string()),
        ("DANUBE_SERVICE_ADDR", format!("http://{broker}")),
        ("DANUBE_ADMIN_ADDR", admin.to_string()),
        ("DANUBE_ADMIN_ENDPOINT", format!("http://{admin}")),
        ("DANUBE_HTTP_ADDR", http.to_string()),
    ])
}

/// The terminals of a reader who takes the tour.
pub struct Tour<'g> {
    page: &'g str,
    folder: &'g Path,
    target: &'g Path,
    environment: Vec<(&'static str, String)>,
    terminals: BTreeMap<u8, Terminal>,
}

impl<'g> Tour<'g> {
    /// Of `page`, in `folder`, with `environment` on top of our own.
    pub fn new(
        page: &'g str,
        folder: &'g Path,
        target: &'g Path,
        environment: Vec<(&'static str, String)>,
    ) -> Tour<'g> {
        Tour { page, folder, target, environment, terminals: BTreeMap::new() }
    }

    /// Does what the blocks say, one after the other.
    ///
    /// # Errors
    /// The first thing that is not as the page says, with its line.
    pub fn take(mut self, blocks: &[Block]) -> Result<()> {
        let page = self.page;
        for block in blocks {
            let place = || format!("{page} line {}, terminal {}", block.line, block.terminal);
            match &block.act {
                Act::Run { script, until } => {
                    self.run(block.terminal, script, until.as_deref()).with_context(place)?;
                }
                Act::Expect(lines) => {
                    let terminal = self.terminals.get_mut(&block.terminal).with_context(place)?;
                    terminal.expect(lines).with_context(place)?;
                }
            }
        }
        // The broker was opened first, so it closes last.
        while let Some((number, mut terminal)) = self.terminals.pop_last() {
            terminal.close().with_context(|| format!("closing terminal {number} of the tour"))?;
        }
        Ok(())
    }

    fn run(&mut self, number: u8, script: &str, until: Option<&str>) -> Result<()> {
        if let Some(mut earlier) = self.terminals.remove(&number) {
            earlier.finish(SHOW_PATIENCE)?;
        }
        let mut terminal = Terminal::open(number, script, self)?;
        match until {
            Some(wanted) => terminal.see(wanted, BUILD_PATIENCE)?,
            None => terminal.finish(BUILD_PATIENCE)?,
        }
        self.terminals.insert(number, terminal);
        Ok(())
    }
}

/// One terminal: a script that runs in a process group of its own, and what it has shown.
struct Terminal {
    child: Child,
    lines: Receiver<String>,
    /// Everything shown so far.
    shown: Vec<String>,
    /// How many lines of `shown` earlier expectations have used.
    used: usize,
    ended: bool,
}

impl Terminal {
    fn open(number: u8, script: &str, tour: &Tour<'_>) -> Result<Terminal> {
        eprintln!("[{number}] $ {}", script.replace('\n', &format!("\n[{number}] $ ")));
        let mut command = Command::new("sh");
        // A newcomer's environment says nothing to the broker but where to listen.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("DANUBE_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .args(["-e", "-c", script])
            .current_dir(tour.folder)
            .env("CARGO_TARGET_DIR", tour.target)
            .envs(tour.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("cannot start `sh`")?;
        let (sender, lines) = sync_channel(LINES_MAX);
        let stdout = child.stdout.take().context("stdout was asked to be a pipe")?;
        let stderr = child.stderr.take().context("stderr was asked to be a pipe")?;
        forward(number, stdout, sender.clone());
        forward(number, stderr, sender);
        Ok(Terminal { child, lines, shown: Vec::new(), used: 0, ended: false })
    }

    /// Waits for a line that has `wanted` and has not been used.
    fn see(&mut self, wanted: &str, patience: Duration) -> Result<()> {
        let until = Instant::now() + patience;
        loop {
            let found = self.shown[self.used..].iter().position(|line| line.contains(wanted));
            if let Some(position) = found {
                self.used += position + 1;
                return Ok(());
            }
            if !self.take_line(until)? {
                let rest = self.shown[self.used..].join("\n");
                bail!("it ended without showing `{wanted}`, but:\n{rest}");
            }
        }
    }

    /// Sees each of `lines`, in order.
    fn expect(&mut self, lines: &[String]) -> Result<()> {
        lines.iter().try_for_each(|line| self.see(line, SHOW_PATIENCE))
    }

    /// Waits for the end, which must be a success.
    fn finish(&mut self, patience: Duration) -> Result<()> {
        let until = Instant::now() + patience;
        while self.take_line(until)? {}
        let status = self.child.wait()?;
        self.ended = true;
        if !status.success() {
            bail!("the command ended with {status}");
        }
        Ok(())
    }

    /// Stops what still runs; it must then end in time. The shell and cargo, which are asked as
    /// well, may end by the signal; the program under them closes its output when it has ended.
    fn close(&mut self) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        if self.child.try_wait()?.is_none() {
            // Not INT: started from a script in the background, we and our children ignore it.
            self.signal("TERM");
        }
        let until = Instant::now() + STOP_PATIENCE;
        while self.take_line(until).context("it did not stop when asked to")? {}
        let status = self.child.wait()?;
        self.ended = true;
        if !status.success() && status.signal() != Some(TERMINATED) {
            bail!("it did not stop as it should when asked to: {status}");
        }
        Ok(())
    }

    /// Takes one line; false when there will be none any more.
    fn take_line(&mut self, until: Instant) -> Result<bool> {
        match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => self.shown.push(line),
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
            Err(RecvTimeoutError::Timeout) => bail!("it took too long"),
        }
        Ok(true)
    }

    fn signal(&self, name: &str) {
        // The group's id is its first process's; a failure means that all of it has gone.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-s", name, "--", &group]).status();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !self.ended {
            self.signal("KILL");
            let _ = self.child.wait();
        }
    }
}

/// Passes lines on to whoever waits and to our own reader, marked with the terminal's number.
fn forward(number: u8, from: impl Read + Send + 'static, to: SyncSender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(std::result::Result::ok) {
            eprintln!("[{number}] {line}");
            if to.send(line).is_err() {
                break;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(readme: &str) -> Result<()> {
        let folder = tempfile::tempdir()?;
        Tour::new("README.md", folder.path(), folder.path(), Vec::new()).take(&tour::read(readme)?)
    }

    #[test]
    fn a_tour_with_a_server_a_waiter_and_a_sender_is_taken() {
        // Both wait on pipes: the first for somebody who never comes, so only the end of the tour
        // ends it, the second for the third.
        let readme = "```sh tour terminal=1 until=\"ready\"\n\
            trap 'exit 0' TERM; mkfifo never; echo ready; cat never\n```\n\
            ```sh tour terminal=2 until=\"waiting\"\nmkfifo mail; echo waiting; cat mail\n```\n\
            ```sh tour terminal=3\necho one >mail\n```\n\
            ```text tour terminal=2\none\n```\n";
        take(readme).expect("each terminal does what the tour says");
    }

    #[test]
    fn a_failing_command_and_a_missing_line_are_told_with_their_place() {
        let failing = take("```sh tour terminal=1\nfalse\n```\n").expect_err("it fails");
        assert!(format!("{failing:#}").contains("line 1, terminal 1"), "{failing:#}");
        let missing = "```sh tour terminal=1\necho a\n```\n```text tour terminal=1\nb\n```\n";
        let missing = format!("{:#}", take(missing).expect_err("b is never shown"));
        assert!(missing.contains("without showing `b`"), "{missing}");
    }
}
