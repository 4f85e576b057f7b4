//! Who may do what here: how much the console is allowed, and whether a form is really ours.
//!
//! There are no users yet, so the console trusts whoever reaches it. What it keeps out are other
//! pages in the same browser: they may neither send its forms (same origin, and a token that only
//! our pages have) nor read its pages by giving their own name to a loopback address.
//!
//! Law: whatever is not clearly ours is refused.

use crate::problem::Problem;
use crate::request::Request;
use std::net::{IpAddr, SocketAddr};

/// How much the console may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Look and act.
    On,
    /// Look.
    ReadOnly,
    /// It is not served.
    Off,
}

impl Access {
    /// What holds where nobody says anything: only a broker that this machine alone reaches may be
    /// acted upon.
    pub fn of_address(http: SocketAddr) -> Access {
        if http.ip().is_loopback() { Access::On } else { Access::ReadOnly }
    }

    /// Reads `on`, `read-only` or `off`.
    pub fn parse(word: &str) -> Option<Access> {
        match word {
            "on" => Some(Access::On),
            "read-only" => Some(Access::ReadOnly),
            "off" => Some(Access::Off),
            _ => None,
        }
    }
}

/// A word that other pages cannot know.
#[derive(Debug, Clone)]
pub(crate) struct Token(String);

impl Token {
    /// A fresh one; it holds until the process ends.
    pub(crate) fn new() -> Token {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).expect("the system has randomness once it has booted");
        Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares without telling by its time how far a guess is right.
    fn is(&self, guess: &str) -> bool {
        let pairs = self.0.bytes().zip(guess.bytes());
        guess.len() == self.0.len() && pairs.fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

/// Refuses a browser that reached a loopback address under somebody's name: the page that sent it
/// here would be able to read what we answer.
pub(crate) fn check_host(http: SocketAddr, host: Option<&str>) -> Result<(), Problem> {
    let Some(host) = host.filter(|_| http.ip().is_loopback()) else { return Ok(()) };
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name).trim_matches(['[', ']']);
    let is_ours = name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost");
    if is_ours {
        return Ok(());
    }
    Err(Problem::forbidden(format!("this console is not known as `{host}`"))
        .next(format!("open http://{http}/ instead")))
}

/// Refuses a form that another page sent.
pub(crate) fn check_form(request: &Request, token: &Token) -> Result<(), Problem> {
    let foreign = || {
        Problem::forbidden("this form was sent by a page of another origin, so nothing was done")
            .next("open the console itself and send the form from there")
    };
    if let Some(site) = request.header("sec-fetch-site")
        && !matches!(site, "same-origin" | "none")
    {
        return Err(foreign());
    }
    if let Some(origin) = request.header("origin") {
        let is_ours = origin
            .split_once("://")
            .is_some_and(|(_, authority)| Some(authority) == request.header("host"));
        if !is_ours {
            return Err(foreign());
        }
    }
    if !request.field("token").is_some_and(|guess| token.is(guess)) {
        return Err(Problem::forbidden(
            "this form is not one that the broker gave out since it started, so nothing was done",
        )
        .next("go back, reload the page, and send the form again"));
    }
    Ok(())
}
