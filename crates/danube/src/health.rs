//! `danube health`: whether a broker on this machine is ready, for probes that have no HTTP client.
//!
//! It asks `/readyz` and says yes with exit code 0. Law: it ends within its time limit.

use crate::failure::Failure;
use crate::output;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes of an answer that are looked at.
const ANSWER_LEN_MAX: usize = 4_096;

/// Ask a broker whether it is ready; exit code 0 says yes
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The broker's HTTP address
    #[arg(
        long,
        value_name = "ADDR:PORT",
        env = "DANUBE_HTTP_ADDR",
        default_value = "127.0.0.1:8080"
    )]
    http_addr: String,
    /// How long it may take to answer, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2_000)]
    timeout_ms: u64,
}

/// Asks once.
///
/// # Errors
/// [`Exit::Refused`](crate::failure::Exit::Refused) when it is not ready,
/// [`Exit::Unreachable`](crate::failure::Exit::Unreachable) when nobody answers in time.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { http_addr, timeout_ms } = arguments;
    // Where it listens on every address, this machine is one of them.
    let address = http_addr.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:");
    let asked = tokio::time::timeout(Duration::from_millis(timeout_ms), ask(&address)).await;
    let why = match asked {
        Ok(Ok(answer)) => return judge(&address, &answer),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {timeout_ms} ms"),
    };
    Err(Failure::unreachable(format!("nobody answers at {address}: {why}"))
        .help("is the broker running, and is this its --http-addr?"))
}

async fn ask(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    // Who listens there and breaks off is something else than a broker; what it said tells.
    let _ = stream.take(ANSWER_LEN_MAX as u64).read_to_end(&mut answer).await;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Looks at the answer.
fn judge(address: &str, answer: &str) -> Result<(), Failure> {
    let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.split(' ').next());
    let body = answer.rsplit("\r\n\r\n").next().unwrap_or("").trim();
    match status {
        Some("200") => output::line("ready"),
        Some("503") => {
            Err(Failure::refused(format!("the broker at {address} is not ready: {body}")))
        }
        _ => Err(Failure::refused(format!("what answers at {address} is no broker"))
            .help("give the address of --http-addr, not of --broker-addr or --admin-addr")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        assert!(judge("a:1", "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nready\n").is_ok());
        let stopping = judge("a:1", "HTTP/1.1 503 Service Unavailable\r\n\r\nstopping\n");
        assert!(stopping.expect_err("not ready").message.ends_with("not ready: stopping"));
        for strange in ["", "HTTP/1.1 404 Not Found\r\n\r\n", "\0\0\u{4}\0"] {
            assert!(judge("a:1", strange).expect_err("no broker").message.contains("no broker"));
        }
    }
}
