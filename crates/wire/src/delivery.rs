//! One message on its way to a consumer: stored bytes, and behind them where and for whom.
//!
//! The server of `ReceiveMessages` streams [`Delivery`] values, which [`DeliveryCodec`] writes as
//! a `danube.StreamMessage` without ever decoding one: first the record's body as it lies, then
//! `msg_id` and `subscription_name`. What is the same for a whole stream is encoded once, in an
//! [`Envelope`]. Who receives what is decided elsewhere.
//!
//! Law: a client cannot tell a delivery from a message that prost encoded.

use crate::proto::danube::ReceiveRequest;
use crate::protobuf;
use crate::record::{MSG_ID, Record, SUBSCRIPTION_NAME};
use bytes::BufMut;
use danube_core::{Offset, SubscriptionName, TopicName};
use std::sync::Arc;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, EncodeBuf, Encoder};
use tonic_prost::ProstDecoder;

// Field numbers of danube.MsgID; 4 is not used.
const PRODUCER_ID: u32 = 1;
const TOPIC_NAME: u32 = 2;
const BROKER_ADDR: u32 = 3;
const TOPIC_OFFSET: u32 = 5;

/// What all deliveries of one stream have in common, encoded.
#[derive(Debug)]
pub struct Envelope {
    /// `topic_name` and `broker_addr` of a `MsgID`.
    place: Box<[u8]>,
    /// `subscription_name` of a `StreamMessage`.
    subscription: Box<[u8]>,
}

impl Envelope {
    /// For deliveries from `topic` to `subscription` by the broker at `broker_addr`, a URL.
    pub fn new(topic: &TopicName, broker_addr: &str, subscription: &SubscriptionName) -> Envelope {
        let mut place = Vec::new();
        protobuf::put_delimited(&mut place, TOPIC_NAME, topic.as_str().as_bytes());
        protobuf::put_delimited(&mut place, BROKER_ADDR, broker_addr.as_bytes());
        let mut name = Vec::new();
        protobuf::put_delimited(&mut name, SUBSCRIPTION_NAME, subscription.as_str().as_bytes());
        Envelope { place: place.into(), subscription: name.into() }
    }
}

/// Which delivery of a message this is. The compatible wire has no word for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// The first is 1.
    pub number: u32,
    /// Raised by each seek of the subscription: a delivery of an earlier one is void.
    pub epoch: u32,
    /// How long the client may hold it, in milliseconds from when the connection took it; 0 where
    /// nothing is held.
    pub lease_ms: u64,
}

impl Attempt {
    /// Of a message that is not kept, so that there is no other.
    pub const ONLY: Attempt = Attempt { number: 1, epoch: 0, lease_ms: 0 };
}

/// A message for a consumer. A clone shares everything.
#[derive(Debug, Clone)]
pub struct Delivery {
    record: Record,
    offset: Offset,
    attempt: Attempt,
    envelope: Arc<Envelope>,
}

impl Delivery {
    /// The message of `record`, stored at `offset`, on the stream of `envelope`.
    pub fn new(
        record: Record,
        offset: Offset,
        attempt: Attempt,
        envelope: Arc<Envelope>,
    ) -> Delivery {
        Delivery { record, offset, attempt, envelope }
    }

    /// The stored message.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Its position within the topic partition.
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// Which delivery of the message this is.
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// Bytes that the message takes on the wire, without gRPC's own five in front.
    pub fn encoded_len(&self) -> usize {
        self.record.body().len()
            + protobuf::delimited_len(MSG_ID, self.msg_id_len())
            + self.envelope.subscription.len()
    }

    fn msg_id_len(&self) -> usize {
        protobuf::number_len(PRODUCER_ID, self.record.producer_id().0)
            + self.envelope.place.len()
            + protobuf::number_len(TOPIC_OFFSET, self.offset.0)
    }

    fn write(&self, out: &mut impl BufMut) {
        out.put_slice(self.record.body());
        protobuf::put_delimiter(out, MSG_ID, self.msg_id_len());
        protobuf::put_number(out, PRODUCER_ID, self.record.producer_id().0);
        out.put_slice(&self.envelope.place);
        protobuf::put_number(out, TOPIC_OFFSET, self.offset.0);
        out.put_slice(&self.envelope.subscription);
    }
}

/// The codec of the server side of `ReceiveMessages`: requests as prost has them, deliveries as
/// they are stored.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveryCodec;

impl Codec for DeliveryCodec {
    type Encode = Delivery;
    type Decode = ReceiveRequest;
    type Encoder = DeliveryEncoder;
    type Decoder = ProstDecoder<ReceiveRequest>;

    fn encoder(&mut self) -> DeliveryEncoder {
        DeliveryEncoder
    }

    fn decoder(&mut self) -> ProstDecoder<ReceiveRequest> {
        ProstDecoder::new(BufferSettings::default())
    }
}

/// The writing half of [`DeliveryCodec`].
#[derive(Debug, Clone, Copy)]
pub struct DeliveryEncoder;

impl Encoder for DeliveryEncoder {
    type Item = Delivery;
    type Error = Status;

    fn encode(&mut self, delivery: Delivery, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.reserve(delivery.encoded_len());
        delivery.write(out);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
