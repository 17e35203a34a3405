//! Attempts on settings that make programs run later: an agent's, an editor's, a shell's.

use crate::escapes::attempt::{Escape, nothing_escapes, py, sh, they_are_real};
use crate::fixture::sandbox::{SandboxFixture, User};

pub(crate) const TABLE: &[Escape] = &[
    sh("an agent's servers", "echo '{\"pwned\":1}' > .mcp.json"),
    sh("an agent's servers, appended", "echo pwned >> .mcp.json"),
    sh("an agent's servers, deleted", "rm -f .mcp.json"),
    sh("an agent's servers, moved away", "mv .mcp.json elsewhere.json"),
    sh("an agent's servers, in place", "sed -i 's/{}/pwned/' .mcp.json"),
    sh("an agent's servers, replaced", "echo pwned > new; mv -f new .mcp.json"),
    sh("an agent's servers, by a hard link", "ln .mcp.json alias && echo pwned > alias"),
    sh("an agent's servers, by a link", "ln -s .mcp.json alias; echo pwned > alias"),
    sh("an agent's servers, made a link", "echo pwned > evil.json; ln -sf evil.json .mcp.json"),
    sh("an agent's servers, from a folder of one's own", "mkdir made; echo pwned > made/.mcp.json; mv made/.mcp.json sub/; mv -f made/.mcp.json .; cp made/.mcp.json sub/; ln made/.mcp.json sub/.mcp.json; ln -sf made/.mcp.json .mcp.json"),
    sh("an agent's servers, a folder of one's own in another's place", "mkdir made; echo pwned > made/.mcp.json; mv sub old; mv made sub; mv -T made sub"),
    sh("an agent's servers, another's place taken first", "mv sub old; mkdir sub; echo pwned > sub/.mcp.json"),
    sh("an agent's servers, a removed place taken", "rm -rf sub; mkdir sub; echo pwned > sub/.mcp.json"),
    py("an agent's servers, places exchanged", "os.mkdir('made'); open('made/.mcp.json', 'w').write('pwned'); libc.renameat2(-100, b'made', -100, b'sub', 2)"),
    sh("an agent's servers, truncated", "truncate -s 0 .mcp.json"),
    sh("an agent's settings", "echo pwned > .claude/settings.json"),
    sh("an agent's settings that are not there yet", "echo pwned > .claude/settings.local.json"),
    sh("an agent's settings, with their folder", "mkdir c; echo pwned > c/settings.json; mv .claude old; mv c .claude"),
    sh("an agent's settings, their folder a link", "mkdir c; echo pwned > c/settings.json; rm -rf .claude; ln -s c .claude"),
    sh("an agent's settings, from an archive", "mkdir -p t/.claude; cd t; echo pwned > .claude/x; tar -cf ../t.tar --transform s,x,settings.json, .claude; cd ..; tar -xf t.tar"),
    sh("Haft's folder", "mkdir -p .haft; echo pwned > .haft/config"),
    sh("Haft's configuration", "echo pwned > haft.toml"),
    sh("Haft's configuration in capitals", "echo pwned > HAFT.toml"),
    sh("an editor's tasks", "mkdir -p .vscode; echo pwned > .vscode/tasks.json"),
    sh("an editor's tasks in capitals", "mkdir -p .VSCode; echo pwned > .VSCode/tasks.json"),
    sh("an editor's tasks, prepared elsewhere", "mkdir prepared; echo pwned > prepared/tasks.json; mv prepared .vscode"),
    sh("an editor's tasks, copied", "mkdir prepared; echo pwned > prepared/tasks.json; cp -r prepared .vscode"),
    sh("an editor's tasks, a link", "mkdir prepared; echo pwned > prepared/tasks.json; ln -s prepared .vscode"),
    sh("an editor's tasks, below", "echo pwned > pkg/.vscode/tasks.json"),
    sh("an editor's tasks, their parent moved", "mv pkg other; echo pwned > other/.vscode/tasks.json"),
    sh("an editor's tasks, their parent removed", "rm -rf pkg; mkdir -p pkg/.vscode; echo pwned > pkg/.vscode/tasks.json"),
    sh("an editor's tasks, from inside", "cd pkg/.vscode && echo pwned > tasks.json; echo pwned > new.json"),
    py("an editor's tasks, by a handle", "d = os.open('pkg/.vscode', os.O_PATH)\n\
        tried(lambda: os.write(os.open('tasks.json', os.O_WRONLY | os.O_TRUNC, dir_fd=d), b'pwned'))\n\
        os.rename('pkg', 'moved')\n\
        tried(lambda: os.write(os.open('tasks.json', os.O_WRONLY | os.O_TRUNC, dir_fd=d), b'pwned'))\n\
        tried(lambda: os.write(os.open('new.json', os.O_WRONLY | os.O_CREAT, dir_fd=d), b'pwned'))"),
    py("an editor's tasks, a folder that takes the name while a file is open", "os.mkdir('x'); f = open('x/tasks.json', 'w')\n\
        tried(os.rename, 'x', '.vscode'); f.write('pwned'); f.close()"),
    py("an editor's tasks, exchanged", "os.mkdir('x'); open('x/tasks.json', 'w').write('pwned')\n\
        libc.renameat2(-100, b'x', -100, b'pkg/.vscode', 2)"),
    py("an editor's tasks, a nameless file", "fd = tried(os.open, WORK, os.O_TMPFILE | os.O_RDWR, 0o644)\n\
        os.write(fd, b'pwned'); libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, b'pkg/.vscode/new.json', 0x400)"),
    py("an editor's tasks, written by mapping", "def run():\n  \
        with open('pkg/.vscode/tasks.json', 'r+b') as file: file.truncate(5); mmap.mmap(file.fileno(), 5)[0:5] = b'pwned'\ntried(run)"),
    py("an editor's tasks, opened again", "fd = os.open('pkg/.vscode/tasks.json', os.O_RDONLY)\n\
        tried(lambda: open('/proc/self/fd/%d' % fd, 'w').write('pwned'))"),
    sh("another editor's tasks", "mkdir -p .idea; echo pwned > .idea/workspace.xml"),
    sh("another editor's tasks, nested deep", "mkdir -p sub/.idea/c/d; echo pwned > sub/.idea/c/d/e.xml; mkdir -p made/b/.idea/c; echo pwned > made/b/.idea/c/e.xml; mv made/b/.idea sub/; mv made/b/.idea .; mv made/b/.idea/c pkg/.vscode/"),
    sh("another editor's tasks, their folder made by its own name", "mkdir -p made/x; echo pwned > made/x/tasks.json; mv made/x .idea; mv made/x sub/.idea; mv made .idea"),
    sh("a shell's start", "echo pwned > .bashrc; echo pwned > .profile; echo pwned > .zshenv"),
    sh("a folder's environment", "echo pwned >> .envrc"),
    sh("a folder's environment that is not there yet", "echo pwned > sub/.envrc"),
    sh("names with odd spelling", "echo pwned > ./sub/.././/.bashrc; echo pwned > $WORK/../work/.profile; mkdir ./.idea/; echo pwned > .idea/./x"),
    sh("the user's git", "echo pwned > .gitconfig"),
    sh("settings through a folder that leads back", "ln -s . back; echo pwned > back/.bashrc; ln -s $WORK/sub/.. up; echo pwned > up/.profile"),
    sh("settings in an added folder", "mkdir -p $OUT/empty/.vscode; echo pwned > $OUT/empty/.vscode/x; ls $OUT/empty/.vscode 2>/dev/null && echo ESCAPED").untried(),
    sh("settings when the workspace is added twice", "echo pwned > .bashrc").with(&["--add-dir", "sub"]),
];

#[test]
fn no_settings_are_planted() {
    nothing_escapes("protected", TABLE);
}

/// A directory that the command created is its own: a clone may contain settings.
#[test]
fn a_folder_of_ones_own_may_have_settings() {
    for user in User::all() {
        let fixture = SandboxFixture::new(*user);
        let ran = fixture.inside("mkdir -p new/.vscode; echo 1 > new/.vscode/tasks.json; echo 2 > new/.mcp.json; cat new/.mcp.json");
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "2\n"), "{}: {}", user.word(), ran.stderr);
    }
}

#[test]
fn they_would_be_without_a_sandbox() {
    they_are_real("protected", TABLE);
}
