//! Histories of a store on a disk that fails: the power-loss model.
//!
//! A [`history`] is everything between an empty disk and the last look at it: processes that
//! start, append, record, die and start again. All of it follows from one number.
//!
//! | question | look in |
//! |---|---|
//! | what a power loss leaves of a file | `inode` |
//! | what can fail, and when | `faults`, `disk`, `disk/face` |
//! | what a process does in its life | `history`, `history/beside`, `life` |
//! | what must be true | `oracle` |
//! | how we know that this finds anything | `lies` |

pub mod disk;
pub mod faults;
pub mod history;
mod inode;
pub mod lies;
mod life;
mod oracle;
pub mod random;
