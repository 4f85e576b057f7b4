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
use danube_wire::stream::consume_server::{Stream, StreamServer};
use danube_wire::stream::{ConsumeRequest, Publish, PublishRequests, PublishServer};
use std::sync::Arc;
use tonic::{Request, Response, Status, Streaming};

/// The service `danube.stream.v1.Stream`.
#[derive(Clone)]
pub(crate) struct Streams {
    context: Arc<Context>,
}

/// The server of the native streams, as a listener or a bench calls it.
pub(crate) fn server(context: Arc<Context>) -> Server {
    let streams = Streams { context };
    let consume = StreamServer::new(streams.clone()).max_decoding_message_size(REQUEST_LEN_MAX);
    PublishServer::new(streams, consume, REQUEST_LEN_MAX)
}

/// What [`server`] makes.
pub(crate) type Server = PublishServer<Streams, StreamServer<Streams>>;

impl Publish for Streams {
    type Answers = outbox::Answers;

    fn publish(&self, requests: PublishRequests) -> outbox::Answers {
        self.context.metrics.call("Stream", "publish", "ok");
        publish::serve(Arc::clone(&self.context), requests)
    }
}

#[tonic::async_trait]
impl Stream for Streams {
    type ConsumeStream = consume::Deliveries;

    async fn consume(
        &self,
        request: Request<Streaming<ConsumeRequest>>,
    ) -> Result<Response<consume::Deliveries>, Status> {
        self.context.metrics.call("Stream", "consume", "ok");
        Ok(Response::new(consume::serve(Arc::clone(&self.context), request.into_inner())))
    }
}
