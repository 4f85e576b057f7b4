//! The paths of a message through this library without a network, for the bench `path`.
//!
//! Not a part of the interface: it changes without notice.
//!
//! Law: what is measured is what producers and consumers run; nothing here is a copy of it.

use crate::consumer::measured::Receiving as Inner;
use crate::producer::measured::Publishing as Queue;
use bytes::Bytes;

/// From messages to answered receipts.
#[derive(Debug)]
pub struct Publishing(Queue);

impl Publishing {
    /// A producer whose batches have `batch` messages.
    pub fn new(batch: u32) -> Publishing {
        Publishing(Queue::new(batch))
    }

    /// Publishes one batch of `payload`s, encodes the request, takes the ack and every receipt.
    /// Returns how many bytes were encoded.
    pub fn round(&mut self, payload: &Bytes) -> usize {
        self.0.round(payload)
    }
}

/// From deliveries to acks.
#[derive(Debug)]
pub struct Receiving(Inner);

impl Receiving {
    /// A consumer that gets `batch` messages of `payload` at a time.
    pub fn new(batch: u32, payload: &Bytes) -> Receiving {
        Receiving(Inner::new(batch, payload))
    }

    /// Takes one response in, hands out every message, acks each, encodes the request with the
    /// acks and takes the answer. Returns how many payload bytes were seen.
    pub fn round(&mut self) -> usize {
        self.0.round()
    }
}
