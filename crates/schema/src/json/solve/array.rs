//! Arrays: schemas for positions, things that some position has to have, lengths, equal items.

use super::{Found, Goal, Side, Solver, TOO_MUCH, better};
use crate::json::node::{Form, Node, node};
use serde_json::Value;

/// Longest array that is written out as a witness.
const LEN_MAX: u64 = 130;
/// Things that some position has to have.
const NEEDS_MAX: usize = 6;

#[derive(Default)]
struct Shape<'n> {
    len_min: u64,
    len_max: Option<u64>,
    /// Positive `items`: every position has to meet its schema.
    boxes: Vec<(&'n [Node], &'n Node, Side)>,
    /// Every position has to meet this.
    everywhere: Vec<Goal>,
    /// Some position has to.
    needs: Vec<Need<'n>>,
    unique: bool,
    /// Two items have to be equal.
    repeats: bool,
    /// Something is left that only the finished value can be judged by.
    judge: bool,
}

#[derive(Clone)]
enum Need<'n> {
    /// An item that breaks `items`: at its position in the prefix, or behind it.
    Breaks(&'n [Node], &'n Node, Side),
    /// An item that meets this.
    Has(Goal),
}

impl Solver<'_> {
    pub(super) fn array(&mut self, literals: &[Goal]) -> Found {
        let mut shape = Shape::default();
        for goal in literals {
            if !shape.add(goal) {
                return Found::No;
            }
        }
        if shape.len_max.is_some_and(|max| shape.len_min > max) {
            return Found::No;
        }
        if shape.needs.len() > NEEDS_MAX || shape.len_min > LEN_MAX {
            return Found::Unsure("the arrays are too large to compare", None);
        }
        let mut places: Vec<Vec<Goal>> = Vec::new();
        let found = self.place_item(&shape, 0, &mut places, literals);
        match found {
            Found::No if shape.judge => {
                Found::Unsure("counts of array items could not be compared", None)
            }
            found => found,
        }
    }

    /// Gives need number `at` a position, in every way, then fills the array.
    fn place_item(
        &mut self,
        shape: &Shape<'_>,
        at: usize,
        places: &mut Vec<Vec<Goal>>,
        literals: &[Goal],
    ) -> Found {
        if !self.spend(1) {
            return TOO_MUCH;
        }
        let Some(need) = shape.needs.get(at) else {
            return if shape.repeats {
                self.with_repeat(shape, places, literals)
            } else {
                self.fill_items(shape, places, None, literals)
            };
        };
        let prefix_len = shape.boxes.iter().map(|(prefix, ..)| prefix.len()).max().unwrap_or(0);
        let own_len = match need {
            Need::Breaks(prefix, ..) => prefix.len(),
            Need::Has(_) => 0,
        };
        let mut answer = Found::No;
        for position in 0..prefix_len.max(own_len) + shape.needs.len() {
            if shape.len_max.is_some_and(|max| position as u64 >= max) {
                break;
            }
            let goal = match need {
                Need::Breaks(prefix, rest, side) => {
                    Goal::new(prefix.get(position).unwrap_or(rest), false, *side)
                }
                Need::Has(goal) => goal.clone(),
            };
            let before = places.clone();
            if places.len() <= position {
                places.resize(position + 1, Vec::new());
            }
            places[position].push(goal);
            // The item alone first: most positions fail here, whatever the rest is.
            let alone = self.solve(self.goals_at(shape, position, &places[position]));
            let found = if alone.is_no() {
                Found::No
            } else {
                self.place_item(shape, at + 1, places, literals)
            };
            *places = before;
            match found {
                Found::Yes(value) => return Found::Yes(value),
                Found::Unsure(why, value) => answer = better(answer, why, value),
                Found::No => {}
            }
        }
        answer
    }

    /// Two positions get the goals of both and one value.
    fn with_repeat(&mut self, shape: &Shape<'_>, places: &[Vec<Goal>], literals: &[Goal]) -> Found {
        let prefix_len = shape.boxes.iter().map(|(prefix, ..)| prefix.len()).max().unwrap_or(0);
        let span = prefix_len.max(places.len()) + 2;
        let mut answer = Found::No;
        for first in 0..span {
            for second in first + 1..span {
                if shape.len_max.is_some_and(|max| second as u64 >= max) {
                    continue;
                }
                if !self.spend(1) {
                    return TOO_MUCH;
                }
                let mut placed = places.to_vec();
                placed.resize(placed.len().max(second + 1), Vec::new());
                let mut both = self.goals_at(shape, first, &placed[first]);
                both.extend(self.goals_at(shape, second, &placed[second]));
                placed[first] = both;
                match self.fill_items(shape, &placed, Some((first, second)), literals) {
                    Found::Yes(value) => return Found::Yes(value),
                    Found::Unsure(why, value) => answer = better(answer, why, value),
                    Found::No => {}
                }
            }
        }
        if shape.unique { Found::No } else { answer }
    }

    /// A value for every position, as few as will do.
    fn fill_items(
        &mut self,
        shape: &Shape<'_>,
        places: &[Vec<Goal>],
        same: Option<(usize, usize)>,
        literals: &[Goal],
    ) -> Found {
        let len = (places.len() as u64).max(shape.len_min);
        if shape.len_max.is_some_and(|max| len > max) {
            return Found::No;
        }
        let len = usize::try_from(len).expect("checked against LEN_MAX");
        let mut items: Vec<Value> = Vec::with_capacity(len);
        let mut unsure = None;
        let mut excluded_some = false;
        for position in 0..len {
            if let Some((first, _)) = same.filter(|(_, second)| *second == position) {
                items.push(items[first].clone());
                continue;
            }
            let empty = Vec::new();
            let mut goals = self.goals_at(shape, position, places.get(position).unwrap_or(&empty));
            if shape.unique && !items.is_empty() {
                excluded_some = true;
                let taken = node(Form::Values(items.clone()));
                goals.push(Goal { node: taken, positive: false, side: Side::Writer });
            }
            match self.solve(goals) {
                Found::Yes(value) => items.push(value),
                Found::Unsure(why, value) => {
                    unsure = Some(why);
                    items.push(value.unwrap_or(Value::Null));
                }
                // With other items before it there might have been a value left.
                Found::No if excluded_some && !shape.alike(places) => {
                    return Found::Unsure("unique items could not be compared", None);
                }
                Found::No => return Found::No,
            }
        }
        let value = Value::Array(items);
        match (unsure, self.meets(&value, literals)) {
            (None, Some(true)) => Found::Yes(value),
            (Some(why), _) => Found::Unsure(why, Some(value)),
            _ => Found::Unsure("arrays could not be compared", Some(value)),
        }
    }

    fn goals_at(&self, shape: &Shape<'_>, position: usize, placed: &[Goal]) -> Vec<Goal> {
        let mut goals = placed.to_vec();
        goals.extend(shape.everywhere.iter().cloned());
        for (prefix, rest, side) in &shape.boxes {
            goals.push(Goal::new(prefix.get(position).unwrap_or(rest), true, *side));
        }
        goals
    }
}

impl<'n> Shape<'n> {
    /// `false` when no array will do.
    fn add(&mut self, goal: &'n Goal) -> bool {
        let lower =
            |max: &mut Option<u64>, len: u64| *max = Some(max.map_or(len, |known| known.min(len)));
        match (&goal.node.form, goal.positive) {
            (Form::MinItems(len), true) => self.len_min = self.len_min.max(*len),
            (Form::MinItems(len), false) => match len.checked_sub(1) {
                Some(len) => lower(&mut self.len_max, len),
                None => return false,
            },
            (Form::MaxItems(len), true) => lower(&mut self.len_max, *len),
            (Form::MaxItems(len), false) => self.len_min = self.len_min.max(len.saturating_add(1)),
            (Form::Unique, true) => self.unique = true,
            (Form::Unique, false) => self.repeats = true,
            (Form::Items { prefix, rest }, true) => self.boxes.push((prefix, rest, goal.side)),
            (Form::Items { prefix, rest }, false) => {
                self.needs.push(Need::Breaks(prefix, rest, goal.side));
            }
            (Form::Contains { of, min, max }, true) => {
                for _ in 0..(*min).min(NEEDS_MAX as u64 + 1) {
                    self.needs.push(Need::Has(Goal::new(of, true, goal.side)));
                }
                // Needs may share a position, and fillers may count: the finished value tells.
                self.judge |= *min > 1 || max.is_some();
            }
            (Form::Contains { of, min: 1, max: None }, false) => {
                self.everywhere.push(Goal::new(of, false, goal.side));
            }
            (Form::Contains { of, min, max }, false) => {
                self.judge = true;
                if let Some(max) = max {
                    for _ in 0..=(*max).min(NEEDS_MAX as u64 + 1) {
                        self.needs.push(Need::Has(Goal::new(of, true, goal.side)));
                    }
                } else if *min > 0 {
                    self.everywhere.push(Goal::new(of, false, goal.side));
                }
            }
            _ => {}
        }
        true
    }

    /// Whether every position is asked the same, so that the order of values makes no difference.
    fn alike(&self, places: &[Vec<Goal>]) -> bool {
        places.iter().all(Vec::is_empty) && self.boxes.iter().all(|(prefix, ..)| prefix.is_empty())
    }
}
