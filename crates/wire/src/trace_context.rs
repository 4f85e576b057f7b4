//! W3C trace context in the attributes of a message: whose trace it belongs to.
//!
//! What is left to others: making spans and sending them anywhere. Law: text that is not exactly
//! what the recommendation allows is no context, and hostile text costs no allocation.

use std::fmt;

/// The attribute that names trace and span.
pub const TRACEPARENT: &str = "traceparent";
/// The attribute that vendors add to.
pub const TRACESTATE: &str = "tracestate";

/// Length of a context of version 00.
const LEN: usize = 55;
/// The flag that says that the trace is recorded.
const SAMPLED: u8 = 1;

/// A `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// Which trace; not all zeros.
    pub trace_id: [u8; 16],
    /// Which span of it sent the message; not all zeros.
    pub span_id: [u8; 8],
    /// The lowest bit says whether the trace is recorded.
    pub flags: u8,
}

impl TraceParent {
    /// Reads the value of the attribute; `None` when it is none.
    pub fn parse(text: &str) -> Option<TraceParent> {
        let bytes = text.as_bytes();
        let version = hex::<1>(bytes.get(0..2)?)?[0];
        // A later version may say more behind another dash, and means the same by the first parts.
        let has_end = match version {
            0 => bytes.len() == LEN,
            0xff => false,
            _ => bytes.len() == LEN || bytes.get(LEN) == Some(&b'-'),
        };
        let has_dashes = [2, 35, 52].iter().all(|at| bytes.get(*at) == Some(&b'-'));
        if !has_end || !has_dashes {
            return None;
        }
        let parent = TraceParent {
            trace_id: hex(bytes.get(3..35)?)?,
            span_id: hex(bytes.get(36..52)?)?,
            flags: hex::<1>(bytes.get(53..55)?)?[0],
        };
        (parent.trace_id != [0; 16] && parent.span_id != [0; 8]).then_some(parent)
    }

    /// Whether the trace is recorded.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace_id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("-")?;
        self.span_id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", self.flags)
    }
}

/// Lower-case hexadecimal digits, two for each byte.
fn hex<const LEN: usize>(text: &[u8]) -> Option<[u8; LEN]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; LEN];
    if text.len() != 2 * LEN {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read_and_written() {
        let parent = TraceParent::parse(GOOD).expect("well formed");
        assert_eq!((parent.trace_id[0], parent.span_id[7]), (0x4b, 0xb7));
        assert!(parent.is_sampled());
        assert_eq!(parent.to_string(), GOOD);
        assert!(!TraceParent::parse(&GOOD.replace("-01", "-00")).expect("good").is_sampled());
        let later = format!("{}-more", GOOD.replacen("00", "cc", 1));
        assert_eq!(TraceParent::parse(&later), Some(parent));
    }

    #[test]
    fn what_is_not_exactly_one_is_none() {
        for bad in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-0f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceParent::parse(bad), None, "{bad}");
        }
    }
}
