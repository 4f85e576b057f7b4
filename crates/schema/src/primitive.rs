//! Plain payloads: text, numbers, bytes. Their definitions say nothing and are not read.

use crate::error::PayloadFault;

/// UTF-8 text, the empty one included.
pub(crate) fn string(payload: &[u8]) -> Result<(), PayloadFault> {
    std::str::from_utf8(payload).map(drop).map_err(|error| {
        PayloadFault::new("", format!("is not UTF-8: bad byte at offset {}", error.valid_up_to()))
    })
}

/// A number of four or eight bytes; the wire does not say which, nor in which byte order.
pub(crate) fn number(payload: &[u8]) -> Result<(), PayloadFault> {
    match payload.len() {
        4 | 8 => Ok(()),
        len => {
            Err(PayloadFault::new("", format!("a number has 4 or 8 bytes, this payload has {len}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_utf8_and_numbers_have_four_or_eight_bytes() {
        assert!(string(b"").is_ok() && string("straße".as_bytes()).is_ok());
        assert!(string(b"ab\xff").unwrap_err().to_string().contains("offset 2"));
        for len in 0..20 {
            assert_eq!(number(&vec![0; len]).is_ok(), len == 4 || len == 8, "{len}");
        }
    }
}
