//! Sequences: table tests, and a client that sends again whatever was not answered, against a log
//! that fails and restarts.

use super::*;
use proptest::prelude::*;

const P: ProducerId = ProducerId(7);

fn origin(epoch: u32, first_sequence: u64) -> Origin {
    Origin { producer: P, epoch, after: first_sequence - 1, first_sequence }
}

#[test]
fn a_batch_sent_again_is_answered_as_it_was() {
    let mut sequences = Sequences::default();
    assert_eq!(sequences.open(P), Opened { epoch: 1, last_sequence: 0 });
    assert_eq!(sequences.admit(&origin(1, 1), 3), Admission::Append);
    sequences.stored(&origin(1, 1), 3, Offset(100));
    assert_eq!(sequences.open(P), Opened { epoch: 2, last_sequence: 3 });
    assert_eq!(sequences.admit(&origin(2, 1), 3), Admission::Duplicate(Offset(100)));
    assert_eq!(sequences.admit(&origin(2, 2), 2), Admission::Duplicate(Offset(101)));
    let straddling = Admission::Refused(SequenceRefusal::OutOfOrder { last: 3 });
    assert_eq!(sequences.admit(&origin(2, 3), 2), straddling);
    assert_eq!(sequences.admit(&origin(2, 4), 1), Admission::Append);
}

#[test]
fn an_older_stream_is_fenced() {
    let mut sequences = Sequences::default();
    sequences.open(P);
    sequences.open(P);
    let fenced = Admission::Refused(SequenceRefusal::Fenced { epoch: 2 });
    assert_eq!(sequences.admit(&origin(1, 1), 1), fenced);
    let stranger = Origin { producer: ProducerId(8), ..origin(1, 1) };
    let unknown = Admission::Refused(SequenceRefusal::Unknown);
    assert_eq!(sequences.admit(&stranger, 1), unknown);
}

#[test]
fn nothing_overtakes_a_batch_whose_write_failed() {
    let mut sequences = Sequences::default();
    sequences.open(P);
    assert_eq!(sequences.admit(&origin(1, 1), 2), Admission::Append);
    assert_eq!(sequences.admit(&origin(1, 3), 2), Admission::Append);
    sequences.take_back();
    let refused = Admission::Refused(SequenceRefusal::OutOfOrder { last: 0 });
    assert_eq!(sequences.admit(&origin(1, 5), 2), refused);
    assert_eq!(sequences.admit(&origin(1, 3), 2), refused);
    assert_eq!(sequences.admit(&origin(1, 1), 2), Admission::Append);
}

#[test]
fn messages_refused_for_good_leave_their_numbers_unused() {
    let mut sequences = Sequences::default();
    sequences.open(P);
    assert_eq!(sequences.admit(&origin(1, 1), 2), Admission::Append);
    sequences.stored(&origin(1, 1), 2, Offset(0));
    let behind = Origin { producer: P, epoch: 1, after: 2, first_sequence: 5 };
    assert_eq!(sequences.admit(&behind, 1), Admission::Append);
    sequences.stored(&behind, 1, Offset(2));
    assert_eq!(sequences.admit(&behind, 1), Admission::Duplicate(Offset(2)));
    assert_eq!(sequences.open(P).last_sequence, 5);
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut sequences = Sequences::default();
    sequences.open(P);
    for n in 1..=RUNS_MAX as u64 + 1 {
        assert_eq!(sequences.admit(&origin(1, n), 1), Admission::Append);
        // Other producers' messages lie between.
        sequences.stored(&origin(1, n), 1, Offset(2 * n));
    }
    let last = RUNS_MAX as u64 + 1;
    let forgotten = Admission::Refused(SequenceRefusal::Forgotten { last });
    assert_eq!(sequences.admit(&origin(1, 1), 1), forgotten);
    assert_eq!(sequences.admit(&origin(1, 2), 1), Admission::Duplicate(Offset(4)));
    for id in 0..PRODUCERS_MAX as u64 {
        sequences.open(ProducerId(1_000 + id));
    }
    assert_eq!(sequences.len(), PRODUCERS_MAX);
    let unknown = Admission::Refused(SequenceRefusal::Unknown);
    assert_eq!(sequences.admit(&origin(1, last + 1), 1), unknown);
}

#[test]
fn a_checkpoint_and_the_log_behind_it_say_the_same() {
    let mut sequences = Sequences::default();
    sequences.open(P);
    for n in 1..10 {
        sequences.stored(&origin(1, n), 1, Offset(n * n));
    }
    let mut again = Sequences::default();
    for (id, epoch, last, runs) in sequences.export() {
        again.import(id, epoch, last, runs.collect());
    }
    // What both know is told twice and counts once.
    assert_eq!(again.open(P), Opened { epoch: 2, last_sequence: 9 });
    for n in 1..10 {
        assert_eq!(again.admit(&origin(2, n), 1), Admission::Duplicate(Offset(n * n)));
    }
}

/// What a client and the weather between it and the broker can do.
#[derive(Debug, Clone)]
enum Act {
    Send {
        messages: u32,
    },
    /// The group that is being written ends, well or not.
    Group {
        written: bool,
    },
    Reconnect,
    Restart,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (1_u32..5).prop_map(|messages| Act::Send { messages }),
        3 => any::<bool>().prop_map(|written| Act::Group { written }),
        1 => Just(Act::Reconnect),
        1 => Just(Act::Restart),
    ];
    prop::collection::vec(act, 1..80)
}

/// A client that sends again whatever was not answered, against a log that may fail and restart.
#[derive(Default)]
struct World {
    sequences: Sequences,
    epoch: u32,
    /// What the log has: which message is at which offset.
    log: Vec<u64>,
    /// Admitted in the present group.
    group: Vec<(Origin, u32)>,
    /// Sent and not answered: first sequence, count, message of the first.
    unanswered: VecDeque<(u64, u32, u64)>,
    next_sequence: u64,
    next_message: u64,
}

impl World {
    fn offer(&mut self, first_sequence: u64, count: u32, message: u64) {
        let origin = origin(self.epoch, first_sequence);
        match self.sequences.admit(&origin, count) {
            Admission::Append => self.group.push((origin, count)),
            Admission::Duplicate(first) => {
                let found = self.log[first.0 as usize..][..count as usize].to_vec();
                let sent: Vec<u64> = (message..).take(count as usize).collect();
                assert_eq!(found, sent, "a duplicate is answered with where it is");
                self.unanswered.retain(|(first, ..)| *first != first_sequence);
            }
            Admission::Refused(_) => {}
        }
    }

    fn end_group(&mut self, written: bool) {
        let group = std::mem::take(&mut self.group);
        if !written {
            return self.sequences.take_back();
        }
        for (origin, count) in group {
            let at = self.unanswered.iter().position(|(first, ..)| *first == origin.first_sequence);
            let (_, _, message) = self.unanswered.remove(at.expect("sent")).expect("there");
            let first = Offset(self.log.len() as u64);
            self.log.extend((message..).take(count as usize));
            self.sequences.stored(&origin, count, first);
        }
    }

    /// Opens again and sends again what was not answered, as a client does.
    fn reconnect(&mut self) {
        self.end_group(true);
        let opened = self.sequences.open(P);
        self.epoch = opened.epoch;
        for (first, count, message) in self.unanswered.clone() {
            self.offer(first, count, message);
        }
    }
}

proptest! {
    #[test]
    fn every_message_is_stored_once_and_in_order(acts in acts()) {
        let mut world = World { next_sequence: 1, ..World::default() };
        world.reconnect();
        for act in acts {
            match act {
                Act::Send { messages } if world.unanswered.len() < RUNS_MAX => {
                    let (first, message) = (world.next_sequence, world.next_message);
                    world.next_sequence += u64::from(messages);
                    world.next_message += u64::from(messages);
                    world.unanswered.push_back((first, messages, message));
                    world.offer(first, messages, message);
                }
                Act::Send { .. } => {}
                Act::Group { written } => world.end_group(written),
                Act::Reconnect => world.reconnect(),
                Act::Restart => {
                    // The group dies with the process; the rest comes from the log.
                    world.sequences.take_back();
                    world.group.clear();
                    let mut again = Sequences::default();
                    for (id, epoch, last, runs) in world.sequences.export() {
                        again.import(id, epoch, last, runs.collect());
                    }
                    world.sequences = again;
                    world.reconnect();
                }
            }
        }
        world.end_group(true);
        while !world.unanswered.is_empty() {
            world.reconnect();
            world.end_group(true);
        }
        let sent: Vec<u64> = (0..world.next_message).collect();
        prop_assert_eq!(world.log, sent);
    }
}
