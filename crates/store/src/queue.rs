//! A bounded queue between many threads and the one that works it off.
//!
//! Whoever pushes can borrow the work instead, where nothing waits and nobody works: that saves waking
//! the other thread for a little that is as quickly done.
//!
//! Law: pushing never waits and never grows the queue beyond its bounds; it is refused instead. The
//! work is done by one at a time, in the order in which it came.

use crate::error::AppendError;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Why an item was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// One of the bounds is reached.
    Full,
    /// Nobody works it off any more.
    Closed,
}

impl From<Refused> for AppendError {
    fn from(refused: Refused) -> AppendError {
        match refused {
            Refused::Full => AppendError::Full,
            Refused::Closed => AppendError::Closed,
        }
    }
}

/// The queue; items have a size in bytes.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    ready: Condvar,
    settled: Condvar,
    count_max: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
    closed: bool,
    /// Whoever works it off waits for something to do.
    idle: bool,
    /// Somebody has borrowed the work.
    lent: bool,
}

impl<T> Queue<T> {
    /// An empty queue of at most `count_max` items with at most `bytes_max` bytes.
    pub(crate) fn new(count_max: usize, bytes_max: usize) -> Queue<T> {
        let state =
            State { items: VecDeque::new(), bytes: 0, closed: false, idle: false, lent: false };
        let (ready, settled) = (Condvar::new(), Condvar::new());
        Queue { state: Mutex::new(state), ready, settled, count_max, bytes_max }
    }

    /// Adds an item of `bytes`, or gives it back.
    pub(crate) fn push(&self, item: T, bytes: usize) -> Result<(), (Refused, T)> {
        let mut state = self.state.lock();
        if state.closed {
            return Err((Refused::Closed, item));
        }
        if state.items.len() >= self.count_max || state.bytes + bytes > self.bytes_max {
            return Err((Refused::Full, item));
        }
        self.add(&mut state, item, bytes);
        Ok(())
    }

    /// Adds an item whatever the bounds say, for the few that cannot be refused: as many as there
    /// are topics. A closed queue drops it.
    pub(crate) fn push_always(&self, item: T) {
        let mut state = self.state.lock();
        if !state.closed {
            self.add(&mut state, item, 0);
        }
    }

    /// As [`push`](Self::push); but where nothing waits and nobody works, the caller gets the item
    /// back, is the one who works, and has to [`give_back`](Self::give_back) the work.
    pub(crate) fn push_or_borrow(&self, item: T, bytes: usize) -> Result<Option<T>, (Refused, T)> {
        let mut state = self.state.lock();
        if state.idle && !state.lent && !state.closed && state.items.is_empty() {
            state.lent = true;
            return Ok(Some(item));
        }
        drop(state);
        self.push(item, bytes).map(|()| None)
    }

    /// Ends what [`push_or_borrow`](Self::push_or_borrow) began.
    pub(crate) fn give_back(&self) {
        let mut state = self.state.lock();
        state.lent = false;
        if state.items.is_empty() && !state.closed {
            self.settled.notify_all();
        } else {
            self.ready.notify_one();
        }
    }

    fn add(&self, state: &mut State<T>, item: T, bytes: usize) {
        state.items.push_back((item, bytes));
        state.bytes += bytes;
        if !state.lent {
            self.ready.notify_one();
        }
    }

    /// Waits for items and takes them in order, up to `bytes_max` but at least one; `None` once
    /// the queue is closed and empty.
    pub(crate) fn drain(&self, bytes_max: usize) -> Option<Vec<T>> {
        self.drain_with(bytes_max, Duration::ZERO)
    }

    /// As [`drain`](Self::drain), but where there is more than one item, it waits up to `patience`
    /// for `bytes_max`. One alone never waits.
    pub(crate) fn drain_with(&self, bytes_max: usize, patience: Duration) -> Option<Vec<T>> {
        let mut state = self.state.lock();
        while state.items.is_empty() || state.lent {
            state.idle = true;
            if !state.lent {
                self.settled.notify_all();
                if state.closed {
                    return None;
                }
            }
            // What a burst took is given back before the long wait.
            state.items.shrink_to(64);
            self.ready.wait(&mut state);
        }
        state.idle = false;
        if !patience.is_zero() && state.items.len() > 1 {
            let begun = Instant::now();
            while state.bytes < bytes_max && !state.closed {
                let left = patience.saturating_sub(begun.elapsed());
                if left.is_zero() || self.ready.wait_for(&mut state, left).timed_out() {
                    break;
                }
            }
        }
        let mut taken = Vec::new();
        let mut bytes = 0;
        while let Some((item, size)) = state.items.pop_front() {
            if !taken.is_empty() && bytes + size > bytes_max {
                state.items.push_front((item, size));
                break;
            }
            bytes += size;
            taken.push(item);
        }
        state.bytes -= bytes;
        Some(taken)
    }

    /// Refuses everything from now on; what is in it is still worked off.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.ready.notify_all();
    }

    /// Waits until everything in it is worked off, and whatever came of that is done.
    pub(crate) fn settle(&self) {
        let mut state = self.state.lock();
        while !(state.idle && !state.lent && state.items.is_empty()) {
            self.settled.wait(&mut state);
        }
    }

    /// Items and bytes waiting.
    pub(crate) fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.items.len(), state.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_by_count_and_by_bytes_and_drains_in_order() {
        let queue = Queue::new(3, 10);
        assert_eq!(queue.push('a', 4), Ok(()));
        assert_eq!(queue.push('b', 7), Err((Refused::Full, 'b')));
        assert_eq!(queue.push('b', 6), Ok(()));
        assert_eq!(queue.push('c', 0), Ok(()));
        assert_eq!(queue.push('d', 0), Err((Refused::Full, 'd')));
        queue.push_always('e');
        assert_eq!(queue.load(), (4, 10));
        assert_eq!(queue.drain(5), Some(vec!['a']));
        assert_eq!(queue.drain(1), Some(vec!['b']), "at least one");
        queue.close();
        assert_eq!(queue.push('f', 0), Err((Refused::Closed, 'f')));
        assert_eq!(queue.drain(9), Some(vec!['c', 'e']));
        assert_eq!(queue.drain(9), None);
    }

    #[test]
    fn work_is_borrowed_by_one_at_a_time_and_only_where_nobody_works() {
        let queue = Queue::new(9, 100);
        assert_eq!(queue.push_or_borrow('a', 1), Ok(None), "nobody waits for work");
        let (tell, taken) = std::sync::mpsc::sync_channel(4);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Some(items) = queue.drain(100) {
                    tell.send(items).expect("somebody listens");
                }
            });
            assert_eq!(taken.recv(), Ok(vec!['a']));
            queue.settle();
            assert_eq!(queue.push_or_borrow('b', 1), Ok(Some('b')));
            assert_eq!(queue.push_or_borrow('c', 1), Ok(None), "somebody has it");
            assert_eq!(queue.push('d', 1), Ok(()));
            assert!(taken.try_recv().is_err(), "what came later waits");
            queue.give_back();
            let rest: Vec<char> =
                std::iter::from_fn(|| taken.recv().ok()).flatten().take(2).collect();
            assert_eq!(rest, ['c', 'd']);
            queue.settle();
            assert_eq!(queue.push_or_borrow('e', 1), Ok(Some('e')));
            queue.close();
            queue.give_back();
        });
        assert_eq!(queue.push_or_borrow('f', 1), Err((Refused::Closed, 'f')));
    }

    #[test]
    fn one_alone_never_waits_and_enough_of_them_wait_no_longer() {
        // A patience that no test would outlive.
        let forever = Duration::from_secs(1_000_000);
        let queue = Queue::new(9, 100);
        assert_eq!(queue.push('a', 1), Ok(()));
        assert_eq!(queue.drain_with(10, forever), Some(vec!['a']));
        assert_eq!((queue.push('b', 1), queue.push('c', 1)), (Ok(()), Ok(())));
        std::thread::scope(|scope| {
            let drained = scope.spawn(|| queue.drain_with(10, forever));
            assert_eq!(queue.push('d', 8), Ok(()));
            assert_eq!(drained.join().expect("ends"), Some(vec!['b', 'c', 'd']));
        });
        assert_eq!((queue.push('e', 1), queue.push('f', 1)), (Ok(()), Ok(())));
        queue.close();
        assert_eq!(queue.drain_with(10, forever), Some(vec!['e', 'f']), "closing waits for nobody");
    }
}
