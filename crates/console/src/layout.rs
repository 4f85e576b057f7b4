//! What every page has around what it shows: the way to the others, the theme, the lines that ask
//! the same in a shell.
//!
//! Law: a page works without a script; the script only keeps it up to date.

use crate::access::Access;
use crate::problem::Problem;
use crate::request::Request;
use crate::server::Shared;
use maud::{DOCTYPE, Markup, html};

/// The pages that every page leads to: path, name.
const SECTIONS: &[(&str, &str)] = &[
    ("/", "Overview"),
    ("/topics", "Topics"),
    ("/schemas", "Schemas"),
    ("/namespaces", "Namespaces"),
    ("/broker", "Broker"),
    ("/apply", "Apply"),
    ("/operations", "Operations"),
];

/// Seconds after which a page without a script looks again.
const REFRESH_S: u32 = 10;

/// A page.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) title: String,
    /// The section it belongs to, by its path.
    pub(crate) section: &'static str,
    /// What it is a part of: names and paths, outermost first.
    pub(crate) trail: Vec<(String, String)>,
    /// What stands before all else.
    pub(crate) top: Markup,
    /// What changes while one looks. Where there is some, the page keeps itself up to date.
    pub(crate) live: Option<Markup>,
    /// What stays.
    pub(crate) body: Markup,
    /// Lines for a shell that ask the same.
    pub(crate) lines: Vec<String>,
}

/// The themes that can be chosen; `auto` is as the system has it.
pub(crate) const THEMES: [&str; 3] = ["auto", "light", "dark"];

/// The page of a problem.
pub(crate) fn problem(problem: &Problem) -> Page {
    let next = problem.next.clone().unwrap_or_else(|| "go back, or to the overview".to_owned());
    Page {
        title: problem.title().to_owned(),
        body: html! {
            div.notice.bad role="alert" {
                p { strong { (sentence(&problem.message)) } }
                p { (sentence(&next)) }
            }
            p { a href="/" { "Overview" } " · " a href="/topics" { "All topics" } }
        },
        ..Page::default()
    }
}

/// With a capital letter and a full stop, as a sentence on a page has them.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if text.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

/// The whole document.
pub(crate) fn document(page: &Page, shared: &Shared, request: &Request) -> Markup {
    let theme = request.cookie("theme").filter(|theme| THEMES.contains(theme)).unwrap_or("auto");
    let live = page.live.is_some().then(|| format!("/live{}", request.target));
    html! {
        (DOCTYPE)
        html lang="en" data-theme=(theme) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content=(if theme == "auto" { "light dark" } else { theme });
                title { (page.title) " · Danube" }
                link rel="stylesheet" href="/assets/console.css";
                link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                @if live.is_some() {
                    noscript { meta http-equiv="refresh" content=(REFRESH_S); }
                }
                script src="/assets/console.js" defer {}
            }
            body {
                a.skip href="#content" { "Skip to content" }
                (header(page, shared, request, theme))
                main #content tabindex="-1" {
                    @if !page.trail.is_empty() {
                        nav.trail aria-label="Breadcrumb" {
                            ol { @for (name, path) in &page.trail { li { a href=(path) { (name) } } } }
                        }
                    }
                    div.head {
                        h1 { (page.title) }
                        @if live.is_some() { span #pulse.pulse role="status" { "Refreshes on load" } }
                    }
                    (page.top)
                    @if let (Some(markup), Some(path)) = (&page.live, &live) {
                        div #live data-live=(path) { (markup) }
                    }
                    (page.body)
                    @if !page.lines.is_empty() { (lines(&page.lines)) }
                }
                footer {
                    "Danube " (env!("CARGO_PKG_VERSION")) " · times are UTC · "
                    a href="/metrics" { "metrics" } " · " a href="/healthz" { "health" }
                }
            }
        }
    }
}

fn header(page: &Page, shared: &Shared, request: &Request, theme: &str) -> Markup {
    html! {
        header.top {
            a.brand href="/" { "Danube" }
            nav aria-label="Sections" {
                ul {
                    @for (path, name) in SECTIONS {
                        li {
                            a href=(path) aria-current=[(page.section == *path).then_some("page")] { (name) }
                        }
                    }
                }
            }
            @if shared.access == Access::ReadOnly { span.chip.calm { "Read-only" } }
            form.theme method="post" action="/theme" {
                (crate::form::token(shared))
                input type="hidden" name="then" value=(request.target);
                label for="theme" { "Theme" }
                select #theme name="theme" {
                    @for name in THEMES {
                        option value=(name) selected[name == theme] { (name) }
                    }
                }
                button type="submit" { "Set" }
            }
        }
    }
}

/// Lines for a shell.
pub(crate) fn lines(lines: &[String]) -> Markup {
    html! {
        section.lines aria-labelledby="in-a-shell" {
            h2 #in-a-shell { "The same in a shell" }
            @for line in lines { pre tabindex="0" { code { (line) } } }
        }
    }
}
