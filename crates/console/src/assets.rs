//! The files that pages name: one style, one script, one sign. They are part of the binary.

use axum::http::header;
use axum::response::{IntoResponse, Response};

const STYLE: &str = include_str!("../assets/console.css");
const SCRIPT: &str = include_str!("../assets/console.js");
const ICON: &str = include_str!("../assets/icon.svg");

/// The file of that name.
pub(crate) fn find(name: &str) -> Option<Response> {
    let (kind, text) = match name {
        "console.css" => ("text/css; charset=utf-8", STYLE),
        "console.js" => ("text/javascript; charset=utf-8", SCRIPT),
        "icon.svg" => ("image/svg+xml", ICON),
        _ => return None,
    };
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")];
    Some((headers, text).into_response())
}
