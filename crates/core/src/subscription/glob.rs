//! Key filters: `*` stands for any run of bytes, `?` for exactly one byte, all else for itself.
//!
//! Law: the time is at most pattern length times text length, for any pattern a client sends.

/// Whether the whole of `text` fits `pattern`.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where to go on when a later byte does not fit: after the last star, one byte further on.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn table() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("?", "", false),
            ("?", "a", true),
            ("?", "ä", false),
            ("??", "ä", true),
            ("eu-*", "eu-7", true),
            ("eu-*", "us-7", false),
            ("*-7", "eu-7", true),
            ("*-7", "eu-77", false),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1b2b3", false),
            ("*a?", "aaab", true),
            ("[a]", "a", false),
            ("**", "x", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "`{pattern}` on `{text}`");
        }
    }

    fn slow(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.first(), text.first()) {
            (None, None) => true,
            (Some(b'*'), _) => {
                slow(&pattern[1..], text) || (!text.is_empty() && slow(pattern, &text[1..]))
            }
            (Some(p), Some(t)) => (*p == b'?' || p == t) && slow(&pattern[1..], &text[1..]),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[ab*?]{0,8}", text in "[abc]{0,10}") {
            prop_assert_eq!(matches(&pattern, &text), slow(pattern.as_bytes(), text.as_bytes()));
        }
    }

    #[test]
    fn a_hostile_pattern_is_no_trap() {
        assert!(!matches(&"*a".repeat(200), &"a".repeat(199)));
        assert!(!matches(&format!("{}b", "a*".repeat(200)), &"a".repeat(4_000)));
    }
}
