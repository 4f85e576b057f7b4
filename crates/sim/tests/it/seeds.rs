//! A few fixed histories, and some that proptest draws.

use proptest::prelude::*;

#[test]
fn fixed_seeds_keep_every_invariant() {
    for seed in 0..150 {
        if let Err(failure) = danube_sim::run(seed, 600, None) {
            panic!("{failure}");
        }
    }
}

#[test]
fn a_seed_plays_the_same_history_again() {
    let report = || format!("{:?}", danube_sim::run(7, 600, None));
    assert_eq!(report(), report());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_seed_keeps_every_invariant(seed in any::<u64>(), operations in 0_u32..600) {
        let played = danube_sim::run(seed, operations, None);
        prop_assert!(played.is_ok(), "{}", played.err().map(|f| f.to_string()).unwrap_or_default());
    }
}
