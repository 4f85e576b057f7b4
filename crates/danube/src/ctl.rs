//! `danube ctl`: the operators' tool, over the admin port. A thin shell around the operations:
//! where the broker is, how the result is printed, and the exit code.
//!
//! Law: no verb is known here by name; all of them come from [`danube_ops::OPS`].

use crate::failure::Failure;
use crate::output;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use danube_ops::{Call, Reply, Session};

/// What every verb takes.
#[derive(Debug, Args)]
struct Common {
    /// The broker's admin address
    #[arg(
        long,
        value_name = "URL",
        env = "DANUBE_ADMIN_ENDPOINT",
        default_value = "http://127.0.0.1:50051",
        global = true
    )]
    endpoint: String,
    /// How to print the result
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "table", global = true)]
    output: Format,
}

/// How a result is printed.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    /// For people
    #[value(alias = "text")]
    Table,
    /// For programs
    Json,
}

/// One verb with its arguments.
#[derive(Debug)]
pub struct Arguments {
    common: Common,
    call: Call,
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Arguments, clap::Error> {
        let common = Common::from_arg_matches(matches)?;
        Ok(Arguments { common, call: danube_ops::find(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Arguments::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        danube_ops::commands(Common::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Arguments::augment_args(command)
    }
}

/// Runs one verb.
///
/// # Errors
/// What the broker said, or that it cannot be reached;
/// [`Exit::Partial`](crate::failure::Exit::Partial) when some of it was done, which is printed;
/// [`Exit::Refused`](crate::failure::Exit::Refused) when the answer that is printed is a no.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    // The brokers' histories say who changed what.
    let user = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    let session = Session::new(arguments.common.endpoint).acting_as(&user.unwrap_or_default());
    let Reply { data, text, notes, partial, refused } = arguments.call.run(&session).await?;
    match arguments.common.output {
        Format::Table if text.is_empty() => {}
        Format::Table => output::line(text)?,
        Format::Json => output::json(&data)?,
    }
    for note in notes {
        eprintln!("note: {note}");
    }
    match (refused, partial) {
        (Some(why), _) => Err(Failure::refused(why)),
        (None, Some(what)) => Err(Failure::partial(what)),
        (None, None) => Ok(()),
    }
}
