//! Who works as the writer, and when: its own thread; or, for a little that needs no more than one
//! write, or one write and a sync that nobody else waits for, whoever brings it while that thread waits.
//!
//! Law: however it ends, nobody waits for an answer that never comes.

use super::lone::By;
use crate::error::{AppendError, CloseError};
use crate::shared::{Command, Shared, answer};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Makes the queue refuse, and answers what is in it, however the thread ends.
struct CloseOnExit<'a>(&'a Shared);

impl Drop for CloseOnExit<'_> {
    fn drop(&mut self) {
        self.0.commands.close();
        while let Some(commands) = self.0.commands.drain(usize::MAX) {
            for command in commands {
                match command {
                    Command::Write(write) => write.work.refuse(AppendError::Closed),
                    Command::Open(open) => answer(Some(open.done), Err(AppendError::Closed)),
                    Command::Sync(done) => answer(done, Err(AppendError::Closed)),
                    Command::Forget(_) | Command::Roll | Command::SyncSoon => {}
                }
            }
        }
        // It points back to what holds it.
        drop(self.0.writer.lock().take());
    }
}

/// Gives the borrowed work back, however the borrower ends. One that panicked leaves a writer that
/// nobody may go on with.
struct GiveBack<'a>(&'a Shared);

impl Drop for GiveBack<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.commands.close();
        }
        self.0.commands.give_back();
    }
}

/// Works until the queue is closed and empty, then leaves the journal whole.
///
/// # Errors
/// [`CloseError`]: what was acknowledged could not be made durable.
pub(crate) fn run(shared: &Arc<Shared>) -> Result<(), CloseError> {
    let _guard = CloseOnExit(shared);
    let bytes_max = shared.options.flush_max_batch_bytes;
    let patience = Duration::from_millis(shared.options.flush_interval_ms);
    while let Some(commands) = shared.commands.drain_with(bytes_max, patience) {
        match &mut *shared.writer.lock() {
            Some(writer) => writer.work_off(commands, By::Writer),
            None => return Err(broken(shared.options.dir.clone())),
        }
    }
    match shared.writer.lock().take() {
        Some(mut writer) => writer.journal.close(writer.tip),
        None => Err(broken(shared.options.dir.clone())),
    }
}

fn broken(path: PathBuf) -> CloseError {
    CloseError { path, error: "the writer panicked".to_owned() }
}

/// Works off a command whose sender has borrowed the work.
pub(crate) fn write_here(shared: &Shared, command: Command) {
    let _guard = GiveBack(shared);
    // Taken out, so that a panic leaves none behind.
    let taken = shared.writer.lock().take();
    let Some(mut writer) = taken else { return };
    writer.work_off(vec![command], By::Caller);
    *shared.writer.lock() = Some(writer);
}
