//! Attempts on devices, terminals and memory that several processes share.

use crate::escapes::attempt::{Escape, nothing_escapes, py, sh, they_are_real};

pub(crate) const TABLE: &[Escape] = &[
    py("memory and ports", "for name in ('mem', 'kmem', 'port', 'nvram', 'cpu/0/msr'):\n  \
        for flags in (os.O_RDONLY, os.O_RDWR):\n    \
        try: os.open('/dev/' + name, flags); print('ESCAPED', name)\n    \
        except OSError as error: print(name, error)").untried(),
    py("the kernel's messages", "for flags in (os.O_WRONLY, os.O_RDONLY | os.O_NONBLOCK):\n  \
        try: os.open('/dev/kmsg', flags); print('ESCAPED')\n  except OSError as error: print(error)").as_root(),
    py("disks", "import glob\n\
        for name in os.listdir('/sys/block'):\n  \
        for flags in (os.O_RDONLY, os.O_RDWR):\n    \
        try: os.open('/dev/' + name, flags); print('ESCAPED', name)\n    \
        except OSError as error: print(name, error)").as_root(),
    py("devices of the machine", "for name in ('kvm', 'fuse', 'net/tun', 'vhost-net', 'vhost-vsock', 'loop-control', 'userfaultfd', 'uinput', 'rtc0', 'watchdog', 'vsock', 'btrfs-control', 'hwrng', 'snapshot', 'vfio/vfio', 'mapper/control', 'uhid', 'dri/card0'):\n  \
        try: os.open('/dev/' + name, os.O_RDWR); print('ESCAPED', name)\n  except OSError as error: print(name, error)").as_root(),
    py("every device there is", "fine = {'null', 'zero', 'full', 'random', 'urandom', 'tty', 'ptmx', 'stdin', 'stdout', 'stderr', 'fd', 'shm', 'pts'}\n\
        for name in os.listdir('/dev'):\n  \
        if name in fine or not stat.S_ISBLK(os.lstat('/dev/'+name).st_mode) and not stat.S_ISCHR(os.lstat('/dev/'+name).st_mode): continue\n  \
        try: os.open('/dev/' + name, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY); print('ESCAPED', name)\n  \
        except OSError: pass").as_root(),
    py("consoles", "for name in ('tty0', 'tty1', 'console', 'ttyS0', 'hvc0'):\n  \
        try: os.open('/dev/' + name, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK); print('ESCAPED', name)\n  \
        except OSError as error: print(name, error)").untried(),
    py("a device made", "for at, kind in (('mem', (1, 1)), ('disk', (254, 0)), ('null', (1, 3))):\n  \
        for mode in (stat.S_IFCHR, stat.S_IFBLK):\n    \
        try: os.mknod(at + str(mode), mode | 0o666, os.makedev(*kind)); print('ESCAPED', at)\n    \
        except OSError as error: print(at, error)").as_root(),
    sh("a disk by its number", "mknod d b $(cat /sys/block/*/dev | head -1 | tr : ' ') && head -c 1 d && echo ESCAPED; true").untried(),
    sh("another's terminal", "echo pwned > $TERMINAL; cat < $TERMINAL & p=$!; kill $p 2>/dev/null; wait"),
    py("typing into a terminal", "for name in ('/dev/tty', os.environ['TERMINAL']):\n  \
        try: fd = os.open(name, os.O_RDWR | os.O_NOCTTY)\n  \
        except OSError as error: print(name, error); continue\n  \
        for c in b'x\\n': tried(fcntl.ioctl, fd, 0x5412, bytes([c]))\n  \
        os.write(fd, b'pwned')"),
    py("taking a terminal", "os.setsid()\n\
        try: fd = os.open(os.environ['TERMINAL'], os.O_RDWR); fcntl.ioctl(fd, 0x540e, 1); os.write(fd, b'x'); print('ESCAPED')\n\
        except OSError as error: print(error)").untried(),
    py("typing into one's own standard streams", "for fd in (0, 1, 2):\n  \
        try: fcntl.ioctl(fd, 0x5412, b'x'); print('ESCAPED', fd)\n  \
        except OSError as error: print(fd, error)").untried(),
    py("a segment of memory of another", "libc.shmat.restype = ctypes.c_void_p\n\
        at = libc.shmat(int(os.environ['SEGMENT']), None, 0)\n\
        if at and at != 2**64 - 1: ctypes.memmove(at, b'pwned\\0', 6)\nelse: print(ctypes.get_errno())"),
    py("a segment of memory removed", "print(libc.shmctl(int(os.environ['SEGMENT']), 0, None) or 'ESCAPED')"),
    py("a queue of another", "print(libc.msgsnd(int(os.environ['QUEUE']), struct.pack('q', 1) + b'pwned', 5, 0o4000))"),
    sh("memory shared by name", "echo pwned > /dev/shm/$ABSTRACT && test -e /dev/shm/$ABSTRACT && echo ok; true").untried(),
    py("a posix queue", "q = libc.mq_open(b'/' + os.environ['ABSTRACT'].encode(), 0o102, 0o600, None)\n\
        if q >= 0: libc.mq_unlink(b'/' + os.environ['ABSTRACT'].encode()); print('made')").untried(),
];

#[test]
fn no_device_is_reached() {
    nothing_escapes("devices", TABLE);
}

#[test]
fn they_would_be_without_a_sandbox() {
    they_are_real("devices", TABLE);
}
