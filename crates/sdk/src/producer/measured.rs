//! A producer's queue driven to and fro, for the bench `path`.

use super::batch::{Budget, Resolution};
use super::queue::{Limits, Queue};
use crate::message::NewMessage;
use bytes::{Bytes, BytesMut};
use danube_wire::proto::stream::{ProducerOpened, PublishAck};
use danube_wire::stream::PublishRequest;
use futures::FutureExt;
use std::time::{Duration, Instant};

/// A queue, and the buffer that a connection would have.
#[derive(Debug)]
pub(crate) struct Publishing {
    queue: Queue,
    batch: u32,
    offset: u64,
    connection: BytesMut,
}

impl Publishing {
    pub(crate) fn new(batch: u32) -> Publishing {
        let limits = Limits {
            batch_messages_max: batch,
            batch_bytes_max: usize::MAX,
            linger: Duration::ZERO,
            timeout: Duration::from_secs(30),
        };
        let mut queue = Queue::new("a measured producer".into(), "/default/t".into(), limits);
        let opened = ProducerOpened {
            window_batches: 16,
            window_bytes: u64::MAX,
            ..ProducerOpened::default()
        };
        queue.attached(&opened, "http://127.0.0.1:6650");
        Publishing { queue, batch, offset: 0, connection: BytesMut::new() }
    }

    pub(crate) fn round(&mut self, payload: &Bytes) -> usize {
        let mut receipts = Vec::with_capacity(self.batch as usize);
        for _ in 0..self.batch {
            let message = NewMessage::new(payload.clone());
            let put = self.queue.put(&message.on_wire(), Instant::now);
            receipts.push(put.expect("not over").expect("the window is wide"));
        }
        let mut request = PublishRequest::default();
        self.queue.take(1, Instant::now(), &mut Budget::of_request(), &mut request.batches);
        self.connection.clear();
        self.connection.reserve(request.encoded_len());
        request.write(&mut self.connection);
        let [batch] = &request.batches[..] else { panic!("one full batch") };
        let first_sequence = batch.first_sequence;
        drop(request);
        let (first_offset, count) = (self.offset, self.batch);
        self.queue.acked(&PublishAck { producer: 1, first_sequence, first_offset, count });
        self.offset += u64::from(count);
        self.queue.resolutions().into_iter().for_each(Resolution::tell);
        for receipt in receipts {
            receipt.now_or_never().expect("answered").expect("stored");
        }
        self.connection.len()
    }
}
