//! What changes on a page, sent again while somebody looks (server-sent events).
//!
//! A viewer asks for a page's living part; it is made anew every two seconds and sent when it has
//! changed. Law: so many viewers and no more, each ends when its browser goes or the broker stops,
//! and without one nothing of this runs.

use crate::problem::Problem;
use crate::request::Request;
use crate::server::Shared;
use axum::response::IntoResponse;
use axum::response::Response;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::stream;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Viewers at a time.
pub(crate) const VIEWERS_MAX: usize = 32;
/// Pause between two looks.
const PAUSE: Duration = Duration::from_secs(2);

/// One viewer.
struct Viewer {
    shared: Arc<Shared>,
    request: Request,
    shown: String,
    is_over: bool,
    _permit: OwnedSemaphorePermit,
}

/// Follows the page of `request`.
///
/// # Errors
/// When there are too many viewers, or the page has nothing that lives.
pub(crate) async fn follow(shared: Arc<Shared>, request: Request) -> Result<Response, Problem> {
    let permit = Arc::clone(&shared.viewers).try_acquire_owned().map_err(|_| {
        Problem::busy(format!("{VIEWERS_MAX} pages are being followed already"))
            .next("reload the page to see it as it is then")
    })?;
    let page = crate::pages::show(&shared, &request).await?;
    if page.live.is_none() {
        return Err(Problem::not_found("nothing on this page changes by itself"));
    }
    let viewer = Viewer { shared, request, shown: String::new(), is_over: false, _permit: permit };
    let events = stream::unfold(viewer, Viewer::next);
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
        .into_response())
}

impl Viewer {
    /// The next event; none when the page is gone or the broker stops.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Viewer)> {
        if self.is_over {
            return None;
        }
        // The page that it has is as old as this pause at most.
        tokio::select! {
            () = self.shared.stopping.cancelled() => return None,
            () = tokio::time::sleep(PAUSE) => {}
        }
        let event = match crate::pages::show(&self.shared, &self.request).await {
            Ok(page) => self.told(page.live.map(|live| live.into_string()).unwrap_or_default()),
            Err(problem) => {
                self.is_over = true;
                Event::default().event("over").data(problem.message.replace(['\r', '\n'], " "))
            }
        };
        Some((Ok(event), self))
    }

    /// The living part as it is now, if it is not as it was.
    fn told(&mut self, markup: String) -> Event {
        if markup == self.shown {
            return Event::default().event("same").data("");
        }
        // An event has no carriage returns; to a browser they are the same so.
        let event = Event::default().event("live").data(markup.replace('\r', "&#13;"));
        self.shown = markup;
        event
    }
}
