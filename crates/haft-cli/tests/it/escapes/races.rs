//! Attempts by threads that change what a call is about while it is looked at.

use crate::escapes::attempt::{Escape, nothing_escapes_from, sh, they_are_real};
use crate::fixture::sandbox::User;

pub(crate) const TABLE: &[Escape] = &[
    sh("swap against open", "mkdir d; cp notes.txt d/victim.txt; ln -s $OUT l; $BIN/race swap open d l d/victim.txt"),
    sh("swap against append", "mkdir d; cp notes.txt d/victim.txt; ln -s $OUT l; $BIN/race swap append d l d/victim.txt"),
    sh("swap against create", "mkdir d; ln -s $OUT l; $BIN/race swap create d l d/new.txt"),
    sh("swap against creat", "mkdir d; ln -s $OUT l; $BIN/race swap creat d l d/new.txt"),
    sh("swap against truncate", "mkdir d; cp notes.txt d/victim.txt; ln -s $OUT l; $BIN/race swap truncate d l d/victim.txt"),
    sh("swap against unlink", "mkdir d; ln -s $OUT l; $BIN/race swap unlink d l d/victim.txt"),
    sh("swap against mkdir", "mkdir d; ln -s $OUT l; $BIN/race swap mkdir d l d/new"),
    sh("swap against rmdir", "mkdir d; ln -s $OUT l; $BIN/race swap rmdir d l d/empty"),
    sh("swap against chmod", "mkdir d; cp notes.txt d/victim.txt; ln -s $OUT l; $BIN/race swap chmod d l d/victim.txt"),
    sh("swap against utime", "mkdir d; cp notes.txt d/victim.txt; ln -s $OUT l; $BIN/race swap utime d l d/victim.txt"),
    sh("swap against setxattr", "mkdir d; cp notes.txt d/victim.txt; ln -s $OUT l; $BIN/race swap setxattr d l d/victim.txt"),
    sh("swap against chown", "mkdir d; cp notes.txt d/victim.txt; ln -s $OUT l; $BIN/race swap chown d l d/victim.txt").as_root(),
    sh("swap against mknod", "mkdir d; ln -s $OUT l; $BIN/race swap mknod d l d/new"),
    sh("swap against symlink", "mkdir d; ln -s $OUT l; $BIN/race swap symlink d l d/new"),
    sh("swap against rename onto", "mkdir d; ln -s $OUT l; $BIN/race swap rename-onto d l d/victim.txt"),
    sh("swap against rename away", "mkdir d; ln -s $OUT l; $BIN/race swap rename-away d l d/victim.txt"),
    sh("swap against link in", "mkdir d; cp notes.txt d/victim.txt; ln -s $OUT l; $BIN/race swap link-in d l d/victim.txt"),
    sh("swap of the file itself", "cp notes.txt f; ln -s $OUT/victim.txt l; $BIN/race swap open f l f"),
    sh("memory against open", "$BIN/race memory open $WORK/notes.txt $OUT/victim.txt -"),
    sh("memory against create", "$BIN/race memory create $WORK/new.txt $OUT/new.txt -"),
    sh("memory against unlink", "$BIN/race memory unlink $WORK/none.txt $OUT/victim.txt -"),
    sh("memory against mkdir", "$BIN/race memory mkdir $WORK/new $OUT/new -"),
    sh("memory against chmod", "$BIN/race memory chmod $WORK/notes.txt $OUT/victim.txt -"),
    sh("memory against rename onto", "$BIN/race memory rename-onto $WORK/x $OUT/victim.txt -"),
    sh("memory against rename away", "$BIN/race memory rename-away $WORK/x $OUT/victim.txt -"),
    sh("memory against symlink", "$BIN/race memory symlink $WORK/x $OUT/x -"),
    sh("memory against the secrets", "$BIN/race memory read $WORK/notes.txt $WORK/.env -"),
    sh("memory against keys of the home", "$BIN/race memory read $WORK/notes.txt $USER_HOME/.ssh/id_rsa -"),
    sh("swap against the secrets", "mkdir d; echo x > d/.hidden; ln -s $WORK l; $BIN/race swap read d l d/.env"),
    sh("memory against guarded names", "$BIN/race memory create $WORK/.vscodx $WORK/.zshenv - "),
    sh("flags of openat2", "$BIN/race flags - - - $OUT/victim.txt"),
    sh("a descriptor that changes", "cp notes.txt sub/victim.txt; $BIN/race hand - $WORK/sub $OUT -"),
    sh("a current directory that changes", "cp notes.txt sub/victim.txt; $BIN/race cwd open $WORK/sub $OUT victim.txt"),
    sh("an address that changes", "$BIN/race address - - - $TCP; $BIN/race address - - - $UDP"),
    sh("flags of clone3 that change", "$BIN/race clone - - - -"),
    sh("a name that changes against open", "mkdir x; $BIN/race names create x .vscode x/tasks.json; $BIN/race names create x .vscode .vscode/tasks.json; mv x .vscode"),
    sh("a repository that changes its name", "mkdir x x/hooks; plant x/hooks/pre-commit; \
        $BIN/race names append .git x x/hooks/pre-commit 1000; $BIN/race swap append .git x .git/hooks/pre-commit 1000").untried(),
];

#[test]
fn no_race_is_won() {
    nothing_escapes_from(User::Current, "races", TABLE);
}

#[test]
fn no_race_is_won_by_an_ordinary_user() {
    // Without root there is no second user, and the other test covers the first.
    if User::is_root() {
        nothing_escapes_from(User::Unprivileged, "races", TABLE);
    }
}

#[test]
fn they_would_be_without_a_sandbox() {
    they_are_real("races", TABLE);
}
