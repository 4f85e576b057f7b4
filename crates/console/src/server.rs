//! From HTTP to pages and back: the routes, the checks that every request passes, the headers that
//! every answer has.
//!
//! Law: no answer leaves without the headers that keep a page to itself: nothing inline, nothing
//! from elsewhere, in nobody's frame, kept in no cache.

use crate::access::{Access, Token, check_form, check_host};
use crate::act::{self, Done};
use crate::admin::Admin;
use crate::history::Histories;
use crate::layout::{self, Page, THEMES};
use crate::live;
use crate::outcome::Outcomes;
use crate::problem::Problem;
use crate::request::{Request, local, pairs};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// What a page may load and do: its own style, script and forms.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// What a console is made with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it is served.
    pub http: SocketAddr,
    /// The broker's admin port.
    pub admin: SocketAddr,
    /// How much it may do.
    pub access: Access,
    /// Cancelled when the broker begins to stop.
    pub stopping: CancellationToken,
}

/// The console of one broker.
#[derive(Debug)]
pub struct Console {
    shared: Arc<Shared>,
}

/// What all pages share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) admin: Admin,
    pub(crate) access: Access,
    pub(crate) http: SocketAddr,
    pub(crate) token: Token,
    pub(crate) histories: Histories,
    pub(crate) outcomes: Outcomes,
    pub(crate) viewers: Arc<Semaphore>,
    pub(crate) stopping: CancellationToken,
}

impl Console {
    /// A console; it asks nothing before somebody looks.
    pub fn new(options: Options) -> Console {
        let shared = Shared {
            admin: Admin::new(format!("http://{}", reachable(options.admin))),
            access: options.access,
            http: options.http,
            token: Token::new(),
            histories: Histories::default(),
            outcomes: Outcomes::default(),
            viewers: Arc::new(Semaphore::new(live::VIEWERS_MAX)),
            stopping: options.stopping,
        };
        Console { shared: Arc::new(shared) }
    }

    /// Its routes: everything that nobody else at the address answers. None where it is off.
    pub fn router(&self) -> Router {
        match self.shared.access {
            Access::Off => Router::new(),
            Access::On | Access::ReadOnly => {
                Router::new().fallback(answer).with_state(Arc::clone(&self.shared))
            }
        }
    }
}

/// Where something that listens on `address` is reached from this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// An answer without a network, for tests.
#[cfg(test)]
pub(crate) async fn answer_to(
    console: &Console,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answer(State(Arc::clone(&console.shared)), method, uri, headers, body).await
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut request = Request::new(uri.path(), uri.query());
    request.headers = headers;
    let mut response = match method {
        Method::GET | Method::HEAD => get(&shared, &request).await,
        Method::POST => {
            request.form = pairs(&body);
            post(&shared, &request).await
        }
        _ => Err(Problem {
            status: StatusCode::METHOD_NOT_ALLOWED,
            ..Problem::invalid(format!("{method} means nothing to this console"))
        }),
    }
    .unwrap_or_else(|problem| {
        let page = layout::problem(&problem);
        let mut response = render(&shared, &request, &page);
        *response.status_mut() = problem.status;
        response
    });
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn get(shared: &Arc<Shared>, request: &Request) -> Result<Response, Problem> {
    check_host(shared.http, request.header("host"))?;
    match request.parts.split_first() {
        Some((first, [name])) if first == "assets" => {
            crate::assets::find(name).ok_or_else(|| Problem::not_found("there is no such file"))
        }
        Some((first, rest)) if first == "live" => {
            let target = request.target.strip_prefix("/live").unwrap_or_default().to_owned();
            let page = Request { parts: rest.to_vec(), target, ..request.clone() };
            live::follow(Arc::clone(shared), page).await
        }
        _ => {
            let page = crate::pages::show(shared, request).await?;
            Ok(render(shared, request, &page))
        }
    }
}

async fn post(shared: &Arc<Shared>, request: &Request) -> Result<Response, Problem> {
    check_host(shared.http, request.header("host"))?;
    if request.parts == ["theme"] {
        return theme(shared, request);
    }
    Ok(match act::post(shared, request).await? {
        Done::See(path) => Redirect::to(&path).into_response(),
        Done::Page(page) => render(shared, request, &page),
    })
}

/// Remembers the theme, in the browser.
fn theme(shared: &Shared, request: &Request) -> Result<Response, Problem> {
    check_form(request, &shared.token)?;
    let wanted = request.field("theme").unwrap_or_default();
    let theme = THEMES.into_iter().find(|known| *known == wanted).unwrap_or("auto");
    let then = local(request.field("then")).unwrap_or("/");
    let cookie = format!("theme={theme}; Path=/; Max-Age=31536000; SameSite=Strict; HttpOnly");
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(then)).into_response())
}

fn render(shared: &Shared, request: &Request, page: &Page) -> Response {
    Html(layout::document(page, shared, request).into_string()).into_response()
}
