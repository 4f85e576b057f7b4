//! Is there a value that meets these goals? A tableau over the algebra of [`node`](super::node).
//!
//! Goals are nodes with a sign. They are taken apart until only literals are left; alternatives
//! branch. For each type that a branch leaves open, `scalar`, `array` and `object` look for a value,
//! the latter two by asking the same question about parts. "Writer and not reader" has no value
//! exactly when the reader takes everything that the writer allows, and a value is the witness.
//!
//! Law: `No` is proved, `Yes` carries a value, everything else is `Unsure` with a reason; the work is
//! bounded. Values are finite, so a question that comes up inside itself adds nothing and is `No`
//! there; such an answer is not remembered, because it holds only under that assumption.

mod array;
mod object;
mod scalar;

use super::eval::Eval;
use super::node::{Form, Node, TypeSet};
use crate::limits::COMPARE_WORK_MAX;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Deepest nesting of a witness.
const DEPTH_MAX: usize = 40;

/// The answer.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    No,
    Yes(Value),
    /// Why, and a value that may do.
    Unsure(&'static str, Option<Value>),
}

impl Found {
    pub(crate) fn is_no(&self) -> bool {
        matches!(self, Found::No)
    }
}

/// Whose goal it is; the lenient level asks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Side {
    Writer,
    Reader,
}

/// A node that the value has to be in, or must not be in.
#[derive(Clone)]
pub(crate) struct Goal {
    pub(crate) node: Node,
    pub(crate) positive: bool,
    pub(crate) side: Side,
}

impl Goal {
    pub(crate) fn new(node: &Node, positive: bool, side: Side) -> Goal {
        Goal { node: node.clone(), positive, side }
    }

    fn key(&self) -> Key {
        (self.node.id, self.positive, self.side)
    }
}

type Key = (u128, bool, Side);

pub(crate) struct Solver<'a> {
    targets: Vec<&'a BTreeMap<u128, Node>>,
    lenient: bool,
    work_left: u64,
    known: BTreeMap<Vec<Key>, Found>,
    /// Questions under way, outermost first.
    open: Vec<Vec<Key>>,
    /// The outermost question that an answer since then took for granted.
    leaned_on: usize,
    declared: BTreeMap<u128, std::sync::Arc<Declared>>,
}

/// What a node says of property names, looking at the same value only.
#[derive(Default)]
struct Declared {
    names: BTreeSet<String>,
    patterns: Vec<super::node::Pattern>,
}

/// Literals gathered so far, and what is left to choose.
#[derive(Clone)]
struct Branch {
    types: TypeSet,
    signs: BTreeMap<u128, (bool, Side)>,
    literals: Vec<Goal>,
    choices: Vec<Vec<Goal>>,
}

impl<'a> Solver<'a> {
    pub(crate) fn new(targets: Vec<&'a BTreeMap<u128, Node>>, lenient: bool) -> Solver<'a> {
        Solver {
            targets,
            lenient,
            work_left: COMPARE_WORK_MAX,
            known: BTreeMap::new(),
            open: Vec::new(),
            leaned_on: usize::MAX,
            declared: BTreeMap::new(),
        }
    }

    /// Whether a value meets all goals.
    pub(crate) fn solve(&mut self, mut goals: Vec<Goal>) -> Found {
        goals.sort_by_key(Goal::key);
        goals.dedup_by_key(|goal| goal.key());
        let mut trivial = false;
        goals.retain(|goal| match (&goal.node.form, goal.positive) {
            (Form::True, true) | (Form::False, false) => false,
            (Form::False, true) | (Form::True, false) => {
                trivial = true;
                true
            }
            _ => true,
        });
        if trivial || contradicts(&goals) {
            return Found::No;
        }
        let key: Vec<Key> = goals.iter().map(Goal::key).collect();
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        if let Some(at) = self.open.iter().position(|open| *open == key) {
            self.leaned_on = self.leaned_on.min(at);
            return Found::No;
        }
        if self.open.len() >= DEPTH_MAX {
            return Found::Unsure("the schemas nest too deeply to compare", None);
        }
        let own = self.open.len();
        self.open.push(key);
        let outer = std::mem::replace(&mut self.leaned_on, usize::MAX);
        let branch = Branch {
            types: TypeSet::ALL,
            signs: BTreeMap::new(),
            literals: Vec::new(),
            choices: Vec::new(),
        };
        let found = self.expand(goals.clone(), branch, &goals);
        let key = self.open.pop().expect("pushed above");
        let leaned_on = std::mem::replace(&mut self.leaned_on, outer);
        if leaned_on < own {
            self.leaned_on = self.leaned_on.min(leaned_on);
        }
        if leaned_on >= own || !found.is_no() {
            self.known.insert(key, found.clone());
        }
        found
    }

    /// A fresh allowance for a further question.
    pub(crate) fn allow(&mut self, work: u64) {
        self.work_left = work;
    }

    /// What is left of it.
    pub(crate) fn left(&self) -> u64 {
        self.work_left
    }

    fn spend(&mut self, work: u64) -> bool {
        match self.work_left.checked_sub(work) {
            Some(left) => {
                self.work_left = left;
                true
            }
            None => {
                self.work_left = 0;
                false
            }
        }
    }

    /// Takes goals apart into the branch, then chooses, then looks for a value.
    fn expand(&mut self, mut pending: Vec<Goal>, mut branch: Branch, location: &[Goal]) -> Found {
        while let Some(goal) = pending.pop() {
            if !self.spend(1) {
                return TOO_MUCH;
            }
            if !branch.enter(&goal) {
                return Found::No;
            }
            self.take_apart(goal, &mut pending, &mut branch);
            if branch.types.is_empty() {
                return Found::No;
            }
        }
        self.choose(branch, location)
    }

    fn take_apart(&self, goal: Goal, pending: &mut Vec<Goal>, branch: &mut Branch) {
        let Goal { node, positive, side } = goal;
        let part = |inner: &Node, positive: bool| Goal::new(inner, positive, side);
        match (&node.form, positive) {
            (Form::True, true) | (Form::False, false) => {}
            (Form::True, false) | (Form::False, true) => branch.types = TypeSet(0),
            (Form::All(parts), true) => {
                pending.extend(parts.iter().map(|(_, inner)| part(inner, true)))
            }
            (Form::All(parts), false) => {
                branch.choices.push(parts.iter().map(|(_, inner)| part(inner, false)).collect());
            }
            (Form::Any(nodes), true) => {
                branch.choices.push(nodes.iter().map(|inner| part(inner, true)).collect());
            }
            (Form::Any(nodes), false) => {
                pending.extend(nodes.iter().map(|inner| part(inner, false)))
            }
            (Form::One(nodes), true) => {
                branch.choices.push(one_of(nodes, side));
            }
            (Form::One(nodes), false) => branch.choices.push(not_one_of(nodes, side)),
            (Form::Not(inner), _) => pending.push(part(inner, !positive)),
            (Form::Ref(key), _) => match self.targets.iter().find_map(|table| table.get(key)) {
                Some(target) => pending.push(part(target, positive)),
                None => branch.literals.push(Goal { node, positive, side }),
            },
            (Form::Types(types), _) => {
                branch.types = branch.types.and(if positive { *types } else { types.not() });
            }
            (form, _) => {
                if !positive {
                    branch.types = branch.types.and(form.speaks_of());
                }
                branch.literals.push(Goal { node, positive, side });
            }
        }
    }

    /// Works on the choices that are left. An alternative that already fails with what is certain,
    /// other choices left aside, fails with them too.
    fn choose(&mut self, mut branch: Branch, location: &[Goal]) -> Found {
        let choices = std::mem::take(&mut branch.choices);
        if choices.is_empty() {
            return self.settle(&branch, location);
        }
        let lookahead = choices.len() > 1;
        let mut unsure = None;
        let mut alive: Vec<Vec<Goal>> = Vec::with_capacity(choices.len());
        for alternatives in choices {
            let mut left = Vec::new();
            for alternative in alternatives {
                if !branch.allows(&alternative) {
                    continue;
                }
                if lookahead {
                    match self.expand(vec![alternative.clone()], branch.clone(), location) {
                        Found::No => continue,
                        Found::Unsure(why, _) => unsure = Some(why),
                        Found::Yes(_) => {}
                    }
                }
                left.push(alternative);
            }
            match left.len() {
                0 => return Found::No,
                _ => alive.push(left),
            }
        }
        alive.sort_by_key(Vec::len);
        let first = alive.remove(0);
        let mut answer = Found::No;
        for alternative in first {
            let mut next = branch.clone();
            next.choices = alive.clone();
            match self.expand(vec![alternative], next, location) {
                Found::Yes(value) => return Found::Yes(value),
                Found::Unsure(why, value) => answer = better(answer, why, value),
                Found::No => {}
            }
            if self.work_left == 0 {
                return better(answer, unsure.unwrap_or(TOO_MUCH_WHY), None);
            }
        }
        answer
    }

    /// Only literals are left: a value of one of the types that are possible.
    fn settle(&mut self, branch: &Branch, location: &[Goal]) -> Found {
        let opaque = branch
            .literals
            .iter()
            .any(|goal| matches!(goal.node.form, Form::Opaque { .. } | Form::Ref(_)));
        let listed = branch.literals.iter().find_map(|goal| match &goal.node.form {
            Form::Values(values) if goal.positive => Some(values.clone()),
            _ => None,
        });
        let answer = match listed {
            Some(values) => self.among(&values, branch),
            None => self.of_some_type(branch, location),
        };
        match answer {
            Found::Yes(value) if opaque => Found::Unsure(OPAQUE_WHY, Some(value)),
            answer => answer,
        }
    }

    /// The values are listed: try each.
    fn among(&mut self, values: &[Value], branch: &Branch) -> Found {
        let mut answer = Found::No;
        for value in values {
            if TypeSet::of(value).and(branch.types).is_empty() {
                continue;
            }
            match self.meets(value, &branch.literals) {
                Some(true) => return Found::Yes(value.clone()),
                Some(false) => {}
                None => answer = better(answer, OPAQUE_WHY, Some(value.clone())),
            }
        }
        answer
    }

    fn of_some_type(&mut self, branch: &Branch, location: &[Goal]) -> Found {
        let mut answer = Found::No;
        for one in TypeSet::EACH {
            if branch.types.and(one).is_empty() {
                continue;
            }
            let literals: Vec<Goal> = branch
                .literals
                .iter()
                .filter(|goal| !goal.node.form.speaks_of().and(one).is_empty())
                .cloned()
                .collect();
            let found = match one {
                TypeSet::OBJECT => self.object(&literals, location),
                TypeSet::ARRAY => self.array(&literals),
                TypeSet::STRING => self.string(&literals),
                TypeSet::INTEGER => self.integer(&literals),
                TypeSet::FRACTION => self.fraction(&literals),
                TypeSet::BOOLEAN => {
                    self.first_of(&[Value::Bool(true), Value::Bool(false)], &literals)
                }
                _ => self.first_of(&[Value::Null], &literals),
            };
            match found {
                Found::Yes(value) => return Found::Yes(value),
                Found::Unsure(why, value) => answer = better(answer, why, value),
                Found::No => {}
            }
        }
        answer
    }

    /// The candidates are all there are.
    fn first_of(&mut self, candidates: &[Value], literals: &[Goal]) -> Found {
        let mut answer = Found::No;
        for value in candidates {
            match self.meets(value, literals) {
                Some(true) => return Found::Yes(value.clone()),
                Some(false) => {}
                None => answer = better(answer, OPAQUE_WHY, Some(value.clone())),
            }
        }
        answer
    }

    /// Whether a value meets the literals, opaque ones left aside.
    fn meets(&mut self, value: &Value, literals: &[Goal]) -> Option<bool> {
        let mut eval = Eval { targets: &self.targets, work_left: self.work_left.min(20_000) };
        let before = eval.work_left;
        let mut all = Some(true);
        for goal in literals {
            if matches!(goal.node.form, Form::Opaque { .. }) {
                continue;
            }
            match eval.holds(&goal.node, value) {
                Some(holds) if holds == goal.positive => {}
                Some(_) => {
                    all = Some(false);
                    break;
                }
                None => all = None,
            }
        }
        let spent = before - eval.work_left;
        self.spend(spent);
        all
    }

    fn declared(&mut self, goals: &[Goal], side: Side) -> Vec<std::sync::Arc<Declared>> {
        goals
            .iter()
            .filter(|goal| goal.side == side)
            .map(|goal| {
                if let Some(known) = self.declared.get(&goal.node.id) {
                    return known.clone();
                }
                let mut declared = Declared::default();
                declare(&goal.node, &self.targets, &mut BTreeSet::new(), &mut declared);
                let declared = std::sync::Arc::new(declared);
                self.declared.insert(goal.node.id, declared.clone());
                declared
            })
            .collect()
    }
}

impl Declared {
    fn has(&self, name: &str) -> bool {
        self.names.contains(name)
            || self.patterns.iter().any(|pattern| pattern.regex.is_match(name))
    }
}

fn declare(
    node: &Node,
    targets: &[&BTreeMap<u128, Node>],
    seen: &mut BTreeSet<u128>,
    declared: &mut Declared,
) {
    if !seen.insert(node.id) {
        return;
    }
    match &node.form {
        Form::All(parts) => {
            parts.iter().for_each(|(_, inner)| declare(inner, targets, seen, declared))
        }
        Form::Any(nodes) | Form::One(nodes) => {
            nodes.iter().for_each(|inner| declare(inner, targets, seen, declared));
        }
        Form::Not(inner) => declare(inner, targets, seen, declared),
        Form::Ref(key) => {
            if let Some(target) = targets.iter().find_map(|table| table.get(key)) {
                declare(target, targets, seen, declared);
            }
        }
        Form::Required(name) => {
            declared.names.insert(name.clone());
        }
        Form::Props(props) => {
            declared.names.extend(props.named.iter().map(|(name, _)| name.clone()));
            declared.patterns.extend(props.patterns.iter().map(|(pattern, _)| pattern.clone()));
        }
        _ => {}
    }
}

const TOO_MUCH_WHY: &str = "the comparison takes more work than the limit allows";
const TOO_MUCH: Found = Found::Unsure(TOO_MUCH_WHY, None);
const OPAQUE_WHY: &str = "a keyword is involved whose meaning depends on other keywords";

/// The first reason counts; a value is better than none.
fn better(answer: Found, why: &'static str, value: Option<Value>) -> Found {
    match answer {
        Found::Unsure(first, Some(known)) => Found::Unsure(first, Some(known)),
        _ => Found::Unsure(why, value),
    }
}

/// Sorted goals: the same node with both signs.
fn contradicts(goals: &[Goal]) -> bool {
    goals
        .windows(2)
        .any(|pair| pair[0].node.id == pair[1].node.id && pair[0].positive != pair[1].positive)
}

impl Branch {
    /// Notes the goal; `false` when the opposite is there already.
    fn enter(&mut self, goal: &Goal) -> bool {
        match self.signs.insert(goal.node.id, (goal.positive, goal.side)) {
            Some((positive, _)) => positive == goal.positive,
            None => true,
        }
    }

    /// A cheap look whether an alternative can be right at all.
    fn allows(&self, goal: &Goal) -> bool {
        if self.signs.get(&goal.node.id).is_some_and(|(positive, _)| *positive != goal.positive) {
            return false;
        }
        match (&goal.node.form, goal.positive) {
            (Form::Types(types), true) => !self.types.and(*types).is_empty(),
            (Form::Types(types), false) => !self.types.and(types.not()).is_empty(),
            (Form::True, positive) => positive,
            (Form::False, positive) => !positive,
            (form, false) => !self.types.and(form.speaks_of()).is_empty(),
            _ => true,
        }
    }
}

/// Exactly one: as alternatives that are conjunctions.
fn one_of(nodes: &[Node], side: Side) -> Vec<Goal> {
    let conjunction = |chosen: usize| {
        let parts = nodes.iter().enumerate().map(|(at, inner)| {
            let part = if at == chosen { inner.clone() } else { super::node::not(inner.clone()) };
            (String::new(), part)
        });
        Goal { node: super::node::node(Form::All(parts.collect())), positive: true, side }
    };
    (0..nodes.len()).map(conjunction).collect()
}

/// Not exactly one: none, or some two.
fn not_one_of(nodes: &[Node], side: Side) -> Vec<Goal> {
    let mut alternatives =
        vec![Goal { node: super::node::node(Form::Any(nodes.to_vec())), positive: false, side }];
    for (at, first) in nodes.iter().enumerate() {
        for second in &nodes[at + 1..] {
            let both = vec![(String::new(), first.clone()), (String::new(), second.clone())];
            alternatives.push(Goal {
                node: super::node::node(Form::All(both)),
                positive: true,
                side,
            });
        }
    }
    alternatives
}
