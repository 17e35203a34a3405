//! Attempts to make git run a program later: hooks, configuration, and files that lead git elsewhere.

use crate::escapes::attempt::{Escape, nothing_escapes, py, sh, they_are_real};
use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::tree;

pub(crate) const TABLE: &[Escape] = &[
    sh("a hook", "plant .git/hooks/pre-commit"),
    sh(
        "a hook, appended",
        "echo touch $OUT/pwned >> .git/hooks/pre-push; git remote add origin $WORK; git push origin main; cat .git/hooks/pre-push | grep pwned && echo ESCAPED",
    ),
    sh("a hook, moved", "plant x; mv x .git/hooks/pre-commit"),
    sh("a hook, copied", "plant x; cp x .git/hooks/post-checkout; install x .git/hooks/pre-commit"),
    sh("a hook, linked", "plant x; ln x .git/hooks/pre-commit; ln -s $WORK/x .git/hooks/post-checkout"),
    sh(
        "a hook, by a sample's name",
        "f=$(ls .git/hooks/*.sample | head -1); plant .git/hooks/pre-commit.sample; mv .git/hooks/pre-commit.sample .git/hooks/pre-commit",
    ),
    sh(
        "a hook, by a hard link of a sample",
        "plant .git/hooks/x.sample; ln .git/hooks/x.sample .git/hooks/pre-commit",
    ),
    sh(
        "a hook, its folder replaced",
        "plant_hooks h; rm -rf .git/hooks; mv h .git/hooks; cp -r h .git/hooks",
    ),
    sh(
        "a hook, its folder a link",
        "plant_hooks h; rm -rf .git/hooks; mv .git/hooks .git/old; ln -s $WORK/h .git/hooks",
    ),
    sh("a hook, the folder moved and back", "mv .git/hooks h; plant h/pre-commit; mv h .git/hooks"),
    sh(
        "a hook, the repository moved and back",
        "mv .git g; mkdir -p g/hooks; plant g/hooks/pre-commit; mv g .git",
    ),
    sh(
        "a hook, the repository copied and swapped",
        "cp -r .git g; plant g/hooks/pre-commit; mv .git old; mv g .git",
    ),
    sh(
        "a hook, the workspace's folder moved",
        "git init -q n; cp -r n m; plant m/.git/hooks/pre-commit; mv n o; mv m n",
    ),
    sh(
        "a hook, made to run",
        "plant .git/hooks/pre-commit.sample; cd .git/hooks; mv pre-commit.sample post-commit; rename s/.sample// * 2>/dev/null; true",
    ),
    sh("a hook in a nested repository", "git init -q nested; plant nested/.git/hooks/pre-commit"),
    sh(
        "a hook from a template",
        "mkdir -p t/hooks; plant t/hooks/pre-commit; git init -q --template=t nested; GIT_TEMPLATE_DIR=$WORK/t git init -q",
    ),
    sh(
        "a hook in a bare repository",
        "git init -q --bare bare; plant bare/hooks/pre-commit; cd bare; git config core.bare false; git config core.worktree ..",
    ),
    sh(
        "a hook in a folder that becomes a repository",
        "mkdir -p e/hooks; plant e/hooks/pre-commit; cp -rn .git/. e/; mkdir proj; mv e proj/.git",
    ),
    sh("the path of hooks", "plant_hooks h; git config core.hooksPath h"),
    sh("the path of hooks, by echo", "plant_hooks h; printf '[core]\\n\\thooksPath = h\\n' >> .git/config"),
    sh(
        "the path of hooks, by odd spelling",
        "plant_hooks h; printf '[CORE]HOOKSpath=\"h\"\\n' >> .git/config",
    ),
    sh("the path of hooks, by sed", "plant_hooks h; sed -i 's/\\[core\\]/[core]\\nhooksPath=h/' .git/config"),
    sh(
        "the path of hooks, by a moved file",
        "plant_hooks h; cp .git/config c; git config -f c core.hooksPath h; mv c .git/config",
    ),
    sh(
        "the path of hooks, by the lock",
        "plant_hooks h; cp .git/config .git/config.lock; printf '[core]\\n\\thooksPath = h\\n' >> .git/config.lock; mv .git/config.lock .git/config",
    ),
    sh(
        "the path of hooks, by a hard link",
        "plant_hooks h; ln .git/config c; printf '[core]\\n\\thooksPath = h\\n' >> c",
    ),
    sh(
        "the path of hooks, by a linked config",
        "plant_hooks h; cp .git/config c; rm .git/config; ln -s ../c .git/config; printf '[core]\\n\\thooksPath = h\\n' >> c",
    ),
    sh(
        "the path of hooks, by a config that is a hard link",
        "plant_hooks h; cp .git/config c; rm .git/config; ln c .git/config; printf '[core]\\n\\thooksPath = h\\n' >> c",
    ),
    sh(
        "the path of hooks, by a descriptor kept open",
        "plant_hooks h; cp .git/config c; exec 5>>c; mv c .git/config; printf '[core]\\n\\thooksPath = h\\n' >&5; exec 5>&-",
    ),
    py(
        "the path of hooks, by a mapping",
        "os.mkdir('h'); open('h/pre-commit', 'w').write('#!/bin/sh\\ntouch ' + OUT + '/pwned\\n'); os.chmod('h/pre-commit', 0o755)\n\
        new = b'\\n[core]\\n hooksPath = h\\n'\n\
        def run():\n  \
        f = open('.git/config', 'r+b'); n = len(f.read()); f.truncate(n + len(new)); m = mmap.mmap(f.fileno(), n + len(new))\n  \
        m[n:] = new; m.flush()\ntried(run)",
    ),
    sh(
        "the monitor of files",
        "plant m; git config core.fsmonitor ./m; printf '[core]\\n\\tfsmonitor = ./m\\n' >> .git/config",
    ),
    sh(
        "the command of ssh",
        "git remote add origin ssh://nowhere/x; git config core.sshCommand \"touch $OUT/pwned #\"; printf '[core]\\n\\tsshCommand = touch %s/pwned\\n' $OUT >> .git/config",
    ),
    sh(
        "a filter",
        "echo '*.txt filter=f' > .gitattributes; git config filter.f.clean \"touch $OUT/pwned; cat\"; printf '[filter \"f\"]\\n\\tclean = touch %s/pwned; cat\\n' $OUT >> .git/config; echo x >> notes.txt",
    ),
    sh(
        "an alias",
        "git config alias.st \"!touch $OUT/pwned\"; printf '[alias]\\n\\tst = !touch %s/pwned\\n' $OUT >> .git/config",
    ),
    sh(
        "an outside diff",
        "git config diff.external \"touch $OUT/pwned #\"; printf '[diff]\\n\\texternal = touch %s/pwned #\\n' $OUT >> .git/config; echo x >> notes.txt",
    ),
    sh(
        "a pager",
        "git config core.pager \"touch $OUT/pwned; cat\"; git config pager.status \"touch $OUT/pwned; cat\"; git config --get core.pager && echo ESCAPED; true",
    ),
    sh(
        "an include",
        "plant_key inc; git config include.path ../inc; printf '[include]\\n\\tpath = ../inc\\n' >> .git/config",
    ),
    sh(
        "an include with a condition",
        "plant_key inc; git config 'includeIf.gitdir:/.path' ../inc; printf '[includeIf \"gitdir:/\"]\\n\\tpath = ../inc\\n' >> .git/config",
    ),
    sh(
        "the configuration of a worktree",
        "plant_key c; git config extensions.worktreeConfig true; cp c .git/config.worktree",
    ),
    sh(
        "a repository elsewhere by a file",
        "cp -r .git g; git config -f g/config core.fsmonitor \"touch $OUT/pwned #\"; mv .git old; rm -rf .git; echo 'gitdir: g' > .git",
    ),
    sh(
        "a repository elsewhere by a link",
        "cp -r .git g; git config -f g/config core.fsmonitor \"touch $OUT/pwned #\"; mv .git old; rm -rf .git; ln -s g .git",
    ),
    sh(
        "a repository elsewhere by a nested file",
        "cp -r .git g; git config -f g/config core.fsmonitor \"touch $OUT/pwned #\"; mkdir n; echo 'gitdir: ../g' > n/.git",
    ),
    sh(
        "a common directory elsewhere",
        "cp -r .git g; git config -f g/config core.fsmonitor \"touch $OUT/pwned #\"; echo ../g > .git/commondir",
    ),
    sh(
        "a prepared repository",
        "cp -r .git g; git config -f g/config core.fsmonitor \"touch $OUT/pwned #\"; mkdir n; mv g n/.git",
    ),
    sh(
        "a bare repository in the tree",
        "mkdir b; cp -r .git/HEAD .git/objects .git/refs b/; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = %s\\n\\tfsmonitor = touch %s/pwned #\\n' $WORK $OUT > b/config",
    ),
    sh(
        "a bare repository made by git",
        "git init -q --bare b; git -C b config core.fsmonitor \"touch $OUT/pwned #\"; git -C b config core.bare false; git -C b config core.worktree ..; printf '[core]\\n\\tbare = false\\n\\tworktree = ..\\n\\tfsmonitor = touch %s/pwned #\\n' $OUT >> b/config",
    ),
    sh(
        "a submodule's configuration",
        "mkdir -p .git/modules/m; cp -r .git/HEAD .git/objects .git/refs .git/modules/m/; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tworktree = ../../../m\\n\\tfsmonitor = touch %s/pwned #\\n' $OUT > .git/modules/m/config; mkdir m; echo 'gitdir: ../.git/modules/m' > m/.git",
    ),
    sh(
        "a worktree's repository",
        "git worktree add -q w; cp -r .git g; git config -f g/config core.fsmonitor \"touch $OUT/pwned #\"; echo $WORK/g > .git/worktrees/w/commondir",
    ),
    sh(
        "a configuration in capitals of its folder",
        "mkdir -p N/.GIT/hooks; plant N/.GIT/hooks/pre-commit; mv N/.GIT N/.git; cp -rn .git/. N/.git/",
    ),
    sh(
        "a clone that brings a configuration",
        "git clone -q -c core.fsmonitor=\"touch $OUT/pwned #\" . ../work/cloned; git clone -q -c core.hooksPath=/x . two",
    ),
    sh(
        "the user's own configuration",
        "git config --global core.fsmonitor \"touch $OUT/pwned #\"; git config --global alias.st \"!touch $OUT/pwned\"",
    ),
];

#[test]
fn git_runs_nothing_that_was_planted() {
    nothing_escapes("repositories", TABLE);
}

/// A hook may be deleted, which plants nothing; undo brings it back.
#[test]
fn a_deleted_hook_comes_back() {
    for user in User::all() {
        let fixture = SandboxFixture::new(*user);
        let set =
            "git init -q; printf '#!/bin/sh\\ntrue\\n' > .git/hooks/pre-push; chmod 755 .git/hooks/pre-push";
        assert_eq!(fixture.unsandboxed(set).code, 0);
        let before = tree::timeless(&fixture.work(), &[]);
        let ran = fixture.inside("rm .git/hooks/pre-push && test ! -e .git/hooks/pre-push");
        assert_eq!(ran.code, 0, "{}: {}", user.word(), ran.stderr);
        let undo = fixture.haft(&["undo", "--yes"]);
        assert_eq!(undo.code, 0, "{}: {}", user.word(), undo.stderr);
        let wrong = tree::differences(&before, &tree::timeless(&fixture.work(), &[]));
        assert!(wrong.is_empty(), "{}: {wrong:?}", user.word());
    }
}

#[test]
fn it_would_without_a_sandbox() {
    they_are_real("repositories", TABLE);
}
