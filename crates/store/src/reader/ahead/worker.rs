//! The thread that reads what is to come.
//!
//! Law: there are never more buffers than were made; each is either free, on its way, or held by
//! whoever reads.

use crate::disk::PastCache;
use crate::large::{LARGE_BYTES, Large};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Buffers: two that what is read may lie in, and two on their way.
const BUFFERS: usize = 4;

/// What is to be read.
pub(super) struct Wanted {
    /// By whom.
    pub stream: u64,
    /// From what.
    pub file: Arc<dyn PastCache>,
    /// From which byte on.
    pub at: u64,
    /// How many.
    pub len: usize,
}

/// What was read.
pub(super) struct Window {
    /// For whom.
    pub stream: u64,
    /// From which byte on.
    pub at: u64,
    len: usize,
    buffer: Large,
    /// What the disk said.
    outcome: io::Result<usize>,
}

impl Window {
    fn read(Wanted { stream, file, at, len }: Wanted, mut buffer: Large) -> Window {
        let outcome = file.read_at(at, buffer.bytes_mut(len));
        Window { stream, at, len, buffer, outcome }
    }

    /// Byte behind it.
    pub fn end(&self) -> u64 {
        self.at + self.len as u64
    }

    /// Whether all of it is there.
    pub fn is_whole(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|filled| *filled == self.len)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.bytes(self.len)
    }
}

/// Most bytes of a window.
pub(super) const WINDOW_MAX: u64 = LARGE_BYTES as u64;

/// Reads windows, in the order in which they were wanted.
pub(super) struct Worker {
    free: Vec<Large>,
    on_their_way: usize,
    by: By,
}

enum By {
    Thread {
        wanted: Option<SyncSender<(Wanted, Large)>>,
        read: Receiver<Window>,
        thread: Option<JoinHandle<()>>,
    },
    /// Whoever asks, where there are no threads.
    Caller(VecDeque<Window>),
}

impl Worker {
    /// One with its buffers, and a thread if `background`.
    ///
    /// # Errors
    /// When there is no memory for it, or no thread.
    pub fn begin(background: bool) -> io::Result<Worker> {
        let free = (0..BUFFERS).map(|_| Large::new()).collect::<io::Result<_>>()?;
        let by = if background {
            let (wanted, todo) = sync_channel::<(Wanted, Large)>(BUFFERS);
            let (done, read) = sync_channel(BUFFERS);
            let work = move || {
                for (wanted, buffer) in todo {
                    if done.send(Window::read(wanted, buffer)).is_err() {
                        break;
                    }
                }
            };
            let thread = Builder::new().name("journal-ahead".into()).spawn(work)?;
            By::Thread { wanted: Some(wanted), read, thread: Some(thread) }
        } else {
            By::Caller(VecDeque::new())
        };
        Ok(Worker { free, on_their_way: 0, by })
    }

    /// Whether anything can be asked for.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Asks for `wanted`, if there is room for it.
    pub fn ask(&mut self, wanted: Wanted) {
        let Some(buffer) = self.free.pop() else { return };
        match &mut self.by {
            By::Caller(read) => read.push_back(Window::read(wanted, buffer)),
            By::Thread { wanted: to, .. } => {
                // There is room for as many as there are buffers; a thread that is gone is told by `next`.
                if let Some(to) = to {
                    let _ = to.send((wanted, buffer));
                }
            }
        }
        self.on_their_way += 1;
    }

    /// Waits for what was asked for first; `None` if nothing is on its way, or the thread is gone.
    pub fn next(&mut self) -> Option<Window> {
        self.on_their_way = self.on_their_way.checked_sub(1)?;
        match &mut self.by {
            By::Caller(read) => read.pop_front(),
            By::Thread { read, .. } => read.recv().ok(),
        }
    }

    /// Takes a window back.
    pub fn give_back(&mut self, window: Window) {
        self.free.push(window.buffer);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let By::Thread { wanted, thread, .. } = &mut self.by {
            drop(wanted.take());
            // It ends with what is on its way; what it has read is of use to nobody.
            let _ = thread.take().map(JoinHandle::join);
        }
    }
}
