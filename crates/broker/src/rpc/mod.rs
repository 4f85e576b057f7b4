//! The compatible wire: one file per call, and here the services that tie them to tonic.
//!
//! A call's file translates: names are parsed, the topic is asked, the answer is put into the
//! message that the official clients expect. What it leaves to others: every decision.
//!
//! Law: a refusal is a [`Fault`] until this file turns it into a status, in one place, and every
//! answered call is counted.

mod ack;
pub(crate) mod attach;
mod create_producer;
mod health_check;
mod list_segment_descriptors;
mod nack;
mod receive_messages;
mod send_message;
mod subscribe;
mod topic_lookup;
mod topic_partitions;

use crate::context::Context;
use crate::topic::ConsumerStream;
use danube_core::name::{ConsumerName, ProducerName};
use danube_core::{Fault, Offset, SubscriptionName, TopicName};
use danube_wire::proto::danube as proto;
use danube_wire::proto::danube::consumer_service_server::ConsumerService;
use danube_wire::proto::danube::discovery_server::Discovery;
use danube_wire::proto::danube::health_check_server::HealthCheck;
use danube_wire::proto::danube::producer_service_server::ProducerService;
use danube_wire::proto::danube::storage_service_server::StorageService;
use danube_wire::status::{code_name, to_status};
use std::sync::Arc;
use tonic::{Response, Status};

/// All services of the package `danube`.
#[derive(Clone)]
pub(crate) struct Rpc {
    context: Arc<Context>,
}

impl Rpc {
    pub(crate) fn new(context: Arc<Context>) -> Rpc {
        Rpc { context }
    }
}

/// Counts a call and turns its refusal into a status.
pub(crate) fn answer<T>(
    context: &Context,
    service: &'static str,
    method: &'static str,
    result: Result<T, Fault>,
) -> Result<Response<T>, Status> {
    match result {
        Ok(reply) => {
            context.metrics.call(service, method, "ok");
            Ok(Response::new(reply))
        }
        Err(fault) => {
            tracing::debug!(service, method, %fault, kind = ?fault.kind, "refused");
            let status = to_status(&fault);
            context.metrics.call(service, method, code_name(status.code()));
            Err(status)
        }
    }
}

/// One method of a tonic service: its name, the function that answers it, its messages. It is
/// written as `async_trait` would expand it, since that cannot see into a macro.
macro_rules! unary {
    ($service:literal, $method:ident, $call:path, $request:ty => $reply:ty) => {
        fn $method<'a, 'b>(
            &'a self,
            request: tonic::Request<$request>,
        ) -> std::pin::Pin<
            Box<dyn Future<Output = Result<tonic::Response<$reply>, tonic::Status>> + Send + 'b>,
        >
        where
            'a: 'b,
            Self: 'b,
        {
            Box::pin(async move {
                let result = $call(&self.context, request.into_inner()).await;
                crate::rpc::answer(&self.context, $service, stringify!($method), result)
            })
        }
    };
}
pub(crate) use unary;

/// As [`unary`], for a call whose caller goes into a history.
macro_rules! attributed {
    ($service:literal, $method:ident, $call:path, $request:ty => $reply:ty) => {
        fn $method<'a, 'b>(
            &'a self,
            request: tonic::Request<$request>,
        ) -> std::pin::Pin<
            Box<dyn Future<Output = Result<tonic::Response<$reply>, tonic::Status>> + Send + 'b>,
        >
        where
            'a: 'b,
            Self: 'b,
        {
            Box::pin(async move {
                let caller = crate::schema::Caller::of(&request);
                let result = $call(&self.context, caller, request.into_inner()).await;
                crate::rpc::answer(&self.context, $service, stringify!($method), result)
            })
        }
    };
}
pub(crate) use attributed;

impl ProducerService for Rpc {
    unary!("ProducerService", create_producer, create_producer::call, proto::ProducerRequest => proto::ProducerResponse);
    unary!("ProducerService", send_message, send_message::call, proto::StreamMessage => proto::MessageResponse);
}

impl ConsumerService for Rpc {
    type ReceiveMessagesStream = ConsumerStream;

    unary!("ConsumerService", subscribe, subscribe::call, proto::ConsumerRequest => proto::ConsumerResponse);
    unary!("ConsumerService", receive_messages, receive_messages::call, proto::ReceiveRequest => ConsumerStream);
    unary!("ConsumerService", ack, ack::call, proto::AckRequest => proto::AckResponse);
    unary!("ConsumerService", nack, nack::call, proto::NackRequest => proto::NackResponse);
}

impl Discovery for Rpc {
    unary!("Discovery", topic_lookup, topic_lookup::call, proto::TopicLookupRequest => proto::TopicLookupResponse);
    unary!("Discovery", topic_partitions, topic_partitions::call, proto::TopicLookupRequest => proto::TopicPartitionsResponse);
}

impl HealthCheck for Rpc {
    unary!("HealthCheck", health_check, health_check::call, proto::HealthCheckRequest => proto::HealthCheckResponse);
}

impl StorageService for Rpc {
    unary!(
        "StorageService",
        list_segment_descriptors,
        list_segment_descriptors::call,
        proto::ListSegmentDescriptorsRequest => proto::ListSegmentDescriptorsResponse
    );
}

/// What an ack or nack is about.
struct Settled {
    topic: TopicName,
    subscription: SubscriptionName,
    offset: Offset,
}

impl Settled {
    fn parse(id: Option<proto::MsgId>, subscription: &str) -> Result<Settled, Fault> {
        let id = id.ok_or_else(|| Fault::invalid("msg_id is missing; send it as received"))?;
        Ok(Settled {
            topic: TopicName::parse(&id.topic_name)?,
            subscription: SubscriptionName::parse(subscription)?,
            offset: Offset(id.topic_offset),
        })
    }
}

fn producer_name(text: &str) -> Result<ProducerName, Fault> {
    ProducerName::parse(text)
}

fn consumer_name(text: &str) -> Result<ConsumerName, Fault> {
    ConsumerName::parse(text)
}
