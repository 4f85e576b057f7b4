//! A consumer's inbox and partition driven to and fro, for the bench `path`.

use super::inbox::{Chunk, Inbox};
use super::partition::Partition;
use super::ranges::Ranges;
use bytes::{Bytes, BytesMut};
use danube_core::{Offset, WallMs};
use danube_wire::proto::stream::{Credit, Settled, Subscribe};
use danube_wire::record::Record;
use danube_wire::stream::{Delivered, EncodedMessages, Message};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// One partition, and what a connection gives it.
#[derive(Debug)]
pub(crate) struct Receiving {
    partition: Arc<Partition>,
    inbox: Inbox,
    session: u64,
    /// Encoded messages as they lie in the connection's buffer.
    received: EncodedMessages,
    offset: u64,
}

impl Receiving {
    pub(crate) fn new(batch: u32, payload: &Bytes) -> Receiving {
        let mut out = BytesMut::new();
        let publish_time = WallMs(1_700_000_000_000);
        let message = Message { payload, publish_time, ..Message::default() };
        (0..batch).for_each(|_| EncodedMessages::put(&mut out, &message));
        let credit = Some(Credit { messages: batch, bytes: u64::MAX });
        let partition =
            Partition::new(Subscribe { credit, ..Subscribe::default() }, Duration::ZERO);
        let session = partition.begin_session();
        let context = Context::from_waker(Waker::noop());
        let subscribe = partition.next_request(session, Duration::MAX, &context);
        assert!(subscribe.is_ok(), "the first request subscribes");
        let received = EncodedMessages::new(out.freeze(), batch);
        Receiving { partition, inbox: Inbox::new(1), session, received, offset: 0 }
    }

    pub(crate) fn round(&mut self) -> usize {
        let bytes = self.received.bytes();
        let deliveries = (self.offset..).zip(self.received.ranges()).map(|(offset, range)| {
            let record = Record::parse_body(bytes.slice(range)).expect("our own");
            Delivered { offset: Offset(offset), attempt: 1, record }
        });
        let (partition, session) = (&self.partition, self.session);
        let lease = Duration::from_secs(30);
        let deliveries = deliveries.collect();
        self.inbox.push(Chunk::new(Arc::clone(partition), session, 1, lease, deliveries));
        self.offset += u64::from(self.received.count());

        let mut context = Context::from_waker(Waker::noop());
        let mut seen = 0;
        while let Poll::Ready(Some(message)) = self.inbox.poll_next(&mut context) {
            let message = message.expect("received");
            seen += message.payload().len();
            drop(message.partition.ack(message.session, Ranges::one(message.range())));
        }
        let request = partition.next_request(session, Duration::from_secs(30), &context);
        let Ok(Some(request)) = request else { panic!("acks are to be sent") };
        assert_eq!(request.acks.len(), 1, "one range");
        partition.settled(Settled { id: request.id, ..Settled::default() }, session, &self.inbox);
        seen
    }
}
