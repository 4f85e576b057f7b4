//! The one error of this library.
//!
//! Law: every error says what failed, on which topic or address, why, and what to do next; one
//! value may be handed to many waiters, so it can be cloned.

use danube_core::FaultKind;
use danube_wire::proto::stream::Refusal;
use danube_wire::status;
use std::error::Error as _;
use std::time::Duration;
use tonic::Status;

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address of the broker cannot be one.
    #[error("address `{address}` {why}; give a URL such as `http://127.0.0.1:6650`")]
    Address {
        /// As it was given.
        address: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Nobody answers, or the connection broke and could not be made again in time.
    #[error("no broker answers at `{url}`: {why}; check that it runs, then try again")]
    Unreachable {
        /// Where a broker was looked for.
        url: String,
        /// What the system said.
        why: String,
    },
    /// An answer did not come within the time limit of a call.
    #[error("{doing}: no answer within {after:?}; the broker is busy or away, try again later")]
    Timeout {
        /// What was waited for.
        doing: String,
        /// The time limit.
        after: Duration,
    },
    /// The broker said no; `kind` says what to do about it.
    #[error("{doing}: {reason}")]
    Refused {
        /// Sorted by what the caller should do.
        kind: FaultKind,
        /// What was refused.
        doing: String,
        /// The broker's sentence.
        reason: String,
    },
    /// Somebody else opened a producer or consumer of the same name, so this one is over.
    #[error(
        "{who} was taken over: {reason}; this one is closed for good, give each its own name or \
         let only one of them run"
    )]
    Fenced {
        /// Which producer or consumer.
        who: String,
        /// The broker's sentence.
        reason: String,
    },
    /// A message is no longer held by this consumer, so that nothing can be done to it.
    #[error(
        "message `{offset}` of topic `{topic}` is no longer held by this consumer: {why}; it may \
         come again, nothing is to be done"
    )]
    LeaseLost {
        /// The topic partition.
        topic: String,
        /// The message.
        offset: u64,
        /// How it was lost.
        why: &'static str,
    },
    /// The broker could not write acknowledgements down; they may be asked for again.
    #[error("acknowledgements on topic `{topic}` were not taken: {reason}; acknowledge again")]
    NotSettled {
        /// The topic partition.
        topic: String,
        /// The broker's sentence.
        reason: String,
    },
    /// The producer or consumer was closed by this program.
    #[error("{who} is closed; open another one")]
    Closed {
        /// Which producer or consumer.
        who: String,
    },
    /// A typed value could not become a payload, or a payload no value.
    #[error("a value of {of} cannot be {doing}: {why}")]
    Payload {
        /// The topic and the schema, as far as there are any.
        of: String,
        /// `written` or `read`.
        doing: &'static str,
        /// What the format says.
        why: String,
    },
}

impl Error {
    /// Whether the same call may succeed later without anybody changing anything.
    ///
    /// ```
    /// # fn example(error: danube_sdk::Error) {
    /// if error.is_retryable() {
    ///     eprintln!("later, perhaps: {error}");
    /// }
    /// # }
    /// ```
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Unreachable { .. } | Error::Timeout { .. } | Error::NotSettled { .. } => true,
            Error::Refused { kind, .. } => is_passing(*kind),
            _ => false,
        }
    }

    pub(crate) fn refused(kind: FaultKind, doing: &str, reason: impl Into<String>) -> Error {
        Error::Refused { kind, doing: doing.to_owned(), reason: reason.into() }
    }

    /// What a broken stream or a refused call means.
    pub(crate) fn from_status(url: &str, doing: &str, status: &Status) -> Error {
        if let Some(cause) = status.source() {
            return Error::Unreachable { url: url.to_owned(), why: root_cause(cause) };
        }
        let fault = status::from_status(status);
        let reason = match fault.kind {
            FaultKind::Unsupported => format!(
                "{}; the broker at `{url}` does not speak `danube.stream.v1`, start a newer one",
                fault.message
            ),
            _ => fault.message,
        };
        Error::refused(fault.kind, doing, reason)
    }
}

/// Whether it passes by itself.
fn is_passing(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::Retry | FaultKind::Exhausted)
}

/// The innermost error, which says what the system said.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Why a stream, or a part of it, is over, and whether another try may help.
#[derive(Debug, Clone)]
pub(crate) enum Trouble {
    /// Look the topic up and try again, not before `after` has passed.
    Passing { why: Error, after: Duration },
    /// For good.
    Final(Error),
}

impl Trouble {
    pub(crate) fn from_error(why: Error) -> Trouble {
        match why.is_retryable() {
            true => Trouble::Passing { why, after: Duration::ZERO },
            false => Trouble::Final(why),
        }
    }

    /// What the broker's `refusal` of `who` means when it is about all of it.
    pub(crate) fn from_refusal(
        who: &str,
        refusal: Refusal,
        reason: String,
        retry_after_ms: u64,
    ) -> Trouble {
        let after = Duration::from_millis(retry_after_ms);
        let kind = match refusal {
            Refusal::Fenced => {
                return Trouble::Final(Error::Fenced { who: who.to_owned(), reason });
            }
            Refusal::Invalid => FaultKind::Invalid,
            Refusal::NotFound => FaultKind::NotFound,
            Refusal::Precondition => FaultKind::Precondition,
            Refusal::Overloaded => FaultKind::Exhausted,
            Refusal::Retry | Refusal::Moved | Refusal::OutOfOrder | Refusal::Unspecified => {
                FaultKind::Retry
            }
        };
        let why = Error::refused(kind, who, reason);
        match is_passing(kind) {
            true => Trouble::Passing { why, after },
            false => Trouble::Final(why),
        }
    }

    pub(crate) fn why(&self) -> &Error {
        match self {
            Trouble::Passing { why, .. } | Trouble::Final(why) => why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn errors_say_what_to_do() {
        let errors = [
            Error::Address { address: "x y".into(), why: "is not a URL" },
            Error::Unreachable { url: "http://h:1".into(), why: "connection refused".into() },
            Error::Timeout { doing: "producer `p`".into(), after: Duration::from_secs(30) },
            Error::from_status("http://h:1", "producer `p`", &Status::unimplemented("no")),
            Error::Fenced { who: "producer `p`".into(), reason: "opened again".into() },
            Error::LeaseLost { topic: "/n/t".into(), offset: 3, why: "its lease ran out" },
            Error::NotSettled { topic: "/n/t".into(), reason: "the disk is full".into() },
            Error::Closed { who: "producer `p`".into() },
            Error::Payload { of: "topic `/n/t`".into(), doing: "read", why: "not JSON".into() },
        ];
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        expect![[r#"
            address `x y` is not a URL; give a URL such as `http://127.0.0.1:6650`
            no broker answers at `http://h:1`: connection refused; check that it runs, then try again
            producer `p`: no answer within 30s; the broker is busy or away, try again later
            producer `p`: no; the broker at `http://h:1` does not speak `danube.stream.v1`, start a newer one
            producer `p` was taken over: opened again; this one is closed for good, give each its own name or let only one of them run
            message `3` of topic `/n/t` is no longer held by this consumer: its lease ran out; it may come again, nothing is to be done
            acknowledgements on topic `/n/t` were not taken: the disk is full; acknowledge again
            producer `p` is closed; open another one
            a value of topic `/n/t` cannot be read: not JSON"#]]
        .assert_eq(&lines.join("\n"));
        let retryable: Vec<bool> = errors.iter().map(Error::is_retryable).collect();
        assert_eq!(retryable, [false, true, true, false, false, false, true, false, false]);
    }
}
