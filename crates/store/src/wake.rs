//! A bell between the writer and the thread that does background work.

use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// Rings once for any number of [`set`](Wake::set)s.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    state: Mutex<State>,
    rang: Condvar,
}

#[derive(Debug, Default)]
struct State {
    set: bool,
    closed: bool,
}

impl Wake {
    /// There is something to do.
    pub(crate) fn set(&self) {
        self.state.lock().set = true;
        self.rang.notify_one();
    }

    /// There will be nothing more to do.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.rang.notify_all();
    }

    /// Waits for so long, whatever there is to do, unless it is closed.
    pub(crate) fn rest(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut state = self.state.lock();
        while !state.closed && !self.rang.wait_until(&mut state, until).timed_out() {}
    }

    /// Waits until there is something to do or `patience` is over; `false` once closed.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.set && !state.closed {
            self.rang.wait_for(&mut state, patience);
        }
        state.set = false;
        !state.closed
    }
}
