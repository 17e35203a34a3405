//! Attempts on files outside of the workspace.

use crate::escapes::attempt::{Escape, nothing_escapes, py, sh, they_are_real};

pub(crate) const TABLE: &[Escape] = &[
    sh("write", "echo pwned > $OUT/victim.txt"),
    sh("append", "echo pwned >> $OUT/victim.txt"),
    sh("truncate by open", ": > $OUT/victim.txt"),
    sh("truncate by name", "truncate -s 1 $OUT/victim.txt"),
    sh("create", "echo pwned > $OUT/new.txt"),
    sh(
        "create by creat",
        "python3 -c 'import ctypes,os; ctypes.CDLL(None).creat(os.environ[\"OUT\"].encode()+b\"/new\", 0o644)'",
    ),
    sh("create in the home", "echo pwned > $USER_HOME/new.txt; echo pwned > ~/other.txt"),
    sh("create in the root", "echo pwned > /haft-escaped && echo ESCAPED && rm /haft-escaped").untried(),
    sh("create in /etc", "echo > /etc/haft-escaped && echo ESCAPED && rm /etc/haft-escaped").untried(),
    sh("delete", "rm -f $OUT/victim.txt"),
    sh("delete a tree", "rm -rf $OUT/folder"),
    sh("remove a directory", "rmdir $OUT/empty"),
    sh("make a directory", "mkdir -p $OUT/a/b"),
    sh("rename outside", "mv $OUT/victim.txt $OUT/renamed.txt"),
    sh("rename out", "cp notes.txt moved.txt; mv moved.txt $OUT/moved.txt"),
    sh("rename in", "mv $OUT/victim.txt ./stolen.txt"),
    sh("rename a directory in", "mv $OUT/folder ./folder; echo pwned > folder/victim.txt"),
    sh("rename over", "cp notes.txt new; mv -f new $OUT/victim.txt"),
    py("exchange", "libc.renameat2(-100, WORK.encode()+b'/notes.txt', -100, OUT.encode()+b'/victim.txt', 2)"),
    sh("change the mode", "chmod 777 $OUT/victim.txt"),
    sh("change the mode of a directory", "chmod 700 $OUT/folder"),
    sh("set the setuid bit", "chmod u+s $OUT/program.sh"),
    py(
        "change the mode by descriptor",
        "fd = os.open(OUT+'/victim.txt', os.O_RDONLY); tried(os.fchmod, fd, 0o777)",
    ),
    py("change the mode by fchmodat2", "libc.syscall(452, -100, OUT.encode()+b'/victim.txt', 0o777, 0)"),
    sh("change the owner", "chown 12345:12345 $OUT/victim.txt").as_root(),
    py(
        "change the owner by descriptor",
        "fd = os.open(OUT+'/victim.txt', os.O_RDONLY); tried(os.fchown, fd, 12345, 12345)",
    )
    .as_root(),
    sh("change the time", "touch -d 2001-01-01 $OUT/victim.txt"),
    py(
        "change the time by descriptor",
        "fd = os.open(OUT+'/victim.txt', os.O_RDONLY); tried(os.utime, fd, (1, 1))",
    ),
    py("set an attribute", "tried(os.setxattr, OUT+'/victim.txt', 'user.pwned', b'pwned')"),
    py(
        "set an attribute by descriptor",
        "fd = os.open(OUT+'/victim.txt', os.O_RDONLY); tried(os.setxattr, fd, 'user.pwned', b'pwned')",
    ),
    sh("link in and write", "ln $OUT/victim.txt alias && echo pwned > alias"),
    py(
        "link in by descriptor",
        "fd = os.open(OUT+'/victim.txt', os.O_RDONLY)\n\
        libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, b'alias', 0x400)\n\
        tried(lambda: open('alias', 'w').write('pwned'))",
    ),
    py(
        "link in by an empty path",
        "fd = os.open(OUT+'/victim.txt', os.O_PATH)\n\
        libc.linkat(fd, b'', -100, b'alias', 0x1000)\n\
        tried(lambda: open('alias', 'w').write('pwned'))",
    )
    .as_root(),
    sh("link out", "ln notes.txt $OUT/alias"),
    sh("symlink outside", "ln -s /etc/passwd $OUT/passwd"),
    sh("fifo outside", "mkfifo $OUT/fifo"),
    sh("device outside", "mknod $OUT/null c 1 3").as_root(),
    py("socket outside", "s = socket.socket(socket.AF_UNIX); tried(s.bind, OUT+'/new.sock')"),
    py(
        "nameless file outside, linked",
        "fd = tried(os.open, OUT, os.O_TMPFILE | os.O_RDWR, 0o644)\n\
        if fd: os.write(fd, b'pwned'); libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, OUT.encode()+b'/new', 0x400)",
    ),
    py(
        "nameless file inside, linked out",
        "fd = tried(os.open, WORK, os.O_TMPFILE | os.O_RDWR, 0o644)\n\
        if fd: libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, OUT.encode()+b'/new', 0x400)",
    ),
    py(
        "open again through /proc/self/fd",
        "fd = os.open(OUT+'/victim.txt', os.O_RDONLY)\n\
        tried(lambda: open('/proc/self/fd/%d' % fd, 'w').write('pwned'))",
    ),
    py(
        "open again through /dev/fd",
        "fd = os.open(OUT+'/victim.txt', os.O_RDONLY)\n\
        tried(lambda: open('/dev/fd/%d' % fd, 'w').write('pwned'))",
    ),
    py(
        "open again a handle without rights",
        "fd = os.open(OUT+'/victim.txt', os.O_PATH)\n\
        tried(lambda: open('/proc/self/fd/%d' % fd, 'r+').write('pwned'))\n\
        tried(lambda: open('/proc/thread-self/fd/%d' % fd, 'r+').write('pwned'))\n\
        tried(lambda: open('/proc/%d/fd/%d' % (os.getpid(), fd), 'r+').write('pwned'))",
    ),
    py(
        "truncate through a read-only descriptor",
        "fd = os.open(OUT+'/victim.txt', os.O_RDONLY)\n\
        tried(os.ftruncate, fd, 1); tried(os.truncate, '/proc/self/fd/%d' % fd, 1)",
    ),
    py(
        "fallocate",
        "fd = tried(os.open, OUT+'/victim.txt', os.O_RDWR)\nif fd: os.posix_fallocate(fd, 0, 9999)",
    ),
    py(
        "map and write",
        "def run():\n  \
        with open(OUT+'/victim.txt', 'r+b') as file: mmap.mmap(file.fileno(), 0)[0:5] = b'pwned'\ntried(run)",
    ),
    py(
        "copy_file_range",
        "def run():\n  \
        a = os.open(WORK+'/notes.txt', os.O_RDONLY); b = os.open(OUT+'/victim.txt', os.O_WRONLY)\n  \
        os.copy_file_range(a, b, 4)\ntried(run)",
    ),
    py(
        "openat2",
        "how = struct.pack('QQQ', os.O_WRONLY | os.O_TRUNC, 0, 0)\n\
        fd = libc.syscall(437, -100, OUT.encode()+b'/victim.txt', how, 24)\nif fd >= 0: os.write(fd, b'pwned')",
    ),
    py(
        "by a directory's descriptor",
        "d = os.open(OUT, os.O_RDONLY)\n\
        tried(lambda: os.write(os.open('victim.txt', os.O_WRONLY, dir_fd=d), b'pwned'))\n\
        tried(os.unlink, 'victim.txt', dir_fd=d); tried(os.mkdir, 'new', dir_fd=d)",
    ),
    py(
        "by the current directory",
        "os.chdir(OUT)\ntried(lambda: open('victim.txt', 'w').write('pwned'))\ntried(os.mkdir, 'x')",
    ),
    sh("by two dots", "echo pwned > ../outside/victim.txt; echo pwned > sub/../../outside/new"),
    sh(
        "by /proc/self/root",
        "echo pwned > /proc/self/root$OUT/victim.txt; rm -f /proc/self/root$OUT/program.sh",
    ),
    sh("by /proc/self/cwd", "cd $OUT && echo pwned > /proc/self/cwd/victim.txt"),
    sh("the parent directory itself", "mv $WORK $WORK-moved; mkdir $WORK/../planted"),
    sh(
        "replace the workspace by a link",
        "rm -rf $WORK/* ; rmdir $WORK; ln -sfn $OUT $WORK; echo pwned > $WORK/victim.txt",
    )
    .untried(),
    sh("a name that only begins like the workspace", "mkdir ${WORK}-evil && echo ESCAPED"),
    sh("read-only scope writes nothing", "echo pwned > new.txt && cat new.txt && echo ESCAPED")
        .with(&["--sandbox", "read-only"]),
    sh(
        "splice and dd",
        "dd if=notes.txt of=$OUT/victim.txt conv=notrunc 2>&1; tee $OUT/new < notes.txt >/dev/null",
    ),
    sh(
        "tar out",
        "tar -cf a.tar notes.txt; tar -xf a.tar -C $OUT; tar -Pcf b.tar notes.txt --transform s,^,$OUT/,; tar -Pxf b.tar",
    ),
    sh("install and cp", "install -m 755 notes.txt $OUT/installed; cp -a notes.txt $OUT/copied"),
    sh("sed in place", "sed -i s/outside/pwned/ $OUT/victim.txt"),
    sh("a program that runs as its owner", "cp /bin/true p; chmod 4755 p; chmod u+s p; test -u p && echo ESCAPED; chmod g+s p; test -g p && echo ESCAPED; install -m 6755 /bin/true q; test -u q -o -g q && echo ESCAPED; true"),
    py("a program that runs as its owner, made so", "for at, act in enumerate((lambda name: os.open(name, os.O_CREAT | os.O_WRONLY, 0o4755), lambda name: os.mknod(name, stat.S_IFREG | 0o6755), lambda name: os.fchmod(os.open(name, os.O_CREAT | os.O_RDWR, 0o755), 0o4755), lambda name: os.rename(name + 'x', name))):\n  \
        name = 'p%d' % at; tried(act, name)\n  \
        if os.path.exists(name) and os.stat(name).st_mode & 0o6000: print('ESCAPED', at)\n\
        fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o6755); libc.fchmod(fd, 0o4755)\n\
        if os.fstat(fd).st_mode & 0o6000: print('ESCAPED nameless')"),
    sh("a program with rights of its own", "cp /bin/true p; setcap cap_sys_admin+ep p; python3 -c \"import os; os.setxattr('p', 'security.capability', bytes.fromhex('0100000200002000000000000000000000000000'))\"; getfattr -n security.capability p 2>/dev/null | grep capability && echo ESCAPED; getcap p | grep cap_ && echo ESCAPED; true").as_root(),
];

#[test]
fn no_file_outside_changes() {
    nothing_escapes("files", TABLE);
}

#[test]
fn they_would_without_a_sandbox() {
    they_are_real("files", TABLE);
}
