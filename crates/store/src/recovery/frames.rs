//! What frames, and the lack of them, do to topics.
//!
//! Law: a topic that may have lost messages is stopped; that others may have lost progress is told.

use super::{Place, Recovery};
use crate::error::Damage;
use crate::extras::Also;
use crate::frame::{FrameHeader, FrameKind, NO_TOPIC};
use crate::header::journal_path;
use crate::replay::{take_messages, take_progress};
use crate::restore;
use danube_core::TopicId;

impl Recovery<'_> {
    /// Checks that a frame comes right after the one before, and settles whom a hole hit.
    pub(super) fn follow(&mut self, place: Place, header: &FrameHeader) {
        let missing = match self.expected {
            Some(expected) => header.lsn.saturating_sub(expected),
            // Nothing says how many.
            None if self.hole.is_some() => 2,
            None => 0,
        };
        let hole = self.hole.take().unwrap_or(place);
        self.lack(missing, header.previous, header.previous_extras, hole);
        self.marked = header.kind == FrameKind::Mark;
        // A mark takes no number, so that nothing is missing where one is lost.
        self.expected = Some(header.lsn.saturating_add(u64::from(!self.marked)));
        if !self.marked {
            (self.found.tip.topic, self.found.tip.extras) = (header.topic, header.extras);
        }
    }

    /// Frames are missing at `hole`, the last of them of topic `previous`.
    /// With `extras`, that one may have had progress of others.
    pub(super) fn lack(&mut self, missing: u64, previous: u32, extras: bool, hole: Place) {
        self.lose_progress(hole, missing > 1 || (missing > 0 && extras));
        if missing > 0 && previous != NO_TOPIC {
            self.stop(TopicId(previous), hole, "a frame of it cannot be read");
        }
        if missing > 1 || (missing > 0 && previous == NO_TOPIC) {
            self.suspect(hole);
        }
    }

    /// Frames of any topic may be missing at `hole`.
    pub(super) fn suspect(&mut self, hole: Place) {
        let damage = self.damage(NO_TOPIC, hole, "frames are missing that may have been all of it");
        self.found.unknown.get_or_insert(damage);
        self.wide.get_or_insert(hole);
        for topic in self.found.topics.keys() {
            self.suspects.entry(*topic).or_insert(hole);
        }
    }

    fn damage(&self, topic: u32, place: Place, what: &str) -> Damage {
        let file = journal_path(self.dir, place.file);
        Damage { topic: TopicId(topic), file, position: place.position, what: what.to_owned() }
    }

    pub(super) fn stop(&mut self, topic: TopicId, place: Place, what: &str) {
        let damage = self.damage(topic.0, place, what);
        let state = self.found.topics.entry(topic).or_default();
        // Told once the catalog has said which topics still exist.
        state.damage.get_or_insert(damage);
        state.recorded = true;
    }

    pub(super) fn frame(&mut self, place: Place, header: &FrameHeader, payload: &[u8]) {
        self.follow(place, header);
        let topic = TopicId(header.topic);
        match header.kind {
            FrameKind::Mark if header.jump => return self.lose_tail(),
            FrameKind::Mark => return,
            FrameKind::TopicForgotten => return self.forget(topic),
            FrameKind::Messages | FrameKind::Progress => {}
        }
        self.meet(topic);
        let state = self.found.topics.entry(topic).or_default();
        state.recorded = true;
        state.epoch = state.epoch.max(header.epoch);
        let taken = if header.kind == FrameKind::Messages {
            let gapless = state.next == header.first;
            let taken = take_messages(state, place, header, payload);
            // Only its first messages behind the hole say whether it lost any: a jump may hide them.
            if let Some(hole) = self.suspects.remove(&topic)
                && !gapless
            {
                self.stop(topic, hole, "frames are missing that may have been its own");
            }
            taken
        } else {
            take_progress(state, header, payload).map(|()| Vec::new())
        };
        match taken {
            Ok(also) => also.into_iter().for_each(|also| self.also(also)),
            Err(what) => {
                self.lose_progress(place, header.extras);
                self.stop(topic, place, &what);
            }
        }
    }

    /// A topic that is first seen behind a hole may have had its first messages there.
    fn meet(&mut self, topic: TopicId) {
        if let Some(hole) = self.wide
            && !self.found.topics.contains_key(&topic)
        {
            self.suspects.insert(topic, hole);
        }
    }

    /// Takes progress that belongs to messages of another topic.
    fn also(&mut self, also: Also) {
        self.meet(also.topic);
        let state = self.found.topics.entry(also.topic).or_default();
        state.recorded = true;
        state.epoch = state.epoch.max(also.epoch);
        also.records.iter().for_each(|record| state.apply(record));
    }

    /// Something at `place` had progress of topics that are not named there, if `had`.
    pub(super) fn lose_progress(&mut self, place: Place, had: bool) {
        if had {
            let damage = self.damage(NO_TOPIC, place, "frames are missing, nobody knows whose");
            self.found.lost_progress.get_or_insert(damage);
        }
    }

    fn forget(&mut self, topic: TopicId) {
        self.suspects.remove(&topic);
        if let Some(state) = self.found.topics.remove(&topic) {
            let segments = state.segments.iter();
            self.found.leavings.extend(restore::paths(self.dir, topic, segments));
        }
    }
}
