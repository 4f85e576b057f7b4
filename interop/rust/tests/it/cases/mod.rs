//! The cases that people reported of other brokers, with the official client where it can express
//! them. A case that has its test elsewhere is not repeated here.
//!
//! | case | the engine alone (`crates/core/src/subscription/tests`) | the binary |
//! |---|---|---|
//! | U01 a late ack | `cases::u01_*` | `late_ack` |
//! | U02 a consumer dies | `cases::u02_*` | `dying_consumers` |
//! | U03 attempts survive | `cases::u03_*`, `survival::u03_*` | `attempts` |
//! | U04 the exact number of deliveries | `cases::u04_*` | `attempts`, `../poison.rs` |
//! | U05 exact delays | `cases::u05_*` | only the engine's clock can be moved |
//! | U06 waiting in the client's buffer | `ahead::waiting_in_the_clients_buffer_is_no_failure`, the simulator's `unseen_is_blameless` | `buffered` |
//! | U07 a failing dead-letter copy | `failures` | `crates/danube/tests/it/cases/failing_copy.rs` |
//! | U08 replay, cut short and repeated | the broker replays, not the engine | `crates/danube/tests/it/tools/replay.rs` |
//! | U09 KeyShared, the holder dies | `cases::u09_*`, the simulator's `key_order` | `dying_consumers` |
//! | U10 a nack or a block holds its key | `cases::u10_*`, `parking` | `../key_shared.rs`: `..._nack_redelivers_same_message`, `..._block_poison_stalls_only_affected_key` |
//! | U11 Failover | `cases::u11_*` | `failover`, `../active_consumer.rs` |
//! | U12 seek with messages in flight | `cases::u12_*` | `crates/danube/tests/it/tools/seek.rs` |
//! | U15 ack holes and a restart | `cases::u15_*` | `ack_holes`, `crates/danube/tests/it/cases/late_acks.rs` |
//! | U22 peek leaves no trace | no engine is asked | `crates/danube/tests/it/tools/peek.rs` |
//! | U25 a lost lease stays lost | `leases`, the simulator's `lost_is_lost` | `crates/broker/src/topic/reliable/tests.rs`; this client's wire has no leases |

mod ack_holes;
mod attempts;
mod buffered;
mod dying_consumers;
mod failover;
mod late_ack;
mod puppet;

use crate::broker::Broker;

const TOPIC: &str = "/default/cases";
const DEAD_LETTERS: &str = "/default/cases-dlq";
const SUB: &str = "s";

/// A broker with a task queue, whose subscription has this policy on top of its intent's.
async fn task_queue(policy: &str) -> Broker {
    let broker = Broker::start().await;
    broker.ctl(&format!("topics create {TOPIC} --intent task_queue")).await;
    broker.ctl(&format!("topics set-failure-policy {TOPIC} -s {SUB} {policy}")).await;
    broker
}
