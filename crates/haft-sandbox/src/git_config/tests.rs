//! Tables of configurations and links that are refused and that pass.
#![allow(clippy::unwrap_used, reason = "a test fails where something is unexpected")]

use std::path::Path;

/// The new programs in a repository's own configuration.
fn new_programs(old: &[u8], new: &[u8]) -> Vec<String> {
    super::new_programs(Path::new(".git/config"), old, new)
}

/// A configuration file that sets `a.b.c=value`. The subsection `b` is optional.
fn file(name: &str, value: &str) -> String {
    let (rest, key) = name.rsplit_once('.').unwrap();
    let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
    match rest.split_once('.') {
        Some((section, within)) => format!("[{section} \"{within}\"]\n\t{key} = \"{quoted}\"\n"),
        None => format!("[{rest}]\n\t{key} = \"{quoted}\"\n"),
    }
}

#[test]
fn keys_that_run_programs_are_found() {
    let always = "core.hooksPath core.fsmonitor core.sshCommand core.editor core.pager core.gitProxy core.askPass \
        core.alternateRefsCommand core.worktree sequence.editor diff.external diff.x.command diff.x.textconv \
        merge.x.driver mergetool.x.cmd mergetool.x.path mergetool.vimdiff.layout difftool.x.cmd difftool.x.path \
        filter.x.clean filter.x.smudge filter.x.process alias.x alias.x.command include.path includeIf.gitdir:/.path \
        credential.helper credential.https://a.b.helper gpg.program gpg.ssh.program gpg.ssh.defaultKeyCommand \
        pager.log browser.x.cmd browser.x.path man.x.cmd man.x.path web.browser help.browser interactive.diffFilter \
        init.templateDir uploadpack.packObjectsHook gc.recentObjectsHook remote.x.uploadpack remote.x.receivepack \
        remote.x.vcs trailer.x.command trailer.x.cmd sendemail.smtpServer sendemail.toCmd sendemail.x.ccCmd \
        sendemail.sendmailCmd sendemail.headerCmd imap.tunnel hook.x.command guitool.x.cmd instaweb.httpd \
        instaweb.browser instaweb.modulePath svn.authorsProg svn.configDir lfs.customtransfer.x.path \
        lfs.customtransfer.x.args lfs.extension.x.clean lfs.extension.x.smudge lfs.standaloneTransferAgent \
        tar.tgz.command rebase.instructionFormat diff.tool merge.tool merge.guitool submodule.x.gitdir \
        protocol.ext.allow protocol.allow core.protectHFS core.protectNTFS secrets.providers gitflow.path.hooks \
        remote.x.annex-ssh-options annex.freezecontent-command tig.diff-highlight delta.pager";
    for name in always.split_whitespace() {
        let found = new_programs(b"", file(name, "!/tmp/evil -x").as_bytes());
        let (rest, key) = name.rsplit_once('.').unwrap();
        let (section, within) = rest.split_once('.').unwrap_or((rest, ""));
        let dot = if within.is_empty() { "" } else { "." };
        let (section, key) = (section.to_ascii_lowercase(), key.to_ascii_lowercase());
        assert_eq!(found, [format!("{section}{dot}{within}.{key} = !/tmp/evil -x")], "{name}");
        let empty = new_programs(b"", file(name, "").as_bytes());
        assert_eq!(
            empty.len(),
            usize::from(name.starts_with("core.protect")),
            "an empty {name} is no program"
        );
    }
    let by_value = [
        ("submodule.x.update", "!touch x"),
        ("remote.x.url", "ext::sh -c evil"),
        ("remote.x.pushurl", "EXT::sh -c evil"),
        ("remote.x.url", "fd::17"),
        ("branch.main.remote", "ext::sh -c evil"),
        ("submodule.x.url", "ext::sh"),
        ("url.ext::sh -c evil .insteadOf", "https://a"),
        ("url.ex.pushInsteadOf", "a"),
        ("url..insteadOf", "a"),
        ("url./tm.insteadOf", "x:"),
        ("url.~/.pushInsteadOf", "https://a.b/"),
        ("url.file:.insteadOf", "x"),
        ("url.https.insteadOf", "x"),
        ("http.sslKey", "pkcs11:module-path=/w/evil.so"),
        ("http.saveCookies", "yes"),
        ("alias.x", "-c core.fsmonitor=evil status"),
        ("alias.x", "rebase -xevil"),
        ("alias.x", "fetch --upload-pack=evil"),
        ("alias.x", "bisect run evil"),
        ("alias.x", "log '--output=x'"),
        ("core.worktree", "/home/user"),
        ("core.worktree", "../.."),
        ("core.worktree", "../sub"),
        ("core.worktree", "."),
        ("protocol.file.allow", "always"),
        ("core.protectNTFS", ""),
    ];
    for (name, value) in by_value {
        assert_eq!(new_programs(b"", file(name, value).as_bytes()).len(), 1, "{name} = {value}");
    }
}

#[test]
fn harmless_keys_pass() {
    let harmless = [
        ("core.fsmonitor", "true"),
        ("core.fsmonitor", "No"),
        ("core.fsmonitor", ""),
        ("core.filemode", "true"),
        ("core.bare", "false"),
        ("core.repositoryformatversion", "1"),
        ("core.logallrefupdates", "true"),
        ("core.attributesFile", "x"),
        ("core.excludesFile", "x"),
        ("core.worktree", ".."),
        ("core.protectNTFS", "true"),
        ("extensions.worktreeConfig", "true"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", "https://a.b/c.git"),
        ("remote.origin.url", "git@a.b:c/d.git"),
        ("remote.origin.pushurl", "../local"),
        ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
        ("remote.origin.partialclonefilter", "blob:none"),
        ("branch.main.remote", "origin"),
        ("branch.main.merge", "refs/heads/main"),
        ("branch.x!y.rebase", "true"),
        ("branch.main.mergeOptions", "--no-ff"),
        ("branch.main.description", "!runs nothing"),
        ("user.name", "!A B"),
        ("user.email", "a@b"),
        ("submodule.x.url", "https://a.b/c"),
        ("submodule.x.active", "true"),
        ("submodule.x.update", "checkout"),
        ("submodule.x.gitdir", ".git/modules/x"),
        ("lfs.https://a.b/info/lfs.access", "basic"),
        ("lfs.repositoryformatversion", "0"),
        ("url.https://a.b/.insteadOf", "a:"),
        ("url.https://a.b/.insteadOf", "git://"),
        ("url.git@a.b:.pushInsteadOf", "https://a.b/"),
        ("pager.log", "false"),
        ("color.pager", "true"),
        ("advice.ignoredHook", "false"),
        ("advice.waitingForEditor", "off"),
        ("diff.tool", "vimdiff"),
        ("merge.tool", "meld"),
        ("diff.x.xfuncname", "^a"),
        ("merge.x.name", "evil"),
        ("sendemail.smtpServer", "smtp.a.b"),
        ("protocol.version", "2"),
        ("protocol.ext.allow", "never"),
        ("protocol.https.allow", "always"),
        ("credential.helper", ""),
        ("credential.username", "x"),
        ("hook.x.event", "pre-commit"),
        ("http.saveCookies", "false"),
        ("maintenance.auto", "false"),
        ("gc.auto", "0"),
        ("alias.st", "status"),
        ("alias.lg", "log --oneline --graph -5 -p"),
        ("ssh.variant", "ssh"),
        ("gui.encoding", "utf-8"),
    ];
    for (name, value) in harmless {
        let found = new_programs(b"", file(name, value).as_bytes());
        assert!(found.is_empty(), "{found:?}");
    }
    assert_eq!(new_programs(b"", b"[core]\nfsmonitor\n[pager]\nlog\n"), [""; 0]);
    assert_eq!(new_programs(b"", b"[http]\nsaveCookies\n"), ["http.savecookies"]);
}

#[test]
fn unusual_syntax_hides_no_program() {
    let hidden: &[&[u8]] = &[
        b"[core] fsmonitor = x",
        b"[CORE]\nFSMonitor=x",
        b"\xef\xbb\xbf[core]\r\n\tfsmonitor=x\r\n",
        b"[core]fsmonitor=\\\n   \\\nx",
        b"[core]\n# y\n; z\nfsmonitor = \"x\" # false",
        b"[core]\nbare = false \\\n# fsmonitor = y\nfsmonitor = x",
        b"[a \"]\\\"\\[core]\"] b = c\n[core] [user] name = a\n[core] fsmonitor = \"\"x",
        b"[core]\nfsmonitor = false\n[user]\nname=a\n[core]\nfsmonitor = x",
        b"[core]\nfsmonitor = x\n[core]\nfsmonitor = false",
    ];
    for bytes in hidden {
        let shown = String::from_utf8_lossy(bytes);
        assert_eq!(new_programs(b"", bytes), ["core.fsmonitor = x"], "{shown}");
    }
    assert_eq!(new_programs(b"", b"[Diff.ABC] Command = x"), ["diff.abc.command = x"]);
    assert_eq!(
        new_programs(b"", b"[diff \"A.b\\\"\"]\ncommand=\"a\\tb\\n\" "),
        ["diff.A.b\".command = a\\tb\\n"]
    );
    let long = new_programs(b"", format!("[core]\neditor = {}", "é".repeat(1000)).as_bytes());
    assert!(long[0].len() < 400 && long[0].ends_with('…'), "{long:?}");
}

#[test]
fn invalid_syntax_is_refused_with_everything_above_it() {
    let broken: &[(&[u8], usize)] = &[
        (b"[core]\n$", 2),
        (b"[core", 1),
        (b"[core \"x", 1),
        (b"[core \"x\"y]", 1),
        (b"[a]\nb = \"c\n", 3),
        (b"[a]\nb = \\x\n", 2),
        (b"[a]\nb ! c\n", 2),
        (b"[a]\n1b = c\n", 2),
        (b"\xef\xbb[a]", 1),
        (b"[a]\nb = c\n\0", 3),
        (b"[core \"fsmonitor\0\"]\nx = evil\n", 1),
    ];
    for (bytes, line) in broken {
        let says = format!("line {line} is not valid in a git configuration");
        assert_eq!(new_programs(b"[a]\nb = c\n", bytes), [says], "{:?}", String::from_utf8_lossy(bytes));
        assert_eq!(new_programs(bytes, bytes), [""; 0], "existing errors are not the command's");
    }
    assert_eq!(new_programs(b"", b"[core]\nfsmonitor = x\n]")[0], "core.fsmonitor = x");
}

#[test]
fn existing_programs_may_stay_but_not_become_active() {
    let same: &[(&str, &str)] = &[
        ("[core]\neditor = x", "[user]\nname = a\n[core]\n\teditor = \"x\"\n"),
        ("[core]\neditor = x", ""),
        ("[core]\neditor = x", "[core]\neditor = x\neditor =\n"),
        ("[credential]\nhelper = a\nhelper = b", "[credential]\nhelper = a"),
        ("[filter \"x\"]\nclean = a\n", "[filter.x]\nclean = a\n[remote \"x\"]\nurl = y"),
    ];
    for (old, new) in same {
        assert_eq!(new_programs(old.as_bytes(), new.as_bytes()), [""; 0], "{new}");
    }
    let other: &[(&str, &str, &str)] = &[
        ("[core]\neditor = x", "[core]\neditor = y", "core.editor = y"),
        ("[core]\neditor = x", "[core]\neditor = x\neditor = y", "core.editor = y"),
        ("[core]\nfsmonitor = x\nfsmonitor = no", "[core]\nfsmonitor = x", "core.fsmonitor = x"),
        (
            "[core]\nfsmonitor = x\nfsmonitor = no",
            "[core]\nfsmonitor = no\nfsmonitor = x",
            "core.fsmonitor = x",
        ),
        (
            "[core]\nfsmonitor=x\nfsmonitor=no",
            "[core]\nfsmonitor=x\nfsmonitor=no\nfsmonitor=x",
            "core.fsmonitor = x",
        ),
        ("[filter \"x\"]\nclean = a", "[filter \"X\"]\nclean = a", "filter.X.clean = a"),
    ];
    for (old, new, found) in other {
        assert_eq!(new_programs(old.as_bytes(), new.as_bytes()), [*found], "{new}");
    }
}

#[test]
fn named_paths_are_found() {
    let config = b"[core]\nhooksPath = a\n[Include]\npath = b\n[includeIf \"gitdir:/\"]path=c\n[core]hookspath=\"d e\"\n";
    let named = super::named_paths(Path::new("/w/.git/config"), config);
    assert_eq!(named.includes, [b"b".to_vec(), b"c".to_vec()]);
    assert_eq!(named.hooks.as_deref(), Some(&b"d e"[..]));
    let config = b"[core]\nfsmonitor = ./a b\neditor = code --wait\nautocrlf = ./x\n[filter \"x\"]\nclean = env A=1 tools/c\n\
        [alias]\nd = !./e\n[credential]\nhelper = !./f --get\n";
    let named = super::named_paths(Path::new("/w/.git/config"), config);
    assert_eq!(named.programs, [b"./a".to_vec(), b"tools/c".to_vec(), b"./f".to_vec()]);
    for (value, path) in [
        ("/usr/bin/env python3 tools/c.py", "tools/c.py"),
        ("python3 c.py %f", "c.py"),
        ("'tools/a b.sh' --flag", "tools/a b.sh"),
        ("tools/a\\ b.sh", "tools/a b.sh"),
        ("sh -c 'cd x; ./run; true'", "./run"),
        ("\"too\"ls/c", "tools/c"),
        ("!f() { A=1 ./g; }; f", "./g"),
        ("vim --cmd=tools/x", "tools/x"),
    ] {
        let named = super::named_paths(Path::new("/w/.git/config"), file("filter.x.clean", value).as_bytes());
        assert!(named.programs.contains(&path.as_bytes().to_vec()), "{value}: {:?}", named.programs);
    }
}

#[test]
fn time_grows_linearly_with_size() {
    const SIZE: usize = 1 << 20;
    let long = "x".repeat(SIZE);
    let shapes = [
        format!("[core \"{long}\"]\n{}", "editor=x\n".repeat(SIZE / 9)),
        format!("[{long}]\n{}", "a\n".repeat(SIZE / 2)),
        "[core]\neditor = x\n".repeat(SIZE / 18),
        (0..SIZE / 16).map(|at| format!("[core]editor={at}\n")).collect(),
        "[a]".repeat(SIZE / 3),
        format!("[a]\nb = {}", " \\\n".repeat(SIZE / 3)),
        format!("[a]\nb = {}c", " ".repeat(SIZE)),
    ];
    for new in &shapes {
        let found = new_programs(b"", new.as_bytes());
        let changed = new_programs(new.as_bytes(), format!("{new}\n[core]\neditor = other").as_bytes());
        assert!(found.len() <= SIZE && !changed.is_empty());
    }
}
