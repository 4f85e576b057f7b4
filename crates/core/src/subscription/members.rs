//! The consumers of a subscription, and who of them receives the next message: the picker.
//!
//! The reliable engine and the in-memory fan-out share this one. Whether a message may go at all
//! is the [`gate`](super::gate)'s business.
//!
//! Law: a pick depends only on who is attached and open, on the turn, and on who has room.

use super::glob;
use super::ring::Ring;
use crate::ids::{ConsumerId, Tick};
use crate::policy::SubscriptionType;
use std::collections::BTreeMap;
use std::fmt;

/// How long a consumer that has subscribed but not opened its stream yet counts as live, in
/// milliseconds. Official clients open it right after.
pub const OPEN_GRACE_MS: u64 = 10_000;

/// The consumers of one subscription.
#[derive(Debug, Clone, Default)]
pub struct Members {
    by_id: BTreeMap<ConsumerId, Member>,
    /// Consumers with an open stream, by place.
    line: BTreeMap<u64, ConsumerId>,
    /// Next place to give.
    next_place: u64,
    /// Who receives everything in Exclusive and Failover; keeps it while its stream is open.
    active: Option<ConsumerId>,
    /// Place of the consumer that was served last in Shared.
    served: Option<u64>,
    /// Open consumers without key filters.
    unfiltered: Ring,
    /// Open consumers with key filters.
    filtered: Ring,
}

#[derive(Debug, Clone)]
struct Member {
    key_filters: Vec<String>,
    /// Order of attach; a consumer that loses its stream queues at the end.
    place: u64,
    is_open: bool,
    /// Until when it counts as live without a stream.
    expected_until: Option<Tick>,
}

impl Member {
    fn wants(&self, key: &str) -> bool {
        self.key_filters.is_empty() || self.key_filters.iter().any(|glob| glob::matches(glob, key))
    }
}

/// Who receives a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// This consumer.
    To(ConsumerId),
    /// It would be this one, but it has no room.
    Full(ConsumerId),
    /// Attached consumers exist, but none of them wants this key.
    NoMatch,
    /// Nobody who could receive it has an open stream: hold it (or, in memory, drop it).
    NoConsumer,
}

/// Why a consumer may not join an Exclusive subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The live consumer that holds the subscription.
    pub holder: ConsumerId,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the subscription is exclusive and consumer `{}` holds it; \
             close that one or use another subscription",
            self.holder
        )
    }
}

impl Members {
    /// Takes in a consumer, or refreshes the filters of one that is there.
    pub fn attach(&mut self, now: Tick, consumer: ConsumerId, key_filters: Vec<String>) {
        let mut member = match self.by_id.remove(&consumer) {
            Some(member) => {
                self.leave_ring(consumer, &member);
                Member { key_filters, ..member }
            }
            None => Member { key_filters, place: self.end(), is_open: false, expected_until: None },
        };
        if member.is_open {
            self.join_ring(consumer, &member);
        } else {
            member.expected_until = Some(now.after_ms(OPEN_GRACE_MS));
        }
        self.by_id.insert(consumer, member);
    }

    /// A consumer's stream is open. One that nobody attached counts as attached without filters.
    pub fn open(&mut self, consumer: ConsumerId) {
        let mut member = self.by_id.remove(&consumer).unwrap_or_else(|| Member {
            key_filters: Vec::new(),
            place: self.end(),
            is_open: false,
            expected_until: None,
        });
        if !member.is_open {
            member.is_open = true;
            self.line.insert(member.place, consumer);
            self.join_ring(consumer, &member);
        }
        member.expected_until = None;
        self.by_id.insert(consumer, member);
        self.elect();
    }

    /// A consumer's stream is gone: it queues at the end.
    pub fn close(&mut self, consumer: ConsumerId) {
        let place = self.end();
        let Some(mut member) = self.by_id.remove(&consumer) else { return };
        self.leave_ring(consumer, &member);
        self.line.remove(&member.place);
        member.place = place;
        member.is_open = false;
        member.expected_until = None;
        self.by_id.insert(consumer, member);
        self.elect();
    }

    /// Forgets a consumer.
    pub fn detach(&mut self, consumer: ConsumerId) {
        self.close(consumer);
        self.by_id.remove(&consumer);
    }

    /// Who receives the next message, of `key`, under `kind`. A [`Pick::To`] moves the turn.
    pub fn pick(
        &mut self,
        kind: SubscriptionType,
        key: &str,
        has_room: impl Fn(ConsumerId) -> bool,
    ) -> Pick {
        let owner = match kind {
            SubscriptionType::Shared => return self.next_in_turn(has_room),
            SubscriptionType::Exclusive | SubscriptionType::Failover => self.active,
            SubscriptionType::KeyShared => match self.owner(key) {
                None if self.has_wisher(key) => None,
                None => return Pick::NoMatch,
                owner => owner,
            },
        };
        match owner {
            Some(consumer) if has_room(consumer) => Pick::To(consumer),
            Some(consumer) => Pick::Full(consumer),
            None => Pick::NoConsumer,
        }
    }

    /// Whether anybody could receive the next message under `kind`, which has no keys.
    pub fn has_taker(&self, kind: SubscriptionType, has_room: impl Fn(ConsumerId) -> bool) -> bool {
        match kind {
            SubscriptionType::Shared => self.line.values().any(|consumer| has_room(*consumer)),
            _ => self.active.is_some_and(has_room),
        }
    }

    /// Whether `consumer` may join under `kind`.
    ///
    /// # Errors
    /// [`Refusal`] when the subscription is Exclusive and another consumer is live.
    pub fn admits(
        &self,
        kind: SubscriptionType,
        now: Tick,
        consumer: ConsumerId,
    ) -> Result<(), Refusal> {
        if kind != SubscriptionType::Exclusive {
            return Ok(());
        }
        let mut others = self.by_id.iter().filter(|(id, _)| **id != consumer);
        match others.find(|(_, member)| is_live(member, now)) {
            Some((holder, _)) => Err(Refusal { holder: *holder }),
            None => Ok(()),
        }
    }

    /// Whether any consumer has a stream, or has just subscribed and may open one.
    pub fn has_live(&self, now: Tick) -> bool {
        self.live(now) > 0
    }

    /// Consumers that have a stream, or have just subscribed and may open one.
    pub fn live(&self, now: Tick) -> usize {
        self.by_id.values().filter(|member| is_live(member, now)).count()
    }

    /// Whether any consumer has a stream.
    pub fn any_open(&self) -> bool {
        !self.line.is_empty()
    }

    /// Consumers with a stream, in order of attach.
    pub fn open_consumers(&self) -> impl Iterator<Item = ConsumerId> {
        self.line.values().copied()
    }

    /// Attached consumers, with or without a stream.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether nobody is attached.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Who receives everything in Exclusive and Failover.
    pub fn active(&self) -> Option<ConsumerId> {
        self.active
    }

    fn next_in_turn(&mut self, has_room: impl Fn(ConsumerId) -> bool) -> Pick {
        let start = self.served.map_or(0, |place| place.saturating_add(1));
        let mut turn = self.line.range(start..).chain(self.line.range(..start));
        let Some((_, first)) = turn.clone().next() else { return Pick::NoConsumer };
        match turn.find(|(_, consumer)| has_room(**consumer)) {
            Some((place, consumer)) => {
                self.served = Some(*place);
                Pick::To(*consumer)
            }
            None => Pick::Full(*first),
        }
    }

    /// The open consumer that owns `key`: among those that ask for it by filter, if any does.
    fn owner(&self, key: &str) -> Option<ConsumerId> {
        let asks = |consumer: ConsumerId| self.by_id.get(&consumer).is_some_and(|m| m.wants(key));
        self.filtered.owner(key, asks).or_else(|| self.unfiltered.owner(key, |_| true))
    }

    /// Whether a consumer without a stream wants `key`, so that skipping it would be a loss; or
    /// whether there is nobody at all, and so nobody to judge by.
    fn has_wisher(&self, key: &str) -> bool {
        self.line.is_empty() || self.by_id.values().any(|member| member.wants(key))
    }

    fn elect(&mut self) {
        let is_open = |id: &ConsumerId| self.by_id.get(id).is_some_and(|member| member.is_open);
        if !self.active.as_ref().is_some_and(is_open) {
            self.active = self.line.values().next().copied();
        }
    }

    fn end(&mut self) -> u64 {
        self.next_place += 1;
        self.next_place
    }

    fn join_ring(&mut self, consumer: ConsumerId, member: &Member) {
        self.ring_of(member).insert(consumer);
    }

    fn leave_ring(&mut self, consumer: ConsumerId, member: &Member) {
        self.ring_of(member).remove(consumer);
    }

    fn ring_of(&mut self, member: &Member) -> &mut Ring {
        if member.key_filters.is_empty() { &mut self.unfiltered } else { &mut self.filtered }
    }
}

fn is_live(member: &Member, now: Tick) -> bool {
    member.is_open || member.expected_until.is_some_and(|until| now < until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use SubscriptionType::{Exclusive, Failover, KeyShared, Shared};

    const A: ConsumerId = ConsumerId(1);
    const B: ConsumerId = ConsumerId(2);
    const C: ConsumerId = ConsumerId(3);

    fn open(consumers: &[ConsumerId]) -> Members {
        let mut members = Members::default();
        for consumer in consumers {
            members.attach(Tick(0), *consumer, Vec::new());
            members.open(*consumer);
        }
        members
    }

    fn filtered(filters: &[(ConsumerId, &[&str])]) -> Members {
        let mut members = Members::default();
        for (consumer, globs) in filters {
            members.attach(Tick(0), *consumer, globs.iter().map(|g| (*g).to_owned()).collect());
            members.open(*consumer);
        }
        members
    }

    #[test]
    fn shared_takes_turns_and_passes_over_the_full() {
        let mut members = open(&[A, B, C]);
        let mut turn = |full: ConsumerId| members.pick(Shared, "k", |c| c != full);
        let none = ConsumerId(0);
        assert_eq!([turn(none), turn(none), turn(none), turn(none)], [A, B, C, A].map(Pick::To));
        assert_eq!([turn(B), turn(none)], [C, A].map(Pick::To));
        assert_eq!(members.pick(Shared, "k", |_| false), Pick::Full(B));
        assert_eq!(members.pick(Shared, "k", |_| true), Pick::To(B), "a refused turn is not lost");
        assert_eq!(open(&[]).pick(Shared, "k", |_| true), Pick::NoConsumer);
    }

    #[test]
    fn the_active_consumer_stays_until_its_stream_ends_and_comes_back_last() {
        let mut members = open(&[B, A, C]);
        assert_eq!(members.pick(Failover, "k", |_| true), Pick::To(B));
        assert_eq!(members.pick(Failover, "k", |_| false), Pick::Full(B));
        members.open(B);
        assert_eq!(members.active(), Some(B), "a takeover by the same name keeps the place");
        members.close(B);
        members.open(B);
        assert_eq!(members.active(), Some(A));
        members.detach(A);
        assert_eq!(members.active(), Some(C));
        members.detach(C);
        assert_eq!(members.active(), Some(B));
    }

    #[test]
    fn the_first_to_attach_is_active_unless_somebody_else_already_is() {
        let mut members = Members::default();
        for consumer in [B, A] {
            members.attach(Tick(0), consumer, Vec::new());
        }
        members.open(A);
        members.open(B);
        assert_eq!(members.active(), Some(A), "nobody is pre-empted");
        members.close(A);
        assert_eq!(members.active(), Some(B));
    }

    #[test]
    fn exclusive_admits_another_name_once_the_holder_is_gone() {
        let mut members = Members::default();
        assert_eq!(members.admits(Exclusive, Tick(0), A), Ok(()));
        members.attach(Tick(0), A, Vec::new());
        let refused = Err(Refusal { holder: A });
        assert_eq!(members.admits(Exclusive, Tick(9_999), B), refused, "it may still open");
        assert_eq!(members.admits(Exclusive, Tick(10_000), B), Ok(()), "it never did");
        members.open(A);
        assert_eq!(members.admits(Exclusive, Tick(1 << 40), B), refused);
        assert_eq!(members.admits(Exclusive, Tick(1 << 40), A), Ok(()), "its own name may");
        assert_eq!(members.admits(Shared, Tick(0), B), Ok(()));
        members.close(A);
        assert_eq!(members.admits(Exclusive, Tick(1), B), Ok(()));
        assert!(!members.has_live(Tick(1)));
    }

    #[test]
    fn filters_that_match_win_over_no_filters() {
        let mut members = filtered(&[(A, &["eu-*", "us-?"]), (B, &[])]);
        let mut to = |key: &str| members.pick(KeyShared, key, |_| true);
        for key in ["eu-1", "eu-2", "eu-", "us-1"] {
            assert_eq!(to(key), Pick::To(A), "{key}");
        }
        assert_eq!([to("us-12"), to("x"), to("")], [Pick::To(B); 3]);
    }

    #[test]
    fn a_key_is_unmatched_only_if_nobody_attached_wants_it() {
        let mut members = filtered(&[(A, &["a*"]), (B, &["b*"])]);
        assert_eq!(members.pick(KeyShared, "c", |_| true), Pick::NoMatch);
        members.close(A);
        assert_eq!(members.pick(KeyShared, "a1", |_| true), Pick::NoConsumer, "it may come back");
        assert_eq!(members.pick(KeyShared, "c", |_| true), Pick::NoMatch);
        members.detach(A);
        assert_eq!(members.pick(KeyShared, "a1", |_| true), Pick::NoMatch);
        members.detach(B);
        assert_eq!(members.pick(KeyShared, "a1", |_| true), Pick::NoConsumer);
    }

    #[test]
    fn new_filters_apply_at_once_and_keep_the_stream() {
        let mut members = filtered(&[(A, &["a*"]), (B, &["b*"])]);
        members.attach(Tick(5), A, vec!["c*".to_owned()]);
        assert_eq!(members.pick(KeyShared, "c1", |_| true), Pick::To(A));
        assert_eq!(members.pick(KeyShared, "a1", |_| true), Pick::NoMatch);
        members.attach(Tick(5), A, Vec::new());
        assert_eq!(members.pick(KeyShared, "a1", |_| true), Pick::To(A));
        assert_eq!(members.pick(KeyShared, "b1", |_| true), Pick::To(B));
    }
}
