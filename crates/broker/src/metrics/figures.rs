//! What the broker as a whole has to say at one scrape, and how each figure is shown.
//!
//! Law: gathering it waits for nothing but short locks of the log; a system without `/proc` shows
//! the figures of the process as 0.

use crate::context::BROKER_ID;
use danube_meta::MetaStats;
use danube_store::{FLUSH_BOUNDS_US, StoreStats};

/// One value with its labels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) value: Value,
}

/// A value as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Whole(u64),
    Broken(f64),
    /// Upper bounds with the count of each class, and the sum.
    Classed(Vec<(f64, u64)>, f64),
}

/// What the broker as a whole has to say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    pub(crate) topics_owned: u64,
    pub(crate) topics_loaded: u64,
    pub(crate) loads: u64,
    pub(crate) unloads: u64,
    pub(crate) store: StoreStats,
    pub(crate) meta: MetaStats,
    pub(crate) process: Process,
}

fn one(value: u64) -> Vec<Sample> {
    vec![Sample { labels: Vec::new(), value: Value::Whole(value) }]
}

fn broken(value: f64) -> Vec<Sample> {
    vec![Sample { labels: Vec::new(), value: Value::Broken(value) }]
}

fn with(label: &'static str, value_of: &str, value: u64) -> Sample {
    Sample { labels: vec![(label, value_of.to_owned())], value: Value::Whole(value) }
}

macro_rules! whole {
    ($($name:ident: $($path:ident).+;)+) => {
        $(pub(super) fn $name(&self) -> Vec<Sample> {
            one(self.$($path).+)
        })+
    };
}

impl Figures {
    whole! {
        topics_owned: topics_owned;
        topics_loaded: topics_loaded;
        flushes: store.groups;
        syncs: store.syncs;
        written_bytes: store.bytes;
        frames: store.frames;
        failures: store.failures;
        refused: store.refused;
        queued_bytes: store.queued_bytes;
        files: store.files;
        segments: store.segments;
        segment_bytes: store.segment_bytes;
        cache_bytes: store.cache_bytes;
        tend_failures: store.tend_failures;
        damaged_topics: store.topics_damaged;
        term: meta.term;
        elections: meta.elections;
        last_log_index: meta.last_log_index;
        snapshot_bytes: meta.snapshot_bytes;
        resident_bytes: process.resident_bytes;
        open_files: process.open_files;
    }

    pub(super) fn build(&self) -> Vec<Sample> {
        vec![with("version", env!("CARGO_PKG_VERSION"), 1)]
    }

    pub(super) fn assignments(&self) -> Vec<Sample> {
        let sample = |action: &str, count| Sample {
            labels: vec![("broker_id", BROKER_ID.to_string()), ("action", action.to_owned())],
            value: Value::Whole(count),
        };
        vec![sample("assign", self.loads), sample("unassign", self.unloads)]
    }

    pub(super) fn flush_latency(&self) -> Vec<Sample> {
        let times = &self.store.flushes;
        let shown = |us: u64| us as f64 / 1_000.0;
        let bounds = FLUSH_BOUNDS_US.iter().map(|us| shown(*us)).chain([f64::INFINITY]);
        let classes = bounds.zip(times.classes).collect();
        vec![Sample { labels: Vec::new(), value: Value::Classed(classes, shown(times.sum_us)) }]
    }

    pub(super) fn rotations(&self) -> Vec<Sample> {
        vec![with("reason", "size", self.store.rotations)]
    }

    pub(super) fn deletions(&self) -> Vec<Sample> {
        vec![with("reason", "retention", self.store.files_removed)]
    }

    pub(super) fn reads(&self) -> Vec<Sample> {
        let StoreStats { reads_cached, reads_disk, .. } = self.store;
        vec![with("mode", "cache", reads_cached), with("mode", "disk", reads_disk)]
    }

    pub(super) fn leads(&self) -> Vec<Sample> {
        one(self.meta.leads.into())
    }

    pub(super) fn apply_lag(&self) -> Vec<Sample> {
        one(self.meta.last_log_index.saturating_sub(self.meta.applied_index))
    }

    pub(super) fn cpu_seconds(&self) -> Vec<Sample> {
        broken(self.process.cpu_seconds)
    }

    pub(super) fn start_time(&self) -> Vec<Sample> {
        broken(self.process.start_seconds)
    }
}

/// What the system says of this process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Process {
    pub(crate) cpu_seconds: f64,
    pub(crate) resident_bytes: u64,
    pub(crate) open_files: u64,
    /// Seconds since 1970.
    pub(crate) start_seconds: f64,
}

impl Process {
    /// As things are now.
    pub(crate) fn read() -> Process {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let system = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let open_files = std::fs::read_dir("/proc/self/fd").map_or(0, |fds| fds.count() as u64);
        Process { open_files, ..Process::parse(&stat, &system).unwrap_or_default() }
    }

    /// Reads `/proc/self/stat`, which counts in ticks since the system started, and of `/proc/stat`
    /// when that was.
    fn parse(stat: &str, system: &str) -> Option<Process> {
        // The name of the program stands in parentheses and may have any character.
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<f64> =
            fields.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0.0)).collect();
        // By the numbers of the manual, of which the fourth is the first here.
        let field = |number: usize| fields.get(number - 4).copied();
        let started = system.lines().find_map(|line| line.strip_prefix("btime "))?;
        let page = rustix::param::page_size() as f64;
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        Some(Process {
            cpu_seconds: (field(14)? + field(15)?) / ticks,
            resident_bytes: (field(24)? * page) as u64,
            open_files: 0,
            start_seconds: started.trim().parse::<f64>().ok()? + field(22)? / ticks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_a_hostile_name_is_read() {
        let stat = "7 (a) b ) R 1 7 7 0 -1 0 10 0 0 0 150 50 0 0 20 0 9 0 4200 1000000 25 0 0";
        let read = Process::parse(stat, "cpu 1\nbtime 1000\n").expect("well formed");
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert!((read.cpu_seconds - 200.0 / ticks).abs() < 1e-9);
        assert_eq!(read.resident_bytes, 25 * rustix::param::page_size() as u64);
        assert!((read.start_seconds - (1000.0 + 4200.0 / ticks)).abs() < 1e-9);
        assert!(Process::parse("", "").is_none());
        assert!(Process::parse("7 (a) R 1", "btime x").is_none());
    }
}
