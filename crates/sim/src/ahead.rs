//! What applications can have seen: the ledger's model of open streams, and of clients that read
//! ahead of their application.
//!
//! Such a client takes messages off its connection, and its application works through them one by
//! one. The application has the oldest that is not settled; once it speaks of a later one, it has
//! had everything before that.
//!
//! Law: nothing here comes from the engine's own view of itself.

use danube_core::ConsumerId;
use std::collections::{BTreeMap, VecDeque};

/// A delivery: its offset and its ticket.
type Entry = (u64, u64);

/// All open streams.
#[derive(Debug, Default)]
pub struct Ahead {
    clients: BTreeMap<ConsumerId, Client>,
}

#[derive(Debug, Default)]
struct Client {
    reads_ahead: bool,
    /// In the stream's queue, in delivery order, also what is void.
    queued: VecDeque<Entry>,
    /// Taken by a client that reads ahead; its application may not have seen it.
    unseen: VecDeque<Entry>,
    /// What the application has.
    seen: Vec<Entry>,
}

impl Client {
    /// The application has everything that was taken up to this ticket.
    fn see(&mut self, ticket: u64) {
        while let Some(entry) = self.unseen.pop_front_if(|(_, unseen)| *unseen <= ticket) {
            self.seen.push(entry);
        }
    }
}

impl Ahead {
    /// A stream was opened.
    pub fn open(&mut self, consumer: ConsumerId) {
        self.clients.insert(consumer, Client::default());
    }

    /// The client of an open stream reads ahead.
    pub fn read_ahead(&mut self, consumer: ConsumerId) {
        if let Some(client) = self.clients.get_mut(&consumer) {
            client.reads_ahead = true;
        }
    }

    /// A stream ended.
    pub fn close(&mut self, consumer: ConsumerId) {
        self.clients.remove(&consumer);
    }

    /// The broker died.
    pub fn clear(&mut self) {
        self.clients.clear();
    }

    /// How many streams are open.
    pub fn streams(&self) -> usize {
        self.clients.len()
    }

    /// A message was put into a stream's queue.
    pub fn deliver(&mut self, consumer: ConsumerId, entry: Entry) {
        if let Some(client) = self.clients.get_mut(&consumer) {
            client.queued.push_back(entry);
        }
    }

    /// The connection took `count` entries; those that are not out any more reach nobody.
    pub fn drain(&mut self, consumer: ConsumerId, count: u32, is_out: impl Fn(Entry) -> bool) {
        let Some(client) = self.clients.get_mut(&consumer) else { return };
        let count = client.queued.len().min(count as usize);
        let taken = client.queued.drain(..count);
        if client.reads_ahead {
            let seen = &client.seen;
            client.unseen.extend(taken.filter(|e| is_out(*e) && !seen.contains(e)));
        }
    }

    /// The application speaks of this delivery to `consumer`, perhaps before we hear that its
    /// client took it. Only the first word on a delivery tells anything of earlier ones.
    pub fn speak(&mut self, consumer: ConsumerId, entry: Entry) {
        if let Some(client) = self.clients.get_mut(&consumer) {
            if client.seen.contains(&entry) {
                return;
            }
            client.see(entry.1);
            if !client.seen.contains(&entry) {
                client.seen.push(entry);
            }
        }
    }

    /// Messages that nobody can have seen, though a client has them.
    pub fn unseen(&self) -> impl Iterator<Item = u64> {
        self.clients.values().flat_map(|client| client.unseen.iter().map(|(offset, _)| *offset))
    }

    /// Takes back what a client has and its application has not seen.
    pub fn relieve(&mut self, consumer: ConsumerId) -> Vec<Entry> {
        let client = self.clients.get_mut(&consumer);
        client.map(|client| client.unseen.drain(..).collect()).unwrap_or_default()
    }

    /// After a step: what is not out any more is nobody's, and who has nothing takes the next.
    pub fn settle(&mut self, is_out: impl Fn(Entry) -> bool) {
        for client in self.clients.values_mut() {
            client.seen.retain(|entry| is_out(*entry));
            client.unseen.retain(|entry| is_out(*entry));
            if client.seen.is_empty() {
                client.seen.extend(client.unseen.pop_front());
            }
        }
    }
}
