//! The files that hold secrets and the directories of the system.

/// Globs of files that commands may not read by default: keys, tokens and the files that usually hold them.
pub const SECRETS: &[&str] = &[
    ".env",
    ".env.*",
    "~/.ssh",
    "~/.gnupg",
    "~/.aws",
    "~/.azure",
    "~/.config/gcloud",
    "~/.config/gh",
    "~/.config/op",
    "~/.kube",
    "~/.docker/config.json",
    "~/.netrc",
    "~/.npmrc",
    "~/.pypirc",
    "~/.git-credentials",
    "~/.config/git/credentials",
    "~/.cargo/credentials.toml",
    "~/.cargo/credentials",
    "~/.password-store",
    "~/.local/share/keyrings",
    "~/.mozilla",
    "~/.config/google-chrome",
    "~/.config/chromium",
    "~/.claude/.credentials.json",
    "~/.codex/auth.json",
    "~/.gemini/oauth_creds.json",
];

/// System directories that are written only where a rule names them, in scopes that block them.
pub const BLOCKLIST: &[&str] = &[
    "/System",
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/libexec",
    "/private/etc",
    "/Library",
    "/etc",
    "/boot",
    "/proc",
    "/sys",
    "/dev",
];

/// [`SECRETS`] in the form of a scope.
pub fn default_secrets() -> Vec<String> {
    SECRETS.iter().map(|&secret| secret.to_owned()).collect()
}
