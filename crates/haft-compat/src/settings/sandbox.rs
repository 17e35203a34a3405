//! `sandbox`: what Claude Code's sandbox for commands allows. Haft maps it to a scope and refuses what it cannot hold.

use std::str::FromStr;

use super::document::Located;
use super::object::{ObjectReader, Restricts};

/// `sandbox`.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ClaudeSandbox {
    /// `enabled`.
    pub enabled: Option<Located<bool>>,
    /// `failIfUnavailable`.
    pub fail_if_unavailable: Option<Located<bool>>,
    /// `autoAllowBashIfSandboxed`: commands in the sandbox run without a question.
    pub auto_allow_bash_if_sandboxed: Option<Located<bool>>,
    /// `allowUnsandboxedCommands`: `false` means that a call cannot leave the sandbox.
    pub allow_unsandboxed_commands: Option<Located<bool>>,
    /// `excludedCommands`: commands that run outside the sandbox.
    pub excluded_commands: Vec<Located<String>>,
    /// `network`.
    pub network: NetworkSettings,
    /// `filesystem`.
    pub filesystem: FilesystemSettings,
    /// `credentials`.
    pub credentials: CredentialSettings,
}

/// `sandbox.network`.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct NetworkSettings {
    /// `allowedDomains`.
    pub allowed_domains: Vec<Located<String>>,
    /// `deniedDomains`.
    pub denied_domains: Vec<Located<String>>,
    /// `strictAllowlist`: a host that is not in the list is denied without a question.
    pub strict_allowlist: Option<Located<bool>>,
    /// `allowManagedDomainsOnly`: in managed settings, the lists of other files do not count.
    pub allow_managed_domains_only: Option<Located<bool>>,
    /// `allowUnixSockets`: paths of sockets.
    pub allow_unix_sockets: Vec<Located<String>>,
    /// `allowAllUnixSockets`.
    pub allow_all_unix_sockets: Option<Located<bool>>,
    /// `allowLocalBinding`: commands may listen on ports of this machine.
    pub allow_local_binding: Option<Located<bool>>,
}

/// `sandbox.filesystem`.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct FilesystemSettings {
    /// `allowWrite`.
    pub allow_write: Vec<Located<String>>,
    /// `denyWrite`.
    pub deny_write: Vec<Located<String>>,
    /// `denyRead`.
    pub deny_read: Vec<Located<String>>,
    /// `allowRead`: exceptions from `denyRead`.
    pub allow_read: Vec<Located<String>>,
    /// `allowManagedReadPathsOnly`: in managed settings, `allowRead` of other files does not count.
    pub allow_managed_read_paths_only: Option<Located<bool>>,
}

/// `sandbox.credentials`.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct CredentialSettings {
    /// `files`.
    pub files: Vec<Located<CredentialFile>>,
    /// `envVars`.
    pub env_vars: Vec<Located<CredentialVariable>>,
}

/// A file or directory that holds credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialFile {
    /// Its path: absolute, below `~/`, or relative to the settings file's root.
    pub path: String,
    /// What commands see.
    pub access: CredentialAccess,
}

/// A variable that holds a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialVariable {
    /// Its name.
    pub name: String,
    /// What commands see.
    pub access: CredentialAccess,
}

/// What commands see of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialAccess {
    /// Nothing.
    Deny,
    /// A placeholder that a proxy replaces by the credential.
    Mask,
}

impl FromStr for CredentialAccess {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "deny" => Ok(Self::Deny),
            "mask" => Ok(Self::Mask),
            _ => Err(format!("must be \"deny\" or \"mask\", not {name:?}")),
        }
    }
}

impl ClaudeSandbox {
    pub(super) fn read(mut reader: ObjectReader<'_>) -> Self {
        let settings = Self {
            enabled: reader.bool("enabled", Restricts::Yes),
            fail_if_unavailable: reader.bool("failIfUnavailable", Restricts::Yes),
            auto_allow_bash_if_sandboxed: reader.bool("autoAllowBashIfSandboxed", Restricts::No),
            allow_unsandboxed_commands: reader.bool("allowUnsandboxedCommands", Restricts::Yes),
            excluded_commands: reader.texts("excludedCommands", Restricts::No).unwrap_or_default(),
            network: reader.object("network", Restricts::Yes).map(NetworkSettings::read).unwrap_or_default(),
            filesystem: reader
                .object("filesystem", Restricts::Yes)
                .map(FilesystemSettings::read)
                .unwrap_or_default(),
            credentials: reader
                .object("credentials", Restricts::Yes)
                .map(CredentialSettings::read)
                .unwrap_or_default(),
        };
        reader.finish();
        settings
    }
}

impl NetworkSettings {
    fn read(mut reader: ObjectReader<'_>) -> Self {
        let settings = Self {
            allowed_domains: reader.texts("allowedDomains", Restricts::No).unwrap_or_default(),
            denied_domains: reader.texts("deniedDomains", Restricts::Yes).unwrap_or_default(),
            strict_allowlist: reader.bool("strictAllowlist", Restricts::Yes),
            allow_managed_domains_only: reader.bool("allowManagedDomainsOnly", Restricts::Yes),
            allow_unix_sockets: reader.texts("allowUnixSockets", Restricts::No).unwrap_or_default(),
            allow_all_unix_sockets: reader.bool("allowAllUnixSockets", Restricts::No),
            allow_local_binding: reader.bool("allowLocalBinding", Restricts::No),
        };
        reader.finish();
        settings
    }
}

impl FilesystemSettings {
    fn read(mut reader: ObjectReader<'_>) -> Self {
        let settings = Self {
            allow_write: reader.texts("allowWrite", Restricts::No).unwrap_or_default(),
            deny_write: reader.texts("denyWrite", Restricts::Yes).unwrap_or_default(),
            deny_read: reader.texts("denyRead", Restricts::Yes).unwrap_or_default(),
            allow_read: reader.texts("allowRead", Restricts::No).unwrap_or_default(),
            allow_managed_read_paths_only: reader.bool("allowManagedReadPathsOnly", Restricts::Yes),
        };
        reader.finish();
        settings
    }
}

impl CredentialSettings {
    fn read(mut reader: ObjectReader<'_>) -> Self {
        let files = entries(&mut reader, "files", "path");
        let env_vars = entries(&mut reader, "envVars", "name");
        reader.finish();
        let files = files
            .into_iter()
            .map(|it| it.with(CredentialFile { path: it.value.0.clone(), access: it.value.1 }));
        let variables = env_vars
            .into_iter()
            .map(|it| it.with(CredentialVariable { name: it.value.0.clone(), access: it.value.1 }));
        Self { files: files.collect(), env_vars: variables.collect() }
    }
}

/// The entries of a list, each with its text `subject` and its `mode`. An entry whose mode is missing denies.
fn entries(
    reader: &mut ObjectReader<'_>,
    name: &str,
    subject: &str,
) -> Vec<Located<(String, CredentialAccess)>> {
    let mut entries = Vec::new();
    for element in reader.list(name, Restricts::Yes).unwrap_or_default() {
        let (place, key) = (element.with(()), reader.key(name));
        let mut object = ObjectReader::new(&key, element, Restricts::Yes, reader.findings());
        let text = object.text(subject, Restricts::Yes);
        // A mode that is not understood is a problem already; read as the stricter one.
        let access = object.word("mode", Restricts::Yes).map_or(CredentialAccess::Deny, |it| it.value);
        object.finish();
        if let Some(text) = text {
            entries.push(place.with((text.value, access)));
        } else {
            let why = format!("the entry has no text `{subject}`");
            reader.problem(name, &place, Restricts::Yes, why);
        }
    }
    entries
}
