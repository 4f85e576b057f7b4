//! As much of the protobuf encoding as it takes to write and to walk a message without decoding it.
//!
//! Source: the encoding chapter of the protobuf documentation (varints little end first, a tag is
//! `number << 3 | wire type`). Groups, abandoned since proto2, are refused. Everything about
//! whole messages is left to prost.
//!
//! Law: walking any bytes ends, never panics and allocates nothing.

use bytes::BufMut;
use std::ops::Range;

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const DELIMITED: u64 = 2;
const FIXED_32: u64 = 5;

/// Longest varint: ten groups of seven bits hold 64.
const VARINT_LEN_MAX: usize = 10;

/// Bytes that `value` takes as a varint.
pub(crate) const fn varint_len(value: u64) -> usize {
    // Seven bits to a byte; zero takes one.
    ((63 - (value | 1).leading_zeros() as usize) / 7) + 1
}

/// Writes `value` as a varint.
pub(crate) fn put_varint(out: &mut impl BufMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.put_u8(value.to_le_bytes()[0]);
}

/// Bytes that [`put_number`] writes.
pub(crate) const fn number_len(field: u32, value: u64) -> usize {
    varint_len((field as u64) << 3) + varint_len(value)
}

/// Writes a number field, also when it is 0.
pub(crate) fn put_number(out: &mut impl BufMut, field: u32, value: u64) {
    put_varint(out, u64::from(field) << 3 | VARINT);
    put_varint(out, value);
}

/// Bytes of a field whose content (text, bytes or a message) takes `len`.
pub(crate) const fn delimited_len(field: u32, len: usize) -> usize {
    varint_len((field as u64) << 3) + varint_len(len as u64) + len
}

/// Writes what goes before `len` bytes of text, bytes or a message.
pub(crate) fn put_delimiter(out: &mut impl BufMut, field: u32, len: usize) {
    put_varint(out, u64::from(field) << 3 | DELIMITED);
    put_varint(out, len as u64);
}

/// Writes a field of text or bytes, also when it is empty.
pub(crate) fn put_delimited(out: &mut impl BufMut, field: u32, content: &[u8]) {
    put_delimiter(out, field, content.len());
    out.put_slice(content);
}

/// What a field holds, as far as the encoding alone can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// A varint.
    Number(u64),
    /// Where text, bytes or a message lie.
    Delimited(Range<usize>),
    /// Four or eight bytes, which none of our fields is.
    Fixed,
}

/// What stands before a field's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Front {
    /// A varint, which has no other content.
    Number(u64),
    /// Text, bytes or a message of so many bytes follows.
    Delimited(u64),
    /// So many bytes follow.
    Fixed(u64),
}

/// Most bytes of a [`Front`].
pub(crate) const FRONT_LEN_MAX: usize = 2 * VARINT_LEN_MAX;

/// The number and the front of the field that `bytes` begins with, and how many bytes those take.
pub(crate) fn front(bytes: &[u8]) -> Result<(u32, Front, usize), Broken> {
    let mut fields = Fields::within(bytes, 0..bytes.len());
    fields.front().map(|(number, front)| (number, front, fields.at))
}

/// Where the encoding is broken: the position, in bytes, and what is wrong there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}

/// Walks the fields of one message within `bytes`, at positions of `bytes`.
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Fields<'a> {
    /// The fields of the message that lies at `range`, which is clamped to what there is.
    pub(crate) fn within(bytes: &'a [u8], range: Range<usize>) -> Fields<'a> {
        let end = range.end.min(bytes.len());
        Fields { bytes, at: range.start.min(end), end }
    }

    /// Where the next field begins.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Broken> {
        // Tags and most of our numbers are one byte.
        match self.bytes[..self.end].get(self.at) {
            Some(byte) if *byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Broken> {
        let start = self.at;
        let mut value = 0_u64;
        for (index, byte) in self.bytes[start..self.end].iter().take(VARINT_LEN_MAX).enumerate() {
            // The tenth byte has room for one bit.
            if index == VARINT_LEN_MAX - 1 && *byte > 1 {
                return Err(Broken { at: start, what: "a number of more than 64 bits" });
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                self.at = start + index + 1;
                return Ok(value);
            }
        }
        Err(Broken { at: start, what: "a number that does not end" })
    }

    fn skip(&mut self, len: u64) -> Result<Range<usize>, Broken> {
        let start = self.at;
        match usize::try_from(len).ok().and_then(|len| start.checked_add(len)) {
            Some(end) if end <= self.end => {
                self.at = end;
                Ok(start..end)
            }
            _ => Err(Broken { at: start, what: "a field that is longer than the rest" }),
        }
    }

    /// What stands before the content of the next field; goes behind that.
    #[inline]
    fn front(&mut self) -> Result<(u32, Front), Broken> {
        let start = self.at;
        let tag = self.varint()?;
        let number = match u32::try_from(tag >> 3) {
            Ok(number) if (1..1 << 29).contains(&number) => number,
            _ => return Err(Broken { at: start, what: "a field number that there cannot be" }),
        };
        let front = match tag & 7 {
            VARINT => Front::Number(self.varint()?),
            DELIMITED => Front::Delimited(self.varint()?),
            FIXED_64 => Front::Fixed(8),
            FIXED_32 => Front::Fixed(4),
            _ => return Err(Broken { at: start, what: "a wire type that there cannot be" }),
        };
        Ok((number, front))
    }

    #[inline]
    fn field(&mut self) -> Result<(u32, Value), Broken> {
        let (number, front) = self.front()?;
        let value = match front {
            Front::Number(value) => Value::Number(value),
            Front::Delimited(len) => Value::Delimited(self.skip(len)?),
            Front::Fixed(len) => self.skip(len).map(|_| Value::Fixed)?,
        };
        Ok((number, value))
    }
}

impl Iterator for Fields<'_> {
    type Item = Result<(u32, Value), Broken>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            // One error ends the walk.
            self.at = self.end;
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn walk(bytes: &[u8]) -> Vec<Result<(u32, Value), Broken>> {
        Fields::within(bytes, 0..bytes.len()).collect()
    }

    proptest! {
        #[test]
        fn a_number_comes_back(value in any::<u64>(), shift in 0_u32..64, field in 1_u32..1 << 29) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            put_number(&mut bytes, field, value);
            prop_assert_eq!(bytes.len(), number_len(field, value));
            prop_assert_eq!(walk(&bytes), vec![Ok((field, Value::Number(value)))]);
        }

        #[test]
        fn any_bytes_are_walked_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let steps = walk(&bytes);
            prop_assert!(steps.len() <= bytes.len());
            for (number, value) in steps.into_iter().flatten() {
                prop_assert!(number > 0);
                if let Value::Delimited(range) = value {
                    prop_assert!(range.start <= range.end && range.end <= bytes.len());
                }
            }
        }
    }

    #[test]
    fn broken_encodings_are_named() {
        for (bytes, what) in [
            (&[0x08][..], "a number that does not end"),
            (&[0x08, 0x80], "a number that does not end"),
            (
                &[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2],
                "a number of more than 64 bits",
            ),
            (&[0x12, 5, 1, 2], "a field that is longer than the rest"),
            (
                &[0x12, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
                "a field that is longer than the rest",
            ),
            (&[0x00, 1], "a field number that there cannot be"),
            (&[0x0b], "a wire type that there cannot be"),
            (&[0x0d, 1, 2, 3], "a field that is longer than the rest"),
        ] {
            let last = walk(bytes).pop().expect("something").expect_err(what);
            assert_eq!(last.what, what, "{bytes:?}");
        }
    }
}
