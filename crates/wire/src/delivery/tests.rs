//! A delivery is what prost would have written, alone and through the generated server.

use super::*;
use crate::proto::danube::consumer_service_client::ConsumerServiceClient;
use crate::proto::danube::consumer_service_server::{ConsumerService, ConsumerServiceServer};
use crate::proto::danube::{
    AckRequest, AckResponse, ConsumerRequest, ConsumerResponse, NackRequest, NackResponse,
    StreamMessage,
};
use crate::record::{self, tests::any_message};
use bytes::Bytes;
use danube_core::ProducerId;
use proptest::prelude::*;
use prost::Message;
use tonic::codegen::BoxStream;
use tonic::{Code, Request, Response};

const BROKER: &str = "http://broker-1:6650";

fn topic() -> TopicName {
    TopicName::parse("/default/jobs").expect("well formed")
}

fn subscription() -> SubscriptionName {
    SubscriptionName::parse("workers").expect("well formed")
}

fn delivery(id: u64, message: &StreamMessage, offset: u64) -> Delivery {
    let record = Record::parse(record::encode(ProducerId(id), message)).expect("our own");
    let envelope = Envelope::new(&topic(), BROKER, &subscription());
    Delivery::new(record, Offset(offset), Attempt::ONLY, envelope.into())
}

fn expected(delivery: &Delivery) -> StreamMessage {
    delivery.record().to_message(&topic(), BROKER, delivery.offset(), Some(&subscription()))
}

proptest! {
    #[test]
    fn a_delivery_decodes_to_the_whole_message(
        message in any_message(), id in any::<u64>(), offset in any::<u64>(), small in any::<bool>(),
    ) {
        let delivery = delivery(id, &message, if small { 0 } else { offset });
        let mut bytes = Vec::new();
        delivery.write(&mut bytes);
        prop_assert_eq!(bytes.len(), delivery.encoded_len());
        let decoded = StreamMessage::decode(&bytes[..]).expect("a client can decode it");
        prop_assert_eq!(decoded, expected(&delivery));
    }
}

/// Sends what it is asked for: as many messages as the consumer's id says, then ends.
struct Echo;

fn numbered(n: u64) -> Delivery {
    let message = StreamMessage {
        request_id: n,
        payload: Bytes::from(vec![7; usize::try_from(n).expect("small") * 1000]),
        routing_key: Some(format!("key-{n}")),
        ..StreamMessage::default()
    };
    delivery(n + 1, &message, n)
}

#[tonic::async_trait]
impl ConsumerService for Echo {
    type ReceiveMessagesStream = BoxStream<Delivery>;

    async fn subscribe(
        &self,
        request: Request<ConsumerRequest>,
    ) -> Result<Response<ConsumerResponse>, Status> {
        let ConsumerRequest { request_id, consumer_name, .. } = request.into_inner();
        Ok(Response::new(ConsumerResponse { request_id, consumer_id: 3, consumer_name }))
    }

    async fn receive_messages(
        &self,
        request: Request<ReceiveRequest>,
    ) -> Result<Response<Self::ReceiveMessagesStream>, Status> {
        let deliveries = (0..request.into_inner().consumer_id).map(|n| Ok(numbered(n)));
        let end = std::iter::once(Err(Status::unavailable("moved")));
        Ok(Response::new(Box::pin(tokio_stream::iter(deliveries.chain(end)))))
    }

    async fn ack(&self, request: Request<AckRequest>) -> Result<Response<AckResponse>, Status> {
        Ok(Response::new(AckResponse { request_id: request.into_inner().request_id }))
    }

    async fn nack(&self, _: Request<NackRequest>) -> Result<Response<NackResponse>, Status> {
        Err(Status::invalid_argument("nack without msg_id"))
    }
}

#[tokio::test]
async fn the_ordinary_client_understands_our_server() {
    let mut client = ConsumerServiceClient::new(ConsumerServiceServer::new(Echo));
    let consumer = ConsumerRequest { consumer_name: "c".into(), ..ConsumerRequest::default() };
    let answer = client.subscribe(consumer).await.expect("answers").into_inner();
    let receive = ReceiveRequest { request_id: 1, consumer_id: answer.consumer_id };
    let mut stream = client.receive_messages(receive).await.expect("opens").into_inner();
    for n in 0..answer.consumer_id {
        let message = stream.message().await.expect("no error yet").expect("not ended yet");
        assert_eq!(message, expected(&numbered(n)));
    }
    let end = stream.message().await.expect_err("ends with a status");
    assert_eq!((end.code(), end.message()), (Code::Unavailable, "moved"));

    let ack = AckRequest { request_id: 9, ..AckRequest::default() };
    assert_eq!(client.ack(ack).await.expect("answers").into_inner().request_id, 9);
    let refused = client.nack(NackRequest::default()).await.expect_err("refused");
    assert_eq!(refused.code(), Code::InvalidArgument);
}
