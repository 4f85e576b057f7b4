//! `danube start`: a broker in the foreground, from flags to the last byte on disk.
//!
//! It prints one line on stdout, once everything is served; logs and progress go to stderr. The
//! first SIGTERM or Ctrl-C drains and stops, a second one ends at once.
//!
//! Law: the ready line is printed after the sockets accept and never before.

use crate::config::{Flags, LogFormat, Settings};
use crate::failure::Failure;
use crate::notify;
use crate::output;
use crate::signals::Signals;
use crate::traces::Traces;
use danube_broker::{Addresses, Broker, CONSENSUS_LOG_TARGET};
use danube_console::{Access, Console, Options};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Run a broker
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

/// Runs the broker until a signal ends it.
///
/// # Errors
/// [`Exit::Usage`](crate::failure::Exit::Usage) for a bad configuration,
/// [`Exit::Refused`](crate::failure::Exit::Refused) when the broker cannot start or stop.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let mut settings = Settings::load(&arguments.flags, std::env::vars_os())?;
    start_logging(settings.log_format, settings.log_level.as_deref())?;
    if !settings.unknown_variables.is_empty() {
        tracing::warn!(
            variables = settings.unknown_variables.join(", "),
            "environment variables that name no configuration key are ignored"
        );
    }
    let traces = Traces::start(settings.otlp_endpoint.as_deref())?;
    settings.broker.tracer = traces.tracer();
    let mut signals = Signals::listen()?;
    let data_dir = settings.broker.data_dir.display().to_string();

    let access = settings.console;
    if access != Access::Off && !settings.broker.http_addr.ip().is_loopback() {
        tracing::warn!(
            http = %settings.broker.http_addr,
            "the console shows topics and messages to whoever reaches the HTTP address; \
             --console off serves none"
        );
    }
    let console = move |at: Addresses, stopping| {
        Console::new(Options { http: at.http, admin: at.admin, access, stopping }).router()
    };
    let progress = |progress| eprintln!("{progress}");
    let start = Broker::start_with_pages(settings.broker, console, progress);
    let broker = tokio::select! {
        started = start => started.map_err(|error| Failure::refused(error.to_string()))?,
        name = signals.next() => {
            return Err(Failure::refused(format!("stopped by {name} before it was ready")));
        }
    };
    let at = broker.addresses();
    let ready = output::line(format!(
        "danube ready broker=http://{} admin=http://{} http=http://{} data_dir={data_dir}",
        at.broker, at.admin, at.http
    ));
    if let Err(failure) = ready {
        // A closed stdout is no reason to stop serving.
        tracing::warn!(reason = failure.message, "the ready line could not be printed");
    }

    notify::ready();
    let name = signals.next().await;
    notify::stopping();
    tracing::info!(signal = name, "draining; a second signal ends at once");
    let stopped = tokio::select! {
        stopped = broker.stop() => stopped.map_err(|error| error.to_string()),
        name = signals.next() => Err(format!("stopped by a second signal, {name}")),
    };
    traces.finish().await;
    stopped.map_err(|reason| {
        Failure::refused(reason)
            .help("acknowledged messages are safe; start again on the same data directory")
    })?;
    tracing::info!("stopped");
    Ok(())
}

fn start_logging(format: LogFormat, level: Option<&str>) -> Result<(), Failure> {
    let logs =
        tracing_subscriber::fmt().with_env_filter(filter(level)?).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => logs.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => logs.json().init(),
    }
    Ok(())
}

/// What is logged: as configured, else as the usual variable says, else what an operator wants.
fn filter(level: Option<&str>) -> Result<EnvFilter, Failure> {
    if let Some(level) = level {
        return Ok(EnvFilter::new(quiet(level)));
    }
    match std::env::var("RUST_LOG") {
        Ok(directives) if !directives.is_empty() => {
            EnvFilter::try_new(&directives).map_err(|error| {
                Failure::usage(format!(
                    "environment variable RUST_LOG is `{}`: {error}",
                    directives.escape_debug()
                ))
                .help("unset it, or set it to a level such as `info` or `danube_broker=debug`")
            })
        }
        _ => Ok(EnvFilter::new(quiet("info"))),
    }
}

/// Without the story that the consensus library tells, unless the directives name it themselves.
fn quiet(directives: &str) -> String {
    let says_less = ["error", "off"].iter().any(|level| directives.eq_ignore_ascii_case(level));
    if says_less || directives.contains(CONSENSUS_LOG_TARGET) {
        return directives.to_owned();
    }
    format!("{directives},{CONSENSUS_LOG_TARGET}=warn")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_consensus_library_is_quiet_unless_asked() {
        let story = format!("{CONSENSUS_LOG_TARGET}=debug");
        for (given, used) in [
            ("info", format!("info,{CONSENSUS_LOG_TARGET}=warn")),
            (
                "info,danube_broker=debug",
                format!("info,danube_broker=debug,{CONSENSUS_LOG_TARGET}=warn"),
            ),
            ("ERROR", "ERROR".to_owned()),
            (&*story, story.clone()),
        ] {
            assert_eq!(quiet(given), used);
        }
    }
}
