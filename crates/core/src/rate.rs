//! So many things per second, and a second's worth at once.
//!
//! Law: it takes the time as an argument, so a test of an hour takes a microsecond.

use crate::ids::Tick;

/// A limit of things per second. What was not used is saved up, for one second at most; what is
/// taken at once may overdraw it, and then the next one waits longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimit {
    /// 0 is no limit.
    per_second: u32,
    /// Thousandths of things that may go; below 0 after an overdraft.
    credit: i64,
    /// When that was so.
    at: Option<Tick>,
}

impl RateLimit {
    /// A limit of `per_second`; 0 is none.
    pub fn new(per_second: u32) -> RateLimit {
        RateLimit { per_second, credit: i64::from(per_second) * 1000, at: None }
    }

    /// Sets another limit; an overdraft stays.
    pub fn set(&mut self, per_second: u32) {
        if self.per_second == 0 {
            *self = RateLimit::new(per_second);
        }
        self.per_second = per_second;
        self.credit = self.credit.min(i64::from(per_second) * 1000);
    }

    /// Whether there is a limit at all.
    pub fn is_limited(&self) -> bool {
        self.per_second > 0
    }

    /// How many milliseconds from `now` on the next one has to wait; 0 when it may go.
    pub fn wait_ms(&mut self, now: Tick) -> u64 {
        if self.per_second == 0 {
            return 0;
        }
        let rate = i64::from(self.per_second);
        let passed = self.at.map_or(0, |at| now.0.saturating_sub(at.0));
        let earned = i64::try_from(passed).unwrap_or(i64::MAX).saturating_mul(rate);
        self.credit = self.credit.saturating_add(earned).min(rate * 1000);
        self.at = Some(now);
        if self.credit > 0 {
            return 0;
        }
        // Until the credit is above 0 again.
        u64::try_from((-self.credit) / rate + 1).unwrap_or(1)
    }

    /// Takes `count`, whether or not there is credit for all of it.
    pub fn take(&mut self, count: u64) {
        if self.per_second > 0 {
            let cost = i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(1000);
            self.credit = self.credit.saturating_sub(cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_saved_up_and_the_rest_waits() {
        let mut limit = RateLimit::new(10);
        for _ in 0..10 {
            assert_eq!(limit.wait_ms(Tick(5)), 0);
            limit.take(1);
        }
        assert_eq!(limit.wait_ms(Tick(5)), 1);
        limit.take(0);
        assert_eq!(limit.wait_ms(Tick(6)), 0);
        limit.take(1);
        assert_eq!(limit.wait_ms(Tick(6)), 100, "the next credit takes a tenth of a second");
        assert_eq!(limit.wait_ms(Tick(10_000)), 0);
        limit.take(25);
        assert_eq!(limit.wait_ms(Tick(10_000)), 1_501, "an overdraft is paid back first");
    }

    #[test]
    fn no_limit_never_waits() {
        let mut limit = RateLimit::new(0);
        limit.take(u64::MAX);
        assert_eq!(limit.wait_ms(Tick(0)), 0);
        limit.set(1);
        assert_eq!(limit.wait_ms(Tick(0)), 0);
        limit.take(1);
        assert!(limit.wait_ms(Tick(0)) > 0);
        limit.set(0);
        assert_eq!(limit.wait_ms(Tick(0)), 0);
    }

    #[test]
    fn over_any_time_no_more_than_the_rate_goes() {
        let mut limit = RateLimit::new(7);
        let mut gone = 0_u64;
        for ms in 0..60_000 {
            while limit.wait_ms(Tick(ms)) == 0 {
                limit.take(1);
                gone += 1;
            }
        }
        assert!((7 * 60..=7 * 61 + 1).contains(&gone), "{gone}");
    }
}
