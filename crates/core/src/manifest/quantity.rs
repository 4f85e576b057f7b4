//! Durations and sizes as people write them.

use crate::fault::Fault;

/// Milliseconds of `7d`, `12h`, `30m`, `45s`, `500ms`; `forever` is 0.
///
/// # Errors
/// [`Invalid`](crate::FaultKind::Invalid), saying how durations are written.
pub fn duration_ms(text: &str) -> Result<u64, Fault> {
    const UNITS: [(&str, u64); 5] =
        [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    if text == "forever" {
        return Ok(0);
    }
    parse(text, &UNITS).ok_or_else(|| {
        Fault::invalid(format!(
            "`{}` is not a duration; write for example 7d, 12h, 30m, 45s, 500ms or forever",
            text.escape_debug()
        ))
    })
}

/// Bytes of `10GiB`, `500MB`, `1024`; `unlimited` is 0.
///
/// # Errors
/// [`Invalid`](crate::FaultKind::Invalid), saying how sizes are written.
pub fn size(text: &str) -> Result<u64, Fault> {
    const UNITS: [(&str, u64); 9] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("", 1),
    ];
    if text == "unlimited" {
        return Ok(0);
    }
    parse(text, &UNITS).ok_or_else(|| {
        Fault::invalid(format!(
            "`{}` is not a size; write for example 10GiB, 500MB, 1048576 or unlimited",
            text.escape_debug()
        ))
    })
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_taken_with_their_units_only() {
        assert_eq!(duration_ms("7d"), Ok(604_800_000));
        assert_eq!(duration_ms("500ms"), Ok(500));
        assert_eq!(duration_ms("forever"), Ok(0));
        assert_eq!(size("10GiB"), Ok(10 << 30));
        assert_eq!(size("1024"), Ok(1024));
        for text in ["", "7", "d", "7 days", "-1d", "99999999999999999999d"] {
            assert!(duration_ms(text).is_err(), "{text}");
        }
        for text in ["", "GiB", "1.5GiB", "-1"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
