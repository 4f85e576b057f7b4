//! SHA-256 over the canonical form of a definition.
//!
//! Two definitions that differ in key order, white space, documentation or line ends have the same
//! canonical form; each language's module says what else falls away. Any other difference shows.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

/// `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Of a canonical form.
    pub(crate) fn of(canonical: &[u8]) -> Fingerprint {
        let digest = Sha256::digest(canonical);
        let mut text = String::with_capacity(7 + 2 * digest.len());
        text.push_str("sha256:");
        for byte in digest {
            for nibble in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(nibble), 16).expect("a nibble is below 16"));
            }
        }
        Fingerprint(text)
    }

    /// As it goes out on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The first half of a SHA-256, as the identity of an inner node.
pub(crate) fn short(content: &[u8]) -> u128 {
    let digest = Sha256::digest(content);
    digest.iter().take(16).fold(0, |sum, byte| (sum << 8) | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_published_one() {
        assert_eq!(
            Fingerprint::of(b"abc").as_str(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
