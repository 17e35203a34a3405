//! The names whose files make programs run: which program, and when.

/// When a file of such a name takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunsWhen {
    /// When a folder is opened or entered, or an agent, an editor, a shell or a debugger is started there: guarded.
    Opened,
    /// When the user builds or runs the project: not guarded, but marked on receipts.
    Built,
    /// Never: an exception from a row below it.
    Never,
}

/// One row: a pattern, and what runs files of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameRule {
    /// Names of directories and of the file, in any directory. `*` stands for any characters of one name, a last `**` for
    /// everything in the directory.
    pub pattern: &'static str,
    /// What runs it.
    pub program: &'static str,
    /// When.
    pub when: RunsWhen,
}

const fn opened(pattern: &'static str, program: &'static str) -> NameRule {
    NameRule { pattern, program, when: RunsWhen::Opened }
}

const fn built(pattern: &'static str, program: &'static str) -> NameRule {
    NameRule { pattern, program, when: RunsWhen::Built }
}

const fn never(pattern: &'static str, program: &'static str) -> NameRule {
    NameRule { pattern, program, when: RunsWhen::Never }
}

/// All rows. The first that matches decides. Patterns are in lower case, because some file systems ignore case.
pub const NAME_RULES: &[NameRule] = &[
    // Agents.
    opened("haft.toml", "Haft"),
    opened(".haft/**", "Haft"),
    opened(".mcp.json", "Claude Code and other MCP clients"),
    opened(".claude/*.json", "Claude Code"),
    opened(".claude/hooks/**", "Claude Code"),
    opened(".claude/plugins/**", "Claude Code"),
    never(".cursor/rules/**", "Cursor: text for the model"),
    never(".cursor/worktrees/**", "Cursor: working trees"),
    opened(".cursor/**", "Cursor"),
    never(".codex/worktrees/**", "Codex: working trees"),
    opened(".codex/**", "Codex"),
    opened(".gemini/**", "Gemini CLI"),
    opened("opencode.json", "opencode"),
    opened("opencode.jsonc", "opencode"),
    opened(".opencode/**", "opencode"),
    opened(".windsurf/**", "Windsurf"),
    opened(".continue/**", "Continue"),
    opened(".roo/**", "Roo Code"),
    opened(".kiro/**", "Kiro"),
    opened(".amazonq/**", "Amazon Q"),
    opened(".aider.conf.yml", "aider"),
    // Editors.
    opened(".vscode/**", "VS Code and its relatives"),
    opened("*.code-workspace", "VS Code and its relatives"),
    opened(".devcontainer/**", "VS Code and other dev container tools"),
    opened(".devcontainer.json", "VS Code and other dev container tools"),
    opened(".idea/**", "JetBrains IDEs"),
    opened(".fleet/**", "JetBrains Fleet"),
    opened(".zed/**", "Zed"),
    opened("*.sublime-project", "Sublime Text"),
    opened(".exrc", "Vim and Neovim"),
    opened(".vimrc", "Vim"),
    opened(".lvimrc", "Vim"),
    opened(".nvimrc", "Neovim"),
    opened(".nvim.lua", "Neovim"),
    opened(".dir-locals.el", "Emacs"),
    opened(".dir-locals-2.el", "Emacs"),
    opened(".helix/**", "Helix"),
    // Shells, and what changes their environment on entering a directory.
    opened(".envrc", "direnv"),
    opened(".autoenv", "autoenv"),
    opened(".autoenv.zsh", "zsh-autoenv"),
    opened("mise.toml", "mise"),
    opened(".mise.toml", "mise"),
    opened("mise.*.toml", "mise"),
    opened(".mise.*.toml", "mise"),
    opened(".config/mise/**", "mise"),
    opened(".config/mise.toml", "mise"),
    opened(".mise/**", "mise"),
    opened(".bashrc", "Bash"),
    opened(".bash_profile", "Bash"),
    opened(".bash_login", "Bash"),
    opened(".bash_logout", "Bash"),
    opened(".profile", "login shells"),
    opened(".login", "csh"),
    opened(".zshrc", "Zsh"),
    opened(".zshenv", "Zsh"),
    opened(".zprofile", "Zsh"),
    opened(".zlogin", "Zsh"),
    opened(".zlogout", "Zsh"),
    opened(".kshrc", "Korn shells"),
    opened(".cshrc", "csh"),
    opened(".tcshrc", "tcsh"),
    opened(".config/fish/**", "fish"),
    // Debuggers and interactive interpreters, which read a file of the directory they are started in.
    opened(".gdbinit", "GDB"),
    opened(".lldbinit", "LLDB"),
    opened(".pdbrc", "Python's debugger"),
    opened(".rprofile", "R"),
    opened(".ghci", "GHCi"),
    opened(".ocamlinit", "OCaml"),
    opened(".irbrc", "IRB"),
    opened(".pryrc", "Pry"),
    // Version control. Git's own directories are judged by their state.
    opened(".gitconfig", "git"),
    opened(".config/git/**", "git"),
    opened(".hg/hgrc", "Mercurial"),
    opened(".jj/repo/config.toml", "Jujutsu"),
    opened(".ssh/config", "ssh"),
    opened(".ssh/rc", "sshd"),
    // What runs when the user builds or runs the project.
    built(".cargo/config.toml", "cargo"),
    built(".cargo/config", "cargo"),
    built("build.rs", "cargo"),
    built(".npmrc", "npm"),
    built(".yarnrc", "Yarn"),
    built(".yarnrc.yml", "Yarn"),
    built(".yarn/**", "Yarn"),
    built(".pnpmfile.cjs", "pnpm"),
    built("package.json", "npm and its relatives"),
    built(".husky/**", "husky"),
    built(".pre-commit-config.yaml", "pre-commit"),
    built("lefthook.yml", "lefthook"),
    built("eslint.config.*", "ESLint"),
    built(".eslintrc.*", "ESLint"),
    built(".prettierrc.*", "Prettier"),
    built("prettier.config.*", "Prettier"),
    built("babel.config.*", "Babel"),
    built("webpack.config.*", "webpack"),
    built("rollup.config.*", "Rollup"),
    built("vite.config.*", "Vite"),
    built("vitest.config.*", "Vitest"),
    built("jest.config.*", "Jest"),
    built("next.config.*", "Next.js"),
    built("postcss.config.*", "PostCSS"),
    built("tailwind.config.*", "Tailwind CSS"),
    built("makefile", "make"),
    built("gnumakefile", "make"),
    built("*.mk", "make"),
    built("cmakelists.txt", "CMake"),
    built("meson.build", "Meson"),
    built("configure", "configure"),
    built("justfile", "just"),
    built("taskfile.yml", "Task"),
    built("rakefile", "Rake"),
    built("setup.py", "Python builds"),
    built("pyproject.toml", "Python builds"),
    built("conftest.py", "pytest"),
    built("tox.ini", "tox"),
    built("noxfile.py", "nox"),
    built("build.gradle", "Gradle"),
    built("build.gradle.kts", "Gradle"),
    built("settings.gradle", "Gradle"),
    built("settings.gradle.kts", "Gradle"),
    built("gradlew", "Gradle"),
    built("gradle/wrapper/**", "Gradle"),
    built("pom.xml", "Maven"),
    built("mvnw", "Maven"),
    built(".mvn/**", "Maven"),
    built(".bazelrc", "Bazel"),
    built("dockerfile", "docker build"),
    built("docker-compose.yml", "docker compose"),
    built("compose.yaml", "docker compose"),
    built(".github/workflows/**", "GitHub Actions"),
    built(".gitlab-ci.yml", "GitLab CI"),
];
