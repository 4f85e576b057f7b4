//! What a connection publishes, and when.
//!
//! A payload can carry when it was meant to be sent and its number, so that whoever receives it
//! knows its age and what is missing.
//!
//! Law: with a rate, a message is due at its time whatever became of those before it, and its age
//! counts from then.

use super::load::Pace;
use bytes::{BufMut, Bytes, BytesMut};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};

/// Bytes of the time and the number at the front of a stamped payload.
pub const STAMP_LEN: usize = 16;
/// Messages that are due and wait to be published.
const DUE_MAX: usize = 65_536;

/// What one connection publishes.
#[derive(Debug)]
pub struct Source {
    pace: Arc<Pace>,
    payload: Bytes,
    /// The time from which ages count.
    epoch: Option<Instant>,
    /// One for each message that may be under way, given back by whoever receives it.
    permits: Option<Arc<Semaphore>>,
    due: Option<mpsc::Receiver<Duration>>,
}

impl Source {
    /// The same payload as often as `pace` has it.
    pub fn new(pace: Arc<Pace>, payload: Bytes) -> Source {
        Source { pace, payload, epoch: None, permits: None, due: None }
    }

    /// Payloads carry their time since `epoch`, and their number.
    pub fn stamped(self, epoch: Instant) -> Source {
        Source { epoch: Some(epoch), ..self }
    }

    /// A message waits for a permit.
    pub fn limited(self, permits: Arc<Semaphore>) -> Source {
        Source { permits: Some(permits), ..self }
    }

    /// Messages are due `rate` times a second from now on. Ends by itself when this value goes.
    pub fn paced(self, rate: u32, epoch: Instant) -> Source {
        let (tell, due) = mpsc::channel(DUE_MAX);
        let begin = epoch.elapsed();
        // A thread, because a runtime's timers are too coarse.
        std::thread::spawn(move || {
            for number in 0_u64.. {
                let at = begin + Duration::from_nanos(number * 1_000_000_000 / u64::from(rate));
                while let Some(rest) = at.checked_sub(epoch.elapsed()) {
                    std::thread::park_timeout(rest);
                }
                if tell.blocking_send(at).is_err() {
                    return;
                }
            }
        });
        Source { due: Some(due), epoch: Some(epoch), ..self }
    }

    /// The next payload, as soon as it may go; `None` when the run is over.
    pub async fn next(&mut self) -> Option<Bytes> {
        let at = match &mut self.due {
            None => None,
            Some(due) => due.recv().await,
        };
        if let Some(permits) = &self.permits {
            permits.acquire().await.expect("the semaphore is never closed").forget();
        }
        self.payload(at)
    }

    /// Up to `count` more payloads, without waiting: none where each has its time or its permit.
    pub fn ready(&mut self, count: u32) -> impl Iterator<Item = Bytes> {
        let is_free = self.due.is_none() && self.permits.is_none();
        let count = if is_free { count } else { 0 };
        (0..count).map_while(|_| self.payload(None))
    }

    fn payload(&self, at: Option<Duration>) -> Option<Bytes> {
        let number = self.pace.take()?;
        let Some(epoch) = self.epoch else { return Some(self.payload.clone()) };
        let at = at.unwrap_or_else(|| epoch.elapsed());
        let mut payload = BytesMut::with_capacity(self.payload.len());
        payload.put_u64(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
        payload.put_u64(number);
        payload.put_slice(&self.payload[payload.len().min(self.payload.len())..]);
        Some(payload.freeze())
    }
}

/// When a stamped payload was meant to be sent, since the epoch, and its number.
pub fn stamp(payload: &[u8]) -> Option<(Duration, u64)> {
    let (at, rest) = payload.split_first_chunk()?;
    let number = rest.first_chunk()?;
    Some((Duration::from_nanos(u64::from_be_bytes(*at)), u64::from_be_bytes(*number)))
}

/// Which of the numbered messages came, and how often.
#[derive(Debug, Default)]
pub struct Seen {
    came: Vec<bool>,
    /// Different messages.
    pub unique: u64,
    /// Messages that came before.
    pub duplicates: u64,
}

impl Seen {
    /// Takes one in.
    pub fn mark(&mut self, number: u64) {
        let index = usize::try_from(number).expect("a run has fewer messages");
        if index >= self.came.len() {
            self.came.resize((index + 1).next_power_of_two(), false);
        }
        match std::mem::replace(&mut self.came[index], true) {
            false => self.unique += 1,
            true => self.duplicates += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stamp_comes_back_and_the_rest_stays() {
        let pace = Arc::new(Pace::of_count(2));
        let payload = Bytes::from(vec![b'd'; 20]);
        let mut source = Source::new(pace, payload).stamped(Instant::now());
        let first = source.next().await.expect("two are to come");
        assert_eq!((first.len(), &first[STAMP_LEN..]), (20, &b"dddd"[..]));
        let second = source.next().await.expect("two are to come");
        assert_eq!(stamp(&second).map(|(_, number)| number), Some(1));
        assert!(stamp(&first) < stamp(&second));
        assert!(source.next().await.is_none());
    }

    #[test]
    fn what_came_twice_counts_once() {
        let mut seen = Seen::default();
        [0, 9, 3, 9].into_iter().for_each(|number| seen.mark(number));
        assert_eq!((seen.unique, seen.duplicates), (3, 1));
    }
}
