//! How a command fails: one clear sentence, what to do about it, and an exit code.
//!
//! Law: every command ends through [`Failure::report`] or with exit code 0; nothing else in this
//! crate calls `exit` or prints an error.

use danube_core::{Fault, FaultKind};
use danube_ops::{ErrorKind, OpError};
use std::process::ExitCode;

/// Why a command did not end well, as scripts see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The reader of stdout has seen enough (`danube consume | head`). No error at all.
    PipeClosed = 0,
    /// The server, or this machine, said no.
    Refused = 1,
    /// A flag, a configuration key or a file given by the user is wrong.
    Usage = 2,
    /// No server answers at that address.
    Unreachable = 3,
    /// Some of the work was done, and some was refused.
    Partial = 4,
    /// A dry run that would have changed something. No error at all.
    Pending = 10,
}

/// One failed command.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What failed, on what, and why: lower case, no final dot.
    pub message: String,
    /// What to do next.
    pub help: Option<String>,
}

impl Failure {
    fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure { exit, message: message.into(), help: None }
    }

    /// [`Exit::Refused`].
    pub fn refused(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Refused, message)
    }

    /// [`Exit::Usage`].
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    /// [`Exit::Unreachable`].
    pub fn unreachable(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Unreachable, message)
    }

    /// [`Exit::Partial`].
    pub fn partial(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Partial, message)
    }

    /// [`Exit::PipeClosed`].
    pub fn pipe_closed() -> Failure {
        Failure::new(Exit::PipeClosed, "stdout was closed")
    }

    /// [`Exit::Pending`].
    pub fn pending() -> Failure {
        Failure::new(Exit::Pending, "nothing was changed yet")
    }

    /// Adds what to do next.
    pub fn help(self, help: impl Into<String>) -> Failure {
        Failure { help: Some(help.into()), ..self }
    }

    /// Prints the error and turns it into the exit code.
    pub fn report(self) -> ExitCode {
        if !matches!(self.exit, Exit::PipeClosed | Exit::Pending) {
            eprintln!("error: {}", self.message);
            if let Some(help) = self.help {
                eprintln!(" help: {help}");
            }
        }
        ExitCode::from(self.exit as u8)
    }
}

/// A name or an intent that the user typed and that cannot be.
impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        match fault.kind {
            FaultKind::Invalid => Failure::usage(fault.message),
            _ => Failure::refused(fault.message),
        }
    }
}

/// What an operation could not do.
impl From<OpError> for Failure {
    fn from(error: OpError) -> Failure {
        let exit = match error.kind {
            ErrorKind::Refused => Exit::Refused,
            ErrorKind::Usage => Exit::Usage,
            ErrorKind::Unreachable => Exit::Unreachable,
        };
        Failure { exit, message: error.message, help: error.help }
    }
}
