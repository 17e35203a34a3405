import ctypes, os, random, struct, sys

# Random operations on few names, with descriptors kept open across renames and moves. The third argument lets names be
# exchanged.
exchanges = len(sys.argv) > 3
choose = random.Random(int(sys.argv[1]))
names = ['a', 'b', 'c', 'd', 'e', 'x', 'y', 'z']
files, directories = [], []


def path():
    return '/'.join(choose.choice(names) for _ in range(choose.randint(1, 3)))


def content():
    return bytes(choose.choice(b'abc') for _ in range(choose.randint(0, 9))) * choose.choice([1, 1, 1, 9000])


def keep(kept, fd):
    kept.append(fd)
    if len(kept) > 8:
        os.close(kept.pop(choose.randrange(len(kept))))


def write(flags):
    # Without waiting for the other end of a pipe.
    fd = os.open(path(), flags | os.O_CREAT | os.O_WRONLY | os.O_NONBLOCK, 0o644)
    os.write(fd, content())
    os.close(fd)


def in_kept_directory():
    flags = os.O_CREAT | os.O_WRONLY | os.O_NONBLOCK
    fd = os.open(choose.choice(names), flags, 0o600, dir_fd=choose.choice(directories))
    os.write(fd, content())
    os.close(fd)


def link():
    source = path()
    # Not named pipes: those with several names are restored as several pipes, and the receipt says so.
    if not os.path.islink(source) and os.path.isfile(source):
        os.link(source, path())


def move_directory():
    found = [top + '/' + name for top, below, _ in os.walk('.') for name in below]
    os.rename(choose.choice(found), path())


def exchange():
    # RENAME_EXCHANGE
    ctypes.CDLL(None).renameat2(-100, path().encode(), -100, path().encode(), 2)


def exchange_linked():
    found = [top + '/' + name for top, _, below in os.walk('.') for name in below]
    linked = [name for name in found if not os.path.islink(name) and os.lstat(name).st_nlink > 1]
    a, b = choose.choice(linked), choose.choice(linked)
    ctypes.CDLL(None).renameat2(-100, a.encode(), -100, b.encode(), 2)


def set_attribute():
    os.setxattr(path(), 'user.' + choose.choice('ab'), content()[:99], follow_symlinks=False)


def set_acl():
    entries = [(1, 7, -1), (2, choose.randrange(8), 1234), (4, 5, -1), (16, 7, -1), (32, choose.choice([0, 5]), -1)]
    value = struct.pack('<I', 2) + b''.join(struct.pack('<HHi', *entry) for entry in entries)
    os.setxattr(path(), 'system.posix_acl_' + choose.choice(['access', 'default']), value, follow_symlinks=False)


operations = [
    (6, lambda: write(os.O_TRUNC)),
    (6, lambda: write(os.O_APPEND)),
    (6, lambda: keep(files, os.open(path(), os.O_RDWR | os.O_APPEND | os.O_NONBLOCK | choose.choice([0, os.O_CREAT]), 0o644))),
    (12, lambda: os.write(choose.choice(files), content())),
    (2, lambda: os.ftruncate(choose.choice(files), choose.randrange(99))),
    (2, lambda: os.fchmod(choose.choice(files), choose.choice([0o600, 0o640, 0o644]))),
    (3, lambda: keep(directories, os.open(path(), os.O_RDONLY | os.O_DIRECTORY))),
    (3, in_kept_directory),
    (2, lambda: os.mkdir(choose.choice(names), dir_fd=choose.choice(directories))),
    (12, lambda: os.rename(path(), path())),
    (8, move_directory),
    (8, link),
    (5 * exchanges, exchange),
    (5 * exchanges, exchange_linked),
    (6, lambda: os.unlink(path())),
    (4, lambda: os.rmdir(path())),
    (8, lambda: os.mkdir(path())),
    (2, lambda: os.symlink(path(), path())),
    (3, lambda: os.chmod(path(), choose.choice([0o700, 0o750, 0o755]), follow_symlinks=False)),
    (2, lambda: os.truncate(path(), choose.randrange(99))),
    (3, set_attribute),
    (1, lambda: os.removexattr(path(), 'user.' + choose.choice('ab'), follow_symlinks=False)),
    (2, set_acl),
    (2, lambda: os.mkfifo(path(), choose.choice([0o600, 0o644]))),
    (2, lambda: os.chown(path(), choose.choice([0, 65534]), -1, follow_symlinks=False)),
]
for name in names[:4]:
    os.path.lexists(name) or os.mkdir(name)
for act in choose.choices([act for _, act in operations], [weight for weight, _ in operations], k=int(sys.argv[2])):
    try:
        act()
    except (OSError, IndexError, NotImplementedError):
        pass
