//! The store seen from outside: its promises, held against a disk that breaks.

mod corpus;
mod power_loss;
mod sim;
