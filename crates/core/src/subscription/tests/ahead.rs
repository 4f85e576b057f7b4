//! Clients that read ahead of their application: nobody is blamed for a message that nobody saw.

use crate::ids::{ConsumerId, Offset, Tick};
use crate::intent::PoisonPolicy;
use crate::policy::{Backoff, FailurePolicy, SubscriptionType};
use crate::subscription::{Config, Effect, Event, Item, Progress, Subscription};
use std::collections::VecDeque;

const A: ConsumerId = ConsumerId(1);
const B: ConsumerId = ConsumerId(2);
const TIMEOUT_MS: u64 = 2_000;

/// A subscription whose connections take everything at once.
struct Desk {
    engine: Subscription,
    now: Tick,
    /// Deliveries not looked at yet.
    delivered: Vec<(ConsumerId, u64, u32)>,
    /// Whose queues hold a delivery that the connection has not taken.
    queued: VecDeque<ConsumerId>,
    dead: Vec<u64>,
}

impl Desk {
    fn open(kind: SubscriptionType, messages: u64, consumers: &[ConsumerId]) -> Desk {
        let policy = FailurePolicy {
            max_redelivery_count: 2,
            ack_timeout_ms: TIMEOUT_MS,
            base_redelivery_delay_ms: 100,
            max_redelivery_delay_ms: 500,
            backoff_strategy: Backoff::Fixed,
            dead_letter_topic: None,
            poison_policy: PoisonPolicy::DeadLetter,
        };
        let config = Config::new(kind, policy, 100);
        let engine = Subscription::new(config, Progress::at(Offset(0)), Offset(messages));
        let mut desk =
            Desk { engine, now: Tick(0), delivered: vec![], queued: VecDeque::new(), dead: vec![] };
        for consumer in consumers {
            desk.connect(*consumer);
        }
        desk
    }

    fn connect(&mut self, consumer: ConsumerId) {
        self.tell(Event::Attached { consumer, key_filters: Vec::new() });
        self.tell(Event::Opened { consumer, room: 1_000 });
        self.step(Event::ReadsAhead { consumer });
    }

    /// One event, and then the connections take what they are given.
    fn step(&mut self, event: Event) {
        self.tell(event);
        while let Some(consumer) = self.queued.pop_front() {
            self.tell(Event::Drained { consumer, count: 1 });
        }
    }

    fn tell(&mut self, event: Event) {
        let mut effects = Vec::new();
        self.engine.step(self.now, event, &mut effects);
        for effect in effects {
            match effect {
                Effect::Fetch { from, max } => {
                    let offsets = from.0..from.0 + u64::from(max);
                    let next = Offset(offsets.end);
                    let item = |offset| Item { offset: Offset(offset), key: "k".into(), len: 1 };
                    self.tell(Event::Fetched { items: offsets.map(item).collect(), next });
                }
                Effect::Deliver { consumer, offset, attempt, .. } => {
                    self.delivered.push((consumer, offset.0, attempt));
                    self.queued.push_back(consumer);
                }
                Effect::DeadLetter { offset, .. } => {
                    self.dead.push(offset.0);
                    self.tell(Event::DeadLettered { offset });
                }
                _ => {}
            }
        }
    }

    fn ack(&mut self, offset: u64) {
        self.step(Event::Acked { offset: Offset(offset), attempt: None });
    }

    /// Lets time pass, with every deadline in between.
    fn pass(&mut self, ms: u64) {
        let end = self.now.after_ms(ms);
        while let Some(deadline) = self.engine.next_deadline().filter(|at| *at <= end) {
            self.now = deadline;
            self.step(Event::Deadline);
        }
        self.now = end;
    }

    fn take(&mut self) -> Vec<(ConsumerId, u64, u32)> {
        std::mem::take(&mut self.delivered)
    }
}

/// Case U06: fifty messages, half a second each, a timeout of two seconds.
#[test]
fn waiting_in_the_clients_buffer_is_no_failure() {
    let mut desk = Desk::open(SubscriptionType::Exclusive, 50, &[A]);
    assert_eq!(desk.take().len(), 50, "the client took them all at once");
    for offset in 0..50 {
        desk.pass(500);
        desk.ack(offset);
    }
    assert_eq!((desk.take(), desk.dead.as_slice()), (vec![], [].as_slice()));
    assert_eq!(desk.engine.progress().cursor(), Offset(50));
}

#[test]
fn what_the_application_has_runs_out_of_time() {
    let mut desk = Desk::open(SubscriptionType::Exclusive, 3, &[A]);
    desk.take();
    desk.pass(TIMEOUT_MS + 100);
    assert_eq!(desk.take(), [(A, 0, 2)], "the first one only: it is what the application has");
    desk.ack(2);
    // It spoke of the third, so it has the second as well.
    desk.pass(TIMEOUT_MS + 100);
    let again: Vec<u64> = desk.take().iter().map(|(_, offset, _)| *offset).collect();
    assert!(again.contains(&1), "{again:?}");
}

#[test]
fn only_what_the_application_can_have_seen_is_blamed_for_its_death() {
    let mut desk = Desk::open(SubscriptionType::Exclusive, 4, &[A]);
    desk.take();
    // The application dies on the first message, again and again (case U03 b).
    for _ in 0..2 {
        desk.step(Event::Closed { consumer: A, clean: false });
        desk.connect(A);
    }
    let last: Vec<(u64, u32)> =
        desk.take().split_off(4).iter().map(|(_, offset, attempt)| (*offset, *attempt)).collect();
    assert_eq!(last, [(0, 3), (1, 1), (2, 1), (3, 1)], "the neighbours keep their first attempt");
    desk.step(Event::Closed { consumer: A, clean: false });
    desk.connect(A);
    assert_eq!(desk.dead, [0]);
    for offset in 1..4 {
        desk.ack(offset);
    }
    assert_eq!(desk.engine.progress().cursor(), Offset(4));
}

#[test]
fn what_a_stuck_client_holds_goes_to_others() {
    let mut desk = Desk::open(SubscriptionType::Shared, 6, &[A, B]);
    for (consumer, offset, _) in desk.take() {
        if consumer == B {
            desk.ack(offset);
        }
    }
    desk.pass(TIMEOUT_MS);
    // A let the first of its three run out; the other two are offered to both, unblamed.
    let again = desk.take();
    let to_b = again.iter().filter(|(consumer, ..)| *consumer == B).count();
    assert!(to_b >= 1, "{again:?}");
    assert!(again.iter().all(|(_, _, attempt)| *attempt == 1), "{again:?}");
}
