//! The bounds that keep a hostile definition or payload from stalling a broker.
//!
//! Definitions have fixed bounds, so that a subject cannot be registered on one broker and refused
//! by the next. Payload bounds are the caller's, with a default.

/// Longest definition, in bytes.
pub const DEFINITION_LEN_MAX: usize = 512 * 1024;

/// Deepest nesting of brackets in a definition.
pub const DEFINITION_NESTING_MAX: usize = 100;

/// Most definitions that one definition may pull in, directly or through others.
pub const REFERENCES_MAX: usize = 64;

/// Most bytes that referred definitions may have together.
pub const REFERENCES_LEN_MAX: usize = 2 * 1024 * 1024;

/// Most faults that a verdict or a payload check lists; past it they say that there are more.
pub const FAULTS_MAX: usize = 100;

/// Steps that one comparison of two schemas may take before it is given up as undecided.
pub(crate) const COMPARE_WORK_MAX: u64 = 400_000;

/// Steps that one check against all versions may take; what is left over then is undecided.
pub(crate) const CHECK_WORK_MAX: u64 = 5 * COMPARE_WORK_MAX;

/// Nodes that one definition may have once its references are in place.
pub(crate) const NODES_MAX: usize = 60_000;

const _: () = assert!(DEFINITION_NESTING_MAX < 128, "serde_json stops at 128 by itself");

/// What one payload may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadLimits {
    /// Steps of validation: values visited, times the places of the schema that look at them.
    pub work_max: u64,
    /// Deepest nesting of values.
    pub depth_max: u32,
    /// Longest data after unpacking the compressed blocks of an Avro container, in bytes.
    pub unpacked_len_max: usize,
    /// Most faults to report; the first one already refuses the payload.
    pub faults_max: usize,
}

impl Default for PayloadLimits {
    fn default() -> PayloadLimits {
        PayloadLimits {
            work_max: 20_000_000,
            depth_max: 100,
            unpacked_len_max: 64 * 1024 * 1024,
            faults_max: 10,
        }
    }
}
