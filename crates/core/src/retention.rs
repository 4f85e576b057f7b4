//! How long a topic keeps its messages.
//!
//! What each intent keeps by default is decided here; the log carries it out. A message that a
//! subscription has not finished stays, whatever its age, unless the policy says otherwise.
//!
//! | topic | finished messages | age | size |
//! |---|---|---|---|
//! | `task_queue` | may go at once | | |
//! | dead letters of any topic | stay | 30 days | |
//! | `event_stream`, no intent | stay | 7 days | 10 GiB |
//! | `audit_log` | stay | | |
//! | `realtime` | never stored | | |

use crate::intent::{Intent, StreamSettings};
use crate::name::TopicName;
use serde::{Deserialize, Serialize};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// What a topic keeps. Whichever limit is reached first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Retention {
    /// Age from which on messages may go, in milliseconds since they were published.
    pub time_ms: Option<u64>,
    /// Size of the topic above which its oldest messages may go, in bytes as stored.
    pub bytes: Option<u64>,
    /// Messages that every subscription has finished may go at once. A topic without any
    /// subscription keeps them.
    pub drop_finished: bool,
    /// Age and size count even for messages that a subscription has not finished.
    pub past_unfinished: bool,
}

impl Retention {
    /// Everything, for ever.
    pub const FOREVER: Retention =
        Retention { time_ms: None, bytes: None, drop_finished: false, past_unfinished: false };

    /// What `topic` keeps by default, given its stored intent document.
    pub fn by_default(topic: &TopicName, settings: Option<&StreamSettings>) -> Retention {
        if topic.is_dead_letter() {
            return Retention { time_ms: Some(30 * DAY_MS), ..Retention::FOREVER };
        }
        match settings.map(|settings| settings.intent) {
            Some(Intent::TaskQueue | Intent::Realtime) => {
                Retention { drop_finished: true, ..Retention::FOREVER }
            }
            Some(Intent::EventStream) | None => {
                Retention { time_ms: Some(7 * DAY_MS), bytes: Some(10 << 30), ..Retention::FOREVER }
            }
            Some(Intent::AuditLog) => Retention::FOREVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn each_intent_keeps_what_it_is_for() {
        let mut table = String::new();
        let intents = [Intent::Realtime, Intent::EventStream, Intent::TaskQueue, Intent::AuditLog];
        for topic in ["/default/jobs", "/default/jobs-dlq"] {
            let topic = TopicName::parse(topic).expect("a name");
            for intent in intents.map(Some).into_iter().chain([None]) {
                let settings = intent.map(|intent| intent.expand(&topic));
                let Retention { time_ms, bytes, drop_finished, past_unfinished } =
                    Retention::by_default(&topic, settings.as_ref());
                let days = time_ms.map(|ms| ms / DAY_MS);
                let intent = intent.map_or("none", Intent::as_str);
                table += &format!(
                    "{topic} {intent}: {days:?} days, {bytes:?} bytes, finished {drop_finished}, \
                     unfinished {past_unfinished}\n"
                );
            }
        }
        expect![[r#"
            /default/jobs realtime: None days, None bytes, finished true, unfinished false
            /default/jobs event_stream: Some(7) days, Some(10737418240) bytes, finished false, unfinished false
            /default/jobs task_queue: None days, None bytes, finished true, unfinished false
            /default/jobs audit_log: None days, None bytes, finished false, unfinished false
            /default/jobs none: Some(7) days, Some(10737418240) bytes, finished false, unfinished false
            /default/jobs-dlq realtime: Some(30) days, None bytes, finished false, unfinished false
            /default/jobs-dlq event_stream: Some(30) days, None bytes, finished false, unfinished false
            /default/jobs-dlq task_queue: Some(30) days, None bytes, finished false, unfinished false
            /default/jobs-dlq audit_log: Some(30) days, None bytes, finished false, unfinished false
            /default/jobs-dlq none: Some(30) days, None bytes, finished false, unfinished false
        "#]].assert_eq(&table);
    }
}
