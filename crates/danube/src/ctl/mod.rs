//! `danube ctl`: the operators' tool, over the admin port.
//!
//! One folder per noun, one file per verb: its arguments, what it asks the broker, how it prints
//! the answer. A new verb is a file and a line in its noun's list.
//!
//! Law: a verb decides nothing that the broker could; it turns arguments into one request.

mod admin;
mod metadata;
mod namespaces;
mod topics;

use crate::failure::Failure;
use admin::Admin;

/// Create, describe and change topics, namespaces and metadata
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The broker's admin address
    #[arg(
        long,
        value_name = "URL",
        env = "DANUBE_ADMIN_ENDPOINT",
        default_value = "http://127.0.0.1:50051",
        global = true
    )]
    endpoint: String,
    #[command(subcommand)]
    noun: Noun,
}

#[derive(Debug, clap::Subcommand)]
enum Noun {
    /// Topics and their subscriptions
    #[command(subcommand)]
    Topics(topics::Verb),
    /// Namespaces, which topics live in
    #[command(subcommand)]
    Namespaces(namespaces::Verb),
    /// The documents the broker keeps about all of it
    #[command(subcommand)]
    Metadata(metadata::Verb),
}

/// Runs one verb.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    // Connects when the first request is ready, so that bad arguments are told first.
    let admin = Admin::new(arguments.endpoint);
    match arguments.noun {
        Noun::Topics(verb) => topics::run(verb, &admin).await,
        Noun::Namespaces(verb) => namespaces::run(verb, &admin).await,
        Noun::Metadata(verb) => metadata::run(verb, &admin).await,
    }
}
