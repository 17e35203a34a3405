//! `haft mcp --http`: address, tokens and allowed clients.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use clap::Args;
use haft_mcp::serve::{BearerToken, HttpServerOptions, McpServer, ResourceMetadata, serve_http};
use haft_tool::{Cancel, ToolError};

use super::super::screen;
use super::super::terminal;

#[derive(Debug, Args)]
pub(super) struct HttpArgs {
    /// Serve over HTTP: a port on localhost, or ADDRESS:PORT.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(super) http: Option<SocketAddr>,
    /// Bearer token that clients must send; repeatable [default: $`HAFT_MCP_TOKEN`, else a new one].
    #[arg(long, value_name = "TOKEN", requires = "http")]
    token: Vec<String>,
    /// Accept every client on this machine without a token.
    #[arg(long, requires = "http", conflicts_with = "token")]
    no_token: bool,
    /// Additional `Host` header to accept; repeatable.
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,
    /// `Origin` header of a web page that may send requests; repeatable.
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    /// Authorization server to announce in the resource metadata; repeatable.
    #[arg(long, value_name = "URL", requires = "resource")]
    authorization_server: Vec<String>,
    /// Public URL of this server, for the resource metadata.
    #[arg(long, value_name = "URL", requires = "authorization_server")]
    resource: Option<String>,
}

pub(in crate::cli) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    let text =
        text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    text.parse().map_err(|_| "expected a port, or ADDRESS:PORT".to_owned())
}

impl HttpArgs {
    /// Serves until a signal arrives.
    pub(super) fn serve(&self, server: &Arc<McpServer>, at: SocketAddr) -> Result<(), ToolError> {
        let mut options = HttpServerOptions::new(at, self.tokens()?);
        options.hosts.clone_from(&self.allow_host);
        options.origins.clone_from(&self.allow_origin);
        options.metadata = self.resource.as_ref().map(|resource| ResourceMetadata {
            resource: resource.clone(),
            authorization_servers: self.authorization_server.clone(),
            scopes: Vec::new(),
        });
        let made = self.token.is_empty() && std::env::var_os(TOKEN_VARIABLE).is_none() && !self.no_token;
        let shown = options.tokens.first().filter(|_| made).map(|token| token.secret.clone());
        let running = serve_http(Arc::clone(server), options)?;
        screen::note(&format!("listening on {}", running.url()));
        if let Some(token) = shown {
            screen::note(&format!("clients need the header: Authorization: Bearer {token}"));
        }
        let cancel = Cancel::new();
        let ended = cancel.clone();
        terminal::wait(&cancel, async move { ended.cancelled().await })?;
        running.stop();
        Ok(())
    }

    fn tokens(&self) -> Result<Vec<BearerToken>, ToolError> {
        if self.no_token {
            return Ok(Vec::new());
        }
        let mut secrets = self.token.clone();
        if secrets.is_empty() {
            secrets.extend(std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty()));
        }
        if secrets.is_empty() {
            let mut bytes = [0; 24];
            getrandom::fill(&mut bytes)
                .map_err(|error| ToolError::internal(format!("no randomness: {error}")))?;
            secrets.push(bytes.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        let several = secrets.len() > 1;
        let named = |(at, secret)| {
            let principal = if several { format!("client {}", at + 1) } else { "client".to_owned() };
            BearerToken { principal, secret }
        };
        Ok(secrets.into_iter().enumerate().map(named).collect())
    }
}

/// Variable with the token, so that it need not be on the command line.
const TOKEN_VARIABLE: &str = "HAFT_MCP_TOKEN";
