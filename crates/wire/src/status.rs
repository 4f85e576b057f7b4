//! A refusal as a status code, and back.
//!
//! The codes are chosen for what the official clients do with them: they retry UNAVAILABLE and
//! RESOURCE_EXHAUSTED, and hand everything else to the application. One of them answers
//! FAILED_PRECONDITION and PERMISSION_DENIED at publish by trying again without a pause, so a
//! message rejected for its content must be a [`FaultKind::Invalid`].
//!
//! Law: this is the only place where a [`Fault`] meets a status code.

use danube_core::{Fault, FaultKind};
use tonic::{Code, Status};

/// Said after every [`FaultKind::Exhausted`], whose cause passes by itself.
const RETRY_HINT: &str = "; try again in about 200 ms, and more slowly each time";

/// `fault` as the status that goes over the wire. A fault of kind
/// [`Exhausted`](FaultKind::Exhausted) says when to come back.
pub fn to_status(fault: &Fault) -> Status {
    let code = match fault.kind {
        FaultKind::Retry => Code::Unavailable,
        FaultKind::Exhausted => Code::ResourceExhausted,
        FaultKind::Invalid => Code::InvalidArgument,
        FaultKind::NotFound => Code::NotFound,
        FaultKind::AlreadyExists => Code::AlreadyExists,
        FaultKind::Precondition => Code::FailedPrecondition,
        FaultKind::Unauthenticated => Code::Unauthenticated,
        FaultKind::Denied => Code::PermissionDenied,
        FaultKind::Unsupported => Code::Unimplemented,
        FaultKind::Internal => Code::Internal,
    };
    match fault.kind {
        FaultKind::Exhausted => Status::new(code, format!("{}{RETRY_HINT}", fault.message)),
        _ => Status::new(code, fault.message.as_str()),
    }
}

/// A code as metrics and programs name it.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}

/// What a client of ours makes of a status: the inverse of [`to_status`], and for codes that we
/// never send the kind whose remedy fits. A status without a message gets the name of its code.
pub fn from_status(status: &Status) -> Fault {
    let kind = match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::Aborted | Code::Cancelled => {
            FaultKind::Retry
        }
        Code::ResourceExhausted => FaultKind::Exhausted,
        Code::InvalidArgument | Code::OutOfRange => FaultKind::Invalid,
        Code::NotFound => FaultKind::NotFound,
        Code::AlreadyExists => FaultKind::AlreadyExists,
        Code::FailedPrecondition => FaultKind::Precondition,
        Code::Unauthenticated => FaultKind::Unauthenticated,
        Code::PermissionDenied => FaultKind::Denied,
        Code::Unimplemented => FaultKind::Unsupported,
        Code::Internal | Code::Unknown | Code::DataLoss | Code::Ok => FaultKind::Internal,
    };
    match status.message() {
        "" => Fault::new(kind, status.code().description()),
        message => Fault::new(kind, message.strip_suffix(RETRY_HINT).unwrap_or(message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [(FaultKind, Code); 10] = [
        (FaultKind::Retry, Code::Unavailable),
        (FaultKind::Exhausted, Code::ResourceExhausted),
        (FaultKind::Invalid, Code::InvalidArgument),
        (FaultKind::NotFound, Code::NotFound),
        (FaultKind::AlreadyExists, Code::AlreadyExists),
        (FaultKind::Precondition, Code::FailedPrecondition),
        (FaultKind::Unauthenticated, Code::Unauthenticated),
        (FaultKind::Denied, Code::PermissionDenied),
        (FaultKind::Unsupported, Code::Unimplemented),
        (FaultKind::Internal, Code::Internal),
    ];

    #[test]
    fn every_fault_has_its_code_and_comes_back() {
        for (kind, code) in KINDS {
            let fault = Fault::new(kind, "topic `/default/t` said so");
            let status = to_status(&fault);
            assert_eq!(status.code(), code);
            assert_eq!(from_status(&status), fault);
        }
    }

    #[test]
    fn too_much_says_when_to_come_back() {
        let status = to_status(&Fault::exhausted("publishes of topic `/default/t` wait for disk"));
        assert_eq!(
            status.message(),
            "publishes of topic `/default/t` wait for disk; \
             try again in about 200 ms, and more slowly each time"
        );
    }

    #[test]
    fn foreign_codes_keep_their_remedy() {
        for (code, kind) in [
            (Code::DeadlineExceeded, FaultKind::Retry),
            (Code::Cancelled, FaultKind::Retry),
            (Code::OutOfRange, FaultKind::Invalid),
            (Code::Unknown, FaultKind::Internal),
        ] {
            let fault = from_status(&Status::new(code, ""));
            assert_eq!(fault.kind, kind);
            assert!(!fault.message.is_empty());
        }
    }
}
