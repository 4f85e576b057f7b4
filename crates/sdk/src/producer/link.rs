//! The one Publish stream from this client to one broker, shared by all its producers.
//!
//! The sending half is pulled: whenever the connection takes more, it asks [`Outbox`], which
//! gathers what all producers have ready into one request. So batches grow by themselves while
//! the connection is busy, and nothing waits in a queue between a producer and the wire.
//!
//! Law: an answer reaches the producer that it names, or nobody.

use super::batch::Budget;
use super::lane::Lane;
use crate::cluster::{Cluster, Purpose, Route};
use crate::error::{Error, Trouble};
use danube_wire::stream::{self, PublishRequest, PublishResponse};
use futures::Stream;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Largest answer that is taken, in bytes: many producers may be answered at once.
const RESPONSE_LEN_MAX: usize = 16 * 1024 * 1024;

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct Link {
    route: Route,
    state: Mutex<State>,
    /// Nobody wants the stream any more.
    stop: Notify,
}

#[derive(Debug)]
struct State {
    lanes: HashMap<u32, Arc<Lane>>,
    next_number: u32,
    /// Those that have something to send; each at most once.
    ready: VecDeque<Arc<Lane>>,
    outbox: Option<Waker>,
    is_ended: bool,
    last_answer: Instant,
}

impl State {
    fn wake_outbox(&mut self) -> Option<Waker> {
        self.outbox.take()
    }

    /// Without producers the stream has no use.
    fn end_if_unused(&mut self) -> Option<Waker> {
        if !self.lanes.is_empty() {
            return None;
        }
        self.is_ended = true;
        self.wake_outbox()
    }
}

impl Link {
    /// Begins a stream to the broker of `route`.
    pub(crate) fn start(cluster: &Arc<Cluster>, route: Route) -> Arc<Link> {
        let state = State {
            lanes: HashMap::new(),
            next_number: 1,
            ready: VecDeque::new(),
            outbox: None,
            is_ended: false,
            last_answer: Instant::now(),
        };
        let link = Arc::new(Link { route, state: Mutex::new(state), stop: Notify::new() });
        tokio::spawn(Arc::clone(&link).run(Arc::clone(cluster)));
        link
    }

    /// Whether no producer can join any more.
    pub(crate) fn is_ended(&self) -> bool {
        self.state.lock().is_ended
    }

    /// Takes a producer in and gives it a number; `None` when the stream is over.
    pub(super) fn add(&self, lane: &Arc<Lane>) -> Option<u32> {
        let mut state = self.state.lock();
        if state.is_ended {
            return None;
        }
        let number = state.next_number;
        state.next_number += 1;
        state.lanes.insert(number, Arc::clone(lane));
        Some(number)
    }

    /// `lane` has something to send.
    pub(super) fn mark(&self, lane: &Arc<Lane>) {
        let mut state = self.state.lock();
        state.ready.push_back(Arc::clone(lane));
        let waker = state.wake_outbox();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// A producer gives up on being answered. If nobody was answered for `silence_max`, the
    /// stream itself is to blame and ends.
    pub(super) fn leave(&self, number: u32, silence_max: Duration) {
        let mut state = self.state.lock();
        state.lanes.remove(&number);
        let waker = match state.last_answer.elapsed() >= silence_max {
            true => {
                state.is_ended = true;
                self.stop.notify_one();
                state.wake_outbox()
            }
            false => state.end_if_unused(),
        };
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    async fn run(self: Arc<Link>, cluster: Arc<Cluster>) {
        let served = tokio::select! {
            served = self.serve(&cluster) => served,
            () = self.stop.notified() => Ok(()),
        };
        let trouble = match served {
            Err(error) => Trouble::from_error(error),
            Ok(()) => {
                let why = "the broker ended the stream".to_owned();
                let url = self.route.broker_url.clone();
                Trouble::Passing { why: Error::Unreachable { url, why }, after: Duration::ZERO }
            }
        };
        self.end(&trouble);
    }

    async fn serve(self: &Arc<Link>, cluster: &Arc<Cluster>) -> Result<(), Error> {
        let url = &self.route.connect_url;
        let mut channel = cluster.channel(url, Purpose::Publish).await?;
        let doing = format!("publishing to the broker at `{url}`");
        let failed = |status| Error::from_status(url, &doing, &status);
        let request = self.route.request(Outbox(Arc::clone(self)));
        let publish = stream::publish(&mut channel, request, RESPONSE_LEN_MAX);
        let mut answers = cluster.options.call(publish).await.map_err(failed)?;
        tracing::debug!(broker = url, "publish stream is open");
        while let Some(answer) = answers.message().await.map_err(failed)? {
            self.take(answer);
        }
        Ok(())
    }

    fn end(&self, trouble: &Trouble) {
        let mut state = self.state.lock();
        state.is_ended = true;
        state.ready.clear();
        let lanes = std::mem::take(&mut state.lanes);
        let waker = state.wake_outbox();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        lanes.into_values().for_each(|lane| lane.detached(trouble.clone()));
    }

    fn take(&self, answer: PublishResponse) {
        self.state.lock().last_answer = Instant::now();
        for opened in answer.opened {
            if let Some(lane) = self.lane(opened.producer) {
                lane.opened(&opened, &self.route.broker_url);
            }
        }
        for ack in answer.acks {
            if let Some(lane) = self.lane(ack.producer) {
                lane.acked(&ack);
            }
        }
        for refusal in answer.refusals {
            let number = refusal.producer;
            if let Some(lane) = self.lane(number)
                && lane.refused(refusal)
            {
                self.forget(number);
            }
        }
        for closed in answer.closed {
            if let Some(lane) = self.forget(closed.producer) {
                lane.closed();
            }
        }
    }

    fn lane(&self, number: u32) -> Option<Arc<Lane>> {
        self.state.lock().lanes.get(&number).cloned()
    }

    fn forget(&self, number: u32) -> Option<Arc<Lane>> {
        let mut state = self.state.lock();
        let lane = state.lanes.remove(&number);
        let waker = state.end_if_unused();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        lane
    }
}

/// The requests of a link, gathered when they are asked for.
struct Outbox(Arc<Link>);

impl Stream for Outbox {
    type Item = PublishRequest;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<PublishRequest>> {
        let link = &self.0;
        let mut request = PublishRequest::default();
        let mut budget = Budget::of_request();
        while !budget.is_used_up() {
            let lane = {
                let mut state = link.state.lock();
                let Some(lane) = state.ready.pop_front() else {
                    if !is_empty(&request) {
                        break;
                    }
                    if state.is_ended {
                        return Poll::Ready(None);
                    }
                    state.outbox = Some(context.waker().clone());
                    return Poll::Pending;
                };
                lane
            };
            if lane.collect(link, &mut request, &mut budget) {
                link.state.lock().ready.push_back(lane);
            }
        }
        Poll::Ready(Some(request))
    }
}

fn is_empty(request: &PublishRequest) -> bool {
    request.open.is_empty() && request.batches.is_empty() && request.close.is_empty()
}
