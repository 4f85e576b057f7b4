//! The script runner: one command per line in, the engine's effects behind each line out.
//!
//! A script begins with the set-up: kind, policy `max,timeout,base,max_delay,poison`, and options
//! `window=N`, `lookahead=N`, `lease=MS`, `total=MS`, `bytes=N` (each message has 100), `all` (shows the records that only
//! a restart needs). Then commands:
//! - `join a [room=N] [filters=x*,y]`: subscribe and open; without `room` the stream drains itself
//! - `attach`, `open`, `drain a N`, `kill a`, `close a` (clean), `detach a`
//! - `publish k1 k2*3`: one message per key; `gap N`: offsets that the log does not have
//! - `ack 0 3..5`, `nack 0 [delay=ms] [reason]`, `dead ok 0`, `dead fail 0 reason`
//! - `claim a 0#1 ack|nack|extend=MS [epoch=N]`: the same from the native wire; `extend 0 MS`
//! - `+30s`, `+500ms`; `seek N`; `policy ...`; `window N`; `why`; `failing`; `stats`; `progress`
//! - `hold`/`answer`: keep fetches back, answer them; `unreadable`: fail the one kept back; `lost`:
//!   fail the first read of parked messages that is kept back
//! - `forget N`: the log has this no more; `sleep MS`: the clock moves and no timer rings
//! - `restart`: a new engine from what was recorded; all streams are gone
//!
//! Shown are deliveries `a<-0#1` (consumer, offset, attempt), records, dead letters and the notes
//! that tell of skipped messages. Time is shown where it passes.

use super::super::*;
use crate::intent::PoisonPolicy;
use crate::name::TopicName;
use crate::policy::Backoff;
use expect_test::Expect;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

pub(super) fn check(script: &str, expected: Expect) {
    let mut lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut runner = Runner::new(lines.next().expect("a script begins with its set-up"));
    for line in lines {
        for command in line.split(';') {
            runner.run(command.trim());
        }
    }
    expected.assert_eq(&runner.trace);
}

struct Runner {
    subscription: Subscription,
    now: Tick,
    log: Vec<Option<Arc<str>>>,
    journal: Vec<Step>,
    /// Consumers whose connection takes everything at once.
    eager: BTreeMap<ConsumerId, bool>,
    is_holding: bool,
    kept: Option<(Offset, u32)>,
    /// Reads of parked messages, while fetches are kept back.
    kept_bodies: VecDeque<(Offset, u32)>,
    /// Everything that streams were given: offset and ticket.
    queues: BTreeMap<ConsumerId, Vec<(Offset, u64)>>,
    shown: Vec<String>,
    shows_time: bool,
    /// Shows also the records that only a restart needs.
    shows_all: bool,
    trace: String,
}

impl Runner {
    fn new(setup: &str) -> Runner {
        let config = config(setup);
        Runner {
            subscription: Subscription::new(config, Progress::at(Offset(0)), Offset(0)),
            now: Tick(0),
            log: Vec::new(),
            journal: Vec::new(),
            eager: BTreeMap::new(),
            is_holding: false,
            kept: None,
            kept_bodies: VecDeque::new(),
            queues: BTreeMap::new(),
            shown: Vec::new(),
            shows_time: false,
            shows_all: setup.contains(" all"),
            trace: String::new(),
        }
    }

    fn run(&mut self, command: &str) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let (verb, rest) = words.split_first().expect("a command has a verb");
        match *verb {
            "join" => {
                self.attach(rest);
                let room = option(rest, "room=").map(|n| n.parse().expect("room"));
                self.open(consumer(rest[0]), room);
            }
            "attach" => self.attach(rest),
            "open" => self.open(consumer(rest[0]), rest.get(1).map(|n| n.parse().expect("room"))),
            "drain" => self
                .step(Event::Drained { consumer: consumer(rest[0]), count: num(rest[1]) as u32 }),
            "kill" => self.step(Event::Closed { consumer: consumer(rest[0]), clean: false }),
            "close" => self.step(Event::Closed { consumer: consumer(rest[0]), clean: true }),
            "detach" => self.step(Event::Detached { consumer: consumer(rest[0]) }),
            "publish" => self.publish(rest),
            "gap" => {
                self.log.extend((0..num(rest[0])).map(|_| None));
                self.step(Event::Tail { next: Offset(self.log.len() as u64) });
            }
            "ack" => {
                for offset in rest.iter().flat_map(|word| range(word)) {
                    self.step(Event::Acked { offset: Offset(offset), attempt: None });
                }
            }
            "nack" => self.nack(rest),
            // What the native wire says: `claim a 0#1 ack|nack|extend=MS`.
            "claim" => {
                let (offset, number) = rest[1].split_once('#').expect("offset#attempt");
                let (offset, consumer) = (Offset(num(offset)), consumer(rest[0]));
                let number = num(number) as u32;
                let epoch =
                    option(rest, "epoch=").map_or(self.subscription.epoch(), |e| num(e) as u32);
                let attempt = Some(AttemptId { number, consumer, epoch });
                let answer = self.answered(match rest[2] {
                    "ack" => Event::Acked { offset, attempt },
                    "nack" => Event::Nacked { offset, attempt, delay_ms: None, reason: None },
                    what => {
                        let by_ms = num(what.strip_prefix("extend=").expect("a claim"));
                        Event::Extended { offset, attempt, by_ms }
                    }
                });
                self.shown.push(format!("{answer:?}"));
            }
            "extend" => {
                let (offset, by_ms) = (Offset(num(rest[0])), num(rest[1]));
                let answer = self.answered(Event::Extended { offset, attempt: None, by_ms });
                self.shown.push(format!("{answer:?}"));
            }
            "lost" => {
                let (from, _) = self.kept_bodies.pop_front().expect("a read is under way");
                self.step(Event::RefetchFailed { from });
            }
            "dead" => {
                let offset = Offset(num(rest[1]));
                self.step(match rest[0] {
                    "ok" => Event::DeadLettered { offset },
                    _ => Event::DeadLetterFailed { offset, reason: rest[2..].join(" ") },
                });
            }
            "seek" => self.step(Event::Seek { to: Offset(num(rest[0])) }),
            "policy" => self.step(Event::PolicyChanged(policy(rest[0]))),
            "window" => self.step(Event::WindowChanged(num(rest[0]) as u32)),
            "admits" => {
                let answer = self.subscription.admits(self.now, consumer(rest[0]));
                self.shown.push(match answer {
                    Ok(()) => "yes".to_owned(),
                    Err(refusal) => format!("no, {} holds it", name(refusal.holder)),
                });
            }
            "why" => self.shown.push(self.subscription.why(self.now).to_string()),
            "failing" => {
                self.shown.extend(self.subscription.failing(self.now, 3).iter().map(failing))
            }
            "stats" => self.shown.push(stats(&self.subscription.stats(self.now))),
            "progress" => self.shown.push(format!("{:?}", self.subscription.progress())),
            "hold" => self.is_holding = true,
            "forget" => self.log[num(rest[0]) as usize] = None,
            "sleep" => self.now = self.now.after_ms(num(rest[0])),
            "answer" => {
                self.is_holding = false;
                self.answer();
            }
            "unreadable" => {
                self.kept = None;
                self.is_holding = false;
                self.step(Event::FetchFailed);
            }
            "restart" => self.restart(),
            verb => match verb.strip_prefix('+') {
                Some(span) => self.advance(span),
                None => panic!("`{verb}` is no command"),
            },
        }
        let shown = std::mem::take(&mut self.shown).join(" ");
        let line = format!("{command:<22} | {shown}");
        writeln!(self.trace, "{}", line.trim_end()).expect("a string takes everything");
    }

    fn attach(&mut self, rest: &[&str]) {
        let filters = option(rest, "filters=");
        let key_filters =
            filters.map(|f| f.split(',').map(str::to_owned).collect()).unwrap_or_default();
        self.step(Event::Attached { consumer: consumer(rest[0]), key_filters });
    }

    fn open(&mut self, consumer: ConsumerId, room: Option<u32>) {
        self.eager.insert(consumer, room.is_none());
        self.step(Event::Opened { consumer, room: room.unwrap_or(1_000) });
    }

    fn publish(&mut self, keys: &[&str]) {
        for word in keys {
            let (key, times) = word.split_once('*').unwrap_or((word, "1"));
            self.log.extend((0..num(times)).map(|_| Some(Arc::from(key))));
        }
        self.step(Event::Tail { next: Offset(self.log.len() as u64) });
    }

    fn nack(&mut self, rest: &[&str]) {
        let delay_ms = option(rest, "delay=").map(num);
        let words: Vec<&str> =
            rest[1..].iter().copied().filter(|w| !w.starts_with("delay=")).collect();
        let reason = (!words.is_empty()).then(|| words.join(" "));
        for offset in range(rest[0]) {
            let (offset, reason) = (Offset(offset), reason.clone());
            self.step(Event::Nacked { offset, attempt: None, delay_ms, reason });
        }
    }

    fn restart(&mut self) {
        let mut progress = Progress::at(Offset(0));
        self.journal.iter().for_each(|step| progress.apply(step));
        assert_eq!(
            &progress,
            self.subscription.progress(),
            "the journal says what the engine says"
        );
        let config = self.subscription.config().clone();
        let tail = Offset(self.log.len() as u64);
        self.subscription = Subscription::new(config, progress, tail);
        self.kept = None;
        self.kept_bodies.clear();
    }

    /// Moves the clock, with a deadline event at every moment that the engine asks for.
    fn advance(&mut self, span: &str) {
        let ms = match span.strip_suffix("ms") {
            Some(ms) => num(ms),
            None => num(span.strip_suffix('s').expect("a span has a unit")) * 1_000,
        };
        let end = self.now.after_ms(ms);
        self.shows_time = true;
        while let Some(at) = self.subscription.next_deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.step(Event::Deadline);
        }
        self.shows_time = false;
        self.now = end;
    }

    fn step(&mut self, event: Event) {
        self.answered(event);
    }

    fn answered(&mut self, event: Event) -> Answer {
        let mut events = VecDeque::from([event]);
        let mut first = None;
        while let Some(event) = events.pop_front() {
            let mut effects = Vec::new();
            let answer = self.subscription.step(self.now, event, &mut effects);
            first.get_or_insert(answer);
            for effect in effects {
                self.perform(effect, &mut events);
            }
        }
        assert_eq!(self.subscription.stall(self.now), None);
        if !self.is_holding {
            self.answer();
        }
        first.expect("there was an event")
    }

    fn perform(&mut self, effect: Effect, events: &mut VecDeque<Event>) {
        let because = |reason: &str| match reason {
            "" => String::new(),
            reason => format!("({reason})"),
        };
        let shown = match effect {
            Effect::Fetch { from, max } => {
                assert_eq!(self.kept.replace((from, max)), None, "one fetch at a time");
                return;
            }
            Effect::Refetch { from, max } => {
                self.kept_bodies.push_back((from, max));
                format!("read:{from}..{}", from.plus(max.into()))
            }
            Effect::Park { offset } => format!("park:{offset}"),
            Effect::Void { consumer, ticket } => {
                let queue = self.queues.entry(consumer).or_default();
                let offset = queue.iter().find(|entry| entry.1 == ticket).expect("it is queued").0;
                format!("void:{}<-{offset}", name(consumer))
            }
            Effect::Deliver { consumer, offset, attempt, ticket } => {
                self.queues.entry(consumer).or_default().push((offset, ticket));
                if self.eager[&consumer] {
                    events.push_back(Event::Drained { consumer, count: 1 });
                }
                format!("{}<-{offset}#{attempt}", name(consumer))
            }
            Effect::Record(step) => {
                self.journal.push(step.clone());
                match step {
                    Step::Finished { first, end } if first.next() == end => format!("done:{first}"),
                    Step::Finished { first, end } => format!("done:{first}..{end}"),
                    Step::Failed { offset, attempt, blocked, reason } => {
                        let what = if blocked { "blocked" } else { "failed" };
                        format!("{what}:{offset}#{attempt}{}", because(&reason))
                    }
                    Step::Moved { cursor } => format!("moved:{cursor}"),
                    // They follow from what is shown.
                    Step::Delivered { .. } | Step::Delayed { .. } if !self.shows_all => return,
                    Step::Delivered { offset, attempt } => format!("sent:{offset}#{attempt}"),
                    Step::Delayed { offset, delay_ms } => format!("delay:{offset}={delay_ms}ms"),
                }
            }
            Effect::DeadLetter { offset, attempt, reason } => {
                format!("DLQ:{offset}#{attempt}{}", because(&reason.unwrap_or_default()))
            }
            Effect::Note(Note::Unmatched(offset)) => format!("unmatched:{offset}"),
            Effect::Note(Note::Dropped(offset)) => format!("dropped:{offset}"),
            Effect::Note(Note::Gap { first, end }) => format!("gap:{first}..{end}"),
            Effect::Note(_) | Effect::Release { .. } => return,
        };
        let Tick(ms) = self.now;
        self.shown.push(match self.shows_time {
            true => format!("{}.{:03}s:{shown}", ms / 1_000, ms % 1_000),
            false => shown,
        });
    }

    fn answer(&mut self) {
        if let Some((from, max)) = self.kept.take() {
            let (items, next) = self.read(from, max);
            self.step(Event::Fetched { items, next });
        }
        while let Some((from, max)) = self.kept_bodies.pop_front() {
            let (items, next) = self.read(from, max);
            self.step(Event::Refetched { from, items, next });
        }
    }

    fn read(&self, from: Offset, max: u32) -> (Vec<Item>, Offset) {
        let end = Offset(from.0.saturating_add(u64::from(max)).min(self.log.len() as u64));
        let items = (from.0..end.0).filter_map(|offset| {
            let key = self.log[offset as usize].clone()?;
            Some(Item { offset: Offset(offset), key, len: 100 })
        });
        (items.collect(), end)
    }
}

/// The figures that are not 0.
fn stats(stats: &Stats) -> String {
    let figures = [
        ("backlog", stats.backlog),
        ("ready", stats.ready),
        ("queued", stats.queued),
        ("in_flight", stats.in_flight),
        ("waiting", stats.waiting_redelivery),
        ("blocked", stats.blocked),
        ("dead_lettering", stats.dead_lettering),
        ("consumers", stats.consumers),
        ("expected", stats.expected),
        ("attached", stats.attached),
    ];
    let shown = figures.iter().filter(|(_, figure)| *figure > 0);
    shown.map(|(name, figure)| format!("{name}={figure}")).collect::<Vec<_>>().join(" ")
}

pub(super) fn config(setup: &str) -> Config {
    let words: Vec<&str> = setup.split_whitespace().collect();
    let kind = match words[0] {
        "exclusive" => SubscriptionType::Exclusive,
        "shared" => SubscriptionType::Shared,
        "failover" => SubscriptionType::Failover,
        "keyshared" => SubscriptionType::KeyShared,
        kind => panic!("`{kind}` is no kind"),
    };
    let limit = |name: &str| option(&words, name).map_or(100, |n| num(n) as u32);
    let policy = policy(words.get(1).copied().unwrap_or("5,30000,1000,60000,block"));
    Config {
        lookahead_max: limit("lookahead="),
        body_bytes_max: option(&words, "bytes=").map_or(BODY_BYTES_MAX, num),
        lease_ms_max: option(&words, "lease=").map_or(LEASE_MS_MAX, num),
        lease_total_ms_max: option(&words, "total=").map_or(LEASE_TOTAL_MS_MAX, num),
        ..Config::new(kind, policy, limit("window="))
    }
}

fn policy(text: &str) -> FailurePolicy {
    let words: Vec<&str> = text.split(',').collect();
    let poison_policy = match words[4] {
        "block" => PoisonPolicy::Block,
        "drop" => PoisonPolicy::Drop,
        "dlq" => PoisonPolicy::DeadLetter,
        poison => panic!("`{poison}` is no poison policy"),
    };
    FailurePolicy {
        max_redelivery_count: num(words[0]) as u32,
        ack_timeout_ms: num(words[1]),
        base_redelivery_delay_ms: num(words[2]),
        max_redelivery_delay_ms: num(words[3]),
        backoff_strategy: Backoff::Exponential,
        dead_letter_topic: Some(TopicName::parse("/default/t-dlq").expect("a good name")),
        poison_policy,
    }
}

fn consumer(word: &str) -> ConsumerId {
    let letter = word.as_bytes()[0];
    ConsumerId(u64::from(letter - b'a' + 1))
}

fn name(consumer: ConsumerId) -> char {
    char::from(b'a' + consumer.0 as u8 - 1)
}

fn num(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("`{word}` is no number"))
}

fn range(word: &str) -> Range<u64> {
    match word.split_once("..") {
        Some((first, end)) => num(first)..num(end),
        None => num(word)..num(word) + 1,
    }
}

fn option<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name))
}

fn failing(failing: &Failing) -> String {
    let Failing { offset, key, attempts, reason, blocked, for_ms, in_ms } = failing;
    let held = match (blocked, for_ms, in_ms) {
        (true, for_ms, _) => format!("blocks for {for_ms:?}"),
        (false, _, Some(in_ms)) => format!("again in {in_ms}"),
        (false, _, None) => "under way".to_owned(),
    };
    format!("{offset}#{attempts}({}: {reason}) {held}", key.as_deref().unwrap_or("-"))
}
