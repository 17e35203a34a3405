//! Attempts through the environment: keys in variables, programs and start files planted for later.

use crate::escapes::attempt::{Escape, nothing_escapes, py, sh, they_are_real};
use crate::fixture::sandbox::{CANARY, SandboxFixture, User};

pub(crate) const TABLE: &[Escape] = &[
    sh("keys in variables", "env; export -p; echo $OPENAI_API_KEY"),
    sh("keys in one's own environment file", "tr '\\0' '\\n' < /proc/self/environ; tr '\\0' '\\n' < /proc/$$/environ"),
    sh("keys in a parent's environment file", "p=$$; while [ \"$p\" -gt 1 ] 2>/dev/null; do tr '\\0' '\\n' < /proc/$p/environ; p=$(cut -d' ' -f4 /proc/$p/stat); done"),
    sh("keys in a parent's command line", "p=$PPID; while [ \"$p\" -gt 1 ] 2>/dev/null; do tr '\\0' '\\n' < /proc/$p/cmdline | grep -a canary; p=$(cut -d' ' -f4 /proc/$p/stat); done; true").untried(),
    sh("the agent of ssh", "test -z \"$SSH_AUTH_SOCK\" || echo ESCAPED").untried(),
    sh("a proxy with a password", "env | grep -i proxy | grep @ && echo ESCAPED; true").untried(),
    sh("a shell's start in the home", "echo pwned >> ~/.bashrc; echo pwned >> $USER_HOME/.profile; echo pwned > $USER_HOME/.zshenv"),
    sh("a key for ssh", "mkdir -p $USER_HOME/.ssh; echo pwned >> $USER_HOME/.ssh/authorized_keys"),
    sh("a program in the home's path", "printf '#!/bin/sh\\n' > $USER_HOME/.local/bin/git; chmod +x $USER_HOME/.local/bin/git"),
    sh("a program among cargo's", "printf '#!/bin/sh\\n' > $USER_HOME/.cargo/bin/cargo"),
    sh("cargo's configuration", "printf '[build]\\nrustc-wrapper = \"/x\"\\n' > $USER_HOME/.cargo/config.toml; rm -f $USER_HOME/.cargo/config.toml"),
    sh("a desktop's start", "echo pwned > $USER_HOME/.config/autostart/x.desktop; mkdir -p $USER_HOME/.config/systemd/user; echo pwned > $USER_HOME/.config/systemd/user/x.service"),
    sh("a python's start", "mkdir -p $USER_HOME/.local/lib/python3/site-packages; echo pwned > $USER_HOME/.local/lib/python3/site-packages/usercustomize.py"),
    sh("a fish's start", "mkdir -p $USER_HOME/.config/fish; echo pwned > $USER_HOME/.config/fish/config.fish"),
    sh("packages' configuration", "echo pwned > $USER_HOME/.npmrc; mkdir -p $USER_HOME/.config/pip; echo pwned > $USER_HOME/.config/pip/pip.conf; echo pwned > $USER_HOME/.pypirc"),
    sh("the loader of programs", "echo /x.so > /etc/ld.so.preload && echo ESCAPED; echo > /etc/ld.so.conf.d/x.conf && echo ESCAPED; true").untried(),
    sh("the clock's programs", "for f in /etc/cron.d/x /var/spool/cron/x /var/spool/cron/crontabs/root /etc/crontab /etc/profile.d/x.sh /etc/rc.local /etc/systemd/system/x.service /lib/systemd/system/x.service; do (echo >> $f) 2>/dev/null && echo ESCAPED $f; done; true").untried(),
    sh("programs of the system", "for d in /usr/local/bin /usr/bin /bin /sbin /usr/lib; do (echo > $d/haft-escape) 2>/dev/null && echo ESCAPED $d; done; true").untried(),
    sh("Haft itself", "for p in $(readlink /proc/$HAFT/exe) $(command -v haft); do (echo >> $p) 2>/dev/null && echo ESCAPED; rm -f $p 2>/dev/null && echo ESCAPED; done; true").untried(),
    sh("the programs of the tests", "echo pwned > $BIN/pwned && echo ESCAPED; rm -f $BIN/outsider; test -e $BIN/outsider || echo ESCAPED").untried(),
    py("a library before all others", "os.environ['LD_PRELOAD'] = WORK + '/x.so'; os.environ['PATH'] = WORK + ':' + os.environ['PATH']\n\
        open(WORK + '/git', 'w').write('#!/bin/sh\\ntouch ' + OUT + '/x\\n'); os.chmod(WORK + '/git', 0o755); os.system('git')\n"),
];

#[test]
fn no_key_gets_in_and_nothing_is_planted() {
    nothing_escapes("environment", TABLE);
}

#[test]
fn they_would_without_a_sandbox() {
    they_are_real("environment", TABLE);
}

/// Programs with well-known names in the workspace are never run by Haft itself.
#[test]
fn haft_runs_nothing_from_the_workspace() {
    for user in User::all() {
        let fixture = SandboxFixture::new(*user);
        let names = "git sh bash env cp mv ps id uname cargo rustc python3 true timeout";
        let trace = fixture.path("outside/ran");
        let plant = format!(
            "for name in {names}; do printf '#!/bin/sh\\ntouch {} 2>/dev/null; exec /bin/true\\n' > $name; chmod +x $name; done",
            trace.display()
        );
        assert_eq!(fixture.unsandboxed(&plant).code, 0);
        for args in [
            &["log"][..],
            &["doctor"],
            &["sandbox", "--", "/bin/true"],
            &["log", "--json"],
            &["undo", "--yes"],
        ] {
            let mut command = fixture.bare(&fixture.program());
            command.args(args).env("PATH", format!(".::{}:/usr/bin:/bin", fixture.work().display()));
            let ran = fixture.run(command.env("OPENAI_API_KEY", CANARY));
            assert!(
                !trace.exists(),
                "haft {args:?} {} ran a program of the workspace: {}",
                user.word(),
                ran.stderr
            );
        }
    }
}
