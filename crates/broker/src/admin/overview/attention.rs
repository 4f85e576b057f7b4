//! What needs attention first: topics that are damaged, messages that block, backlogs that nobody
//! works on, dead letters that wait.
//!
//! Law: a topic is asked for its reason only when its figures give a cause, and only so many are.

use super::Part;
use crate::context::Context;
use crate::topic::SubscriptionDescription;
use danube_core::subscription::Failing;
use danube_wire::proto::control::Attention;
use futures::future::join_all;
use std::sync::Arc;

/// Lines that are told.
const LEN_MAX: usize = 50;
/// Deliveries from which on a message that comes again and again is worth a line.
const ATTEMPTS_MIN: u32 = 3;

/// The most urgent lines, and how many there would be in all.
pub(super) async fn of(context: &Arc<Context>, parts: &[Part<'_>]) -> (Vec<Attention>, u64) {
    let mut lines: Vec<Attention> = Vec::new();
    let mut suspects: Vec<&Part<'_>> = Vec::new();
    for part in parts {
        if let Some(damage) = part.log.as_ref().and_then(danube_store::TopicLog::damage) {
            lines.push(line("damaged", part, &damage.to_string(), part.vital.sums.backlog));
        }
        match part.letters() {
            0 => {}
            count => lines.push(line("dead_letters", part, &letters(count), count)),
        }
        if cause(part) > 0 {
            suspects.push(part);
        }
    }
    suspects.sort_by_key(|part| std::cmp::Reverse((cause(part), part.vital.sums.backlog)));
    let rest = suspects.split_off(suspects.len().min(LEN_MAX));
    let certain = rest.iter().filter(|part| cause(part) > 1).count();
    for found in join_all(suspects.into_iter().map(|part| ask(context, part))).await {
        lines.extend(found);
    }
    let total = (lines.len() + certain) as u64;
    lines.sort_by(|a, b| {
        (rank(&a.code), b.backlog, &a.topic).cmp(&(rank(&b.code), a.backlog, &b.topic))
    });
    lines.truncate(LEN_MAX);
    (lines, total)
}

fn letters(count: u64) -> String {
    match count {
        1 => "1 dead letter waits to be fixed and replayed, or left".to_owned(),
        _ => format!("{count} dead letters wait to be fixed and replayed, or left"),
    }
}

/// How much cause there is to ask the topic; 1 is a mere suspicion.
fn cause(part: &Part<'_>) -> u8 {
    let sums = &part.vital.sums;
    match () {
        () if sums.blocked > 0 => 4,
        () if sums.backlog > 0 && sums.consumers == 0 => 3,
        () if sums.dead_lettering > 0 || sums.waiting > 0 => 1,
        () if sums.backlog > 0 && part.vital.finished_rate == 0 => 1,
        () => 0,
    }
}

/// Where a line stands; the lower the earlier. `None`: it needs nobody's attention.
fn rank(code: &str) -> Option<u8> {
    Some(match code {
        "damaged" => 0,
        "stalled" | "read_failing" => 1,
        "dead_letter_failing" => 2,
        "key_blocked" | "blocked" => 3,
        "failing" => 4,
        "no_consumer" | "no_consumer_for_key" => 5,
        "awaiting_drain" | "consumers_full" | "window_full" => 6,
        "dead_letters" => 7,
        _ => return None,
    })
}

fn line(code: &str, part: &Part<'_>, why: &str, backlog: u64) -> Attention {
    Attention {
        code: code.to_owned(),
        topic: part.name.to_string(),
        subscription: None,
        why: why.to_owned(),
        backlog,
    }
}

/// What the topic's subscriptions say, or what the log says of them where it is not loaded.
async fn ask(context: &Arc<Context>, part: &Part<'_>) -> Vec<Attention> {
    let of = |name: &str, (code, why): (&'static str, String), backlog| Attention {
        subscription: Some(name.to_owned()),
        ..line(code, part, &why, backlog)
    };
    if !part.is_loaded {
        let told = part.topic.subscriptions.iter().filter_map(|(name, known)| {
            let progress = part.log.as_ref()?.subscription(known.id, known.start);
            let blocked = progress.failures().find(|(_, attempts)| attempts.blocked);
            let why = match (progress.backlog(part.bounds.next), blocked) {
                (0, _) => return None,
                (_, Some((offset, attempts))) => {
                    let (count, reason) = (attempts.count, &attempts.reason);
                    ("blocked", format!("offset {offset} blocks after {count} attempts: {reason}"))
                }
                (_, None) => ("no_consumer", "no consumer came since the broker started".into()),
            };
            Some(of(name.as_str(), why, progress.backlog(part.bounds.next)))
        });
        return told.collect();
    }
    // It may be on its way out; the next look finds it as it is then.
    let Ok(handle) = context.topics.get(context, part.name) else { return Vec::new() };
    let Ok(described) = handle.describe().await else { return Vec::new() };
    let told = described.subscriptions.into_iter().filter_map(|known| {
        let why = reason(&known)?;
        Some(of(known.name.as_str(), why, known.backlog))
    });
    told.collect()
}

/// Why a subscription needs attention, if it does.
fn reason(known: &SubscriptionDescription) -> Option<(&'static str, String)> {
    if rank(known.why_code).is_some() && known.why_code != "no_consumer" {
        return Some((known.why_code, known.why.clone()));
    }
    let told = |failing: &Failing| {
        let key = failing.key.as_ref().map(|key| format!(" with key `{}`", key.escape_debug()));
        format!(
            "offset {}{} failed {} times: {}",
            failing.offset,
            key.unwrap_or_default(),
            failing.attempts,
            failing.reason
        )
    };
    match known.failing.first() {
        Some(first) if first.blocked => Some(("blocked", format!("{}; it blocks", told(first)))),
        _ if known.why_code == "no_consumer" => Some(("no_consumer", known.why.clone())),
        _ => {
            let again = known.failing.iter().find(|failing| failing.attempts >= ATTEMPTS_MIN);
            again.map(|failing| ("failing", told(failing)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use danube_core::{Offset, SubscriptionName, SubscriptionType};

    fn known(why_code: &'static str, failing: &[(u32, bool)]) -> SubscriptionDescription {
        let failing = failing.iter().zip(0..).map(|(&(attempts, blocked), offset)| Failing {
            offset: Offset(offset),
            key: Some("k\n".into()),
            attempts,
            reason: "no number".into(),
            blocked,
            for_ms: None,
            in_ms: None,
        });
        SubscriptionDescription {
            name: SubscriptionName::parse("s").expect("well formed"),
            kind: SubscriptionType::KeyShared,
            cursor: Offset(0),
            backlog: 1,
            in_flight: 0,
            waiting_redelivery: 0,
            blocked: 0,
            consumers: Vec::new(),
            window_max: 1,
            unmatched: 0,
            dropped: 0,
            why: "as it says".into(),
            why_code,
            failing: failing.collect(),
        }
    }

    #[test]
    fn what_goes_on_by_itself_needs_no_attention() {
        for code in ["drained", "awaiting_ack", "awaiting_retry", "rate_limited", "fetching", ""] {
            assert_eq!(reason(&known(code, &[])), None, "{code}");
            assert_eq!(reason(&known(code, &[(2, false)])), None, "{code}: it may yet succeed");
        }
        let again = reason(&known("awaiting_retry", &[(1, false), (3, false)]));
        let told = "offset 1 with key `k\\n` failed 3 times: no number".to_owned();
        assert_eq!(again, Some(("failing", told)));
    }

    #[test]
    fn what_blocks_is_told_even_when_nobody_is_there() {
        assert_eq!(reason(&known("no_consumer", &[])).map(|(code, _)| code), Some("no_consumer"));
        let blocked = reason(&known("no_consumer", &[(4, true)]));
        let (code, why) = blocked.expect("it needs attention");
        assert_eq!(code, "blocked");
        assert!(why.contains("failed 4 times") && why.ends_with("it blocks"), "{why}");
        let own = reason(&known("key_blocked", &[(4, true)]));
        assert_eq!(own, Some(("key_blocked", "as it says".to_owned())), "its own words are better");
    }

    #[test]
    fn the_most_urgent_comes_first() {
        let codes =
            ["damaged", "dead_letter_failing", "key_blocked", "no_consumer", "dead_letters"];
        assert!(codes.is_sorted_by_key(|code| rank(code)));
    }
}
