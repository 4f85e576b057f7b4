//! The native wire: `danube.stream.v1`, streams of batches in both directions.
//!
//! Each stream has a task that reads what the client sends and a half that writes what the broker
//! answers; they share a small state and nothing else. What this leaves to others: every decision
//! about a message (the topic and the log take them), and the bytes of messages (`danube-wire`).
//!
//! Law: a stream holds no more than its windows allow, ends when its client, its topic or the
//! broker does, and says why in words.

mod consume;
mod outbox;
mod publish;
mod refusal;
#[cfg(test)]
mod tests;

use crate::context::Context;
use danube_wire::limit::REQUEST_LEN_MAX;
use danube_wire::stream::server::{Stream, StreamServer};
use danube_wire::stream::{ConsumeRequest, PublishRequest};
use std::sync::Arc;
use tonic::{Request, Response, Status, Streaming};

/// The service `danube.stream.v1.Stream`.
#[derive(Clone)]
pub(crate) struct Streams {
    context: Arc<Context>,
}

/// The server of the native streams, as a listener or a bench calls it.
pub(crate) fn server(context: Arc<Context>) -> StreamServer<Streams> {
    StreamServer::new(Streams { context }).max_decoding_message_size(REQUEST_LEN_MAX)
}

#[tonic::async_trait]
impl Stream for Streams {
    type PublishStream = outbox::Answers;
    type ConsumeStream = consume::Deliveries;

    async fn publish(
        &self,
        request: Request<Streaming<PublishRequest>>,
    ) -> Result<Response<outbox::Answers>, Status> {
        self.context.metrics.call("Stream", "publish", "ok");
        Ok(Response::new(publish::serve(Arc::clone(&self.context), request.into_inner())))
    }

    async fn consume(
        &self,
        request: Request<Streaming<ConsumeRequest>>,
    ) -> Result<Response<consume::Deliveries>, Status> {
        self.context.metrics.call("Stream", "consume", "ok");
        Ok(Response::new(consume::serve(Arc::clone(&self.context), request.into_inner())))
    }
}
