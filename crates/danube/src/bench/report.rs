//! What a run is summed up as, and what is seen while it goes on.

use super::process::Usage;
use crate::failure::Failure;
use crate::output::{self, Format};
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::time::Duration;

/// Longest time that is told apart, in microseconds.
const LATENCY_MAX_US: u64 = 60_000_000;
/// The percentiles of a report.
const PERCENTILES: [(&str, f64); 4] =
    [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9)];

/// Times in microseconds, exact to three digits.
#[derive(Debug)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// No times yet.
    pub fn new() -> Latencies {
        Latencies(Histogram::new_with_bounds(1, LATENCY_MAX_US, 3).expect("constant bounds"))
    }

    /// Takes one time; one above the limit counts as the limit.
    pub fn record(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Takes the same time for `count` messages.
    pub fn record_many(&mut self, time: Duration, count: u64) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).clamp(1, LATENCY_MAX_US);
        self.0.record_n(us, count).expect("within the bounds");
    }

    /// Takes all times of another.
    pub fn add(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("the same bounds");
    }

    /// How many times there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }
}

/// The result of one run.
#[derive(Debug)]
pub struct Report {
    /// What was done, such as `publish`.
    pub name: &'static str,
    /// How many messages were measured.
    pub messages: u64,
    /// Messages that never came, where somebody counts.
    pub lost: Option<u64>,
    /// Messages that came twice, where somebody counts.
    pub duplicates: Option<u64>,
    /// How long it took to prepare, where that is of interest.
    pub setup: Option<Duration>,
    /// With what: topic, connections, in flight; in words.
    pub setting: String,
    /// Size of a payload, in bytes.
    pub size: u64,
    /// The times of all measured messages.
    pub latencies: Latencies,
    /// What the times are, such as `publish to acknowledgement`.
    pub latency_of: &'static str,
    /// How long it took.
    pub elapsed: Duration,
    /// What the server used, where its process is known.
    pub usage: Option<Usage>,
}

impl Report {
    /// One of nothing yet.
    pub fn new(name: &'static str) -> Report {
        Report {
            name,
            messages: 0,
            lost: None,
            duplicates: None,
            setup: None,
            setting: String::new(),
            size: 0,
            latencies: Latencies::new(),
            latency_of: "",
            elapsed: Duration::ZERO,
            usage: None,
        }
    }

    /// Messages per second.
    pub fn rate(&self) -> f64 {
        self.messages as f64 / self.elapsed.as_secs_f64()
    }

    /// CPU time of the server per message, in microseconds.
    pub fn cpu_us_per_message(&self) -> Option<f64> {
        let usage = self.usage.as_ref()?;
        Some(usage.cpu_ms as f64 * 1e3 / self.messages as f64)
    }

    /// A percentile of the times, in milliseconds.
    pub fn percentile_ms(&self, percentile: f64) -> f64 {
        self.latencies.0.value_at_percentile(percentile) as f64 / 1e3
    }

    /// Payload bytes per second, in millions.
    pub fn megabytes_per_second(&self) -> f64 {
        self.rate() * self.size as f64 / 1e6
    }

    /// Three or four lines for people.
    pub fn text(&self) -> String {
        let histogram = &self.latencies.0;
        let mut text = format!(
            "{}: {} messages of {} bytes in {:.2} s, {}\n  throughput  {:.0} msg/s  {:.1} MB/s\n  \
             latency     ",
            self.name,
            self.messages,
            self.size,
            self.elapsed.as_secs_f64(),
            self.setting,
            self.rate(),
            self.megabytes_per_second(),
        );
        for (name, percentile) in PERCENTILES {
            text += &format!("{name} {}  ", time(histogram.value_at_percentile(percentile)));
        }
        text += &format!("max {}  ({})", time(histogram.max()), self.latency_of);
        if let (Some(usage), Some(us)) = (&self.usage, self.cpu_us_per_message()) {
            text += &format!("\n  server      {}  {us:.2} µs CPU/msg", usage.text());
        }
        if let Some(setup) = self.setup {
            text += &format!("\n  prepared    in {:.2} s", setup.as_secs_f64());
        }
        if let Some(lost) = self.lost {
            let duplicates = self.duplicates.unwrap_or_default();
            text += &format!("\n  delivered   {lost} lost  {duplicates} twice");
        }
        text
    }

    /// The same for programs; times in microseconds.
    pub fn document(&self) -> Value {
        let histogram = &self.latencies.0;
        let mut latencies = json!({ "max": histogram.max() });
        for (name, percentile) in PERCENTILES {
            latencies[name] = histogram.value_at_percentile(percentile).into();
        }
        json!({
            "name": self.name,
            "setting": self.setting,
            "messages": self.messages,
            "lost": self.lost,
            "duplicates": self.duplicates,
            "setup_seconds": self.setup.map(|setup| setup.as_secs_f64()),
            "server_cpu_us_per_message": self.cpu_us_per_message(),
            "size_bytes": self.size,
            "seconds": self.elapsed.as_secs_f64(),
            "messages_per_second": self.rate(),
            "megabytes_per_second": self.megabytes_per_second(),
            "latency_of": self.latency_of,
            "latency_us": latencies,
            "server": self.usage.as_ref().map(Usage::document),
        })
    }

    /// Prints it on stdout.
    ///
    /// # Errors
    /// As [`output::line`].
    pub fn print(&self, format: Format) -> Result<(), Failure> {
        match format {
            Format::Text => output::line(self.text()),
            Format::Json => output::json(&self.document()),
        }
    }
}

/// Microseconds in the unit a person would use.
fn time(us: u64) -> String {
    match us {
        0..=999 => format!("{us} µs"),
        1_000..=999_999 => format!("{:.2} ms", us as f64 / 1e3),
        _ => format!("{:.2} s", us as f64 / 1e6),
    }
}

/// A count that is seen on stderr while a run goes on, where somebody watches.
#[derive(Debug, Clone)]
pub struct Progress(Option<ProgressBar>);

impl Progress {
    /// A count of what `doing` says, such as `publishing`.
    pub fn new(doing: &'static str) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress(None);
        }
        let style = ProgressStyle::with_template("{msg}  {pos} messages  {per_sec}  {elapsed}");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
            .with_style(style.expect("a constant template"))
            .with_message(doing);
        Progress(Some(bar))
    }

    /// Nothing is seen.
    pub fn none() -> Progress {
        Progress(None)
    }

    /// One message more.
    pub fn one_more(&self) {
        self.more(1);
    }

    /// So many messages more.
    pub fn more(&self, count: u64) {
        if let Some(bar) = &self.0 {
            bar.inc(count);
        }
    }

    /// Takes it off the screen.
    pub fn finish(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_report_has_rates_and_percentiles() {
        let mut latencies = Latencies::new();
        for us in 1..=1_000 {
            latencies.record(Duration::from_micros(us));
        }
        latencies.record(Duration::from_secs(3600));
        let report = Report {
            messages: 1_001,
            lost: Some(2),
            setup: Some(Duration::from_millis(1_500)),
            setting: "128 in flight on 1 connection".into(),
            size: 1_000,
            latencies,
            latency_of: "call to answer",
            elapsed: Duration::from_secs(2),
            usage: Some(Usage { cpu_ms: 1_230, resident_kib: 20_480, peak_kib: 40_960 }),
            ..Report::new("publish")
        };
        expect![[r#"
            publish: 1001 messages of 1000 bytes in 2.00 s, 128 in flight on 1 connection
              throughput  500 msg/s  0.5 MB/s
              latency     p50 501 µs  p90 901 µs  p99 991 µs  p99.9 1.00 ms  max 60.03 s  (call to answer)
              server      1.23 s CPU  20.0 MiB resident  40.0 MiB peak  1228.77 µs CPU/msg
              prepared    in 1.50 s
              delivered   2 lost  0 twice"#]].assert_eq(&report.text());
        expect![[r#"{"duplicates":null,"latency_of":"call to answer","latency_us":{"max":60030975,"p50":501,"p90":901,"p99":991,"p99.9":1000},"lost":2,"megabytes_per_second":0.5005,"messages":1001,"messages_per_second":500.5,"name":"publish","seconds":2.0,"server":{"cpu_seconds":1.23,"peak_resident_kib":40960,"resident_kib":20480},"server_cpu_us_per_message":1228.7712287712288,"setting":"128 in flight on 1 connection","setup_seconds":1.5,"size_bytes":1000}"#]].assert_eq(&report.document().to_string());
    }
}
