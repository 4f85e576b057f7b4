//! Patterns together: is there a string of a given length that matches some patterns and does not
//! match others?
//!
//! The patterns become automata over classes of characters, and their product is searched breadth
//! first, so the witness is a shortest one. Word boundaries, classes with very many ranges and
//! products that grow too large are given up as undecided.

use super::node::Pattern;
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// States of one automaton.
const STATES_MAX: usize = 3_000;
/// Classes of characters that no pattern tells apart.
const CLASSES_MAX: usize = 400;
/// States of the product.
const PRODUCT_MAX: usize = 6_000;
/// Lengths are counted up to here.
const LENGTH_MAX: u64 = 300;

/// What a search came to.
pub(crate) enum Search {
    Found(String),
    Empty,
    Undecided,
}

pub(crate) struct Wanted<'a> {
    pub(crate) matching: &'a [&'a Pattern],
    pub(crate) not_matching: &'a [&'a Pattern],
    pub(crate) len_min: u64,
    pub(crate) len_max: Option<u64>,
    pub(crate) excluded: &'a BTreeSet<String>,
}

pub(crate) fn search(wanted: &Wanted<'_>) -> Search {
    try_search(wanted).unwrap_or(Search::Undecided)
}

fn try_search(wanted: &Wanted<'_>) -> Option<Search> {
    if wanted.len_min > LENGTH_MAX || wanted.len_max.is_some_and(|max| max > LENGTH_MAX) {
        return None;
    }
    let automata: Vec<Automaton> = wanted
        .matching
        .iter()
        .chain(wanted.not_matching)
        .map(|pattern| Automaton::of(&pattern.rust))
        .collect::<Option<_>>()?;
    let samples = samples(&automata, wanted.excluded)?;
    let excluded = Words::of(wanted.excluded);
    let positive = wanted.matching.len();
    let count_max = wanted.len_max.unwrap_or(wanted.len_min);

    let start: Vec<Set> = automata.iter().map(Automaton::start).collect();
    let mut seen = BTreeSet::from([(start.clone(), 0_u64, Some(0))]);
    let mut queue = VecDeque::from([(start, 0_u64, Some(0), String::new())]);
    while let Some((sets, len, word, text)) = queue.pop_front() {
        let fits = len >= wanted.len_min
            && sets.iter().zip(&automata).enumerate().all(|(at, (set, automaton))| {
                automaton.accepts(set, text.is_empty()) == (at < positive)
            });
        if fits && !word.is_some_and(|word| excluded.ends(word)) {
            return Some(Search::Found(text));
        }
        if wanted.len_max.is_some_and(|max| len >= max) {
            continue;
        }
        for sample in &samples {
            let next: Vec<Set> = sets
                .iter()
                .zip(&automata)
                .map(|(set, automaton)| automaton.step(set, *sample))
                .collect();
            let dead = next.iter().take(positive).any(|set| set.states.is_empty() && !set.matched);
            // Without an upper bound, a length past the lower one makes no difference.
            let len = (len + 1).min(count_max.max(1));
            let cannot = next.iter().skip(positive).any(|set| set.matched);
            let word = word.and_then(|word| excluded.step(word, *sample));
            if dead || cannot || !seen.insert((next.clone(), len, word)) {
                continue;
            }
            if seen.len() > PRODUCT_MAX {
                return None;
            }
            let mut text = text.clone();
            text.push(*sample);
            queue.push_back((next, len, word, text));
        }
    }
    Some(Search::Empty)
}

/// One character for each class that the automata tell apart; friendly ones where there is a choice.
fn samples(automata: &[Automaton], excluded: &BTreeSet<String>) -> Option<Vec<char>> {
    let mut bounds = BTreeSet::from([0_u32, 0xD800, 0xE000]);
    for char in excluded.iter().flat_map(|word| word.chars()) {
        bounds.extend([u32::from(char), u32::from(char) + 1]);
    }
    for automaton in automata {
        for state in &automaton.states {
            if let State::Class(ranges, _) = state {
                for (low, high) in ranges {
                    bounds.insert(*low);
                    bounds.insert(high + 1);
                }
            }
        }
    }
    bounds.retain(|bound| *bound <= 0x10_FFFF);
    if bounds.len() > CLASSES_MAX {
        return None;
    }
    let bounds: Vec<u32> = bounds.into_iter().collect();
    let mut chars: Vec<char> = Vec::with_capacity(bounds.len());
    for (at, low) in bounds.iter().enumerate() {
        let high = bounds.get(at + 1).map_or(0x10_FFFF, |next| next - 1);
        let friendly =
            ['a', 'A', '0', '_', ' '].into_iter().find(|c| (*low..=high).contains(&u32::from(*c)));
        chars.extend(friendly.or_else(|| char::from_u32(*low)));
    }
    chars.sort_by_key(|c| (!c.is_ascii_alphanumeric(), !c.is_ascii_graphic(), *c));
    Some(chars)
}

/// The excluded words as a tree, so that leaving one out does not hide the others.
struct Words(Vec<(BTreeMap<char, usize>, bool)>);

impl Words {
    fn of(words: &BTreeSet<String>) -> Words {
        let mut tree = Words(vec![(BTreeMap::new(), false)]);
        for word in words {
            let mut at = 0;
            for char in word.chars() {
                at = match tree.0[at].0.get(&char) {
                    Some(next) => *next,
                    None => {
                        tree.0.push((BTreeMap::new(), false));
                        let next = tree.0.len() - 1;
                        tree.0[at].0.insert(char, next);
                        next
                    }
                };
            }
            tree.0[at].1 = true;
        }
        tree
    }

    fn step(&self, at: usize, char: char) -> Option<usize> {
        self.0[at].0.get(&char).copied()
    }

    fn ends(&self, at: usize) -> bool {
        self.0[at].1
    }
}

type StateId = usize;

enum State {
    /// A character of the ranges leads on.
    Class(Vec<(u32, u32)>, StateId),
    Split(Vec<StateId>),
    AtStart(StateId),
    AtEnd(StateId),
    Match,
}

struct Automaton {
    states: Vec<State>,
    first: StateId,
}

/// Where an automaton may be. A pattern may begin anywhere, so `first` is always among the states.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Set {
    states: BTreeSet<StateId>,
    /// It has matched already, and nothing can take that back.
    matched: bool,
}

impl Automaton {
    fn of(rust: &str) -> Option<Automaton> {
        let hir = regex_syntax::parse(rust).ok()?;
        let mut automaton = Automaton { states: vec![State::Match], first: 0 };
        automaton.first = automaton.add(&hir, 0)?;
        Some(automaton)
    }

    fn push(&mut self, state: State) -> Option<StateId> {
        self.states.push(state);
        (self.states.len() <= STATES_MAX).then_some(self.states.len() - 1)
    }

    /// Builds backwards: what comes after is known, what is returned leads to it.
    fn add(&mut self, hir: &Hir, next: StateId) -> Option<StateId> {
        match hir.kind() {
            HirKind::Empty => Some(next),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).ok()?;
                text.chars().rev().try_fold(next, |next, char| {
                    let char = u32::from(char);
                    self.push(State::Class(vec![(char, char)], next))
                })
            }
            HirKind::Class(Class::Unicode(class)) => {
                let ranges: Vec<_> = class
                    .ranges()
                    .iter()
                    .map(|range| (u32::from(range.start()), u32::from(range.end())))
                    .collect();
                if ranges.len() > CLASSES_MAX {
                    return None;
                }
                self.push(State::Class(ranges, next))
            }
            HirKind::Class(Class::Bytes(class)) => {
                let ranges = class
                    .ranges()
                    .iter()
                    .map(|range| {
                        (range.end() < 0x80)
                            .then_some((u32::from(range.start()), u32::from(range.end())))
                    })
                    .collect::<Option<_>>()?;
                self.push(State::Class(ranges, next))
            }
            HirKind::Look(Look::Start) => self.push(State::AtStart(next)),
            HirKind::Look(Look::End) => self.push(State::AtEnd(next)),
            HirKind::Look(_) => None,
            HirKind::Capture(capture) => self.add(&capture.sub, next),
            HirKind::Concat(parts) => {
                parts.iter().rev().try_fold(next, |next, part| self.add(part, next))
            }
            HirKind::Alternation(parts) => {
                let ways = parts.iter().map(|part| self.add(part, next)).collect::<Option<_>>()?;
                self.push(State::Split(ways))
            }
            HirKind::Repetition(repetition) => {
                let mut next = next;
                match repetition.max {
                    None => {
                        let again = self.push(State::Split(Vec::new()))?;
                        let body = self.add(&repetition.sub, again)?;
                        self.states[again] = State::Split(vec![body, next]);
                        next = again;
                    }
                    Some(max) => {
                        for _ in repetition.min..max {
                            let body = self.add(&repetition.sub, next)?;
                            // Skipping one optional copy skips the rest, which is the same set.
                            next = self.push(State::Split(vec![body, next]))?;
                        }
                    }
                }
                for _ in 0..repetition.min {
                    next = self.add(&repetition.sub, next)?;
                }
                Some(next)
            }
        }
    }

    fn start(&self) -> Set {
        let mut set = Set { states: BTreeSet::new(), matched: false };
        self.enter(&mut set, self.first, true);
        set
    }

    fn step(&self, from: &Set, char: char) -> Set {
        let mut set = Set { states: BTreeSet::new(), matched: from.matched };
        if !set.matched {
            let char = u32::from(char);
            for state in &from.states {
                if let State::Class(ranges, next) = &self.states[*state]
                    && ranges.iter().any(|(low, high)| (*low..=*high).contains(&char))
                {
                    self.enter(&mut set, *next, false);
                }
            }
            self.enter(&mut set, self.first, false);
        }
        if set.matched {
            set.states.clear();
        }
        set
    }

    /// Follows everything that needs no character; states that wait for one, or for the end, stay.
    fn enter(&self, set: &mut Set, at: StateId, at_start: bool) {
        let mut todo = vec![at];
        let mut visited = BTreeSet::new();
        while let Some(at) = todo.pop() {
            if !visited.insert(at) {
                continue;
            }
            match &self.states[at] {
                State::Split(ways) => todo.extend(ways),
                State::AtStart(next) if at_start => todo.push(*next),
                State::AtStart(_) => {}
                State::Match => set.matched = true,
                State::Class(..) | State::AtEnd(_) => {
                    set.states.insert(at);
                }
            }
        }
    }

    /// Whether the text that led here matches, now that it ends.
    fn accepts(&self, set: &Set, empty: bool) -> bool {
        if set.matched {
            return true;
        }
        let mut todo: Vec<StateId> = Vec::new();
        for state in &set.states {
            if let State::AtEnd(next) = &self.states[*state] {
                todo.push(*next);
            }
        }
        let mut visited = BTreeSet::new();
        while let Some(at) = todo.pop() {
            if !visited.insert(at) {
                continue;
            }
            match &self.states[at] {
                State::Match => return true,
                State::Split(ways) => todo.extend(ways),
                State::AtEnd(next) => todo.push(*next),
                State::AtStart(next) if empty => todo.push(*next),
                State::AtStart(_) | State::Class(..) => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        let rust = jsonschema_regex::to_rust_regex(text).unwrap().into_owned();
        Pattern { text: text.into(), regex: regex::Regex::new(&rust).unwrap(), rust: rust.into() }
    }

    fn included(old: &str, new: &str) -> &'static str {
        let (old, new) = (pattern(old), pattern(new));
        let excluded = BTreeSet::new();
        let wanted = Wanted {
            matching: &[&old],
            not_matching: &[&new],
            len_min: 0,
            len_max: None,
            excluded: &excluded,
        };
        match search(&wanted) {
            Search::Empty => "yes",
            Search::Found(text) => {
                assert!(old.regex.is_match(&text) && !new.regex.is_match(&text), "{text:?}");
                "no"
            }
            Search::Undecided => "undecided",
        }
    }

    #[test]
    fn inclusion_of_patterns_is_decided() {
        for (old, new, expected) in [
            ("^a+$", "^a*$", "yes"),
            ("^a*$", "^a+$", "no"),
            ("^[a-z]{3}$", "^[a-z]+$", "yes"),
            ("^[a-z]+$", "^[a-z]{1,64}$", "no"),
            ("abc", "b", "yes"),
            ("b", "abc", "no"),
            (r"^\d{4}-\d{2}$", r"^[0-9]{4}-", "yes"),
            ("^(foo|bar)$", "^(bar|baz|foo)$", "yes"),
            ("^x", "^y", "no"),
            ("$", "^", "yes"),
            ("a", r"\bа", "undecided"),
        ] {
            assert_eq!(included(old, new), expected, "{old} in {new}");
        }
    }

    #[test]
    fn lengths_count() {
        let (a, excluded) = (pattern("^a+$"), BTreeSet::from(["aaa".to_owned()]));
        let wanted = |len_min, len_max| {
            search(&Wanted {
                matching: &[&a],
                not_matching: &[],
                len_min,
                len_max,
                excluded: &excluded,
            })
        };
        assert!(matches!(wanted(5, Some(6)), Search::Found(text) if text == "aaaaa"));
        assert!(matches!(wanted(0, Some(0)), Search::Empty));
        assert!(matches!(wanted(3, Some(3)), Search::Empty), "the only one is excluded");
        assert!(matches!(wanted(3, None), Search::Found(text) if text == "aaaa"));
    }
}
