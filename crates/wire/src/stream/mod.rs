//! The native streams with messages left encoded.
//!
//! A batch crosses the broker without a message being decoded: a producer encodes its messages
//! once ([`Message`]), the broker walks them for what could hurt others and puts them into the log
//! as they are ([`record::native`](crate::record::native)), and a consumer gets the stored bytes
//! behind a few bytes of its own ([`Delivered`]). The types here stand for those that prost
//! generates from `stream.proto` ([`proto::stream`](crate::proto::stream)); tests hold the two
//! against each other. What is left to others: windows, sequences, who receives what.
//!
//! Law: on the wire nobody can tell these types from the generated ones, and hostile bytes are
//! refused with what is wrong and where.

mod chunks;
mod codec;
mod consume;
mod message;
mod publish;
mod requests;
#[cfg(test)]
mod tests;

pub use codec::{ClientConsumeCodec, ClientPublishCodec, ServerConsumeCodec, ServerPublishCodec};
pub use consume::{ConsumeRequest, ConsumeResponse, Delivered};
pub use message::Message;
pub use publish::{Batch, EncodedMessages, PublishRequest, PublishResponse};
pub use requests::{Publish, PublishRequests, PublishServer, publish};

/// The server of `danube.stream.v1.Stream`.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, rust_2018_idioms)]
pub mod server {
    include!(concat!(env!("OUT_DIR"), "/stream_server/danube.stream.v1.Stream.rs"));
    pub use stream_server::{Stream, StreamServer};
}

/// The server of its `Consume` alone, for a [`PublishServer`].
#[allow(missing_docs, clippy::all, clippy::unwrap_used, rust_2018_idioms)]
pub mod consume_server {
    include!(concat!(env!("OUT_DIR"), "/stream_consume_server/danube.stream.v1.Stream.rs"));
    pub use stream_server::{Stream, StreamServer};
}

/// The client of `danube.stream.v1.Stream`.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, rust_2018_idioms)]
pub mod client {
    include!(concat!(env!("OUT_DIR"), "/stream_client/danube.stream.v1.Stream.rs"));
    pub use stream_client::StreamClient;
}
