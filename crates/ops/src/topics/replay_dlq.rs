//! `topics replay-dlq`: dead letters are published again, batch by batch.
//!
//! The broker publishes and remembers; this drives it. Cut short, it can be run again and goes on
//! where it was. It stops at the end that the dead letters had when it began, so it never chases
//! what fails once more.

use crate::args::{Pair, TopicArg, pairs};
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use crate::view::{Table, one_line};
use danube_core::{SubscriptionName, TopicName};
use danube_wire::proto::control::control_client::ControlClient;
use danube_wire::proto::control::{
    ReplayDeadLettersRequest, ReplayDeadLettersResponse, ReplayedLetter,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::Channel;

/// Dead letters of one request.
const BATCH_LEN: u32 = 50;
/// Requests per second, at least, where a rate is given: the smaller the batch, the steadier.
const STEPS_PER_SECOND: u32 = 10;
/// How often in a row one batch is tried again, and how long after each failure; together longer
/// than a broker's restart.
const RETRIES_MAX: u32 = 30;
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Publish dead letters again, to where they came from; run again, it goes on where it was
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct ReplayDlq {
    #[command(flatten)]
    #[serde(flatten)]
    topic: TopicArg,
    /// Publish them to this topic instead
    #[arg(long, value_name = "TOPIC")]
    to: Option<String>,
    /// Only those that failed in this subscription
    #[arg(short, long, value_name = "NAME")]
    subscription: Option<String>,
    /// Only those with this attribute, as KEY=VALUE; given more than once, all must hold
    #[arg(long, value_name = "KEY=VALUE")]
    #[serde(default)]
    filter: Vec<Pair>,
    /// Publish this many at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Publish this many a second at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,
    /// Also those that were replayed before
    #[arg(long)]
    #[serde(default)]
    again: bool,
    /// Print what would be published and publish nothing
    #[arg(long)]
    #[serde(default)]
    dry_run: bool,
    /// Only the dead letter at this offset, also when it was replayed before
    #[arg(long, value_name = "N", conflicts_with_all = ["limit", "rate", "again"])]
    #[serde(default)]
    offset: Option<u64>,
    /// Publish it with this payload instead of its own: the message, mended
    #[arg(long, value_name = "TEXT", requires = "offset")]
    #[serde(default)]
    payload: Option<String>,
}

/// What was done.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Replay {
    topic: String,
    dry_run: bool,
    /// Published again; in a dry run, would be.
    replayed: u64,
    /// Could not be; they stay for the next replay.
    failed: u64,
    /// Passed over because they were replayed before.
    replayed_before: u64,
    /// Passed over because they do not match.
    not_matching: u64,
    /// An earlier replay was cut short, and this one went on to the end of that one.
    resumed: bool,
    /// Dead letters that came after that end; the next replay takes them.
    later: u64,
    /// Those that failed; in a dry run all that would be published.
    letters: Vec<Letter>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Letter {
    offset: u64,
    /// Where it goes; empty when that is not known.
    to: String,
    key: Option<String>,
    /// The subscription in which it failed, and why.
    subscription: Option<String>,
    reason: Option<String>,
    /// How often it has been replayed, this time included.
    replay_count: u32,
    /// Why it could not be replayed.
    error: Option<String>,
}

impl Operation for ReplayDlq {
    type Output = Replay;
    const SPEC: Spec = Spec {
        path: ("topics", "replay-dlq"),
        permission: Permission::ManageTopic,
        effect: Effect::Destructive,
        example: "/default/agent-jobs-dlq --subscription worker-pool --rate 100 --dry-run",
    };

    async fn run(self, session: &Session) -> Result<Replay, OpError> {
        let topic = self.topic.name()?;
        let mut request = self.request(&topic)?;
        let mut control = session.control().await?;
        let mut replay =
            Replay { topic: topic.to_string(), dry_run: self.dry_run, ..Replay::default() };
        let began = Instant::now();
        loop {
            let done = replay.replayed;
            let left = self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(done));
            request.limit = batch_len(self.rate, left);
            let answer = match batch(&mut control, &request).await {
                Ok(answer) => answer,
                Err(status) => {
                    return replay.broken_off(&channel::error(
                        &format!("dead letters of `{topic}` cannot be replayed"),
                        &status,
                    ));
                }
            };
            let (next, end) = (answer.next, answer.end);
            replay.take(answer);
            if next >= end {
                return replay.complete();
            }
            if self.limit.is_some_and(|limit| replay.replayed >= limit) {
                close(&mut control, request).await;
                return replay.complete();
            }
            (request.from, request.end) = (Some(next), Some(end));
            if let Some(rate) = self.rate {
                let due = Duration::from_secs_f64(replay.replayed as f64 / f64::from(rate));
                tokio::time::sleep_until(began + due).await;
            }
        }
    }
}

impl ReplayDlq {
    fn request(&self, topic: &TopicName) -> Result<ReplayDeadLettersRequest, OpError> {
        let to = self.to.as_deref().map(TopicName::parse).transpose()?;
        let subscription = self.subscription.as_deref().map(SubscriptionName::parse).transpose()?;
        Ok(ReplayDeadLettersRequest {
            name: topic.to_string(),
            to: to.map(|to| to.to_string()),
            subscription: subscription.map(|name| name.to_string()),
            filters: pairs(&self.filter)?,
            dry_run: self.dry_run,
            again: self.again,
            offset: self.offset,
            payload: self.payload.clone().map(String::into_bytes),
            ..ReplayDeadLettersRequest::default()
        })
    }
}

/// How many dead letters the next request asks for.
fn batch_len(rate: Option<u32>, left: u64) -> u32 {
    let step = rate.map_or(BATCH_LEN, |rate| (rate / STEPS_PER_SECOND).clamp(1, BATCH_LEN));
    u32::try_from(left).unwrap_or(u32::MAX).min(step)
}

/// One request; while the broker is away or somebody else replays, it is made again.
async fn batch(
    control: &mut ControlClient<Channel>,
    request: &ReplayDeadLettersRequest,
) -> Result<ReplayDeadLettersResponse, Status> {
    let mut failures = 0;
    loop {
        match call(control.replay_dead_letters(request.clone())).await {
            Err(status) if channel::is_retryable(&status) && failures < RETRIES_MAX => {
                failures += 1;
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            answered => return answered,
        }
    }
}

/// Lets a replay that did what was asked of it end where it is. When that fails, the next replay
/// goes on to the end of this one and then says so.
async fn close(control: &mut ControlClient<Channel>, request: ReplayDeadLettersRequest) {
    let request = ReplayDeadLettersRequest { close: !request.dry_run, ..request };
    if request.close {
        let _ = batch(control, &request).await;
    }
}

impl Replay {
    fn take(&mut self, answer: ReplayDeadLettersResponse) {
        self.replayed_before += answer.replayed_before;
        self.not_matching += answer.not_matching;
        self.resumed |= answer.resumed;
        self.later = answer.later;
        for letter in answer.letters.into_iter().map(Letter::from) {
            match letter.error {
                None => self.replayed += 1,
                Some(_) => self.failed += 1,
            }
            if self.dry_run || letter.error.is_some() {
                self.letters.push(letter);
            }
        }
    }

    /// Came to its end. When nothing of it could be done, it failed.
    fn complete(self) -> Result<Replay, OpError> {
        match self.partial() {
            Some(why) if self.replayed == 0 && !self.dry_run => Err(OpError::refused(why)),
            _ => Ok(self),
        }
    }

    /// Broke off. When something of it was done, that is the result, with what was not.
    fn broken_off(self, error: &OpError) -> Result<Replay, OpError> {
        if self.replayed == 0 || self.dry_run {
            return Err(error.clone());
        }
        Err(OpError::refused(format!(
            "{}; {} were published before that: run it again to go on",
            error.message, self.replayed
        )))
    }
}

impl From<ReplayedLetter> for Letter {
    fn from(wire: ReplayedLetter) -> Letter {
        Letter {
            offset: wire.offset,
            to: wire.to,
            key: wire.key,
            subscription: wire.subscription,
            reason: wire.reason,
            replay_count: wire.replay_count,
            error: wire.error,
        }
    }
}

impl Output for Replay {
    fn text(&self) -> String {
        let mut lines = Vec::new();
        if self.dry_run && !self.letters.is_empty() {
            lines.push(table(&self.letters).render());
        }
        let did = if self.dry_run { "would replay" } else { "replayed" };
        lines.push(format!(
            "{did} {} dead letters of {}; passed over: {} replayed before, {} not matching",
            self.replayed, self.topic, self.replayed_before, self.not_matching
        ));
        lines.join("\n")
    }

    fn notes(&self) -> Vec<String> {
        match (self.resumed, self.later) {
            (true, 1..) => vec![format!(
                "this went on with a replay that was cut short, to the end of that one; {} dead \
                 letters came after it: run it again for them",
                self.later
            )],
            _ => Vec::new(),
        }
    }

    fn partial(&self) -> Option<String> {
        let first = self.letters.iter().find(|letter| letter.error.is_some())?;
        Some(format!(
            "{} dead letters of `{}` {} replayed, the first at offset {}: {}",
            self.failed,
            self.topic,
            if self.dry_run { "cannot be" } else { "could not be" },
            first.offset,
            first.error.as_deref().unwrap_or_default()
        ))
    }
}

fn table(letters: &[Letter]) -> Table {
    let mut table = Table::new(&["OFFSET", "TO", "KEY", "SUBSCRIPTION", "REPLAY", "REASON"]);
    let or_none = |text: &Option<String>| text.as_deref().map_or_else(|| "-".to_owned(), one_line);
    for letter in letters {
        table.row([
            letter.offset.to_string(),
            if letter.error.is_some() { "cannot".to_owned() } else { letter.to.clone() },
            or_none(&letter.key),
            or_none(&letter.subscription),
            letter.replay_count.to_string(),
            or_none(if letter.error.is_some() { &letter.error } else { &letter.reason }),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn answer(errors: &[Option<&str>]) -> ReplayDeadLettersResponse {
        let letters = (0..).zip(errors).map(|(offset, error)| ReplayedLetter {
            offset,
            to: "/default/jobs".into(),
            reason: Some("broken".into()),
            replay_count: 1,
            error: error.map(str::to_owned),
            ..ReplayedLetter::default()
        });
        ReplayDeadLettersResponse {
            letters: letters.collect(),
            replayed_before: 3,
            not_matching: 4,
            ..ReplayDeadLettersResponse::default()
        }
    }

    fn replay(dry_run: bool, errors: &[Option<&str>]) -> Replay {
        let mut replay = Replay { topic: "/n/t-dlq".into(), dry_run, ..Replay::default() };
        replay.take(answer(errors));
        replay
    }

    #[test]
    fn a_dry_run_lists_what_a_run_only_counts() {
        expect![[r#"
            OFFSET  TO             KEY  SUBSCRIPTION  REPLAY  REASON
            0       /default/jobs  -    -             1       broken
            1       cannot         -    -             1       no such topic
            would replay 1 dead letters of /n/t-dlq; passed over: 3 replayed before, 4 not matching"#]]
        .assert_eq(&replay(true, &[None, Some("no such topic")]).text());
        expect![[
            r#"replayed 2 dead letters of /n/t-dlq; passed over: 3 replayed before, 4 not matching"#
        ]]
        .assert_eq(&replay(false, &[None, None]).text());
    }

    #[test]
    fn some_failures_are_partial_and_nothing_but_failures_an_error() {
        let some = replay(false, &[None, Some("no such topic")]).complete().expect("some");
        assert_eq!(
            some.partial().as_deref(),
            Some(
                "1 dead letters of `/n/t-dlq` could not be replayed, the first at offset 1: \
                 no such topic"
            )
        );
        assert!(replay(false, &[Some("no such topic")]).complete().is_err());
        assert_eq!(replay(false, &[None]).complete().expect("all").partial(), None);
    }

    #[test]
    fn a_rate_makes_small_batches() {
        for (rate, left, len) in
            [(None, u64::MAX, 50), (None, 7, 7), (Some(200), 1_000, 20), (Some(3), 9, 1)]
        {
            assert_eq!(batch_len(rate, left), len, "{rate:?} {left}");
        }
        assert_eq!("a=b=c".parse(), Ok(Pair { key: "a".into(), value: "b=c".into() }));
        assert!("a".parse::<Pair>().is_err() && "=b".parse::<Pair>().is_err());
    }
}
