//! A disk in memory that does what disks do at their worst, by number and by seed.
//!
//! Every change is an operation with a number: a write, a sync, a cut, a name made, moved or
//! removed. The [`Plan`] says at which number something fails and at which the process dies; from
//! there on the disk refuses everything until the next life begins. Names are not durable before
//! their directory is synced, and pages and lengths not before their file is ([`Inode`]).
//!
//! Law: what it does depends on its seed and on the operations it was asked for, and on nothing
//! else.

use super::faults::{Crash, Fault, Plan};
use super::inode::{Inode, Survival};
use super::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Operations that an engine needs to bring to safety what a failed sync has left in doubt.
const CALM: u64 = 16;
const EIO: i32 = 5;
const EACCES: i32 = 13;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const EOPNOTSUPP: i32 = 95;
/// Longer than any step takes; reached only when the store hangs.
const PATIENCE: Duration = Duration::from_secs(60);

mod face;

/// The disk; clones are the same one.
#[derive(Debug, Clone)]
pub struct SimDisk(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug)]
struct State {
    random: Random,
    plan: Plan,
    /// Lives begun; handles of earlier ones are dead.
    life: u64,
    /// Operations of this life.
    number: u64,
    /// Operations since one that failed.
    calm: u64,
    /// A process died before it could bring to safety what a failed sync had dropped.
    hurt: bool,
    /// The process is dead.
    dead: bool,
    /// Bytes left while a [`Fault::Full`] is in force.
    room: Option<u64>,
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    pending: Vec<NameChange>,
    dirs: BTreeSet<PathBuf>,
    /// Power losses so far.
    boots: u64,
    locked: bool,
    /// Files read in this life.
    opened: BTreeMap<PathBuf, u64>,
    trace: Trace,
    gate: Gate,
}

/// A name that is not durable yet.
#[derive(Debug, Clone)]
enum NameChange {
    Made(PathBuf, usize),
    Removed(PathBuf),
    Moved(PathBuf, PathBuf, usize),
    Dir(PathBuf),
}

/// Holds the write that contains a mark until it is let go.
#[derive(Debug, Default)]
struct Gate {
    mark: Option<Vec<u8>>,
    reached: bool,
    missed: bool,
}

/// A digest of everything that happened, and the last lines of it.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// Differs when anything did.
    pub digest: u64,
    /// Operations of all lives.
    pub operations: u64,
    /// Those of them that were writes to the journal past the operating system's cache.
    pub direct: u64,
    /// Those of them that made a journal file to be ready before it is needed.
    pub prepared: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    fn note(&mut self, line: impl FnOnce() -> String) {
        let line = line();
        self.operations += 1;
        for byte in line.bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if let Some(lines) = &mut self.lines {
            lines.push(line);
        }
    }
}

fn os<T>(code: i32) -> io::Result<T> {
    Err(io::Error::from_raw_os_error(code))
}

impl SimDisk {
    /// An empty disk. With `story`, it keeps a line for everything that happens.
    pub fn new(seed: u64, story: bool) -> SimDisk {
        let state = State {
            random: Random::new(seed, 1),
            plan: Plan::default(),
            life: 0,
            number: 0,
            calm: CALM,
            hurt: false,
            dead: false,
            room: None,
            inodes: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending: Vec::new(),
            dirs: BTreeSet::new(),
            boots: 0,
            locked: false,
            opened: BTreeMap::new(),
            trace: Trace { lines: story.then(Vec::new), ..Trace::default() },
            gate: Gate::default(),
        };
        SimDisk(Arc::new((Mutex::new(state), Condvar::new())))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A process starts, with `plan` ahead of it.
    pub fn begin(&self, plan: Plan) {
        let mut state = self.state();
        state.life += 1;
        (state.number, state.dead, state.room) = (0, false, None);
        (state.locked, state.gate) = (false, Gate::default());
        state.opened.clear();
        let line = format!("life {}: {plan:?}", state.life);
        state.trace.note(|| line);
        state.plan = plan;
    }

    /// Nothing goes wrong any more in this life, but for how it ends.
    pub fn mend(&self) {
        let mut state = self.state();
        state.trace.note(|| "mended".to_owned());
        state.plan = Plan { crash: state.plan.crash, ..Plan::default() };
        state.room = None;
    }

    /// The process ends now, if it has not yet; the disk refuses everything until the next one.
    pub fn end(&self) {
        self.state().dead = true;
        self.0.1.notify_all();
    }

    /// How this life ended by plan, if it did.
    pub fn crashed(&self) -> Option<Crash> {
        let state = self.state();
        state.plan.crash.filter(|(at, _)| state.number > *at).map(|(_, kind)| kind)
    }

    /// Whether something is lost that no engine could have kept: it may be missed, but not silently.
    pub fn is_hurt(&self) -> bool {
        self.state().hurt
    }

    /// What the next life finds after a crash of this kind.
    pub fn settle(&self, crash: Crash) {
        let mut state = self.state();
        let state = &mut *state;
        state.dead = true;
        state.trace.note(|| format!("ends: {crash:?}"));
        if crash != Crash::Power {
            // Nobody can help it when a process dies before it has rewritten what a failed sync
            // dropped; so then the kernel keeps it a little longer.
            let in_doubt = state.calm < CALM && state.inodes.iter().any(Inode::has_dropped);
            state.hurt |= in_doubt && crash == Crash::Kill;
            for inode in &mut state.inodes {
                if state.calm < CALM {
                    inode.keep_evicted();
                } else {
                    inode.evict(&mut state.random);
                }
            }
            return;
        }
        state.boots += 1;
        let percents = [0, 10, 50, 50, 90, 100];
        let random = &mut state.random;
        let survival =
            Survival { pages: random.pick(&percents), torn: 50, names: random.pick(&percents) };
        state.trace.note(|| format!("{survival:?}"));
        let pending = std::mem::take(&mut state.pending);
        for change in pending {
            if state.random.chance(survival.names) {
                state.keep_name(change);
            }
        }
        for inode in &mut state.inodes {
            inode.lose_power(&mut state.random, survival);
        }
        state.names = state.durable_names.clone();
    }

    /// Flips a bit in one of the files that `which` takes; whether there was one.
    pub fn flip(&self, which: impl Fn(&Path) -> bool) -> Option<PathBuf> {
        let mut state = self.state();
        let state = &mut *state;
        let names: Vec<_> = state.names.iter().filter(|(path, _)| which(path)).collect();
        let (path, inode) = *names.get(state.random.below(names.len() as u64) as usize)?;
        let (path, inode) = (path.clone(), &mut state.inodes[*inode]);
        let written = inode.data.iter().rposition(|byte| *byte != 0)? as u64 + 1;
        let (at, bit) = (state.random.below(written), state.random.below(8));
        inode.flip(at as usize, bit as u8);
        state.trace.note(|| format!("flips bit {bit} of byte {at} of {}", path.display()));
        Some(path)
    }

    /// Names of all files.
    pub fn names(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    /// Bytes of a file, as programs see it.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        let inode = state.names.get(path)?;
        Some(state.inodes[*inode].data.clone())
    }

    /// Notes something in the trace that is not the disk's.
    pub fn note(&self, line: impl FnOnce() -> String) {
        self.state().trace.note(line);
    }

    /// What happened so far.
    pub fn trace(&self) -> Trace {
        self.state().trace.clone()
    }

    /// The story, if one is kept.
    pub fn story(&self) -> Vec<String> {
        self.state().trace.lines.clone().unwrap_or_default()
    }

    /// Writes with `mark` in them are held from now on.
    pub fn hold(&self, mark: &[u8]) {
        self.state().gate = Gate { mark: Some(mark.to_vec()), reached: false, missed: false };
    }

    /// What was to reach the gate never will.
    pub fn miss(&self) {
        self.state().gate.missed = true;
        self.0.1.notify_all();
    }

    /// Waits until a write is held; false when none will be.
    pub fn wait_for_held(&self) -> bool {
        let mut state = self.state();
        loop {
            if state.gate.reached || state.gate.missed {
                return state.gate.reached;
            }
            let (next, waited) = self
                .0
                .1
                .wait_timeout(state, PATIENCE)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            state = next;
            assert!(!waited.timed_out(), "neither written nor answered: the store hangs");
        }
    }

    /// Lets held writes go.
    pub fn release(&self) {
        self.state().gate = Gate::default();
        self.0.1.notify_all();
    }

    fn pass_gate(&self, slices: &[IoSlice<'_>]) {
        let mut state = self.state();
        let Some(mark) = state.gate.mark.clone() else { return };
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        if !bytes.windows(mark.len()).any(|window| window == mark) {
            return;
        }
        state.gate.reached = true;
        self.0.1.notify_all();
        while state.gate.mark.is_some() && !state.dead {
            state = self.0.1.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

/// What becomes of an operation.
enum Verdict {
    /// It is done.
    Done,
    /// Nothing of it is done.
    Refused(i32),
    /// Something of it may be done, then it fails.
    Failed(i32),
}

impl State {
    /// Counts an operation and judges it. `bytes` is what it would add.
    fn judge(&mut self, what: impl FnOnce() -> String, fault: Fault, bytes: u64) -> Verdict {
        if self.dead {
            return Verdict::Refused(EIO);
        }
        let number = self.number;
        self.number += 1;
        let verdict = self.verdict(number, fault, bytes);
        self.calm = if matches!(verdict, Verdict::Done) || self.dead { self.calm + 1 } else { 0 };
        let life = self.life;
        self.trace.note(|| {
            let ending = match &verdict {
                Verdict::Done => "done".to_owned(),
                Verdict::Refused(code) => format!("refused {code}"),
                Verdict::Failed(code) => format!("failed {code}"),
            };
            format!("{life}.{number}: {} {ending}", what())
        });
        verdict
    }

    fn verdict(&mut self, number: u64, fault: Fault, bytes: u64) -> Verdict {
        if self.plan.crash.is_some_and(|(at, _)| at == number) {
            self.dead = true;
            return Verdict::Failed(EIO);
        }
        let faults: Vec<Fault> = self.plan.at(number).collect();
        let names = matches!(fault, Fault::Create | Fault::Remove | Fault::Rename);
        let mut room = None;
        for now in faults {
            match now {
                Fault::ReadOnly if fault != Fault::Sync => return Verdict::Refused(EROFS),
                Fault::Denied if names => return Verdict::Refused(EACCES),
                Fault::Preallocate if fault == now => return Verdict::Refused(EOPNOTSUPP),
                Fault::Write | Fault::Sync | Fault::SyncDir if fault == now => {
                    return Verdict::Failed(EIO);
                }
                Fault::SetLen | Fault::Create | Fault::Remove | Fault::Rename if fault == now => {
                    return Verdict::Refused(EIO);
                }
                Fault::Full(most) => room = Some(most),
                _ => {}
            }
        }
        self.room = room.map(|most| self.room.unwrap_or(most));
        match &mut self.room {
            Some(room) if bytes > *room => Verdict::Failed(ENOSPC),
            Some(room) => {
                *room -= bytes;
                Verdict::Done
            }
            None => Verdict::Done,
        }
    }

    fn give_back(&mut self, bytes: u64) {
        if let Some(room) = &mut self.room {
            *room += bytes;
        }
    }

    /// Whether something that failed is done all the same, as after a crash right behind it.
    fn done_anyway(&mut self) -> bool {
        self.dead && self.random.chance(50)
    }

    fn change_name(&mut self, change: NameChange) {
        match &change {
            NameChange::Made(path, inode) => {
                self.names.insert(path.clone(), *inode);
            }
            NameChange::Removed(path) => {
                self.names.remove(path);
            }
            NameChange::Moved(from, to, inode) => {
                self.names.remove(from);
                self.names.insert(to.clone(), *inode);
            }
            NameChange::Dir(path) => {
                self.dirs.insert(path.clone());
            }
        }
        self.pending.push(change);
    }

    fn keep_name(&mut self, change: NameChange) {
        match change {
            NameChange::Made(path, inode) => {
                self.durable_names.insert(path, inode);
            }
            NameChange::Removed(path) => {
                self.durable_names.remove(&path);
            }
            NameChange::Moved(from, to, inode) => {
                self.durable_names.remove(&from);
                self.durable_names.insert(to, inode);
            }
            NameChange::Dir(_) => {}
        }
    }

    fn alive(&self) -> io::Result<()> {
        if self.dead { os(EIO) } else { Ok(()) }
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl NameChange {
    /// The directory whose sync makes it durable.
    fn dir(&self) -> Option<&Path> {
        match self {
            NameChange::Made(path, _) | NameChange::Removed(path) | NameChange::Dir(path) => {
                path.parent()
            }
            NameChange::Moved(_, to, _) => to.parent(),
        }
    }
}
