//! Exact numbers for bounds and multiples; JSON's decimals are fractions, and floats would lie.

use serde_json::{Number, Value};
use std::cmp::Ordering;

/// A fraction in lowest terms with a positive denominator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ratio {
    num: i128,
    den: i128,
}

impl Ratio {
    pub(crate) const ZERO: Ratio = Ratio { num: 0, den: 1 };
    pub(crate) const ONE: Ratio = Ratio { num: 1, den: 1 };

    pub(crate) fn new(num: i128, den: i128) -> Option<Ratio> {
        if den == 0 || num == i128::MIN || den == i128::MIN {
            return None;
        }
        let divisor = gcd(num.abs(), den.abs());
        Some(Ratio { num: num / divisor * den.signum(), den: den.abs() / divisor })
    }

    /// Exactly what the number's text says, where 38 digits are enough for it.
    pub(crate) fn of(number: &Number) -> Option<Ratio> {
        let text = number.to_string();
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
            None => (text.as_str(), 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
        let exponent = exponent - i32::try_from(fraction.len()).ok()?;
        let scale = 10_i128.checked_pow(exponent.unsigned_abs())?;
        if exponent < 0 {
            Ratio::new(mantissa, scale)
        } else {
            Ratio::new(mantissa.checked_mul(scale)?, 1)
        }
    }

    pub(crate) fn of_value(value: &Value) -> Option<Ratio> {
        value.as_number().and_then(Ratio::of)
    }

    pub(crate) fn is_whole(self) -> bool {
        self.den == 1
    }

    pub(crate) fn is_positive(self) -> bool {
        self.num > 0
    }

    pub(crate) fn add(self, other: Ratio) -> Option<Ratio> {
        let left = self.num.checked_mul(other.den)?;
        let right = other.num.checked_mul(self.den)?;
        Ratio::new(left.checked_add(right)?, self.den.checked_mul(other.den)?)
    }

    pub(crate) fn neg(self) -> Ratio {
        Ratio { num: -self.num, den: self.den }
    }

    pub(crate) fn mul(self, other: Ratio) -> Option<Ratio> {
        Ratio::new(self.num.checked_mul(other.num)?, self.den.checked_mul(other.den)?)
    }

    pub(crate) fn div(self, other: Ratio) -> Option<Ratio> {
        Ratio::new(self.num.checked_mul(other.den)?, self.den.checked_mul(other.num)?)
    }

    pub(crate) fn floor(self) -> Ratio {
        Ratio { num: self.num.div_euclid(self.den), den: 1 }
    }

    pub(crate) fn ceil(self) -> Ratio {
        self.neg().floor().neg()
    }

    pub(crate) fn is_multiple_of(self, step: Ratio) -> Option<bool> {
        Some(self.div(step)?.is_whole())
    }

    /// The smallest number that is a multiple of both.
    pub(crate) fn lcm(self, other: Ratio) -> Option<Ratio> {
        let (left, right) = (self.num.checked_mul(other.den)?, other.num.checked_mul(self.den)?);
        let shared = gcd(left.abs(), right.abs());
        Ratio::new((left / shared).checked_mul(right)?, self.den.checked_mul(other.den)?)
    }

    pub(crate) fn compare(self, other: Ratio) -> Option<Ordering> {
        Some(self.num.checked_mul(other.den)?.cmp(&other.num.checked_mul(self.den)?))
    }

    /// As JSON: whole where it is whole, else the nearest double; whoever uses it reads that back.
    pub(crate) fn to_value(self) -> Option<Value> {
        if self.den == 1 {
            if let Ok(small) = i64::try_from(self.num) {
                return Some(Value::from(small));
            }
            if let Ok(large) = u64::try_from(self.num) {
                return Some(Value::from(large));
            }
        }
        Number::from_f64(self.num as f64 / self.den as f64).map(Value::Number)
    }
}

fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ratio(value: Value) -> Ratio {
        Ratio::of_value(&value).unwrap()
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(ratio(json!(0.3)).is_multiple_of(ratio(json!(0.1))), Some(true));
        assert_eq!(ratio(json!(0.35)).is_multiple_of(ratio(json!(0.1))), Some(false));
        assert_eq!(ratio(json!(6)).lcm(ratio(json!(0.4))).unwrap(), ratio(json!(6)));
        assert_eq!(ratio(json!(1.5)).lcm(ratio(json!(1))).unwrap(), ratio(json!(3)));
        assert_eq!(ratio(json!(-1.5)).floor(), ratio(json!(-2)));
        assert_eq!(ratio(json!(-1.5)).ceil(), ratio(json!(-1)));
        assert_eq!(ratio(json!(1e3)).to_value().unwrap(), json!(1000));
        assert_eq!(Ratio::of_value(&json!(1e300)), None);
    }
}
