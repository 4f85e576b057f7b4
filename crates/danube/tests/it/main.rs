//! The binary seen from outside: its flags, its configuration, and a broker as a child process.
//!
//! Every test starts the real `danube`; what one function decides is tested beside it.

mod apply;
mod bad_input;
mod cases;
mod cli;
mod comforts;
mod config;
mod console;
mod crash;
mod crash_many_topics;
mod ctl;
mod demo;
mod deploy;
mod disk_full;
mod doctor;
mod harness;
mod limits;
mod load;
mod platform;
mod retention;
mod schemas;
mod sdk;
mod stop;
mod tools;
mod traces;
mod wire;
