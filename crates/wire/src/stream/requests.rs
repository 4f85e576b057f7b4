//! A `Publish` stream's requests, read from its body piece by piece and written to it so: what
//! messages there are is neither gathered on the way in nor copied on the way out.
//!
//! gRPC's framing is five bytes before each message: a flag for compression and the length, high
//! byte first (source: "gRPC over HTTP2", the protocol's specification).
//!
//! Law: on the wire this is an ordinary gRPC stream; no length in it makes this hold more than the
//! largest request.

use super::chunks::Chunks;
use super::codec::{Coder, damaged};
use super::{PublishRequest, PublishResponse};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body::{Body as _, Frame};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codec::{EncodeBody, SingleMessageCompressionOverride, Streaming};
use tonic::codegen::tokio_stream::Stream;
use tonic::codegen::{BoxFuture, Service, StdError, http};
use tonic::metadata::GRPC_CONTENT_TYPE;
use tonic::server::NamedService;
use tonic::{Code, Request, Response, Status};

/// Bytes of gRPC's framing.
const PREFIX_LEN: usize = 5;
/// Messages from this size on are pieces of their own, in bytes: below it a copy costs less than a
/// frame more.
const SHARE_MIN: usize = 4 << 10;
/// How an answer is coded.
type Answer = Coder<PublishResponse>;

const SERVICE: &str = "danube.stream.v1.Stream";
const PATH: &str = "/danube.stream.v1.Stream/Publish";

/// The requests of one `Publish` stream.
#[derive(Debug)]
pub struct PublishRequests {
    body: Body,
    chunks: Chunks,
    len_max: usize,
}

impl PublishRequests {
    fn new(body: Body, len_max: usize) -> PublishRequests {
        PublishRequests { body, chunks: Chunks::default(), len_max }
    }

    /// The next request; `None` when the client has ended the stream.
    ///
    /// # Errors
    /// What is wrong with the stream, or why it broke.
    pub async fn message(&mut self) -> Result<Option<PublishRequest>, Status> {
        loop {
            if let Some(request) = self.framed()? {
                let decoded = PublishRequest::decode(request);
                return decoded.map(Some).map_err(|broken| damaged("PublishRequest", broken));
            }
            match poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await {
                Some(Ok(frame)) => {
                    // Trailers say nothing in this direction.
                    frame.into_data().into_iter().for_each(|data| self.chunks.push(data));
                }
                // A client that goes away.
                Some(Err(status)) if status.code() == Code::Cancelled => return Ok(None),
                Some(Err(status)) => return Err(status),
                None if self.chunks.has_remaining() => {
                    return Err(Status::internal("the stream ends within a request"));
                }
                None => return Ok(None),
            }
        }
    }

    /// The first request, if all of it is there.
    fn framed(&mut self) -> Result<Option<Chunks>, Status> {
        let mut prefix = [0; PREFIX_LEN];
        if self.chunks.copy_front(&mut prefix) < PREFIX_LEN {
            return Ok(None);
        }
        let [flag, len @ ..] = prefix;
        if flag != 0 {
            return Err(Status::unimplemented("a compressed request; send it as it is"));
        }
        let len = u32::from_be_bytes(len) as usize;
        if len > self.len_max {
            let max = self.len_max;
            return Err(Status::out_of_range(format!(
                "a request of `{len}` bytes; {max} is the most, send several"
            )));
        }
        if self.chunks.remaining() < PREFIX_LEN + len {
            return Ok(None);
        }
        self.chunks.advance(PREFIX_LEN);
        Ok(Some(self.chunks.split_to(len)))
    }
}

/// Who serves `Publish` streams.
pub trait Publish: Clone + Send + Sync + 'static {
    /// What is answered.
    type Answers: Stream<Item = Result<PublishResponse, Status>> + Send + 'static;

    /// Begins to serve a stream.
    fn publish(&self, requests: PublishRequests) -> Self::Answers;
}

/// The service `danube.stream.v1.Stream`: `Publish` is read here, everything else is `others`.
#[derive(Debug, Clone)]
pub struct PublishServer<P, S> {
    publish: P,
    others: S,
    len_max: usize,
}

impl<P: Publish, S> PublishServer<P, S> {
    /// A service that takes no larger request than `len_max` bytes.
    pub fn new(publish: P, others: S, len_max: usize) -> PublishServer<P, S> {
        PublishServer { publish, others, len_max }
    }
}

impl<P, S> NamedService for PublishServer<P, S> {
    const NAME: &'static str = SERVICE;
}

impl<P, S> Service<http::Request<Body>> for PublishServer<P, S>
where
    P: Publish,
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.others.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path() != PATH {
            return Box::pin(self.others.call(request));
        }
        let requests = PublishRequests::new(request.into_body(), self.len_max);
        let answers = self.publish.publish(requests);
        let compression = SingleMessageCompressionOverride::default();
        let body = EncodeBody::new_server(Answer::new(), answers, None, compression, None);
        let mut response = http::Response::new(Body::new(body));
        response.headers_mut().insert(http::header::CONTENT_TYPE, GRPC_CONTENT_TYPE);
        Box::pin(std::future::ready(Ok(response)))
    }
}

/// Begins a `Publish` stream over `channel`.
///
/// # Errors
/// That the broker cannot be reached, or refuses the stream.
pub async fn publish<T, S>(
    channel: &mut T,
    request: Request<S>,
    answer_len_max: usize,
) -> Result<Response<Streaming<PublishResponse>>, Status>
where
    T: GrpcService<Body>,
    T::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <T::ResponseBody as http_body::Body>::Error: Into<StdError>,
    S: Stream<Item = PublishRequest> + Send + 'static,
{
    let (metadata, extensions, requests) = request.into_parts();
    let body = RequestBody { requests: Box::pin(requests), pieces: VecDeque::new() };
    let mut request = http::Request::new(Body::new(body));
    *request.method_mut() = http::Method::POST;
    *request.version_mut() = http::Version::HTTP_2;
    *request.uri_mut() = http::Uri::from_static(PATH);
    *request.headers_mut() = metadata.into_headers();
    *request.extensions_mut() = extensions;
    let trailers = http::HeaderValue::from_static("trailers");
    request.headers_mut().insert(http::header::TE, trailers);
    request.headers_mut().insert(http::header::CONTENT_TYPE, GRPC_CONTENT_TYPE);
    let from_error = |error: T::Error| Status::from_error(error.into());
    poll_fn(|context| channel.poll_ready(context)).await.map_err(from_error)?;
    let response = channel.call(request).await.map_err(from_error)?;
    let status = response.status();
    Ok(Response::new(match Status::from_header_map(response.headers()) {
        Some(status) if status.code() != Code::Ok => return Err(status),
        Some(_) => Streaming::new_empty(Answer::new(), response.into_body()),
        None => {
            let (body, len_max) = (response.into_body(), Some(answer_len_max));
            Streaming::new_response(Answer::new(), body, status, None, len_max)
        }
    }))
}

/// Requests as the body of a stream.
struct RequestBody<S> {
    requests: Pin<Box<S>>,
    /// Of the request that is being sent.
    pieces: VecDeque<Bytes>,
}

impl<S: Stream<Item = PublishRequest>> http_body::Body for RequestBody<S> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            let Some(request) = ready!(self.requests.as_mut().poll_next(context)) else {
                return Poll::Ready(None);
            };
            self.pieces = pieces(&request)?.into();
        }
    }
}

/// A request with gRPC's framing, the messages of large batches as they are.
fn pieces(request: &PublishRequest) -> Result<Vec<Bytes>, Status> {
    let len = request.encoded_len();
    let prefix = u32::try_from(len).map_err(|_| Status::out_of_range("a request of over 4 GiB"))?;
    let mut head = BytesMut::with_capacity(PREFIX_LEN + len.min(2 * SHARE_MIN));
    head.put_u8(0);
    head.put_u32(prefix);
    let mut pieces = Vec::new();
    request.write_shared(&mut head, SHARE_MIN, &mut |head, messages| {
        pieces.push(head.split().freeze());
        pieces.push(messages.clone());
    });
    if !head.is_empty() {
        pieces.push(head.freeze());
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests;
