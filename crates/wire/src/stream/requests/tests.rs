//! Requests from pieces of a body, as a connection may give them, and as pieces of one.

use super::*;
use crate::proto::stream::{CloseProducer, OpenProducer};
use crate::stream::{Batch, EncodedMessages, Message};
use danube_core::WallMs;
use proptest::prelude::*;

/// A body of these pieces.
struct Pieces(VecDeque<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}

/// Reads all requests from a body of `pieces`.
async fn read(pieces: impl IntoIterator<Item = Bytes>) -> Result<Vec<PublishRequest>, Status> {
    let body = Body::new(Pieces(pieces.into_iter().collect()));
    let mut requests = PublishRequests::new(body, 1 << 20);
    let mut read = Vec::new();
    while let Some(request) = requests.message().await? {
        read.push(request);
    }
    Ok(read)
}

fn request(batches: &[(u32, u64, usize)]) -> PublishRequest {
    let batches = batches.iter().map(|(producer, first_sequence, len)| {
        let (mut out, payload) = (BytesMut::new(), vec![b'd'; *len]);
        for publish_time in [WallMs(1), WallMs(2)] {
            let message = Message { payload: &payload, publish_time, ..Message::default() };
            EncodedMessages::put(&mut out, &message);
        }
        let messages = EncodedMessages::new(out.freeze(), 2);
        Batch { producer: *producer, first_sequence: *first_sequence, messages }
    });
    PublishRequest {
        open: vec![OpenProducer { producer: 3, topic: "/default/t".into(), ..Default::default() }],
        batches: batches.collect(),
        close: vec![CloseProducer { producer: 4 }],
    }
}

/// As any gRPC client would send it.
fn framed(request: &PublishRequest) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend(u32::try_from(request.encoded_len()).expect("small").to_be_bytes());
    request.write(&mut bytes);
    bytes
}

proptest! {
    #[test]
    fn requests_are_the_same_however_their_bytes_are_cut(
        // A number can look like the tag of a message.
        batches in prop::collection::vec((0_u32..40, 1_u64..300, 0_usize..3000), 0..4),
        cuts in prop::collection::vec(0_usize..12_000, 0..8),
    ) {
        let sent = vec![request(&batches), request(&[]), request(&batches)];
        let bytes = Bytes::from(sent.iter().flat_map(framed).collect::<Vec<u8>>());
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|cut| bytes.slice(cut[0]..cut[1])).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
        prop_assert_eq!(runtime.block_on(read(pieces)).expect("well formed"), sent);
    }
}

#[tokio::test]
async fn large_batches_are_shared_on_both_sides() {
    let sent = request(&[(1, 1, 10), (2, 7, SHARE_MIN)]);
    let pieces = pieces(&sent).expect("small enough");
    assert_eq!(pieces.concat(), framed(&sent));
    let messages = |request: &PublishRequest| request.batches[1].messages.bytes().as_ptr();
    assert!(pieces.iter().any(|piece| piece.as_ptr() == messages(&sent)));
    let read = read(pieces).await.expect("well formed");
    assert_eq!(messages(&read[0]), messages(&sent), "not copied on the way");
    assert_eq!(read, [sent]);
}

#[tokio::test]
async fn a_broken_stream_is_refused_with_what_is_wrong() {
    let whole = framed(&request(&[(1, 1, 10)]));
    let mut compressed = whole.clone();
    compressed[0] = 1;
    let large = [&[0][..], &(1_u32 << 21).to_be_bytes()].concat();
    let torn = whole[..whole.len() - 1].to_vec();
    let damaged = [&[0, 0, 0, 0, 2, 0x12][..], &[9]].concat();
    for (bytes, code, says) in [
        (compressed, Code::Unimplemented, "compressed"),
        (large, Code::OutOfRange, "`2097152` bytes; 1048576 is the most"),
        (torn, Code::Internal, "ends within a request"),
        (vec![0, 0], Code::Internal, "ends within a request"),
        (damaged, Code::InvalidArgument, "damaged PublishRequest: a field that is longer"),
    ] {
        let status = read([Bytes::from(bytes)]).await.expect_err(says);
        assert_eq!(status.code(), code, "{status}");
        assert!(status.message().contains(says), "{status}");
    }
}
