//! SIGKILL at random moments under load: nothing acknowledged is lost, reordered or undone, and
//! nothing is invented.

use crate::harness::Node;
use crate::load::Load;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::block_in_place;

/// Kills on one data directory.
const ROUNDS: u32 = 20;
/// Longest life under load; short ones also end in the middle of the clients' attaching.
const LIFE_MAX_US: u64 = 200_000;

/// A small generator of our own (xorshift64), so that a printed seed is enough to try again.
pub struct Random(u64);

impl Random {
    /// From DANUBE_TEST_SEED, or from the clock.
    pub fn seeded() -> (Random, u64) {
        let given = std::env::var("DANUBE_TEST_SEED").ok();
        let seed = given.map_or_else(
            || {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::from(since.subsec_nanos()) ^ since.as_secs() << 30
            },
            |text| text.parse().expect("DANUBE_TEST_SEED is a number"),
        );
        (Random(seed | 1), seed)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_sigkill() {
    let (mut random, seed) = Random::seeded();
    println!("moments from DANUBE_TEST_SEED={seed}");
    let mut node = block_in_place(Node::start);
    let addresses = node.addresses().clone();
    let mut load = Load::set_up(&addresses).await;
    for round in 1..=ROUNDS {
        // Every fifth life is a long one, so that each run acknowledges a good deal.
        let life = if round % 5 == 0 { LIFE_MAX_US } else { random.below(LIFE_MAX_US) };
        let killing = async {
            tokio::time::sleep(Duration::from_micros(life)).await;
            block_in_place(|| node.kill());
        };
        load.run(&addresses, killing).await;
        block_in_place(|| node.restart());
        println!("round {round}: killed after {life} us, {} acknowledged", load.acknowledged());
    }
    assert!(load.acknowledged() > 0, "the broker served under load");
    load.check(&addresses).await;
}
