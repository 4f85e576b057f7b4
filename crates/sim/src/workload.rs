//! What happens: drawn from the seed, with a mood of its own for each history.
//!
//! Law: the healing at the end removes every reason to stand still, and nothing else.

use crate::chance::Chance;
use crate::world::World;
use crate::{Failure, Mutant, Report};
use danube_core::subscription::{Config, Event};
use danube_core::{
    Backoff, ConsumerId, FailurePolicy, Offset, PoisonPolicy, SubscriptionType, Tick, TopicName,
};

const KINDS: [SubscriptionType; 4] = [
    SubscriptionType::Exclusive,
    SubscriptionType::Failover,
    SubscriptionType::Shared,
    SubscriptionType::KeyShared,
];
const FILTERS: [&[&str]; 5] = [&[], &[], &["a*"], &["b?"], &["c0", "a1"]];

/// The consumer that finishes everything at the end.
const LAST: u64 = 99;

/// One history.
pub(crate) struct Workload {
    world: World,
    consumers: u64,
    keys: u64,
    /// How many messages may be unfinished before the producers rest.
    backlog_max: usize,
    /// One in so many operations is a restart, a seek, and so on; 0 is never.
    trouble: u64,
}

impl Workload {
    pub fn new(seed: u64, mutant: Option<Mutant>) -> Workload {
        let mut chance = Chance::new(seed);
        let kind = *chance.pick(&KINDS);
        let window_max = 1 + chance.below(12) as u32;
        let config = Config {
            lookahead_max: 1 + chance.below(60) as u32,
            body_bytes_max: *chance.pick(&[100, 400, 1_000, 100_000]),
            lease_ms_max: 4_000,
            lease_total_ms_max: 9_000,
            ..Config::new(kind, policy(&mut chance), window_max)
        };
        let consumers = 1 + chance.below(6);
        let keys = *chance.pick(&[1, 2, 6, 30]);
        let backlog_max = *chance.pick(&[5, 40, 200]);
        let trouble = *chance.pick(&[0, 40, 200]);
        let ahead: Vec<ConsumerId> =
            (1..=consumers).chain([LAST]).filter(|_| chance.one_in(2)).map(ConsumerId).collect();
        let mut world = World::new(seed, config, chance, mutant);
        world.ahead.extend(ahead);
        Workload { world, consumers, keys, backlog_max, trouble }
    }

    pub fn play(mut self, operations: u32) -> Result<Report, Failure> {
        for _ in 0..operations {
            self.operate()?;
        }
        self.heal()?;
        Ok(self.world.report)
    }

    fn operate(&mut self) -> Result<(), Failure> {
        let world = &mut self.world;
        if self.trouble > 0 && world.chance.one_in(self.trouble) {
            return self.make_trouble();
        }
        let consumer = ConsumerId(1 + world.chance.below(self.consumers));
        match world.chance.below(100) {
            0..12 if world.ledger.unfinished.len() < self.backlog_max => {
                for _ in 0..=world.chance.below(6) {
                    let key = world.chance.below(self.keys) as u8;
                    let is_hole = world.chance.one_in(40);
                    world.publish((!is_hole).then_some(key))?;
                }
            }
            0..17 if !world.connections.contains_key(&consumer) => {
                let size = world.chance.below(9) as u32;
                world.open(consumer, size)?;
            }
            12..40 => {
                let count = world.chance.below(5) as usize;
                world.drain(consumer, count)?;
            }
            40..65 => self.settle()?,
            65..80 => {
                let (fewer, works) = (world.chance.below(4), !world.chance.one_in(20));
                world.answer_fetch(fewer, works)?;
            }
            80..86 => {
                let place = world.chance.below(4) as usize;
                let (fewer, works) = (world.chance.below(2), !world.chance.one_in(10));
                world.answer_read(place, fewer, works)?;
            }
            86..90 => {
                let works = !world.chance.one_in(3);
                if let Some(offset) = world.copies.first().copied() {
                    world.answer_copy(offset, works)?;
                }
            }
            _ => {
                let is_late = world.chance.one_in(5);
                let ms = world.chance.below(800);
                world.wait(ms, is_late)?;
            }
        }
        Ok(())
    }

    /// A client settles something that it has, or had.
    fn settle(&mut self) -> Result<(), Failure> {
        let world = &mut self.world;
        if world.hands.is_empty() {
            return Ok(());
        }
        let place = world.chance.below(world.hands.len() as u64) as usize;
        let (offset, claim) = world.hands[place];
        let attempt = claim.filter(|_| world.chance.one_in(2));
        let event = match world.chance.below(20) {
            0..13 => Event::Acked { offset, attempt },
            13..17 => {
                let delay_ms = world.chance.one_in(2).then_some(world.chance.below(2_000));
                Event::Nacked { offset, attempt, delay_ms, reason: Some("no".to_owned()) }
            }
            _ => {
                let by_ms = *world.chance.pick(&[0, 500, 3_000, u64::MAX]);
                Event::Extended { offset, attempt, by_ms }
            }
        };
        world.tell(event)?;
        if world.chance.one_in(2) {
            world.hands.remove(place);
        }
        Ok(())
    }

    fn make_trouble(&mut self) -> Result<(), Failure> {
        let world = &mut self.world;
        let consumer = ConsumerId(1 + world.chance.below(self.consumers));
        match world.chance.below(12) {
            0 => {
                let lost = world.chance.below(5) as usize;
                world.restart(lost);
            }
            1 => {
                let to = Offset(world.chance.below(world.ledger.tail().0 + 3));
                world.seek(to)?;
            }
            2 => {
                let policy = policy(&mut world.chance);
                world.tell(Event::PolicyChanged(policy))?;
            }
            3 => {
                let window_max = world.chance.below(12) as u32;
                world.tell(Event::WindowChanged(window_max))?;
            }
            4 => {
                let ms = world.chance.below(100_000);
                world.wait(ms, true)?;
            }
            5 => {
                let filters = *world.chance.pick(&FILTERS);
                let key_filters = filters.iter().map(|f| (*f).to_owned()).collect();
                world.tell(Event::Attached { consumer, key_filters })?;
            }
            6 => {
                world.connections.remove(&consumer);
                world.tell(Event::Detached { consumer })?;
            }
            7 => {
                let size = world.chance.below(9) as u32;
                world.open(consumer, size)?;
            }
            8 => {
                let offset = Offset(world.chance.draw() >> world.chance.below(64));
                world.tell(Event::Acked { offset, attempt: None })?;
            }
            _ => {
                let clean = world.chance.one_in(2);
                world.close(consumer, clean)?;
            }
        }
        Ok(())
    }

    /// From here on everybody behaves: then everything gets finished.
    fn heal(&mut self) -> Result<(), Failure> {
        for id in 1..=self.consumers {
            let consumer = ConsumerId(id);
            self.world.connections.remove(&consumer);
            self.world.tell(Event::Detached { consumer })?;
        }
        let world = &mut self.world;
        let consumer = ConsumerId(LAST);
        world.open(consumer, 8)?;
        for _ in 0..4 * world.ledger.unfinished.len() + 100 {
            if world.ledger.unfinished.is_empty() {
                break;
            }
            world.answer_fetch(0, true)?;
            while !world.reads.is_empty() {
                world.answer_read(0, 0, true)?;
            }
            while let Some(offset) = world.copies.first().copied() {
                world.answer_copy(offset, true)?;
            }
            world.drain(consumer, 8)?;
            let held: Vec<u64> = world.ledger.out.keys().copied().collect();
            for offset in held {
                world.tell(Event::Acked { offset: Offset(offset), attempt: None })?;
            }
            let blocked = world.ledger.progress.failures().find(|(_, attempts)| attempts.blocked);
            if let Some((offset, _)) = blocked {
                world.tell(Event::Acked { offset, attempt: None })?;
            }
            let Tick(now) = world.now;
            if let Some(Tick(at)) = world.engine.next_deadline() {
                world.wait(at.saturating_sub(now), false)?;
            }
        }
        world.look_at_end()
    }
}

fn policy(chance: &mut Chance) -> FailurePolicy {
    FailurePolicy {
        max_redelivery_count: chance.below(4) as u32,
        ack_timeout_ms: *chance.pick(&[300, 2_000, 5_000]),
        base_redelivery_delay_ms: *chance.pick(&[0, 100, 400]),
        max_redelivery_delay_ms: 1_000,
        backoff_strategy: *chance.pick(&[Backoff::Fixed, Backoff::Exponential]),
        dead_letter_topic: Some(TopicName::parse("/default/t-dlq").expect("a good name")),
        poison_policy: *chance.pick(&[
            PoisonPolicy::Block,
            PoisonPolicy::DeadLetter,
            PoisonPolicy::Drop,
        ]),
    }
}
