//! Nothing of its own: the tests in `tests/it` drive a broker with the published official client.
//!
//! They need the broker's binary in the environment variable `DANUBE_BIN`; run them from this
//! folder, so that cargo reads `.cargo/config.toml` (it says why).

/// The program of the guide compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/clients/rust-official.md")]
struct Guide;
