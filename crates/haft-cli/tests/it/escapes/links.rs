//! Attempts by links: names inside that lead out, and aliases of what may not be written.

use crate::escapes::attempt::{Escape, nothing_escapes, py, sh, they_are_real};

pub(crate) const TABLE: &[Escape] = &[
    sh("write through a link", "ln -s $OUT/victim.txt l; echo pwned > l; echo pwned >> l"),
    sh("create through a dangling link", "ln -s $OUT/new.txt l; echo pwned > l"),
    sh(
        "write through a linked directory",
        "ln -s $OUT d; echo pwned > d/victim.txt; mkdir d/new; rm -f d/program.sh",
    ),
    sh("through a chain of links", "ln -s $OUT a; ln -s a b; ln -s b/folder c; echo pwned > c/victim.txt"),
    sh("through a relative link", "ln -s ../outside r; echo pwned > r/victim.txt"),
    sh(
        "through a link in the middle",
        "mkdir -p m/n; ln -s $OUT m/n/o; echo pwned > m/n/o/../outside/victim.txt; echo pwned > m/n/o/folder/victim.txt",
    ),
    sh("truncate through a link", "ln -s $OUT/victim.txt l; truncate -s 0 l"),
    sh("mode through a link", "ln -s $OUT/victim.txt l; chmod 777 l"),
    sh("time through a link", "ln -s $OUT/victim.txt l; touch -d 2001-01-01 l"),
    sh("owner through a link", "ln -s $OUT/victim.txt l; chown 12345 l").as_root(),
    sh("hard link through a link", "ln -s $OUT/victim.txt l; ln -L l alias; echo pwned > alias"),
    sh("rename through a linked directory", "ln -s $OUT d; cp notes.txt x; mv x d/x; mv d/victim.txt y"),
    sh("link to the root", "ln -s / slash; echo pwned > slash$OUT/victim.txt"),
    sh("link to /proc/self/root", "ln -s /proc/self/root r; echo pwned > r$OUT/victim.txt"),
    sh("link to a descriptor", "exec 5<$OUT/victim.txt; ln -s /proc/self/fd/5 l; echo pwned > l"),
    sh("copy that keeps links", "ln -s $OUT d; mkdir src; cp notes.txt src/victim.txt; cp -r src/. d/"),
    sh(
        "untar over a link",
        "mkdir t; cp notes.txt t/victim.txt; tar -cf t.tar t; rm -r t; ln -s $OUT t; tar -xhf t.tar; tar --keep-directory-symlink -xf t.tar",
    ),
    sh(
        "two dots behind a renamed directory",
        "mkdir -p a/b/c; cd a/b/c; mv $WORK/a/b $WORK/b; echo pwned > ../../../outside/victim.txt; echo pwned > ../../outside/victim.txt",
    ),
    py(
        "two dots behind a moved handle",
        "os.makedirs('a/b/c'); d = os.open('a/b/c', os.O_PATH)\n\
        os.rename('a/b/c', 'c')\n\
        tried(lambda: os.write(os.open('../../outside/victim.txt', os.O_WRONLY, dir_fd=d), b'pwned'))",
    ),
    py(
        "handle of a removed directory",
        "os.mkdir('gone'); d = os.open('gone', os.O_RDONLY); os.rmdir('gone'); os.symlink(OUT, 'gone')\n\
        tried(lambda: os.write(os.open('../gone/victim.txt', os.O_WRONLY | os.O_TRUNC, dir_fd=d), b'pwned'))\n\
        tried(lambda: os.write(os.open('gone/victim.txt', os.O_WRONLY | os.O_TRUNC), b'pwned'))",
    ),
    py(
        "exchange a directory and a link",
        "os.mkdir('d'); os.symlink(OUT, 'l'); h = os.open('d', os.O_PATH)\n\
        libc.renameat2(-100, b'd', -100, b'l', 2)\n\
        tried(lambda: os.write(os.open('d/victim.txt', os.O_WRONLY | os.O_TRUNC), b'pwned'))",
    ),
    py(
        "openat2 through links",
        "os.symlink(OUT, 'l')\n\
        for flags in (os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_CREAT):\n  \
        how = struct.pack('QQQ', flags, 0o644 if flags & os.O_CREAT else 0, 0)\n  \
        fd = libc.syscall(437, -100, b'l/victim.txt', how, 24)\n  if fd >= 0: os.write(fd, b'pwned')",
    ),
    py(
        "a link of forty links",
        "os.symlink(OUT, 'l0')\n\
        for i in range(1, 39): os.symlink('l%d' % (i-1), 'l%d' % i)\n\
        tried(lambda: open('l38/victim.txt', 'w').write('pwned'))",
    ),
    py(
        "a bind through a link",
        "os.symlink(OUT, 'l'); s = socket.socket(socket.AF_UNIX); tried(s.bind, 'l/new.sock')",
    ),
    py(
        "attributes through a link",
        "os.symlink(OUT+'/victim.txt', 'l'); tried(os.setxattr, 'l', 'user.pwned', b'x')",
    ),
];

#[test]
fn no_link_leads_out() {
    nothing_escapes("links", TABLE);
}

#[test]
fn they_would_without_a_sandbox() {
    they_are_real("links", TABLE);
}
