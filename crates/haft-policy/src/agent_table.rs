//! What an agent needs that runs in the sandbox as a whole (`haft sandbox --agent NAME`).

/// One agent. Paths are relative to the user's home.
#[derive(Debug)]
pub struct AgentProfile {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its program.
    pub program: &'static str,
    /// Where it may be installed; visible, read-only.
    pub installed: &'static [&'static str],
    /// Its settings. It gets a copy, so that nothing it writes there takes effect outside the sandbox.
    pub settings: &'static [&'static str],
    /// Its login. It gets a copy too; what it renews there is written back.
    pub logins: &'static [&'static str],
    /// The hosts of its service.
    pub hosts: &'static [&'static str],
    /// Variables that it gets.
    pub variables: &'static [&'static str],
    /// Those of them that name its service: their hosts are reachable as well.
    pub base_urls: &'static [&'static str],
}

/// Variables that every agent gets: it draws on the terminal.
pub const AGENT_VARIABLES: &[&str] = &["TERM", "COLORTERM", "TERM_PROGRAM", "EDITOR"];

/// The agents.
pub const AGENTS: &[AgentProfile] = &[
    AgentProfile {
        name: "claude",
        program: "claude",
        installed: &[".local/share/claude", ".claude/local"],
        settings: &[
            ".claude.json",
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".claude/CLAUDE.md",
            ".claude/agents",
            ".claude/commands",
            ".claude/skills",
            ".claude/plugins",
        ],
        logins: &[".claude/.credentials.json"],
        hosts: &[
            "api.anthropic.com",
            "console.anthropic.com",
            "platform.claude.com",
            "claude.ai",
            "statsig.anthropic.com",
        ],
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_MODEL",
            "ANTHROPIC_SMALL_FAST_MODEL",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "IS_SANDBOX",
        ],
        base_urls: &["ANTHROPIC_BASE_URL"],
    },
    AgentProfile {
        name: "codex",
        program: "codex",
        installed: &[],
        settings: &[
            ".codex/config.toml",
            ".codex/AGENTS.md",
            ".codex/prompts",
            ".codex/skills",
            ".codex/rules",
        ],
        logins: &[".codex/auth.json"],
        hosts: &["api.openai.com", "auth.openai.com", "chatgpt.com", "ab.chatgpt.com"],
        variables: &[
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "OPENAI_ORGANIZATION",
            "OPENAI_PROJECT",
            "CODEX_API_KEY",
        ],
        base_urls: &["OPENAI_BASE_URL"],
    },
    AgentProfile {
        name: "opencode",
        program: "opencode",
        installed: &[".opencode/bin"],
        settings: &[".config/opencode"],
        logins: &[".local/share/opencode/auth.json"],
        hosts: &[
            "opencode.ai",
            "models.dev",
            "api.anthropic.com",
            "api.openai.com",
            "generativelanguage.googleapis.com",
            "openrouter.ai",
            "registry.npmjs.org",
        ],
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "GEMINI_API_KEY",
            "GOOGLE_GENERATIVE_AI_API_KEY",
            "OPENROUTER_API_KEY",
            "OPENCODE_API_KEY",
            "OPENCODE_CONFIG_CONTENT",
            "OPENCODE_DISABLE_AUTOUPDATE",
        ],
        base_urls: &["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"],
    },
    AgentProfile {
        name: "gemini",
        program: "gemini",
        installed: &[],
        settings: &[
            ".gemini/settings.json",
            ".gemini/GEMINI.md",
            ".gemini/commands",
            ".gemini/extensions",
            ".gemini/google_accounts.json",
            ".gemini/installation_id",
        ],
        logins: &[".gemini/oauth_creds.json"],
        hosts: &[
            "generativelanguage.googleapis.com",
            "cloudcode-pa.googleapis.com",
            "oauth2.googleapis.com",
            "www.googleapis.com",
            "aiplatform.googleapis.com",
        ],
        variables: &[
            "GEMINI_API_KEY",
            "GEMINI_MODEL",
            "GOOGLE_API_KEY",
            "GOOGLE_CLOUD_LOCATION",
            "GOOGLE_CLOUD_PROJECT",
            "GOOGLE_GEMINI_BASE_URL",
            "GOOGLE_GENAI_USE_VERTEXAI",
        ],
        base_urls: &["GOOGLE_GEMINI_BASE_URL"],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use haft_tool::net::Domains;

    #[test]
    fn agents_are_well_formed() {
        for agent in AGENTS {
            let hosts: Vec<String> = agent.hosts.iter().map(|host| (*host).to_owned()).collect();
            assert!(Domains::parse(&hosts).is_ok(), "{}", agent.name);
            assert!(agent.base_urls.iter().all(|name| agent.variables.contains(name)), "{}", agent.name);
            let paths = agent.installed.iter().chain(agent.settings).chain(agent.logins);
            assert!(
                paths.clone().all(|path| path.starts_with('.') && !path.contains("..")),
                "{}",
                agent.name
            );
        }
    }
}
