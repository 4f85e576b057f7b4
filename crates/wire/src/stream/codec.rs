//! The codecs of the native streams: thin, since the types encode themselves.
//!
//! Law: a request or response that cannot be decoded ends its stream with a status that says what
//! is wrong and where; it never panics.

use super::{ConsumeRequest, ConsumeResponse, PublishRequest, PublishResponse};
use crate::protobuf::Broken;
use bytes::{Buf, Bytes};
use prost::Message as _;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Bytes that a stream's buffer begins with. Small, since there may be many idle streams.
const BUFFER_LEN: usize = 8 * 1024;
/// Encoded bytes after which they are handed to the connection, though more is ready.
const YIELD_LEN: usize = 128 * 1024;

fn settings() -> BufferSettings {
    BufferSettings::new(BUFFER_LEN, YIELD_LEN)
}

pub(super) fn damaged(what: &str, broken: Broken) -> Status {
    Status::invalid_argument(format!("damaged {what}: {} at byte `{}`", broken.what, broken.at))
}

/// Everything of one gRPC message; shares the connection's buffer.
fn take(buf: &mut DecodeBuf<'_>) -> Bytes {
    buf.copy_to_bytes(buf.remaining())
}

macro_rules! codec {
    ($(#[$doc:meta])* $name:ident: $encode:ty => $decode:ty) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default)]
        pub struct $name;

        impl Codec for $name {
            type Encode = $encode;
            type Decode = $decode;
            type Encoder = Coder<$encode>;
            type Decoder = Coder<$decode>;

            fn encoder(&mut self) -> Self::Encoder {
                Coder::new()
            }

            fn decoder(&mut self) -> Self::Decoder {
                Coder::new()
            }
        }
    };
}

codec! {
    /// What a server of `Publish` reads and writes.
    ServerPublishCodec: PublishResponse => PublishRequest
}
codec! {
    /// What a client of `Publish` writes and reads.
    ClientPublishCodec: PublishRequest => PublishResponse
}
codec! {
    /// What a server of `Consume` reads and writes.
    ServerConsumeCodec: ConsumeResponse => ConsumeRequest
}
codec! {
    /// What a client of `Consume` writes and reads.
    ClientConsumeCodec: ConsumeRequest => ConsumeResponse
}

/// Half of a codec.
#[derive(Debug)]
pub struct Coder<T>(std::marker::PhantomData<T>);

impl<T> Coder<T> {
    /// It has no state.
    pub(super) fn new() -> Coder<T> {
        Coder(std::marker::PhantomData)
    }
}

impl Encoder for Coder<PublishRequest> {
    type Item = PublishRequest;
    type Error = Status;

    fn encode(&mut self, item: PublishRequest, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.reserve(item.encoded_len());
        item.write(out);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        settings()
    }
}

impl Decoder for Coder<PublishRequest> {
    type Item = PublishRequest;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<PublishRequest>, Status> {
        let decoded = PublishRequest::decode(take(buf).into());
        decoded.map(Some).map_err(|broken| damaged("PublishRequest", broken))
    }

    fn buffer_settings(&self) -> BufferSettings {
        settings()
    }
}

impl Encoder for Coder<ConsumeResponse> {
    type Item = ConsumeResponse;
    type Error = Status;

    fn encode(&mut self, item: ConsumeResponse, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.reserve(item.encoded_len());
        item.write(out);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        settings()
    }
}

impl Decoder for Coder<ConsumeResponse> {
    type Item = ConsumeResponse;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<ConsumeResponse>, Status> {
        let decoded = ConsumeResponse::decode(take(buf));
        decoded.map(Some).map_err(|broken| damaged("ConsumeResponse", broken))
    }

    fn buffer_settings(&self) -> BufferSettings {
        settings()
    }
}

/// The small messages are prost's.
macro_rules! prost {
    ($($message:ty),*) => { $(
        impl Encoder for Coder<$message> {
            type Item = $message;
            type Error = Status;

            fn encode(&mut self, item: $message, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
                item.encode(out).map_err(|error| Status::internal(error.to_string()))
            }
        }

        impl Decoder for Coder<$message> {
            type Item = $message;
            type Error = Status;

            fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<$message>, Status> {
                let decoded = <$message>::decode(buf);
                decoded.map(Some).map_err(|error| Status::invalid_argument(error.to_string()))
            }
        }
    )* };
}

prost!(PublishResponse, ConsumeRequest);
