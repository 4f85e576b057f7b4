//! Pieces that many pages have: the way to a topic, a subscription, a message; the head of a table;
//! a figure with its chart.

use crate::request::topic_path;
use maud::{Markup, html};

/// To a topic, by its name.
pub(crate) fn topic(name: &str) -> Markup {
    html! { a href=(topic_path(name, &[])) { (name) } }
}

/// To a subscription, by its name.
pub(crate) fn subscription(topic: &str, name: &str) -> Markup {
    html! { a href=(topic_path(topic, &["subscriptions", name])) { (name) } }
}

/// To a message, by its offset; the two words stay on one line.
pub(crate) fn message(topic: &str, offset: u64) -> Markup {
    let path = topic_path(topic, &["messages", &offset.to_string()]);
    html! { a href=(path) { "offset\u{a0}" (offset) } }
}

/// What a table is of, for who does not see it, and its columns; `#` is before one of figures.
pub(crate) fn heads(caption: &str, columns: &[&str]) -> Markup {
    html! {
        caption.hidden { (caption) }
        thead {
            tr {
                @for column in columns {
                    @match column.strip_prefix('#') {
                        Some(name) => th.n scope="col" { (name) },
                        None => th scope="col" { (column) },
                    }
                }
            }
        }
    }
}

/// A figure with what it was lately.
pub(crate) fn tile(name: &str, value: &str, chart: &Markup) -> Markup {
    html! {
        div {
            dt { (name) }
            dd { (value) }
            dd.chart { (chart) }
        }
    }
}
