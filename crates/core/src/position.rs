//! A place in a topic, as people spell it: `earliest`, `latest`, `offset:N`, `time:RFC3339`.
//!
//! Every command and every call that takes a place takes these words. What is left to others: which
//! offset a time means, since only the log knows.
//!
//! Law: one spelling, read here and nowhere else. A time always says its zone, so that it means
//! the same moment to everybody.

use crate::fault::Fault;
use crate::ids::{Offset, WallMs};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A place in a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Position {
    /// The first message that is still kept.
    Earliest,
    /// After the last message.
    Latest,
    /// The message of this offset.
    Offset(Offset),
    /// The first message that came at this time or later, by the broker's clock.
    Time(WallMs),
}

impl Position {
    /// Parses `earliest`, `latest`, `offset:N` or `time:RFC3339`.
    ///
    /// ```
    /// # use danube_core::{Offset, Position, WallMs};
    /// assert_eq!(Position::parse("offset:7")?, Position::Offset(Offset(7)));
    /// assert_eq!(Position::parse("time:1970-01-01T00:00:01Z")?, Position::Time(WallMs(1_000)));
    /// # Ok::<(), danube_core::Fault>(())
    /// ```
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid), saying what is wrong and what can be said.
    pub fn parse(text: &str) -> Result<Position, Fault> {
        let malformed = |what: &str| {
            Fault::invalid(format!(
                "position `{}` {what}; say earliest, latest, offset:N, or a time with its zone \
                 such as time:2026-11-30T12:00:00Z or time:2026-11-30T13:00:00.250+01:00",
                text.escape_debug()
            ))
        };
        match text.split_once(':') {
            None if text == "earliest" => Ok(Position::Earliest),
            None if text == "latest" => Ok(Position::Latest),
            Some(("offset", number)) => {
                let offset = digits(number.as_bytes()).and_then(|()| number.parse().ok());
                offset.map(|n| Position::Offset(Offset(n))).ok_or_else(|| {
                    malformed("has no number of 0 to 18446744073709551615 after `offset:`")
                })
            }
            Some(("time", time)) => rfc3339(time).map(Position::Time).map_err(malformed),
            _ => Err(malformed("is not a place in a topic")),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Earliest => f.write_str("earliest"),
            Position::Latest => f.write_str("latest"),
            Position::Offset(offset) => write!(f, "offset:{offset}"),
            Position::Time(at) => write!(f, "time:{}", Rfc3339(*at)),
        }
    }
}

impl TryFrom<String> for Position {
    type Error = Fault;

    fn try_from(text: String) -> Result<Position, Fault> {
        Position::parse(&text)
    }
}

impl From<Position> for String {
    fn from(position: Position) -> String {
        position.to_string()
    }
}

impl std::str::FromStr for Position {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Position, Fault> {
        Position::parse(text)
    }
}

/// Shows a time as RFC 3339 has it, in UTC, to the millisecond.
#[derive(Debug, Clone, Copy)]
pub struct Rfc3339(pub WallMs);

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WallMs(ms) = self.0;
        let (seconds, millis) = (ms / 1_000, ms % 1_000);
        let (year, month, day) = civil(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

fn digits(text: &[u8]) -> Option<()> {
    (!text.is_empty() && text.iter().all(u8::is_ascii_digit)).then_some(())
}

/// Milliseconds since 1970 of a time such as `2026-11-30T12:00:00.5+01:00`; what is finer than a
/// millisecond is cut off. The error says what is wrong.
fn rfc3339(text: &str) -> Result<WallMs, &'static str> {
    let bytes = text.as_bytes();
    let number = |at: usize, len: usize| -> Result<i64, &'static str> {
        let field = bytes.get(at..at + len).ok_or("has too short a time")?;
        digits(field).ok_or("has no time of the form YYYY-MM-DDTHH:MM:SS")?;
        Ok(field.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
    };
    let [year, month, day] = [number(0, 4)?, number(5, 2)?, number(8, 2)?];
    let [hour, minute, second] = [number(11, 2)?, number(14, 2)?, number(17, 2)?];
    let separated = bytes[4] == b'-'
        && bytes[7] == b'-'
        && matches!(bytes[10], b'T' | b't' | b' ')
        && bytes[13] == b':'
        && bytes[16] == b':';
    if !separated {
        return Err("has no time of the form YYYY-MM-DDTHH:MM:SS");
    }
    // A leap second counts as the first of the next minute.
    let in_range = (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !in_range {
        return Err("has a time that no clock or calendar shows");
    }
    let (millis, zone) = fraction(&bytes[19..])?;
    let seconds = (days(year, month, day) * 86_400) + hour * 3_600 + minute * 60 + second;
    let ms = (seconds - offset_seconds(zone)?) * 1_000 + millis;
    u64::try_from(ms).map(WallMs).map_err(|_| "has a time before 1970")
}

/// The milliseconds of `.250…`, if it is there, and what follows.
fn fraction(rest: &[u8]) -> Result<(i64, &[u8]), &'static str> {
    let Some((b'.', rest)) = rest.split_first() else { return Ok((0, rest)) };
    let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if len == 0 {
        return Err("has a point without a fraction of a second");
    }
    let digit = |index: usize| rest[..len].get(index).map_or(0, |digit| i64::from(digit - b'0'));
    Ok((digit(0) * 100 + digit(1) * 10 + digit(2), &rest[len..]))
}

/// Seconds by which a zone's clocks are ahead of UTC.
fn offset_seconds(zone: &[u8]) -> Result<i64, &'static str> {
    match zone {
        [b'Z' | b'z'] => Ok(0),
        [sign @ (b'+' | b'-'), h @ .., b':', m1, m2] if h.len() == 2 => {
            digits(h).and(digits(&[*m1, *m2])).ok_or("has no zone such as Z or +01:00")?;
            let two = |a: u8, b: u8| i64::from(a - b'0') * 10 + i64::from(b - b'0');
            let (hours, minutes) = (two(h[0], h[1]), two(*m1, *m2));
            if hours > 23 || minutes > 59 {
                return Err("has a zone that does not exist");
            }
            let ahead = hours * 3_600 + minutes * 60;
            Ok(if *sign == b'-' { -ahead } else { ahead })
        }
        _ => Err("has a time without its zone, Z or such as +01:00"),
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar. Years count from March here, so that
/// the leap day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date that is `days` after 1970-01-01: the way back of [`days`].
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn time(ms: u64) -> Position {
        Position::Time(WallMs(ms))
    }

    #[test]
    fn every_spelling_is_read() {
        for (text, position) in [
            ("earliest", Position::Earliest),
            ("latest", Position::Latest),
            ("offset:0", Position::Offset(Offset(0))),
            ("offset:18446744073709551615", Position::Offset(Offset(u64::MAX))),
            ("time:1970-01-01T00:00:00Z", time(0)),
            ("time:1970-01-01t00:00:00z", time(0)),
            ("time:1970-01-01 01:00:00+01:00", time(0)),
            ("time:1969-12-31T23:00:00.001-01:00", time(1)),
            ("time:2000-02-29T00:00:00Z", time(951_782_400_000)),
            ("time:2001-09-09T01:46:40Z", time(1_000_000_000_000)),
            ("time:2026-11-30T12:00:00.2509Z", time(1_796_040_000_250)),
            ("time:2026-11-30T17:30:00.25+05:30", time(1_796_040_000_250)),
            ("time:2016-12-31T23:59:60Z", time(1_483_228_800_000)),
            ("time:9999-12-31T23:59:59.999Z", time(253_402_300_799_999)),
        ] {
            assert_eq!(Position::parse(text), Ok(position), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "is not a place"),
            ("Earliest", "is not a place"),
            ("7", "is not a place"),
            ("offset", "is not a place"),
            ("latest:1", "is not a place"),
            ("offset:", "no number"),
            ("offset:-1", "no number"),
            ("offset:+1", "no number"),
            ("offset:1 ", "no number"),
            ("offset:18446744073709551616", "no number"),
            ("time:", "too short"),
            ("time:2026-11-30", "too short"),
            ("time:2026-11-30T12:00:00", "without its zone"),
            ("time:2026-11-30T12:00:00+0100", "without its zone"),
            ("time:2026-11-30T12:00:00+1:00", "without its zone"),
            ("time:2026-11-30T12:00:00Zulu", "without its zone"),
            ("time:2026-11-30T12:00:00+aa:00", "no zone"),
            ("time:2026-11-30T12:00:00+24:00", "zone that does not exist"),
            ("time:2026-11-30T12:00:00.Z", "point without"),
            ("time:2026-11-30_12:00:00Z", "no time of the form"),
            ("time:2026/11/30T12:00:00Z", "no time of the form"),
            ("time:20261130T120000Z0000", "no time of the form"),
            ("time:+026-11-30T12:00:00Z", "no time of the form"),
            ("time:2026-13-01T00:00:00Z", "no clock or calendar"),
            ("time:2026-00-01T00:00:00Z", "no clock or calendar"),
            ("time:2025-02-29T00:00:00Z", "no clock or calendar"),
            ("time:2100-02-29T00:00:00Z", "no clock or calendar"),
            ("time:2026-11-31T00:00:00Z", "no clock or calendar"),
            ("time:2026-11-30T24:00:00Z", "no clock or calendar"),
            ("time:1969-12-31T23:59:59Z", "before 1970"),
            ("time:2026-11-30T12:00:0\u{e9}Z", "no time of the form"),
        ] {
            let fault = Position::parse(text).expect_err(text);
            assert!(fault.message.contains(why), "{text}: {}", fault.message);
            assert!(fault.message.contains("earliest, latest, offset:N"), "{}", fault.message);
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(ms in 0_u64..253_402_300_800_000, offset: u64) {
            for position in [time(ms), Position::Offset(Offset(offset)), Position::Latest] {
                prop_assert_eq!(Position::parse(&position.to_string()), Ok(position));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "(time:|offset:)?[0-9TZ:+. -]{0,30}", any in "\\PC{0,30}") {
            let _ = Position::parse(&text);
            let _ = Position::parse(&any);
        }
    }
}
