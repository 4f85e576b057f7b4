//! Values without parts: numbers and strings.

use super::{Found, Goal, Solver, TOO_MUCH_WHY, better};
use crate::json::node::{Form, Pattern};
use crate::json::ratio::Ratio;
use crate::json::regular::{Search, Wanted, search};
use serde_json::Value;
use std::collections::BTreeSet;

/// Candidates that are tried before a search is given up.
const TRIES_MAX: u64 = 600;
/// Longest string that is written out as a witness.
const STRING_LEN_MAX: u64 = 2_000;

/// The interval and the step that the positive literals leave.
#[derive(Default)]
struct Numbers {
    low: Option<(Ratio, bool)>,
    high: Option<(Ratio, bool)>,
    step: Option<Ratio>,
}

impl Numbers {
    /// `None` when exact arithmetic does not reach.
    fn gather(literals: &[Goal]) -> Option<Numbers> {
        let mut numbers = Numbers::default();
        for goal in literals {
            match (&goal.node.form, goal.positive) {
                (Form::Min { at, exclusive }, true) => numbers.raise(*at, *exclusive)?,
                (Form::Max { at, exclusive }, false) => numbers.raise(*at, !*exclusive)?,
                (Form::Max { at, exclusive }, true) => numbers.lower(*at, *exclusive)?,
                (Form::Min { at, exclusive }, false) => numbers.lower(*at, !*exclusive)?,
                (Form::MultipleOf(step), true) => {
                    numbers.step = Some(match numbers.step {
                        Some(known) => known.lcm(*step)?,
                        None => *step,
                    });
                }
                _ => {}
            }
        }
        Some(numbers)
    }

    fn raise(&mut self, at: Ratio, exclusive: bool) -> Option<()> {
        let tighter = match self.low {
            None => true,
            Some((known, known_exclusive)) => {
                let order = at.compare(known)?;
                order.is_gt() || (order.is_eq() && exclusive && !known_exclusive)
            }
        };
        if tighter {
            self.low = Some((at, exclusive));
        }
        Some(())
    }

    fn lower(&mut self, at: Ratio, exclusive: bool) -> Option<()> {
        let tighter = match self.high {
            None => true,
            Some((known, known_exclusive)) => {
                let order = at.compare(known)?;
                order.is_lt() || (order.is_eq() && exclusive && !known_exclusive)
            }
        };
        if tighter {
            self.high = Some((at, exclusive));
        }
        Some(())
    }

    /// Multiples of `step` in the interval, at most [`TRIES_MAX`]; and whether these are all.
    fn multiples(&self, step: Ratio) -> Option<(Vec<Ratio>, bool)> {
        let first = match self.low {
            Some((low, exclusive)) => {
                let first = low.div(step)?.ceil();
                let touches = first.mul(step)?.compare(low)?.is_eq();
                Some(if touches && exclusive { first.add(Ratio::ONE)? } else { first })
            }
            None => None,
        };
        let last = match self.high {
            Some((high, exclusive)) => {
                let last = high.div(step)?.floor();
                let touches = last.mul(step)?.compare(high)?.is_eq();
                Some(if touches && exclusive { last.add(Ratio::ONE.neg())? } else { last })
            }
            None => None,
        };
        let (mut at, forward) = match (first, last) {
            (Some(first), _) => (first, true),
            (None, Some(last)) => (last, false),
            (None, None) => (Ratio::ZERO, true),
        };
        let mut found = Vec::new();
        for _ in 0..TRIES_MAX {
            if forward && last.map_or(Some(false), |last| Some(at.compare(last)?.is_gt()))? {
                return Some((found, true));
            }
            found.push(at.mul(step)?);
            at = at.add(if forward { Ratio::ONE } else { Ratio::ONE.neg() })?;
        }
        Some((found, false))
    }
}

impl Solver<'_> {
    pub(super) fn integer(&mut self, literals: &[Goal]) -> Found {
        let step = |numbers: &Numbers| match numbers.step {
            Some(step) => step.lcm(Ratio::ONE),
            None => Some(Ratio::ONE),
        };
        let Some((numbers, step)) = Numbers::gather(literals)
            .and_then(|numbers| Some((step(&numbers)?, numbers)).map(|(s, n)| (n, s)))
        else {
            return Found::Unsure("a number is too large for exact arithmetic", None);
        };
        // Every multiple of the step is a multiple of what it must not be a multiple of.
        if never_other_than(step, literals) {
            return Found::No;
        }
        match numbers.multiples(step) {
            Some((candidates, complete)) => self.try_numbers(&candidates, complete, literals),
            None => Found::Unsure("a number is too large for exact arithmetic", None),
        }
    }

    pub(super) fn fraction(&mut self, literals: &[Goal]) -> Found {
        let candidates = Numbers::gather(literals).and_then(|numbers| match numbers.step {
            Some(step) if step.is_whole() => Some((Vec::new(), true)),
            Some(step) => {
                if never_other_than(step, literals) {
                    return Some((Vec::new(), true));
                }
                numbers.multiples(step)
            }
            None => dense(&numbers),
        });
        match candidates {
            Some((candidates, complete)) => {
                let fractions: Vec<Ratio> =
                    candidates.into_iter().filter(|candidate| !candidate.is_whole()).collect();
                self.try_numbers(&fractions, complete, literals)
            }
            None => Found::Unsure("a number is too large for exact arithmetic", None),
        }
    }

    fn try_numbers(&mut self, candidates: &[Ratio], complete: bool, literals: &[Goal]) -> Found {
        let mut answer = Found::No;
        for candidate in candidates {
            let Some(value) = candidate.to_value() else { continue };
            // What is not exact as a double is another number, and judged as that.
            match self.meets(&value, literals) {
                Some(true) => return Found::Yes(value),
                Some(false) if Ratio::of_value(&value) == Some(*candidate) => {}
                _ => answer = better(answer, "numbers are involved that doubles cannot hold", None),
            }
            if self.work_left == 0 {
                return better(answer, TOO_MUCH_WHY, None);
            }
        }
        if complete { answer } else { better(answer, "multiples could not be compared", None) }
    }

    pub(super) fn string(&mut self, literals: &[Goal]) -> Found {
        let (mut min, mut max) = (0_u64, None::<u64>);
        let mut lower = |len: u64| max = Some(max.map_or(len, |known| known.min(len)));
        let (mut matching, mut not_matching): (Vec<&Pattern>, Vec<&Pattern>) =
            (Vec::new(), Vec::new());
        let mut excluded = BTreeSet::new();
        for goal in literals {
            match (&goal.node.form, goal.positive) {
                (Form::MinLength(len), true) => min = min.max(*len),
                (Form::MinLength(len), false) => match len.checked_sub(1) {
                    Some(len) => lower(len),
                    None => return Found::No,
                },
                (Form::MaxLength(len), true) => lower(*len),
                (Form::MaxLength(len), false) => min = min.max(len.saturating_add(1)),
                (Form::Pattern(pattern), true) => matching.push(pattern),
                (Form::Pattern(pattern), false) => not_matching.push(pattern),
                (Form::Values(values), false) => {
                    excluded.extend(
                        values.iter().filter_map(|value| value.as_str().map(str::to_owned)),
                    );
                }
                _ => {}
            }
        }
        if max.is_some_and(|max| min > max) {
            return Found::No;
        }
        if matching.is_empty() && not_matching.is_empty() {
            return plain_string(min, max, &excluded);
        }
        let wanted = Wanted {
            matching: &matching,
            not_matching: &not_matching,
            len_min: min,
            len_max: max,
            excluded: &excluded,
        };
        self.spend(500);
        match search(&wanted) {
            Search::Found(text) => {
                let value = Value::String(text);
                match self.meets(&value, literals) {
                    Some(true) => Found::Yes(value),
                    _ => Found::Unsure("the patterns could not be compared", Some(value)),
                }
            }
            Search::Empty => Found::No,
            Search::Undecided => Found::Unsure("the patterns could not be compared", None),
        }
    }
}

/// Whether every multiple of `step` breaks a "not a multiple of".
fn never_other_than(step: Ratio, literals: &[Goal]) -> bool {
    literals.iter().any(|goal| match &goal.node.form {
        Form::MultipleOf(other) if !goal.positive => step.is_multiple_of(*other) == Some(true),
        _ => false,
    })
}

/// Numbers of an interval without a step: enough of them to get around what is excluded. Complete
/// only where the interval is empty or one number.
fn dense(numbers: &Numbers) -> Option<(Vec<Ratio>, bool)> {
    if let (Some((low, low_open)), Some((high, high_open))) = (numbers.low, numbers.high) {
        let order = low.compare(high)?;
        if order.is_gt() || (order.is_eq() && (low_open || high_open)) {
            return Some((Vec::new(), true));
        }
        if order.is_eq() {
            return Some((vec![low], true));
        }
    }
    let mut found = Vec::new();
    for (part, parts) in
        (1..=40_i128).map(|at| (at, 41)).chain([(1, 2), (1, 4), (3, 4), (1, 8), (1, 3)])
    {
        let share = Ratio::new(part, parts)?;
        found.push(match (numbers.low, numbers.high) {
            (Some((low, _)), Some((high, _))) => low.add(high.add(low.neg())?.mul(share)?)?,
            (Some((low, _)), None) => low.add(Ratio::new(part * 2 + 1, 2)?)?,
            (None, Some((high, _))) => high.add(Ratio::new(part * 2 + 1, 2)?.neg())?,
            (None, None) => Ratio::new(part * 2 + 1, 2)?,
        });
        // Half steps from a fraction may all be whole; thirds of a step are not.
        if let Some((low, _)) = numbers.low.filter(|_| numbers.high.is_none()) {
            found.push(low.add(share)?);
        } else if let Some((high, _)) = numbers.high.filter(|_| numbers.low.is_none()) {
            found.push(high.add(share.neg())?);
        }
    }
    found.sort_by_key(|ratio| ratio.to_value().map_or(usize::MAX, |value| value.to_string().len()));
    for bound in [numbers.low, numbers.high] {
        if let Some((bound, false)) = bound {
            found.push(bound);
        }
    }
    Some((found, false))
}

/// Any string of a length in the interval that is not excluded.
fn plain_string(min: u64, max: Option<u64>, excluded: &BTreeSet<String>) -> Found {
    let mut min = min;
    if min == 0 {
        if max == Some(0) {
            let empty = excluded.contains("");
            return if empty { Found::No } else { Found::Yes(Value::String(String::new())) };
        }
        min = 1;
    }
    if min > STRING_LEN_MAX {
        return Found::Unsure("the witness would be too long to write out", None);
    }
    // More strings of one length than are excluded, because the last characters vary.
    let len = usize::try_from(min).expect("below the bound above");
    for at in 0..=excluded.len() {
        let tail =
            char::from_u32(0x61 + u32::try_from(at % 26).expect("below 26")).expect("a letter");
        let extra = u32::try_from(at / 26).unwrap_or(0);
        let fill = char::from_u32(0x61 + extra).unwrap_or('z');
        let mut text: String = std::iter::repeat_n(fill, len - 1).collect();
        text.push(tail);
        if len == 1 && extra > 0 {
            text = char::from_u32(0x100 + u32::try_from(at).unwrap_or(0))
                .map(String::from)
                .unwrap_or_default();
        }
        if !excluded.contains(&text) {
            return Found::Yes(Value::String(text));
        }
    }
    Found::Unsure("too many values are excluded", None)
}
