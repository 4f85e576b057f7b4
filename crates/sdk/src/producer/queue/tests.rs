//! The queue against a model of a broker that refuses, forgets to answer, and dies.

use super::*;
use danube_wire::proto::stream::{self as proto, PublishAck, PublishRefusal, Refusal};
use futures::FutureExt;
use proptest::prelude::*;
use prost::Message as _;
use std::collections::BTreeMap;

const TIMEOUT: Duration = Duration::from_secs(30);
const MS: Duration = Duration::from_millis(1);

fn limits(batch_messages_max: u32) -> Limits {
    let (batch_bytes_max, linger) = (1 << 16, Duration::ZERO);
    Limits { batch_messages_max, batch_bytes_max, linger, timeout: TIMEOUT }
}

fn queue(limits: Limits) -> Queue {
    Queue::new("producer `p` on topic `/n/t`".into(), "/n/t".into(), limits)
}

fn opened(last_sequence: u64) -> ProducerOpened {
    ProducerOpened {
        last_sequence,
        window_batches: 4,
        window_bytes: 1 << 20,
        ..ProducerOpened::default()
    }
}

fn put(queue: &mut Queue, number: u32, now: Instant) -> Receipt {
    let payload = number.to_be_bytes();
    let message = Message { payload: &payload, ..Message::default() };
    queue.put(&message, || now).expect("not over").expect("room")
}

fn take(queue: &mut Queue, now: Instant) -> Vec<Batch> {
    let mut out = Vec::new();
    queue.take(1, now, &mut Budget::of_request(), &mut out);
    out
}

fn numbers(batch: &Batch) -> Vec<u32> {
    let bytes = batch.messages.bytes();
    let number = |range| {
        let message = proto::Message::decode(bytes.slice(range)).expect("our own");
        u32::from_be_bytes(message.payload[..].try_into().expect("four bytes"))
    };
    batch.messages.ranges().map(number).collect()
}

fn tell(queue: &mut Queue) {
    queue.resolutions().into_iter().for_each(Resolution::tell);
}

/// What a broker may do with the next batch.
#[derive(Debug, Clone, Copy)]
enum Mood {
    Store,
    Retry,
    /// One of its messages is wrong.
    Wrong(u32),
}

#[derive(Debug, Clone)]
enum Step {
    Put(u32),
    Send,
    Handle(Mood),
    /// The client gets this many answers.
    Answer(usize),
    /// Time passes.
    Wait(u64),
    /// The stream breaks; answers that are under way are lost. The producer is attached again.
    Break,
}

#[derive(Debug)]
enum Answer {
    Ack(PublishAck),
    Refusal(PublishRefusal),
}

/// A broker as the contract has it.
#[derive(Debug, Default)]
struct Broker {
    log: Vec<u32>,
    last_sequence: u64,
    /// What was said to each batch that was taken, by its first sequence.
    said: BTreeMap<u64, Vec<(u64, u32, Option<u64>)>>,
    wire: VecDeque<Batch>,
    answers: VecDeque<Answer>,
}

impl Broker {
    fn handle(&mut self, mood: Mood) {
        let Some(batch) = self.wire.pop_front() else { return };
        let (first, count) = (batch.first_sequence, batch.messages.count());
        let expected = self.last_sequence + 1;
        let refusal = match mood {
            _ if first < expected => {
                let said = self.said.get(&first).expect("a batch keeps number and boundaries");
                return said.clone().into_iter().for_each(|part| self.say(part));
            }
            _ if first > expected => Refusal::OutOfOrder,
            Mood::Retry => Refusal::Retry,
            Mood::Store | Mood::Wrong(_) => {
                let wrong = match mood {
                    Mood::Wrong(index) => index % count,
                    _ => count,
                };
                return self.store(&batch, wrong);
            }
        };
        self.refuse(first, count, refusal);
    }

    fn store(&mut self, batch: &Batch, wrong: u32) {
        let (first, count) = (batch.first_sequence, batch.messages.count());
        let mut said = Vec::new();
        let all = numbers(batch);
        for (range, is_wrong) in
            [(0..wrong, false), (wrong..(wrong + 1).min(count), true), (wrong + 1..count, false)]
        {
            if range.is_empty() {
                continue;
            }
            let offset = (!is_wrong).then_some(self.log.len() as u64);
            if !is_wrong {
                self.log.extend(&all[range.start as usize..range.end as usize]);
            }
            said.push((first + u64::from(range.start), range.end - range.start, offset));
        }
        self.last_sequence = first + u64::from(count) - 1;
        said.iter().for_each(|part| self.say(*part));
        self.said.insert(first, said);
    }

    fn say(&mut self, (first_sequence, count, offset): (u64, u32, Option<u64>)) {
        match offset {
            Some(first_offset) => self.answers.push_back(Answer::Ack(PublishAck {
                producer: 1,
                first_sequence,
                first_offset,
                count,
            })),
            None => self.refuse(first_sequence, count, Refusal::Invalid),
        }
    }

    fn refuse(&mut self, first_sequence: u64, count: u32, refusal: Refusal) {
        self.answers.push_back(Answer::Refusal(PublishRefusal {
            producer: 1,
            first_sequence,
            count,
            refusal: refusal.into(),
            reason: "because".into(),
            retry_after_ms: 2,
        }));
    }
}

struct World {
    queue: Queue,
    broker: Broker,
    now: Instant,
    receipts: Vec<Receipt>,
}

impl World {
    fn new() -> World {
        let mut queue = queue(limits(3));
        queue.attached(&opened(0), "");
        World { queue, broker: Broker::default(), now: Instant::now(), receipts: Vec::new() }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Put(count) => {
                for _ in 0..count {
                    let number = self.receipts.len() as u32;
                    self.receipts.push(put(&mut self.queue, number, self.now));
                }
            }
            Step::Send => self.broker.wire.extend(take(&mut self.queue, self.now)),
            Step::Handle(mood) => self.broker.handle(mood),
            Step::Answer(count) => (0..count).for_each(|_| self.answer()),
            Step::Wait(ms) => {
                self.now += Duration::from_millis(ms);
                if let Next::Reopen(_) = self.queue.expire(self.now) {
                    self.attach_again();
                }
            }
            Step::Break => self.attach_again(),
        }
        tell(&mut self.queue);
    }

    fn answer(&mut self) {
        match self.broker.answers.pop_front() {
            None => {}
            Some(Answer::Ack(ack)) => self.queue.acked(&ack),
            Some(Answer::Refusal(refusal)) => match self.queue.refused(refusal, self.now) {
                Next::Go => {}
                Next::Reopen(_) => self.attach_again(),
                Next::Over(error) => panic!("{error}"),
            },
        }
    }

    fn attach_again(&mut self) {
        self.queue.detached();
        self.broker.wire.clear();
        self.broker.answers.clear();
        self.queue.attached(&opened(self.broker.last_sequence), "");
    }

    /// From here on everything goes well.
    fn heal(&mut self) {
        for _ in 0..1_000 {
            if self.queue.is_empty() {
                return;
            }
            for step in [Step::Wait(5), Step::Send, Step::Handle(Mood::Store), Step::Answer(4)] {
                self.step(step);
            }
        }
        panic!("something is never answered: {:?}", self.queue);
    }
}

fn moods() -> impl Strategy<Value = Mood> {
    prop_oneof![
        4 => Just(Mood::Store),
        2 => Just(Mood::Retry),
        1 => any::<u32>().prop_map(Mood::Wrong),
    ]
}

fn steps(wait_ms: std::ops::Range<u64>) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1_u32..8).prop_map(Step::Put),
        5 => Just(Step::Send),
        6 => moods().prop_map(Step::Handle),
        6 => (1_usize..4).prop_map(Step::Answer),
        3 => wait_ms.prop_map(Step::Wait),
        1 => Just(Step::Break),
    ];
    prop::collection::vec(step, 0..80)
}

proptest! {
    #[test]
    fn every_message_is_stored_once_and_in_order(steps in steps(0..4)) {
        let mut world = World::new();
        steps.into_iter().for_each(|step| world.step(step));
        world.heal();
        let mut expected = Vec::new();
        for (number, receipt) in world.receipts.into_iter().enumerate() {
            match receipt.now_or_never().expect("everything is answered") {
                Ok(id) => {
                    prop_assert_eq!(id.offset(), expected.len() as u64);
                    expected.push(number as u32);
                }
                Err(Error::Refused { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        prop_assert_eq!(world.broker.log, expected);
    }

    /// With time limits that run out: what is said to be stored is, at its offset; nothing is
    /// stored twice or out of order.
    #[test]
    fn what_is_given_up_is_stored_once_or_not_at_all(steps in steps(0..20_000)) {
        let mut world = World::new();
        steps.into_iter().for_each(|step| world.step(step));
        world.heal();
        let log = &world.broker.log;
        prop_assert!(log.is_sorted_by(|one, next| one < next), "{:?}", log);
        for (number, receipt) in world.receipts.into_iter().enumerate() {
            if let Ok(id) = receipt.now_or_never().expect("everything is answered") {
                prop_assert_eq!(log[id.offset() as usize], number as u32);
            }
        }
    }
}

#[test]
fn small_batches_are_few_and_grow() {
    let now = Instant::now();
    let mut queue = queue(limits(100));
    queue.attached(&opened(0), "");
    let mut receipts = Vec::new();
    for number in 0..4 {
        receipts.push(put(&mut queue, number, now));
        assert_eq!(take(&mut queue, now).len(), 1);
    }
    for number in 4..50 {
        receipts.push(put(&mut queue, number, now));
    }
    assert!(take(&mut queue, now).is_empty(), "four small ones are under way");
    queue.acked(&PublishAck { producer: 1, first_sequence: 1, first_offset: 0, count: 1 });
    let [batch] = &take(&mut queue, now)[..] else { panic!("one batch of all that waited") };
    assert_eq!((batch.first_sequence, batch.messages.count()), (5, 46));
}

#[test]
fn a_batch_lingers_until_it_is_full_or_time_is_up() {
    let now = Instant::now();
    let mut queue = queue(Limits { linger: 5 * MS, ..limits(2) });
    queue.attached(&opened(0), "");
    let _first = put(&mut queue, 0, now);
    assert!(!queue.may_send(now) && queue.next_deadline(now) == Some(now + 5 * MS));
    assert!(queue.may_send(now + 5 * MS));
    let _second = put(&mut queue, 1, now);
    assert!(queue.may_send(now), "it is full");
}

#[test]
fn one_message_always_has_room_and_the_window_keeps_the_others() {
    let now = Instant::now();
    let mut queue = queue(limits(100));
    queue.attached(&ProducerOpened { window_bytes: 10, ..opened(0) }, "");
    let _first = put(&mut queue, 0, now);
    let second = queue.put(&Message { payload: b"second", ..Message::default() }, || now);
    assert!(second.expect("not over").is_none());
}

#[test]
fn a_refusal_within_a_batch_sends_the_rest_of_it_again() {
    let now = Instant::now();
    let mut queue = queue(limits(4));
    queue.attached(&opened(0), "");
    let receipts: Vec<_> = (0..4).map(|number| put(&mut queue, number, now)).collect();
    assert_eq!(take(&mut queue, now).len(), 1);
    queue.acked(&PublishAck { producer: 1, first_sequence: 1, first_offset: 7, count: 2 });
    let refusal = PublishRefusal {
        first_sequence: 3,
        count: 2,
        refusal: Refusal::Overloaded.into(),
        retry_after_ms: 50,
        ..PublishRefusal::default()
    };
    assert!(matches!(queue.refused(refusal, now), Next::Go));
    assert_eq!(queue.next_deadline(now), Some(now + 50 * MS));
    assert!(take(&mut queue, now).is_empty());
    let [rest] = &take(&mut queue, now + 50 * MS)[..] else { panic!("the rest") };
    assert_eq!((rest.first_sequence, numbers(rest)), (3, vec![2, 3]));
    queue.acked(&PublishAck { producer: 1, first_sequence: 3, first_offset: 9, count: 2 });
    tell(&mut queue);
    assert!(queue.is_empty());
    for (receipt, offset) in receipts.into_iter().zip(7..) {
        assert_eq!(receipt.now_or_never().expect("told").expect("stored").offset(), offset);
    }
}

#[test]
fn who_waited_in_vain_is_told_why_it_was_refused() {
    let now = Instant::now();
    let mut queue = queue(limits(4));
    queue.attached(&opened(0), "");
    let receipt = put(&mut queue, 0, now);
    assert_eq!(take(&mut queue, now).len(), 1);
    let refusal = PublishRefusal {
        first_sequence: 1,
        count: 1,
        refusal: Refusal::Retry.into(),
        reason: "the disk is full".into(),
        ..PublishRefusal::default()
    };
    assert!(matches!(queue.refused(refusal, now), Next::Go));
    queue.expire(now + TIMEOUT);
    tell(&mut queue);
    let error = receipt.now_or_never().expect("told").expect_err("is not stored");
    assert!(error.to_string().contains("last refused: the disk is full"), "{error}");
}
