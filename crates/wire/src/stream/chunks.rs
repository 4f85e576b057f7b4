//! Bytes as a connection gives them: in pieces, of which each is shared and not copied.
//!
//! Law: what lies within one piece is taken without a copy.

use crate::protobuf::{self, Broken, FRONT_LEN_MAX, Front};
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;

/// Pieces that follow one another.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    pieces: VecDeque<Bytes>,
    len: usize,
}

impl Chunks {
    /// Adds a piece at the end.
    pub fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.len += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// Copies what is at the front into `out`; returns how many bytes there were for it.
    pub fn copy_front(&self, out: &mut [u8]) -> usize {
        let mut filled = 0;
        for piece in &self.pieces {
            let count = piece.len().min(out.len() - filled);
            out[filled..filled + count].copy_from_slice(&piece[..count]);
            filled += count;
        }
        filled
    }

    /// The front of the field that begins here, with how many bytes it takes.
    pub fn front(&self) -> Result<(u32, Front, usize), Broken> {
        let mut bytes = [0; FRONT_LEN_MAX];
        let len = self.copy_front(&mut bytes);
        protobuf::front(&bytes[..len])
    }

    /// Takes the first `len` bytes, which have to be there, as pieces.
    pub fn split_to(&mut self, mut len: usize) -> Chunks {
        let mut taken = Chunks::default();
        while len > 0
            && let Some(piece) = self.pieces.front_mut()
        {
            let part = piece.split_to(len.min(piece.len()));
            if piece.is_empty() {
                self.pieces.pop_front();
            }
            len -= part.len();
            self.len -= part.len();
            taken.push(part);
        }
        taken
    }
}

impl From<Bytes> for Chunks {
    fn from(piece: Bytes) -> Chunks {
        let mut chunks = Chunks::default();
        chunks.push(piece);
        chunks
    }
}

impl Buf for Chunks {
    fn remaining(&self) -> usize {
        self.len
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| piece)
    }

    fn advance(&mut self, count: usize) {
        assert!(count <= self.len, "advanced beyond the end");
        drop(self.split_to(count));
    }

    fn copy_to_bytes(&mut self, len: usize) -> Bytes {
        assert!(len <= self.len, "more is taken than there is");
        let mut taken = self.split_to(len);
        if taken.pieces.len() <= 1 {
            return taken.pieces.pop_front().unwrap_or_default();
        }
        let mut all = BytesMut::with_capacity(len);
        taken.pieces.iter().for_each(|piece| all.extend_from_slice(piece));
        all.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_one_piece_is_shared_and_what_is_not_is_gathered() {
        let pieces = [Bytes::from(vec![1; 10]), Bytes::new(), Bytes::from(vec![2; 10])];
        let mut chunks = Chunks::default();
        pieces.iter().for_each(|piece| chunks.push(piece.clone()));
        assert_eq!(chunks.remaining(), 20);
        chunks.advance(1);
        let shared = chunks.copy_to_bytes(5);
        assert_eq!(shared.as_ptr(), pieces[0][1..].as_ptr());
        assert_eq!(chunks.copy_to_bytes(8), [[1_u8; 4], [2; 4]].concat());
        assert_eq!((chunks.get_u8(), chunks.remaining()), (2, 5));
        let rest = chunks.copy_to_bytes(5);
        assert_eq!(rest.as_ptr(), pieces[2][5..].as_ptr());
        assert!(!chunks.has_remaining() && chunks.chunk().is_empty());
        assert_eq!(chunks.copy_to_bytes(0), Bytes::new());
    }
}
