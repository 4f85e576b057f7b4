//! CPU time and memory of another process, from `/proc`.

use crate::failure::Failure;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};

/// Milliseconds per unit of the CPU times in `/proc`: they are counted in hundredths of a second
/// on every Linux (`USER_HZ`, see proc(5)).
const CPU_TICK_MS: u64 = 10;

/// What a process used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// CPU time during the run, in milliseconds.
    pub cpu_ms: u64,
    /// Memory at the end of the run, in KiB.
    pub resident_kib: u64,
    /// Most memory since the process started, in KiB.
    pub peak_kib: u64,
}

impl Usage {
    /// For people.
    pub fn text(&self) -> String {
        let mib = |kib: u64| kib as f64 / 1024.0;
        format!(
            "{:.2} s CPU  {:.1} MiB resident  {:.1} MiB peak",
            self.cpu_ms as f64 / 1e3,
            mib(self.resident_kib),
            mib(self.peak_kib)
        )
    }

    /// For programs.
    pub fn document(&self) -> Value {
        json!({
            "cpu_seconds": self.cpu_ms as f64 / 1e3,
            "resident_kib": self.resident_kib,
            "peak_resident_kib": self.peak_kib,
        })
    }
}

/// A process that is looked at before and after a run.
#[derive(Debug, Clone, Copy)]
pub struct Watch {
    pid: u32,
    cpu_ms_before: u64,
}

impl Watch {
    /// Starts to watch; `None` without a process id.
    ///
    /// # Errors
    /// [`Exit::Usage`](crate::failure::Exit::Usage) when there is no such process.
    pub fn start(pid: Option<u32>) -> Result<Option<Watch>, Failure> {
        pid.map(|pid| {
            let now = look(pid).ok_or_else(|| {
                Failure::usage(format!("--pid: process `{pid}` is not in /proc")).help(
                    "give the process id of a running broker on this machine, or leave it out",
                )
            })?;
            Ok(Watch { pid, cpu_ms_before: now.cpu_ms })
        })
        .transpose()
    }

    /// What it used since; `None` when it is gone.
    pub fn end(self) -> Option<Usage> {
        let now = look(self.pid)?;
        Some(Usage { cpu_ms: now.cpu_ms.saturating_sub(self.cpu_ms_before), ..now })
    }
}

/// The process on this machine that listens at `url`, if that is a loopback address and its owner
/// may be looked at.
pub fn listening_at(url: &str) -> Option<u32> {
    let authority = url.rsplit("://").next()?.trim_end_matches('/');
    let (host, port) = authority.rsplit_once(':')?;
    let address: IpAddr = match host {
        "localhost" => Ipv4Addr::LOCALHOST.into(),
        host => host.trim_matches(['[', ']']).parse().ok()?,
    };
    if !address.is_loopback() {
        return None;
    }
    let port: u16 = port.parse().ok()?;
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(std::fs::read_to_string);
    let inode = tables.iter().flatten().find_map(|table| listener(table, port))?;
    let socket = format!("socket:[{inode}]");
    std::fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let files = std::fs::read_dir(process.path().join("fd")).ok()?;
        let mut links = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
        links.any(|link| link.as_os_str() == socket.as_str()).then_some(pid)
    })
}

/// The inode of the socket that listens on `port`, from one of the tables of proc(5).
fn listener(table: &str, port: u16) -> Option<&str> {
    const LISTENING: &str = "0A";
    let port = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let is_port = fields.next()?.ends_with(&port);
        let is_listening = fields.nth(1)? == LISTENING;
        (is_port && is_listening).then(|| fields.nth(5)).flatten()
    })
}

fn look(pid: u32) -> Option<Usage> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(Usage {
        cpu_ms: cpu_ms(&stat)?,
        resident_kib: kib(&status, "VmRSS:")?,
        peak_kib: kib(&status, "VmHWM:")?,
    })
}

/// User and system time. The name in parentheses may itself contain spaces and parentheses.
fn cpu_ms(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) * CPU_TICK_MS)
}

fn kib(status: &str, key: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(key))?;
    rest.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_any_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 0 0 0 150 25 0 0 20 0 4 0 100 0 0";
        assert_eq!(cpu_ms(stat), Some(1_750));
        assert_eq!(cpu_ms("nonsense"), None);
    }

    #[test]
    fn a_listener_is_found_by_its_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:19FA 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 7 1\n   \
                     1: 0100007F:19FA 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1\n";
        assert_eq!(listener(table, 6650), Some("4711"));
        assert_eq!(listener(table, 6651), None);
    }

    #[test]
    fn this_process_is_found_by_where_it_listens() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", socket.local_addr().expect("bound"));
        let found = cfg!(target_os = "linux").then(std::process::id);
        assert_eq!(listening_at(&url), found);
        assert_eq!(listening_at("http://192.0.2.1:6650"), None);
    }

    #[test]
    fn memory_is_read_by_its_key() {
        let status = "Name:\tdanube\nVmHWM:\t   40960 kB\nVmRSS:\t   20480 kB\n";
        assert_eq!(kib(status, "VmRSS:"), Some(20_480));
        assert_eq!(kib(status, "VmHWM:"), Some(40_960));
        assert_eq!(kib(status, "VmSwap:"), None);
    }

    #[test]
    fn a_process_that_is_not_there_is_a_usage_error() {
        assert!(Watch::start(Some(u32::MAX)).is_err());
        assert!(Watch::start(None).expect("nothing to look at").is_none());
    }
}
