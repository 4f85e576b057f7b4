//! CPU time and memory of another process, from `/proc`.

use crate::failure::Failure;
use serde_json::{Value, json};

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
