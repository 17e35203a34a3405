//! The metadata documents of servers and authorization servers.

use haft_tool::Value;
use serde::Deserialize;
use url::Url;

use super::errors::{quote, unauthorized};
use super::resource::ProtectedResource;
use super::scopes::Scopes;
use crate::client::ClientError;

/// Authorization servers of one server that are considered.
const MAX_ISSUERS: usize = 8;

/// A server's metadata (RFC 9728).
#[derive(Debug)]
pub(super) struct ServerMetadata {
    /// The resource that its tokens are for, as the server spells it.
    pub(super) resource: String,
    pub(super) issuers: Vec<String>,
    pub(super) scopes: Option<Scopes>,
}

impl ServerMetadata {
    /// Reads the document from `url`; it must describe `resource`.
    pub(super) fn read(
        document: Value,
        url: &Url,
        resource: &ProtectedResource,
    ) -> Result<Self, ClientError> {
        #[derive(Deserialize)]
        struct ResourceDocument {
            resource: String,
            authorization_servers: Option<Vec<String>>,
            scopes_supported: Option<Vec<String>>,
        }
        let wire: ResourceDocument = serde_json::from_value(document).map_err(|error| {
            ClientError::invalid_message(format!(
                "{url} is not the metadata of a server: {}",
                quote(&error.to_string())
            ))
        })?;
        if !resource.is_covered_by(&wire.resource) {
            return Err(unauthorized(format!(
                "{url} describes {}, not {}. If the server has moved, configure its new URL.",
                quote(&wire.resource),
                resource.identifier()
            )));
        }
        let mut issuers = wire.authorization_servers.unwrap_or_default();
        issuers.truncate(MAX_ISSUERS);
        let scopes = wire.scopes_supported.map(|scopes| Scopes::new(scopes.iter().map(String::as_str)));
        Ok(Self { resource: wire.resource, issuers, scopes: scopes.filter(|scopes| !scopes.is_empty()) })
    }
}

/// An authorization server's metadata (RFC 8414).
#[derive(Debug, Clone)]
pub(super) struct AuthorizationServer {
    /// The exact name.
    pub(super) issuer: String,
    pub(super) authorization: Url,
    pub(super) token: Url,
    pub(super) registration: Option<Url>,
    pub(super) scopes: Scopes,
    /// The supported client authentication methods; `None` without metadata.
    pub(super) methods: Option<Vec<String>>,
    /// Whether its answers always contain the issuer.
    pub(super) sends_issuer: bool,
    /// Whether a client may be identified by the URL of a metadata document.
    pub(super) supports_documents: bool,
}

impl AuthorizationServer {
    /// Reads the document from `url`; it must be that of `issuer`. If the issuer was `guessed`, a final slash is ignored.
    pub(super) fn read(
        document: Value,
        url: &Url,
        issuer: &str,
        guessed: bool,
        resource: &ProtectedResource,
    ) -> Result<Self, ClientError> {
        #[derive(Deserialize)]
        struct AuthorizationServerDocument {
            issuer: String,
            authorization_endpoint: String,
            token_endpoint: String,
            registration_endpoint: Option<String>,
            scopes_supported: Option<Vec<String>>,
            token_endpoint_auth_methods_supported: Option<Vec<String>>,
            code_challenge_methods_supported: Option<Vec<String>>,
            authorization_response_iss_parameter_supported: Option<bool>,
            client_id_metadata_document_supported: Option<bool>,
        }
        let wire: AuthorizationServerDocument = serde_json::from_value(document).map_err(|error| {
            ClientError::invalid_message(format!(
                "{url} is not the metadata of an authorization server: {}",
                quote(&error.to_string())
            ))
        })?;
        let is_same = wire.issuer == issuer || guessed && wire.issuer.strip_suffix('/') == Some(issuer);
        if !is_same {
            return Err(unauthorized(format!(
                "{url} is the metadata of {}, not of {}",
                quote(&wire.issuer),
                quote(issuer)
            )));
        }
        if !wire.code_challenge_methods_supported.unwrap_or_default().iter().any(|method| method == "S256") {
            return Err(unauthorized(format!(
                "{} does not support PKCE with S256, which protects codes. Ask its operator to enable it.",
                quote(issuer)
            )));
        }
        let endpoint = |what: &str, text: &str| {
            resource.check_url(text).map_err(|why| {
                unauthorized(format!("{url} names {} as its {what} endpoint: {why}", quote(text)))
            })
        };
        let registration = wire.registration_endpoint.as_deref().map(|text| endpoint("registration", text));
        Ok(Self {
            authorization: endpoint("authorization", &wire.authorization_endpoint)?,
            token: endpoint("token", &wire.token_endpoint)?,
            registration: registration.transpose()?,
            scopes: Scopes::new(wire.scopes_supported.unwrap_or_default().iter().map(String::as_str)),
            // The default of the standard.
            methods: wire
                .token_endpoint_auth_methods_supported
                .or_else(|| Some(vec!["client_secret_basic".to_owned()])),
            sends_issuer: wire.authorization_response_iss_parameter_supported.unwrap_or(false),
            supports_documents: wire.client_id_metadata_document_supported.unwrap_or(false),
            issuer: wire.issuer,
        })
    }

    /// An authorization server without metadata, as in version 2025-03-26: fixed paths on the server's host.
    pub(super) fn without_metadata(origin: &str) -> Result<Self, ClientError> {
        let at = |path: &str| {
            Url::parse(&format!("{origin}{path}"))
                .map_err(|error| ClientError::invalid_message(format!("{origin}{path}: {error}")))
        };
        Ok(Self {
            issuer: origin.to_owned(),
            authorization: at("/authorize")?,
            token: at("/token")?,
            registration: Some(at("/register")?),
            scopes: Scopes::default(),
            methods: None,
            sends_issuer: false,
            supports_documents: false,
        })
    }
}
