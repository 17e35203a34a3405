//! Containers and package managers that run another command. To add one, add an entry.

use super::options::OptionSpec;
use super::wrapper_table::{InnerCommand, WRAPPER, Wrapper};

const NONE: OptionSpec = OptionSpec::NONE;

/// The wrappers of tools for developers.
pub(super) const TOOL_WRAPPERS: &[Wrapper] = &[
    // In containers.
    Wrapper {
        names: &[
            "docker run",
            "docker create",
            "podman run",
            "podman create",
            "nerdctl run",
            "docker container run",
        ],
        options: CONTAINER_OPTIONS,
        inner: InnerCommand::Words(1),
        unclear: &["--entrypoint", "--health-cmd"],
        ..WRAPPER
    },
    Wrapper {
        names: &["docker exec", "podman exec", "nerdctl exec", "docker container exec"],
        options: CONTAINER_OPTIONS,
        inner: InnerCommand::Words(1),
        unclear: &["--entrypoint", "--health-cmd"],
        ..WRAPPER
    },
    Wrapper {
        names: &["docker compose exec", "docker compose run", "docker-compose exec", "docker-compose run"],
        options: CONTAINER_OPTIONS,
        inner: InnerCommand::Words(1),
        unclear: &["--entrypoint", "--health-cmd"],
        ..WRAPPER
    },
    Wrapper {
        names: &["kubectl exec"],
        options: OptionSpec {
            flags: "iqt",
            values: "cfn",
            long_flags: "stdin tty quiet",
            long_values: "container context filename namespace kubeconfig",
            ..NONE
        },
        inner: InnerCommand::Words(1),
        ..WRAPPER
    },
    // Package managers that run a program, some after fetching it.
    Wrapper {
        names: &[
            "npx",
            "bunx",
            "pnpx",
            "npm exec",
            "npm x",
            "pnpm dlx",
            "pnpm exec",
            "yarn dlx",
            "yarn exec",
            "bun x",
        ],
        options: OptionSpec {
            flags: "yqs",
            values: "pcw",
            long_flags: "yes no no-install quiet silent bun offline prefer-offline prefer-online workspaces",
            long_values: "package call workspace prefix cache registry",
            ..NONE
        },
        code: &["-c", "--call"],
        unclear: &["--registry", "--prefix", "--cache"],
        ..WRAPPER
    },
    Wrapper {
        names: &["uvx", "uv run", "uv tool run", "pipx run"],
        options: OptionSpec {
            flags: "mqv",
            values: "p",
            long_flags: "isolated no-project no-cache offline frozen locked quiet verbose no-sync all- \
                extras active script module",
            long_values: "from with with-editable with-requirements python spec directory project extra \
                group env-file index index-url package",
            ..NONE
        },
        ..WRAPPER
    },
    Wrapper {
        names: &["poetry run", "pdm run", "pipenv run", "hatch run", "bundle exec", "rye run"],
        ..WRAPPER
    },
    Wrapper { names: &["mise exec", "asdf exec", "rbenv exec", "pyenv exec"], ..WRAPPER },
    Wrapper { names: &["direnv exec"], inner: InnerCommand::Words(1), ..WRAPPER },
    Wrapper {
        names: &["nix-shell"],
        options: OptionSpec {
            values: "pIA",
            long_flags: "pure impure",
            long_values: "run command packages attr",
            ..NONE
        },
        inner: InnerCommand::OptionsOnly,
        code: &["--run", "--command"],
        starts_shell: true,
        ..WRAPPER
    },
    Wrapper {
        names: &[
            "fakeroot",
            "proot",
            "firejail",
            "torsocks",
            "torify",
            "proxychains",
            "proxychains4",
            "unbuffer",
        ],
        ..WRAPPER
    },
    Wrapper {
        names: &["dbus-run-session", "xvfb-run", "tini", "dumb-init", "catchsegv", "chronic", "caffeinate"],
        ..WRAPPER
    },
    Wrapper { names: &["bwrap"], ..WRAPPER },
    // With other limits, and under another name of the machine or group.
    Wrapper {
        names: &["prlimit"],
        options: OptionSpec {
            values: "op",
            attached: "cdefilmnqrstuvxy",
            long_flags: "as core cpu data fsize locks memlock msgqueue nice nofile noheadings nproc raw rss \
                rtprio rttime sigpending stack verbose",
            long_values: "output pid",
            ..NONE
        },
        without: &["-p", "--pid"],
        ..WRAPPER
    },
    Wrapper {
        names: &[
            "setarch x86_64",
            "setarch i386",
            "setarch i686",
            "setarch linux32",
            "setarch linux64",
            "setarch aarch64",
            "setarch uname26",
            "setarch",
            "linux32",
            "linux64",
            "i386",
            "i486",
            "i586",
            "i686",
            "x86_64",
            "uname26",
        ],
        options: OptionSpec {
            flags: "3BFILRSTXZv",
            long_flags: "32bit 3gb 4gb addr-compat-layout addr-no-randomize fdpic-funcptrs mmap-page-zero \
                read-implies-exec short-inode sticky-timeouts uname-2.6 verbose whole-seconds",
            ..NONE
        },
        starts_shell: true,
        ..WRAPPER
    },
    Wrapper {
        names: &["sg -", "sg"],
        inner: InnerCommand::Code(1),
        code: &["-c"],
        starts_shell: true,
        ..WRAPPER
    },
    Wrapper { names: &["eatmydata"], ..WRAPPER },
    Wrapper {
        names: &["cpulimit"],
        options: OptionSpec {
            flags: "bfikmqvz",
            values: "ceLlPp",
            long_flags: "background foreground include-children kill lazy monitor-forks quiet verbose",
            long_values: "cpu exe limit path pid",
            ..NONE
        },
        ..WRAPPER
    },
    Wrapper {
        names: &["numactl"],
        options: OptionSpec {
            flags: "abl",
            values: "CNPimpw",
            long_flags: "all balancing localalloc",
            long_values: "cpunodebind interleave membind physcpubind preferred preferred-many \
                weighted-interleave",
            ..NONE
        },
        ..WRAPPER
    },
    Wrapper {
        names: &["rlwrap"],
        options: OptionSpec { flags: "EINRcinorvW", values: "CDHOPSTbfglqstz", attached: "Aamp", ..NONE },
        unclear: &["-z"],
        ..WRAPPER
    },
    Wrapper {
        names: &["choom"],
        options: OptionSpec { values: "np", long_values: "adjust pid", ..NONE },
        without: &["-p", "--pid"],
        ..WRAPPER
    },
    Wrapper { names: &["hyperfine", "entr", "ts-node-dev"], inner: InnerCommand::Code(0), ..WRAPPER },
];

/// Options of the programs that run containers.
const CONTAINER_OPTIONS: OptionSpec = OptionSpec {
    flags: "diPqtT",
    values: "acehlmpuvw",
    attached: "",
    long_flags: "detach init interactive no-deps no-healthcheck no-TTY oom-kill-disable privileged publish- \
        all quiet quiet-pull read-only rm service-ports sig-proxy tty use-aliases build",
    long_values: "add-host annotation attach cap-add cap-drop cgroup-parent cgroupns cidfile cpu-shares cpus \
        cpuset-cpus detach-keys device dns domainname entrypoint env env-file expose gpus group- \
        add health-cmd hostname index ip ipc label label-file link log-driver log-opt mac-address \
        memory memory-swap mount name net network network-alias pid pids-limit platform publish \
        pull restart runtime security-opt shm-size stop-signal stop-timeout sysctl tmpfs ulimit \
        user userns uts volume volumes-from workdir",
};
