//! The life of a producer's attachment to a broker, wherever its topic is.
//!
//! Two loops share a task: one keeps the producer attached, the other looks after what time does to
//! the queue.
//!
//! Law: while nobody can be reached the pauses grow, and what waits fails no later than its own time
//! limit.

use super::{Lane, Session};
use crate::cluster::Cluster;
use crate::error::{Error, Trouble};
use crate::producer::queue::Next;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

impl Lane {
    /// Keeps the producer attached until it is closed or over. `opened` learns how the first
    /// attach went.
    pub(in crate::producer) async fn run(
        self: Arc<Lane>,
        cluster: Arc<Cluster>,
        opened: oneshot::Sender<Result<(), Error>>,
    ) {
        tokio::select! {
            () = self.stay_attached(&cluster, opened) => {}
            () = self.keep_time() => {}
        }
        self.over(Error::Closed { who: self.who.clone() });
    }

    async fn stay_attached(
        self: &Arc<Lane>,
        cluster: &Arc<Cluster>,
        opened: oneshot::Sender<Result<(), Error>>,
    ) {
        let mut opened = Some(opened);
        let give_up_at = Instant::now() + self.timeout;
        let mut failures = 0;
        loop {
            let trouble = match self.attach(cluster).await {
                Err(trouble) => trouble,
                Ok(()) => {
                    if let Some(opened) = opened.take() {
                        // Whoever opened may have gone away meanwhile.
                        let _ = opened.send(Ok(()));
                    }
                    let began = Instant::now();
                    let Some(trouble) = self.session_ends().await else { return };
                    // A session that ends soon, again and again, is a failure too.
                    if began.elapsed() > cluster.options.pause_max {
                        failures = 0;
                    }
                    trouble
                }
            };
            failures += 1;
            let (mut why, mut after) = (trouble.why().clone(), None);
            if let Trouble::Passing { after: least, .. } = trouble {
                after = Some(least.max(cluster.options.pause(failures)));
            }
            if opened.is_some() && after.is_some_and(|after| Instant::now() + after > give_up_at) {
                (why, after) = (trouble.why().clone(), None);
            }
            let Some(pause) = after else {
                tracing::warn!(error = %why, "{} is over", self.who);
                self.over(why.clone());
                if let Some(opened) = opened.take() {
                    let _ = opened.send(Err(why));
                }
                return;
            };
            tracing::warn!(error = %why, ?pause, "{} is attached again", self.who);
            if self.is_done() {
                return;
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Whether it was let go and has nothing to send any more.
    fn is_done(&self) -> bool {
        let inner = self.inner.lock();
        inner.is_released && inner.queue.is_empty()
    }

    async fn attach(self: &Arc<Lane>, cluster: &Arc<Cluster>) -> Result<(), Trouble> {
        let attach = async {
            let route = cluster.route(&self.spec.topic).await.map_err(Trouble::from_error)?;
            let link = cluster.link(&route);
            {
                let mut inner = self.inner.lock();
                let Some(number) = link.add(self) else {
                    let why = Error::Unreachable {
                        url: route.broker_url,
                        why: "the stream just ended".to_owned(),
                    };
                    return Err(Trouble::Passing { why, after: Duration::ZERO });
                };
                inner.session = Session::Opening { link: link.clone(), number, is_sent: false };
                inner.is_marked = true;
            }
            link.mark(self);
            self.opening_ends().await
        };
        match tokio::time::timeout(self.timeout, attach).await {
            Ok(attached) => attached,
            Err(_) => {
                let doing = format!("attaching {}", self.who);
                let why = Error::Timeout { doing, after: self.timeout };
                let trouble = Trouble::Passing { why, after: Duration::ZERO };
                self.leave_link(&trouble);
                Err(trouble)
            }
        }
    }

    /// The broker is silent about this producer, so a late answer must not find it.
    fn leave_link(self: &Arc<Lane>, trouble: &Trouble) {
        let left = self.inner.lock().leave(trouble.clone());
        if let Some((link, number)) = left {
            link.leave(number, self.timeout);
        }
    }

    async fn opening_ends(&self) -> Result<(), Trouble> {
        loop {
            let changed = self.changed.notified();
            match &self.inner.lock().session {
                Session::Attached { .. } => return Ok(()),
                Session::Ended(trouble) => return Err(trouble.clone()),
                _ => {}
            }
            changed.await;
        }
    }

    /// Waits until the session ends; `None` when the producer is closed.
    async fn session_ends(&self) -> Option<Trouble> {
        loop {
            let changed = self.changed.notified();
            match &self.inner.lock().session {
                Session::Ended(trouble) => return Some(trouble.clone()),
                Session::Closed => return None,
                _ => {}
            }
            changed.await;
        }
    }

    /// Looks after lingering, holds and time limits; never ends.
    async fn keep_time(self: &Arc<Lane>) {
        loop {
            let now = Instant::now();
            let (mut next, mut left) = (None, None);
            self.step(|inner| {
                if let Next::Reopen(trouble) = inner.queue.expire(now) {
                    left = inner.leave(trouble);
                }
                next = inner.queue.next_deadline(now);
            });
            if let Some((link, number)) = left {
                link.leave(number, self.timeout);
                self.changed.notify_one();
            }
            // What comes from now on has until then at the least, so nobody need wake this loop
            // for it.
            let next = next.unwrap_or(now + self.timeout);
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => {}
                () = self.sooner.notified() => {}
            }
        }
    }
}
