//! Figures, times and the broker's words, as people read them.
//!
//! Law: nothing here is decided by colour, and a word of the broker that is not known is shown as
//! it is.

use maud::{Markup, html};

/// How much something wants to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// As it should be.
    Good,
    /// Under way; nobody has to do anything.
    Calm,
    /// Somebody should look.
    Warn,
    /// Somebody has to do something.
    Bad,
}

impl Level {
    fn class(self) -> &'static str {
        match self {
            Level::Good => "chip good",
            Level::Calm => "chip calm",
            Level::Warn => "chip warn",
            Level::Bad => "chip bad",
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Level::Good => "✓",
            Level::Calm => "•",
            Level::Warn => "▲",
            Level::Bad => "✕",
        }
    }
}

/// A state in a word, with a sign of its own beside its colour.
pub(crate) fn chip(level: Level, word: &str) -> Markup {
    html! {
        span class=(level.class()) { span aria-hidden="true" { (level.sign()) } " " (word) }
    }
}

/// What a reason means: how urgent, in a word, and what can be done.
pub(crate) struct Reason {
    pub(crate) level: Level,
    pub(crate) word: &'static str,
    pub(crate) advice: &'static str,
}

/// By the word that programs know it by.
pub(crate) fn reason(code: &str) -> Reason {
    let (level, word, advice) = match code {
        "drained" => (Level::Good, "Drained", "Nothing is waiting."),
        "key_blocked" => (
            Level::Bad,
            "Key blocked",
            "A message failed for good, and the failure policy holds its key until somebody settles \
             it; other keys go on. Send it to the dead letters to mend and replay it there, or let \
             a consumer acknowledge it.",
        ),
        "blocked" => (
            Level::Bad,
            "Blocked",
            "A message failed for good, and the failure policy holds everything behind it until \
             somebody settles it. Send it to the dead letters to mend and replay it there, or move \
             the cursor past it.",
        ),
        "dead_letter_failing" => (
            Level::Bad,
            "Dead letter not written",
            "The message stays until its copy is safe. Mend what the last try says, such as the \
             schema of the dead-letter topic, or choose another dead-letter topic.",
        ),
        "no_consumer" => (
            Level::Warn,
            "No consumer",
            "Messages are kept until one comes. Start a consumer with this subscription's name, or \
             remove the subscription if nobody will come.",
        ),
        "no_consumer_for_key" => (
            Level::Warn,
            "No consumer for this key",
            "Only consumers that are away want this key. They have five minutes to come back; \
             then the message counts as wanted by nobody.",
        ),
        "window_full" => (
            Level::Warn,
            "Window full",
            "So many deliveries are out unacknowledged that no more may go. See below who holds \
             them; add consumers, or allow more with another window.",
        ),
        "consumers_full" => (
            Level::Warn,
            "Consumers do not keep up",
            "Their connections are full. Add consumers, or look at why they read slowly.",
        ),
        "awaiting_drain" => (
            Level::Warn,
            "Connection takes nothing",
            "A consumer is connected and does not read. Restart it; its messages then go to others.",
        ),
        "rate_limited" => {
            (Level::Calm, "Rate limited", "It goes on by itself, as fast as the limit allows.")
        }
        "dead_lettering" => (Level::Calm, "Writing a dead letter", "It goes on by itself."),
        "awaiting_retry" => (
            Level::Calm,
            "Waiting to try again",
            "The message failed and comes again by itself. See below what the consumer said.",
        ),
        "awaiting_ack" => {
            (Level::Calm, "With a consumer", "A consumer works on the first unfinished message.")
        }
        "failing" => (
            Level::Warn,
            "Fails again and again",
            "A message comes back time after time. See what the consumer says of it.",
        ),
        "fetching" => (Level::Calm, "Reading", "It goes on by itself."),
        "read_failing" => (
            Level::Bad,
            "Log not readable",
            "The broker tries again by itself; its log says what the system said.",
        ),
        "damaged" => (
            Level::Bad,
            "Damaged",
            "The topic is out of service. Stop the broker and run `danube doctor` on its data \
             directory.",
        ),
        "stalled" => (
            Level::Bad,
            "Stalled",
            "This is a defect of the broker: unload the topic to start it again, and report it.",
        ),
        "dead_letters" => {
            (Level::Warn, "Dead letters", "Read why they failed, mend them, and replay them.")
        }
        "" => (Level::Calm, "Live only", "Messages go to whoever listens; none is kept."),
        _ => (Level::Calm, "Under way", ""),
    };
    Reason { level, word, advice }
}

/// What an intent is for.
pub(crate) fn intent(name: &str) -> &'static str {
    match name {
        "realtime" => "Only now matters: live metrics and heartbeats, kept nowhere.",
        "event_stream" => "An event bus: every subscription gets every event, at least once.",
        "task_queue" => "A work queue: each task is done, or lands in the dead letters.",
        "audit_log" => "A ledger: nothing is ever skipped; what cannot be handled blocks.",
        _ => "",
    }
}

/// What an acknowledged publish survives, in few words.
pub(crate) fn survives(delivery: &str, wal_sync_mode: &str) -> &'static str {
    match (delivery, wal_sync_mode) {
        ("NonReliable", _) => "kept nowhere",
        (_, "async") => "written soon",
        (_, "os_cache_flush") => "survives a broker crash",
        (_, "fsync_batch") => "survives a power loss",
        _ => "",
    }
}

/// How a subscription shares messages.
pub(crate) fn sharing(kind: &str) -> &'static str {
    match kind {
        "exclusive" => "one consumer gets all",
        "failover" => "one consumer gets all, others stand by",
        "shared" => "consumers take turns",
        "key_shared" => "each key goes to one consumer, in order",
        _ => "",
    }
}

/// What becomes of a message that failed for good.
pub(crate) fn poison(policy: &str) -> &'static str {
    match policy {
        "dead_letter" => "a copy goes to the dead letters and the rest goes on",
        "block" => "it blocks until somebody settles it",
        "drop" => "it is dropped",
        _ => "",
    }
}

/// `12,345`.
pub(crate) fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `one thing`, `2 things`.
pub(crate) fn count(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(value), if value == 1 { one } else { many })
}

/// `12.3/s`.
pub(crate) fn rate(per_s: f64) -> String {
    match per_s {
        per_s if per_s < 0.05 => "0/s".to_owned(),
        per_s if per_s < 100.0 => format!("{per_s:.1}/s"),
        // A rate is far below what a u64 holds.
        per_s => format!("{}/s", number(per_s.round() as u64)),
    }
}

/// `1.5 MiB`.
pub(crate) fn bytes(value: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut scaled, mut unit) = (value as f64, 0);
    while scaled >= 1_024.0 && unit + 1 < UNITS.len() {
        (scaled, unit) = (scaled / 1_024.0, unit + 1);
    }
    match unit {
        0 => format!("{value} B"),
        _ => format!("{scaled:.1} {}", UNITS[unit]),
    }
}

/// `3 s`, `4 min 5 s`, `2 h 3 min`, `3 d 4 h`.
pub(crate) fn span(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// `2026-11-30 12:03:05 UTC`, exact in its title.
pub(crate) fn time(ms: u64) -> Markup {
    let exact = danube_ops::view::time(ms);
    let short = exact.split('.').next().unwrap_or(&exact).replace('T', " ");
    html! { time datetime=(exact) title=(exact) { (short.trim_end_matches('Z')) " UTC" } }
}

/// `12:03:05 UTC`, exact in its title.
pub(crate) fn clock(ms: u64) -> Markup {
    let exact = danube_ops::view::time(ms);
    let short = exact.get(11..19).unwrap_or(&exact).to_owned();
    html! { time datetime=(exact) title=(exact) { (short) " UTC" } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_as_people_read_them() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.0, 0.26, 99.94, 12_345.6].map(rate), ["0/s", "0.3/s", "99.9/s", "12,346/s"]);
        assert_eq!([512, 1_536, 3 << 30].map(bytes), ["512 B", "1.5 KiB", "3.0 GiB"]);
        assert_eq!(
            [900, 245_000, 7_380_000, 273_600_000].map(span),
            ["0 s", "4 min 5 s", "2 h 3 min", "3 d 4 h"]
        );
        assert_eq!(count(1, "topic", "topics") + &count(2, "topic", "topics"), "1 topic2 topics");
        let shown = time(1_796_040_000_250).into_string() + &clock(1_796_040_000_250).into_string();
        assert!(shown.contains(">2026-11-30 12:00:00 UTC<"), "{shown}");
        assert!(shown.contains(">12:00:00 UTC<"), "{shown}");
    }
}
