//! What went wrong, as a page: one clear sentence, and what to do next.

use axum::http::StatusCode;
use danube_ops::{ErrorKind, OpError};

/// Why a page cannot be shown or a form was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// What failed, on what, and why.
    pub(crate) message: String,
    /// What to do next.
    pub(crate) next: Option<String>,
}

impl Problem {
    fn new(status: StatusCode, message: impl Into<String>) -> Problem {
        Problem { status, message: message.into(), next: None }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn busy(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// A defect of ours.
    pub(crate) fn internal(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// Adds what to do next.
    pub(crate) fn next(self, next: impl Into<String>) -> Problem {
        Problem { next: Some(next.into()), ..self }
    }

    /// The heading of its page.
    pub(crate) fn title(&self) -> &'static str {
        match self.status {
            StatusCode::NOT_FOUND => "Not found",
            StatusCode::FORBIDDEN => "Refused",
            StatusCode::BAD_REQUEST => "That cannot be",
            StatusCode::SERVICE_UNAVAILABLE => "Not now",
            StatusCode::CONFLICT => "The broker said no",
            _ => "Something went wrong",
        }
    }
}

impl From<OpError> for Problem {
    fn from(error: OpError) -> Problem {
        let status = match error.kind {
            _ if error.not_found => StatusCode::NOT_FOUND,
            ErrorKind::Refused => StatusCode::CONFLICT,
            ErrorKind::Usage => StatusCode::BAD_REQUEST,
            ErrorKind::Unreachable => StatusCode::SERVICE_UNAVAILABLE,
        };
        let look = || "look for it among all topics; it may have been deleted meanwhile".to_owned();
        let next = error.help.or_else(|| error.not_found.then(look));
        Problem { status, message: error.message, next }
    }
}
