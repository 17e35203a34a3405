//! The programs that run another command, and how to find it. To add one, add an entry.

use super::options::OptionSpec;

/// A program that runs another command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrapper {
    /// Its names. A name of two words is a program and its subcommand.
    pub(super) names: &'static [&'static str],
    /// Whether it runs the same command with the same rights and the same meaning.
    pub(super) transparent: bool,
    pub(super) options: OptionSpec,
    pub(super) inner: InnerCommand,
    /// Options whose value is shell code.
    pub(super) code: &'static [&'static str],
    /// Options that make it run no command.
    pub(super) without: &'static [&'static str],
    /// Options that make it do something beyond running the command, so that it is unclear.
    pub(super) unclear: &'static [&'static str],
    /// Whether it runs a shell if there is no command.
    pub(super) starts_shell: bool,
    /// Options that make it run a shell if there is no command.
    pub(super) shell: &'static [&'static str],
}

/// Where the command is.
#[derive(Debug, Clone, Copy)]
pub(super) enum InnerCommand {
    /// The words after this many operands.
    Words(usize),
    /// The operands after variable assignments.
    AfterAssignments,
    /// The words after this many operands, joined to shell code.
    Code(usize),
    /// Only the values of options.
    OptionsOnly,
}

/// A wrapper without options, from which the entries are made.
pub(super) const WRAPPER: Wrapper = Wrapper {
    names: &[],
    transparent: false,
    options: OptionSpec::NONE,
    inner: InnerCommand::Words(0),
    code: &[],
    without: &[],
    unclear: &[],
    starts_shell: false,
    shell: &[],
};

const NONE: OptionSpec = OptionSpec::NONE;

/// The wrappers that are part of systems.
pub(super) const WRAPPERS: &[Wrapper] = &[
    // Transparent ones.
    Wrapper {
        names: &["timeout", "gtimeout"],
        transparent: true,
        options: OptionSpec {
            flags: "fpv",
            values: "ks",
            long_flags: "foreground preserve-status verbose",
            long_values: "kill-after signal",
            ..NONE
        },
        inner: InnerCommand::Words(1),
        ..WRAPPER
    },
    Wrapper {
        names: &["time"],
        transparent: true,
        options: OptionSpec {
            flags: "apqvV",
            values: "fo",
            long_flags: "append portability quiet verbose",
            long_values: "format output",
            ..NONE
        },
        unclear: &["-o", "--output", "-a", "--append"],
        ..WRAPPER
    },
    Wrapper {
        names: &["nice"],
        transparent: true,
        options: OptionSpec { flags: "0123456789", values: "n", long_values: "adjustment", ..NONE },
        ..WRAPPER
    },
    Wrapper {
        names: &["ionice"],
        transparent: true,
        options: OptionSpec {
            flags: "t",
            values: "cnpPu",
            long_flags: "ignore",
            long_values: "class classdata pid pgid uid",
            ..NONE
        },
        without: &["-p", "-P", "-u", "--pid", "--pgid", "--uid"],
        ..WRAPPER
    },
    Wrapper {
        names: &["stdbuf", "gstdbuf"],
        transparent: true,
        options: OptionSpec { values: "ioe", long_values: "input output error", ..NONE },
        ..WRAPPER
    },
    Wrapper { names: &["nohup", "noglob", "nocorrect", "builtin"], transparent: true, ..WRAPPER },
    Wrapper {
        names: &["setsid"],
        transparent: true,
        options: OptionSpec { flags: "cfw", long_flags: "ctty fork wait", ..NONE },
        ..WRAPPER
    },
    Wrapper {
        names: &["command"],
        transparent: true,
        options: OptionSpec { flags: "pvV", ..NONE },
        without: &["-v", "-V"],
        ..WRAPPER
    },
    Wrapper {
        names: &["exec"],
        transparent: true,
        options: OptionSpec { flags: "cl", values: "a", ..NONE },
        // A program with many names does what its name says.
        unclear: &["-a"],
        ..WRAPPER
    },
    Wrapper {
        names: &["env", "genv"],
        transparent: true,
        options: OptionSpec {
            flags: "i0v",
            values: "uCS",
            long_flags: "ignore-environment null debug block-signal default-signal ignore-signal list- \
                signal-handling",
            long_values: "unset chdir split-string",
            ..NONE
        },
        inner: InnerCommand::AfterAssignments,
        code: &["-S", "--split-string"],
        unclear: &["-S", "--split-string"],
        ..WRAPPER
    },
    // With other rights, or elsewhere.
    Wrapper {
        names: &["sudo"],
        options: OptionSpec {
            flags: "AbBEeHiKklNnPSsVv",
            values: "CDghpRrtTUu",
            long_flags: "askpass background bell edit login list non-interactive preserve-env preserve- \
                groups remove-timestamp reset-timestamp set-home shell stdin validate",
            long_values: "chdir chroot close-from command-timeout group host other-user prompt role type \
                user",
            ..NONE
        },
        inner: InnerCommand::AfterAssignments,
        shell: &["-i", "-s", "--login", "--shell"],
        ..WRAPPER
    },
    Wrapper {
        names: &["doas"],
        options: OptionSpec { flags: "Lns", values: "Cu", ..NONE },
        shell: &["-s"],
        ..WRAPPER
    },
    Wrapper { names: &["pkexec"], options: OptionSpec { long_values: "user", ..NONE }, ..WRAPPER },
    Wrapper {
        names: &["su"],
        options: OptionSpec {
            flags: "lmpfP",
            values: "cgGsTw",
            long_flags: "login preserve-environment fast pty",
            long_values: "command session-command shell group supp-group whitelist-environment",
            ..NONE
        },
        inner: InnerCommand::OptionsOnly,
        code: &["-c", "--command", "--session-command"],
        unclear: &["-s", "--shell"],
        starts_shell: true,
        ..WRAPPER
    },
    Wrapper {
        names: &["runuser"],
        options: OptionSpec {
            flags: "lmpfP",
            values: "cgGsuw",
            long_flags: "login preserve-environment fast pty",
            long_values: "command session-command shell group supp-group user",
            ..NONE
        },
        code: &["-c", "--command", "--session-command"],
        unclear: &["-s", "--shell"],
        starts_shell: true,
        ..WRAPPER
    },
    Wrapper {
        names: &["setpriv"],
        options: OptionSpec {
            flags: "d",
            long_flags: "clear-groups keep-groups init-groups no-new-privs nnp reset-env dump",
            long_values: "ambient-caps apparmor-profile bounding-set egid euid groups inh-caps landlock- \
                access landlock-rule pdeathsig regid reuid rgid ruid securebits selinux-label",
            ..NONE
        },
        ..WRAPPER
    },
    Wrapper {
        names: &["chroot"],
        options: OptionSpec { long_flags: "skip-chdir", long_values: "groups userspec", ..NONE },
        inner: InnerCommand::Words(1),
        starts_shell: true,
        ..WRAPPER
    },
    Wrapper {
        names: &["chrt"],
        options: OptionSpec {
            flags: "abdefiomRrv",
            values: "DPT",
            long_flags: "all-tasks batch deadline fifo idle other reset-on-fork rr verbose",
            long_values: "sched-deadline sched-period sched-runtime",
            ..NONE
        },
        inner: InnerCommand::Words(1),
        ..WRAPPER
    },
    Wrapper {
        names: &["taskset"],
        options: OptionSpec { flags: "ac", long_flags: "all-tasks cpu-list", ..NONE },
        inner: InnerCommand::Words(1),
        ..WRAPPER
    },
    Wrapper {
        names: &["unshare"],
        options: OptionSpec {
            flags: "cfimnprTuUC",
            values: "GRSlw",
            long_flags: "cgroup fork ipc keep-caps kill-child map-auto map-current-user map-root-user mount \
                mount-proc net pid time user uts",
            long_values: "boottime map-group map-groups map-user map-users monotonic propagation root setgid \
                setgroups setuid wd",
            ..NONE
        },
        starts_shell: true,
        ..WRAPPER
    },
    Wrapper {
        names: &["nsenter"],
        options: OptionSpec {
            flags: "aeFZ",
            values: "GSt",
            attached: "CimnprTuUwW",
            long_flags: "all cgroup env follow-context ipc mount net no-fork pid preserve-credentials root \
                time user uts wd",
            long_values: "setgid setuid target",
        },
        starts_shell: true,
        ..WRAPPER
    },
    Wrapper {
        names: &["systemd-run"],
        options: OptionSpec {
            flags: "dGPqrStT",
            values: "EHMpu",
            long_flags: "collect no-ask-password no-block pipe pty quiet remain-after-exit same-dir scope \
                send-sighup shell user system wait",
            long_values: "description gid host machine nice on-active on-boot on-calendar on-startup on- \
                unit-active on-unit-inactive path-property property service-type setenv slice \
                socket-property timer-property uid unit working-directory",
            ..NONE
        },
        starts_shell: true,
        ..WRAPPER
    },
    Wrapper {
        names: &["ssh"],
        options: OptionSpec { flags: "46AaCfGgKkMNnqsTtVvXxYy", values: "BbcDEeFIiJLlmOoPpQRSWw", ..NONE },
        inner: InnerCommand::Code(1),
        unclear: &["-o", "-F", "-I", "-E"],
        starts_shell: true,
        ..WRAPPER
    },
    // That watch or lock.
    Wrapper {
        names: &["watch"],
        options: OptionSpec {
            flags: "bcCegprtwx",
            values: "nqs",
            attached: "d",
            long_flags: "beep chgexit color differences errexit exec no-color no-rerun no-title no-wrap \
                precise",
            long_values: "equexit interval shotsdir",
        },
        inner: InnerCommand::Code(0),
        ..WRAPPER
    },
    Wrapper {
        names: &["flock"],
        options: OptionSpec {
            flags: "enosuxF",
            values: "Ewc",
            long_flags: "close exclusive nb no-fork nonblock shared unlock verbose",
            long_values: "command conflict-exit-code timeout wait",
            ..NONE
        },
        inner: InnerCommand::Words(1),
        code: &["-c", "--command"],
        ..WRAPPER
    },
    Wrapper {
        names: &["strace"],
        options: OptionSpec {
            flags: "cCdDfFhiknqrtTvVwxyYzZ",
            values: "abeEIoOpPsSuUX",
            long_flags: "follow-forks output-separately summary summary-only no-abbrev debug",
            long_values: "output trace env user string-limit status signal attach",
            ..NONE
        },
        ..WRAPPER
    },
    Wrapper {
        names: &["ltrace"],
        options: OptionSpec { flags: "bcCfhiLrStTV", values: "aADeFlnopsuwx", ..NONE },
        ..WRAPPER
    },
    Wrapper { names: &["valgrind", "perf record", "perf stat", "rr record", "heaptrack"], ..WRAPPER },
    Wrapper {
        names: &["script"],
        options: OptionSpec {
            flags: "aefqV",
            values: "BcEIOmoT",
            attached: "t",
            long_flags: "append flush force quiet return timing",
            long_values: "command echo log-in log-io log-out log-timing logging-format output-limit",
        },
        inner: InnerCommand::Words(1),
        code: &["-c", "--command"],
        starts_shell: true,
        ..WRAPPER
    },
    Wrapper { names: &["busybox", "toybox"], without: &["--list", "--help"], ..WRAPPER },
];
