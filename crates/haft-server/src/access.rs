//! Who may do what: roles, their tokens, and the checks before any request is answered.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use haft_net::server::{AccessDenied, AccessGuard, AccessOptions, BearerToken};
use haft_tool::lock;
use hyper::Request;
use hyper::header::HeaderMap;

/// Wrong tokens per minute that get status 401; further ones get 429.
const MAX_WRONG_TOKENS: u32 = 10;
const MINUTE: Duration = Duration::from_mins(1);

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// May use Loom's proxies and nothing else; meant for agents.
    Proxy,
    /// May look at everything.
    View,
    /// May also answer questions.
    Approve,
    /// May also undo, change rules, start runs and use the proxies.
    Act,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Proxy, Self::View, Self::Approve, Self::Act];

    /// The name in the API and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::View => "view",
            Self::Approve => "approve",
            Self::Act => "act",
        }
    }

    /// Whether the role may use the proxies. They cost money, which View and Approve may not spend.
    pub(crate) const fn may_use_proxies(self) -> bool {
        matches!(self, Self::Proxy | Self::Act)
    }

    /// The role with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// A role and the secret that grants it.
#[derive(Clone)]
pub struct RoleToken {
    /// The role.
    pub role: Role,
    /// The secret.
    pub secret: String,
}

/// Checks requests.
pub(crate) struct Access {
    guard: AccessGuard,
    wrong: Mutex<WrongTokens>,
}

/// How many tokens were refused since a point in time.
struct WrongTokens {
    since: Instant,
    count: u32,
}

impl Access {
    pub(crate) fn new(tokens: &[RoleToken], hosts: Vec<String>, address: SocketAddr) -> Self {
        let tokens = tokens.iter().map(|token| BearerToken {
            principal: token.role.name().to_owned(),
            secret: token.secret.clone(),
        });
        let origins = hosts.iter().flat_map(|host| [format!("http://{host}"), format!("https://{host}")]);
        let options = AccessOptions { tokens: tokens.collect(), origins: origins.collect(), hosts };
        let wrong = Mutex::new(WrongTokens { since: Instant::now(), count: 0 });
        Self { guard: AccessGuard::new(options, address), wrong }
    }

    /// Checks that the request names this server and comes from no other web page.
    pub(crate) fn check_source<B>(&self, request: &Request<B>) -> Result<(), AccessDenied> {
        self.guard.check_host(request)?;
        self.guard.check_origin(request.headers())
    }

    /// The role of the request's token.
    pub(crate) fn role(&self, headers: &HeaderMap) -> Result<Role, AccessDenied> {
        match self.guard.authenticate(headers) {
            Ok(principal) => principal.and_then(Role::named).ok_or_else(|| {
                denied(403, "This server has no tokens, so it accepts no requests.".to_owned())
            }),
            Err(error) if error.token_error.is_some() && self.has_too_many_wrong_tokens() => {
                Err(denied(429, "Too many requests had a wrong token. Try again in a minute.".to_owned()))
            }
            Err(error) if error.token_error == Some("invalid_token") => {
                let hint = "`haft serve --url` prints a valid address.";
                Err(AccessDenied { message: format!("{} {hint}", error.message), ..error })
            }
            Err(error) => Err(error),
        }
    }

    /// Counts a wrong token and returns whether there are too many. A valid token is accepted regardless, so that others cannot lock
    /// its holder out.
    fn has_too_many_wrong_tokens(&self) -> bool {
        let mut wrong = lock(&self.wrong);
        if wrong.since.elapsed() > MINUTE {
            *wrong = WrongTokens { since: Instant::now(), count: 0 };
        }
        wrong.count = wrong.count.saturating_add(1);
        wrong.count > MAX_WRONG_TOKENS
    }
}

/// Refuses requests that the browser marks as coming from other sites; only this server's own page and the address bar may ask
/// for data.
pub(crate) fn check_fetch_site(headers: &HeaderMap) -> Result<(), AccessDenied> {
    for site in headers.get_all("sec-fetch-site") {
        if !matches!(site.as_bytes(), b"same-origin" | b"none") {
            return Err(denied(403, "Requests from other web pages are refused.".to_owned()));
        }
    }
    Ok(())
}

/// The error for a token whose role is too low.
pub(crate) fn forbidden(needed: Role, given: Role) -> AccessDenied {
    denied(
        403,
        format!("This needs a token with the role {}; yours has the role {}.", needed.name(), given.name()),
    )
}

fn denied(status: u16, message: String) -> AccessDenied {
    AccessDenied { status, message, token_error: None }
}
