//! What servers and authorization servers say of themselves, read and checked.

use haft_tool::Value;
use serde::Deserialize;
use url::Url;

use super::home::Home;
use super::scopes::Scopes;
use super::words::{refused, said};
use crate::client::ClientError;

/// How many authorization servers of one server are considered.
const MOST_ISSUERS: usize = 8;

/// A server's own words about who gives out its tokens.
#[derive(Debug)]
pub(super) struct ResourceMetadata {
    /// What its tokens are for, exactly as it spells it.
    pub(super) resource: String,
    pub(super) issuers: Vec<String>,
    pub(super) scopes: Option<Scopes>,
}

impl ResourceMetadata {
    /// Reads what `at` says, for the server that was asked for and no other.
    pub(super) fn read(document: Value, at: &Url, home: &Home) -> Result<Self, ClientError> {
        #[derive(Deserialize)]
        struct Wire {
            resource: String,
            authorization_servers: Option<Vec<String>>,
            scopes_supported: Option<Vec<String>>,
        }
        let wire: Wire = serde_json::from_value(document).map_err(|error| {
            ClientError::invalid_message(format!(
                "{at} does not describe a server with tokens: {}",
                said(&error.to_string())
            ))
        })?;
        if !home.is_covered_by(&wire.resource) {
            return Err(refused(format!(
                "{at} speaks of {}, not of {}; a token for one is not asked for with the other's words. If the server has \
                 moved, use its new address",
                said(&wire.resource),
                home.resource()
            )));
        }
        let mut issuers = wire.authorization_servers.unwrap_or_default();
        issuers.truncate(MOST_ISSUERS);
        let scopes = wire.scopes_supported.map(|scopes| Scopes::of(scopes.iter().map(String::as_str)));
        Ok(Self { resource: wire.resource, issuers, scopes: scopes.filter(|scopes| !scopes.is_empty()) })
    }
}

/// Who gives out tokens.
#[derive(Debug, Clone)]
pub(super) struct AuthorizationServer {
    /// Its name, to the letter.
    pub(super) issuer: String,
    pub(super) authorization: Url,
    pub(super) token: Url,
    pub(super) registration: Option<Url>,
    pub(super) scopes: Scopes,
    /// How a client may prove who it is; nothing if this was not said at all.
    pub(super) methods: Option<Vec<String>>,
    /// Whether its answers always name it.
    pub(super) signs_answers: bool,
    /// Whether a client may be known by the address of a document.
    pub(super) takes_documents: bool,
}

impl AuthorizationServer {
    /// Reads what `at` says about the one that is called `issuer`, or `issuer` with a slash if that was only guessed.
    pub(super) fn read(
        document: Value,
        at: &Url,
        issuer: &str,
        guessed: bool,
        home: &Home,
    ) -> Result<Self, ClientError> {
        #[derive(Deserialize)]
        struct Wire {
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
        let wire: Wire = serde_json::from_value(document).map_err(|error| {
            ClientError::invalid_message(format!(
                "{at} does not describe an authorization server: {}",
                said(&error.to_string())
            ))
        })?;
        let same = wire.issuer == issuer || guessed && wire.issuer.strip_suffix('/') == Some(issuer);
        if !same {
            return Err(refused(format!(
                "{at} speaks for {}, not for {}; one authorization server is not taken for another",
                said(&wire.issuer),
                said(issuer)
            )));
        }
        if !wire.code_challenge_methods_supported.unwrap_or_default().iter().any(|method| method == "S256") {
            return Err(refused(format!(
                "{} does not protect its codes (PKCE with S256), so a stolen one could be used; ask its operator for it",
                said(issuer)
            )));
        }
        let endpoint = |what: &str, text: &str| {
            home.admits(text)
                .map_err(|why| refused(format!("{at} names {} as its {what} endpoint: {why}", said(text))))
        };
        let registration = wire.registration_endpoint.as_deref().map(|text| endpoint("registration", text));
        Ok(Self {
            authorization: endpoint("authorization", &wire.authorization_endpoint)?,
            token: endpoint("token", &wire.token_endpoint)?,
            registration: registration.transpose()?,
            scopes: Scopes::of(wire.scopes_supported.unwrap_or_default().iter().map(String::as_str)),
            // What is not said means this one.
            methods: wire
                .token_endpoint_auth_methods_supported
                .or_else(|| Some(vec!["client_secret_basic".to_owned()])),
            signs_answers: wire.authorization_response_iss_parameter_supported.unwrap_or(false),
            takes_documents: wire.client_id_metadata_document_supported.unwrap_or(false),
            issuer: wire.issuer,
        })
    }

    /// One that says nothing of itself, as the revision of 2025-03-26 has it: fixed paths at the server's own root.
    pub(super) fn silent(origin: &str) -> Result<Self, ClientError> {
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
            signs_answers: false,
            takes_documents: false,
        })
    }
}
