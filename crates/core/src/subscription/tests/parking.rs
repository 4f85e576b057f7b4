//! Bodies: what is not needed soon is parked, and read again when its turn comes.

use super::super::*;
use super::script::{check, config};
use expect_test::expect;
use std::collections::BTreeSet;
use std::sync::Arc;

/// U10, second run, with many behind the blocked key: other keys pass by, and once the block is
/// lifted what was parked comes in order.
#[test]
fn u10_thousands_behind_a_blocked_key_do_not_stop_the_others() {
    let setup = "keyshared 0,30000,1000,60000,block lookahead=65536 bytes=10000";
    let behind = 20_000_u64;
    let key = |offset: u64| if offset <= behind { "k" } else { "j" };
    let total = behind + 101;
    let mut driver = Driver::new(setup, total, key);
    let consumer = ConsumerId(1);
    driver.step(Event::Opened { consumer, room: 10 });
    driver.step(Event::Nacked { offset: Offset(0), attempt: None, delay_ms: None, reason: None });
    let others = driver.delivered.split_off(1);
    assert_eq!(others, (behind + 1..total).collect::<Vec<_>>());
    assert!(matches!(driver.engine.why(Tick(0)), Why::KeyBlocked { offset: Offset(0), .. }));
    // The budget is a hundred bodies, and one fetch is on top of it until it is looked at.
    assert!(driver.bodies_max <= 1_024 + 100, "{} bodies were held", driver.bodies_max);
    driver.delivered.clear();
    driver.step(Event::Acked { offset: Offset(0), attempt: None });
    assert_eq!(driver.delivered, (1..=behind).collect::<Vec<_>>());
    assert_eq!(driver.engine.why(Tick(0)), Why::Drained);
    assert!(driver.bodies.is_empty());
}

/// A consumer that acks everything but the first message.
struct Driver<K> {
    engine: Subscription,
    total: u64,
    key: K,
    delivered: Vec<u64>,
    bodies: BTreeSet<u64>,
    bodies_max: usize,
}

impl<K: Fn(u64) -> &'static str> Driver<K> {
    fn new(setup: &str, total: u64, key: K) -> Driver<K> {
        let engine = Subscription::new(config(setup), Progress::default(), Offset(total));
        let (delivered, bodies) = (Vec::new(), BTreeSet::new());
        Driver { engine, total, key, delivered, bodies, bodies_max: 0 }
    }

    fn step(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut effects = Vec::new();
            self.engine.step(Tick(0), event, &mut effects);
            assert_eq!(self.engine.stall(Tick(0)), None);
            for effect in effects {
                match effect {
                    Effect::Fetch { from, max } => {
                        let (items, next) = self.read(from, max);
                        events.push(Event::Fetched { items, next });
                    }
                    Effect::Refetch { from, max } => {
                        let (items, next) = self.read(from, max);
                        events.push(Event::Refetched { from, items, next });
                    }
                    Effect::Deliver { consumer, offset, .. } => {
                        assert!(self.bodies.contains(&offset.0));
                        self.delivered.push(offset.0);
                        events.insert(0, Event::Drained { consumer, count: 1 });
                        if offset.0 > 0 {
                            events.insert(0, Event::Acked { offset, attempt: None });
                        }
                    }
                    Effect::Release { offset } | Effect::Park { offset } => {
                        assert!(self.bodies.remove(&offset.0));
                    }
                    _ => {}
                }
            }
        }
    }

    fn read(&mut self, from: Offset, max: u32) -> (Vec<Item>, Offset) {
        let next = (from.0 + u64::from(max)).min(self.total);
        let item = |offset| {
            let key = Arc::from((self.key)(offset));
            Item { offset: Offset(offset), key, len: 100 }
        };
        let items = (from.0..next).map(item).collect();
        self.bodies.extend(from.0..next);
        self.bodies_max = self.bodies_max.max(self.bodies.len());
        (items, Offset(next))
    }
}

#[test]
fn what_waits_for_its_key_is_parked_and_read_while_the_one_before_is_out() {
    check(
        "keyshared 5,30000,1000,60000,block bytes=400
        join a
        hold
        publish k*3 j*3
        answer
        ack 0
        ack 3 1 4
        ack 2 5
        why",
        expect![[r#"
            join a                 |
            hold                   |
            publish k*3 j*3        |
            answer                 | a<-0#1 park:0 a<-3#1 park:3 park:5 park:4
            ack 0                  | done:0 a<-1#1
            ack 3 1 4              | done:3 read:4..5 a<-4#1 park:4 read:5..6 done:1 a<-2#1 done:4 a<-5#1
            ack 2 5                | done:2 done:5
            why                    | drained: every message is finished
        "#]],
    );
}

#[test]
fn what_went_out_and_failed_is_read_again_in_order() {
    check(
        "shared 5,30000,1000,60000,block bytes=300 window=4
        join a
        publish m*6
        kill a
        hold
        join b
        why
        lost
        why
        +1s
        answer
        ack 0..6
        why",
        expect![[r#"
            join a                 |
            publish m*6            | a<-0#1 park:0 a<-1#1 park:1 a<-2#1 park:2 a<-3#1 park:3
            kill a                 | failed:0#1(consumer gone) failed:1#1(consumer gone) failed:2#1(consumer gone) failed:3#1(consumer gone)
            hold                   |
            join b                 | read:0..4
            why                    | reading the log
            lost                   |
            why                    | the log cannot be read, next try in 1.0 s
            +1s                    | 1.000s:read:0..4
            answer                 | b<-0#2 park:0 b<-1#2 park:1 b<-2#2 park:2 b<-3#2 park:3
            ack 0..6               | done:0 b<-4#1 park:4 done:1 b<-5#1 done:2 done:3 done:4 done:5
            why                    | drained: every message is finished
        "#]],
    );
}

#[test]
fn a_parked_message_is_read_before_it_is_dead_lettered() {
    check(
        "shared 0,30000,1000,60000,dlq bytes=100
        join a
        publish m
        hold
        nack 0 no
        why
        lost
        +1s
        answer
        dead ok 0
        why",
        expect![[r#"
            join a                 |
            publish m              | a<-0#1 park:0
            hold                   |
            nack 0 no              | failed:0#1(no) read:0..1
            why                    | dead-letter copy of offset 0 is being written
            lost                   |
            +1s                    | 1.000s:read:0..1
            answer                 | DLQ:0#1(no)
            dead ok 0              | done:0
            why                    | drained: every message is finished
        "#]],
    );
}

#[test]
fn a_parked_message_that_the_log_does_not_have_any_more_is_skipped_aloud() {
    check(
        "exclusive 5,30000,1000,60000,block bytes=100
        join a
        publish m*2
        kill a
        hold
        join a
        forget 0
        answer
        ack 1
        why",
        expect![[r#"
            join a                 |
            publish m*2            | a<-0#1 park:0 a<-1#1 park:1
            kill a                 | failed:0#1(consumer gone) failed:1#1(consumer gone)
            hold                   |
            join a                 | read:0..2
            forget 0               |
            answer                 | gap:0..1 done:0 a<-1#2 park:1
            ack 1                  | done:1
            why                    | drained: every message is finished
        "#]],
    );
}

#[test]
fn a_larger_window_looks_further_ahead() {
    check(
        "shared 5,30000,1000,60000,block window=1 lookahead=2
        join a
        publish m*9
        window 8
        stats",
        expect![[r#"
            join a                 |
            publish m*9            | a<-0#1
            window 8               | a<-1#1 a<-2#1 a<-3#1 a<-4#1 a<-5#1 a<-6#1 a<-7#1
            stats                  | backlog=9 ready=1 in_flight=8 consumers=1 attached=1
        "#]],
    );
}
