//! A request as the pages see it: the parts of its path, its query, its form, its headers.
//!
//! Law: everything in here came from outside; a value is used as text, or parsed where it is used.

use axum::http::HeaderMap;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What stands in a part of a path as it is.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Names and values, in order.
pub(crate) type Pairs = Vec<(String, String)>;

/// One request.
#[derive(Debug, Default, Clone)]
pub(crate) struct Request {
    /// As it was sent, with its query.
    pub(crate) target: String,
    /// The path's parts, decoded, without empty ones.
    pub(crate) parts: Vec<String>,
    pub(crate) query: Pairs,
    pub(crate) form: Pairs,
    pub(crate) headers: HeaderMap,
}

impl Request {
    /// A request for `path` with a query as browsers send it.
    pub(crate) fn new(path: &str, query: Option<&str>) -> Request {
        let parts = path.split('/').filter(|part| !part.is_empty());
        Request {
            target: query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}")),
            parts: parts.map(|part| percent_decode_str(part).decode_utf8_lossy().into()).collect(),
            query: pairs(query.unwrap_or_default().as_bytes()),
            ..Request::default()
        }
    }

    /// The first value of that name in the query; empty ones count as absent.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        find(&self.query, name)
    }

    /// The first value of that name in the form; empty ones count as absent.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        find(&self.form, name)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// A cookie's value.
    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        let cookies = self.header("cookie")?.split(';');
        cookies
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }
}

fn find<'a>(pairs: &'a Pairs, name: &str) -> Option<&'a str> {
    let found = pairs.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
}

/// What a browser sends as a query or a form. Line ends are what they were before it made CR LF of
/// them.
pub(crate) fn pairs(encoded: &[u8]) -> Pairs {
    form_urlencoded::parse(encoded)
        .map(|(name, value)| (name.into_owned(), value.replace("\r\n", "\n")))
        .collect()
}

/// A path of these parts.
pub(crate) fn path(parts: &[&str]) -> String {
    parts.iter().map(|part| format!("/{}", utf8_percent_encode(part, PART))).collect()
}

/// The page of a topic, `/namespace/topic`, and what is below it.
pub(crate) fn topic_path(topic: &str, below: &[&str]) -> String {
    let mut parts = vec!["topics"];
    parts.extend(topic.split('/').filter(|part| !part.is_empty()));
    parts.extend(below);
    path(&parts)
}

/// A path with a query.
pub(crate) fn with_query(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs);
    match query.finish() {
        empty if empty.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

/// `target`, if it is a page of ours rather than another site's.
pub(crate) fn local(target: Option<&str>) -> Option<&str> {
    let is_local = |target: &&str| {
        target.starts_with('/')
            && !target.starts_with("//")
            && !target.contains('\\')
            && target.bytes().all(|byte| byte.is_ascii_graphic())
    };
    target.filter(is_local)
}
