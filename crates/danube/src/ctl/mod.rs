//! `danube ctl`: the operators' tool, over the admin port. A thin shell around the operations:
//! where the broker is, how the result is printed, and the exit code.
//!
//! Law: no verb is known here by name; all of them come from [`danube_ops::OPS`], but for
//! `context`, which is about this machine and asks nobody.

mod context;
mod watch;

use crate::failure::Failure;
use crate::output;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use danube_ops::{Reply, Session};

/// Where a broker is when nobody says anything.
const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:50051";

/// What every verb takes.
#[derive(Debug, Args)]
struct Common {
    /// The broker's admin address [default: that of the context, else http://127.0.0.1:50051]
    #[arg(long, value_name = "URL", env = "DANUBE_ADMIN_ENDPOINT", global = true)]
    endpoint: Option<String>,
    /// The cluster to talk to, by its name in the context file
    #[arg(long, value_name = "NAME", env = "DANUBE_CONTEXT", global = true)]
    context: Option<String>,
    /// How to print the result
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "table", global = true)]
    output: Format,
    /// Print it again each time it has changed, looking every SECONDS
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2",
        value_parser = clap::value_parser!(u64).range(1..=3_600),
        global = true
    )]
    watch: Option<u64>,
}

/// How a result is printed.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    /// For people
    #[value(alias = "text")]
    Table,
    /// For programs
    Json,
    /// For programs and people
    Yaml,
}

/// One verb with its arguments.
#[derive(Debug)]
pub struct Arguments {
    common: Common,
    endpoint_is_flag: bool,
    what: What,
}

#[derive(Debug)]
enum What {
    /// An operation. It is parsed each time it runs, which with `--watch` is more than once.
    Operation(ArgMatches),
    /// Something about the context file.
    Context(context::Arguments),
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Arguments, clap::Error> {
        let common = Common::from_arg_matches(matches)?;
        let what = match matches.subcommand() {
            Some(("context", of_context)) => {
                What::Context(context::Arguments::from_arg_matches(of_context)?)
            }
            _ => {
                // What is wrong with it is told now.
                danube_ops::find(matches)?;
                What::Operation(matches.clone())
            }
        };
        let endpoint_is_flag = matches.value_source("endpoint") == Some(ValueSource::CommandLine);
        Ok(Arguments { common, endpoint_is_flag, what })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Arguments::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let context = context::Arguments::augment_args(Command::new("context"))
            .about("The clusters that this machine knows by name");
        danube_ops::commands(Common::augment_args(command)).subcommand(context)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Arguments::augment_args(command)
    }
}

impl Arguments {
    /// Flag before flag, then environment, then the current context, then the default.
    fn endpoint(&self) -> Result<String, Failure> {
        let Common { endpoint, context, .. } = &self.common;
        match (endpoint, context) {
            (Some(endpoint), _) if self.endpoint_is_flag => Ok(endpoint.clone()),
            (_, Some(name)) => context::Contexts::read()?.endpoint(name),
            (given, None) => crate::ctl::endpoint(given.clone()),
        }
    }
}

/// The admin address that a flag, the current context or nobody names.
///
/// # Errors
/// What is wrong with the context file.
pub fn endpoint(flag: Option<String>) -> Result<String, Failure> {
    match flag {
        Some(endpoint) => Ok(endpoint),
        None => {
            let current = context::Contexts::read()?.current()?;
            Ok(current.unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned()))
        }
    }
}

/// The brokers' histories say who changed what.
fn acting(endpoint: String) -> Session {
    let user = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    Session::new(endpoint).acting_as(&user.unwrap_or_default())
}

/// Runs one verb.
///
/// # Errors
/// What the broker said, or that it cannot be reached;
/// [`Exit::Partial`](crate::failure::Exit::Partial) when some of it was done, which is printed;
/// [`Exit::Refused`](crate::failure::Exit::Refused) when the answer that is printed is a no;
/// [`Exit::Pending`](crate::failure::Exit::Pending) after a dry run that found something to do.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let matches = match &arguments.what {
        What::Context(context) => return context::run(context, arguments.common.output),
        What::Operation(matches) => matches,
    };
    let call = danube_ops::find(matches).map_err(|error| Failure::usage(error.to_string()))?;
    let session = acting(arguments.endpoint()?);
    let format = arguments.common.output;
    if let Some(seconds) = arguments.common.watch {
        return watch::run(matches, &session, format, seconds).await;
    }
    let Reply { data, text, notes, partial, refused, pending } = call.run(&session).await?;
    print(format, &data, &text)?;
    for note in notes {
        eprintln!("note: {note}");
    }
    match (refused, partial) {
        (Some(why), _) => Err(Failure::refused(why)),
        (None, Some(what)) => Err(Failure::partial(what)),
        (None, None) if pending => Err(Failure::pending()),
        (None, None) => Ok(()),
    }
}

fn print(format: Format, data: &serde_json::Value, text: &str) -> Result<(), Failure> {
    match format {
        Format::Table if text.is_empty() => Ok(()),
        Format::Table => output::line(text),
        Format::Json => output::json(data),
        Format::Yaml => output::yaml(data),
    }
}
