//! Tests of the whole engine: scripts with their traces, and random histories against a model.

mod ahead;
mod cases;
mod failures;
mod leases;
mod modes;
mod parking;
mod random;
mod robust;
mod script;
mod survival;
