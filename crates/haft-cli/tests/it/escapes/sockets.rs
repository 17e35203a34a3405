//! Attempts to communicate with processes outside.

use crate::escapes::attempt::{Escape, nothing_escapes, py, sh, they_are_real};

pub(crate) const TABLE: &[Escape] = &[
    py("a service of this machine", "s = socket.socket(); s.settimeout(5); tried(s.connect, ('127.0.0.1', TCP))"),
    py("by any address of this machine", "for at in ('0.0.0.0', '127.1.2.3', socket.gethostname(), 'localhost'):\n  \
        s = socket.socket(); s.settimeout(5); tried(s.connect, (at, TCP))"),
    py("by a mapped address", "s = socket.socket(socket.AF_INET6); s.settimeout(5); tried(s.connect, ('::ffff:127.0.0.1', TCP))"),
    sh("by the shell", "exec 3<>/dev/tcp/127.0.0.1/$TCP; echo x >&3"),
    sh("by curl", "curl -sm 5 http://127.0.0.1:$TCP/"),
    py("without waiting", "s = socket.socket(); s.setblocking(False); tried(s.connect, ('127.0.0.1', TCP)); time.sleep(0)"),
    py("with the first packet", "s = socket.socket(); s.settimeout(5)\n\
        tried(s.sendto, b'pwned', 0x20000000, ('127.0.0.1', TCP))\n\
        tried(s.sendmsg, [b'pwned'], [], 0x20000000, ('127.0.0.1', TCP))"),
    py("with the first packet, by option", "s = socket.socket(); s.setsockopt(socket.IPPROTO_TCP, 30, 1); s.settimeout(5); tried(s.connect, ('127.0.0.1', TCP)); tried(s.send, b'x')"),
    py("a datagram", "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); tried(s.sendto, b'pwned', ('127.0.0.1', UDP))"),
    py("a connected datagram", "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); tried(s.connect, ('127.0.0.1', UDP)); tried(s.send, b'pwned')"),
    py("a datagram as a message", "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); tried(s.sendmsg, [b'pwned'], [], 0, ('127.0.0.1', UDP))"),
    py("many datagrams at once", "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
        name = ctypes.create_string_buffer(struct.pack('=HHI8x', 2, socket.htons(UDP), 0x0100007f))\n\
        data = ctypes.create_string_buffer(b'pwned'); iov = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(data), 5))\n\
        head = ctypes.create_string_buffer(struct.pack('QIxxxxQQQQI4xI4x', ctypes.addressof(name), 16, ctypes.addressof(iov), 1, 0, 0, 0, 0))\n\
        print(libc.sendmmsg(s.fileno(), head, 1, 0), ctypes.get_errno())"),
    py("a datagram by the newer family", "s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); tried(s.sendto, b'pwned', ('::ffff:127.0.0.1', UDP))"),
    py("to the world", "for at in (('1.1.1.1', 443), ('8.8.8.8', 53), ('169.254.169.254', 80)):\n  \
        s = socket.socket(); s.settimeout(3)\n  \
        try: s.connect(at); print('ESCAPED', at)\n  \
        except OSError as error: print(at, error, 'ESCAPED' if isinstance(error, TimeoutError) else '')\n  \
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n  \
        try: u.sendto(b'x', at); print('ESCAPED', at)\n  \
        except OSError as error: print(at, error)").untried(),
    py("to the world, newer family", "s = socket.socket(socket.AF_INET6); s.settimeout(3)\n\
        try: s.connect(('2606:4700:4700::1111', 443)); print('ESCAPED')\n\
        except OSError as error: print(error)").untried(),
    sh("names of the world", "timeout 10 getent hosts example.com && echo ESCAPED; timeout 10 curl -sm 5 https://example.com >/dev/null && echo ESCAPED; true").untried(),
    py("raw packets", "tried(socket.socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) and print('ESCAPED')").as_root(),
    py("echo requests", "s = tried(socket.socket, socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)\n\
        if s and tried(s.sendto, b'\\x08\\x00\\xf7\\xff\\x00\\x00\\x00\\x00', ('127.0.0.1', 0)): print('ESCAPED')").untried(),
    py("packets of the wire", "tried(socket.socket, socket.AF_PACKET, socket.SOCK_RAW, 3) and print('ESCAPED')").as_root(),
    py("the kernel's own sockets", "for protocol in (4, 9, 15, 16):\n  tried(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, protocol) and print('ESCAPED', protocol)"),
    py("the kernel's interfaces", "tried(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, 0) and print('ESCAPED')").harmless_in_namespaces(),
    py("another program's messages of the kernel", "s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)\n\
        for peer in ((os.getpid(), 0), (0, 1)):\n  \
        if tried(lambda: s.connect(peer) or True): print('ESCAPED', peer)").with(&["--network", "all"]).as_root(),
    py("the machine's host", "tried(socket.socket, socket.AF_VSOCK, socket.SOCK_STREAM) and print('ESCAPED')").untried(),
    py("the kernel's ciphers", "tried(socket.socket, socket.AF_ALG, socket.SOCK_SEQPACKET) and print('ESCAPED')").untried(),
    py("odd families", "for family in list(range(3, 10)) + list(range(11, 16)) + list(range(17, 46)):\n  \
        for kind in (1, 2, 3, 5):\n    \
        try: socket.socket(family, kind); print('ESCAPED', family, kind)\n    \
        except OSError: pass").as_root(),
    py("a socket outside", "s = socket.socket(socket.AF_UNIX); tried(s.connect, OUT+'/stream.sock')"),
    py("a socket outside by its directory", "os.chdir(OUT); s = socket.socket(socket.AF_UNIX); tried(s.connect, 'stream.sock')"),
    py("a socket outside by a link", "os.symlink(OUT+'/stream.sock', 'l'); s = socket.socket(socket.AF_UNIX); tried(s.connect, 'l')\n\
        os.symlink(OUT, 'd'); s = socket.socket(socket.AF_UNIX); tried(s.connect, 'd/stream.sock')"),
    py("a socket outside by a descriptor", "fd = tried(os.open, OUT+'/stream.sock', os.O_PATH)\n\
        s = socket.socket(socket.AF_UNIX); tried(s.connect, '/proc/self/fd/%d' % (fd or 99))"),
    py("a socket outside by a hard link", "tried(os.link, OUT+'/stream.sock', 'own.sock'); s = socket.socket(socket.AF_UNIX); tried(s.connect, 'own.sock')"),
    py("a socket outside moved in", "tried(os.rename, OUT+'/stream.sock', 'own.sock'); s = socket.socket(socket.AF_UNIX); tried(s.connect, 'own.sock')"),
    py("a datagram to a socket outside", "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); tried(s.sendto, b'pwned', OUT+'/datagram.sock')"),
    py("a message to a socket outside", "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); tried(s.sendmsg, [b'pwned'], [], 0, OUT+'/datagram.sock')"),
    py("a connected datagram to a socket outside", "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); tried(s.connect, OUT+'/datagram.sock'); tried(s.send, b'pwned')"),
    py("a nameless socket", "s = socket.socket(socket.AF_UNIX); tried(s.connect, b'\\0' + os.environ['ABSTRACT'].encode())"),
    py("a datagram to a nameless socket", "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); tried(s.sendto, b'pwned', b'\\0' + os.environ['ABSTRACT'].encode() + b'-datagram')"),
    py("by a pair's half", "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n\
        tried(a.sendto, b'pwned', OUT+'/datagram.sock'); tried(a.sendto, b'pwned', b'\\0' + os.environ['ABSTRACT'].encode() + b'-datagram')"),
    py("the system's log and buses", "for path in ('/dev/log', '/run/systemd/journal/socket', '/var/run/docker.sock', '/run/dbus/system_bus_socket', '/run/systemd/private'):\n  \
        for kind in (1, 2):\n    \
        s = socket.socket(socket.AF_UNIX, kind)\n    \
        try: s.connect(path); print('ESCAPED', path)\n    \
        except OSError as error: print(path, error)").untried(),
    py("the agent of ssh", "path = os.environ.get('SSH_AUTH_SOCK', OUT+'/stream.sock'); s = socket.socket(socket.AF_UNIX); tried(s.connect, path)"),
    py("a port that another serves", "s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n\
        if tried(lambda: s.bind(('127.0.0.1', TCP)) or s.listen(5) or True): print('ESCAPED')").harmless_in_namespaces(),
    py("a port of datagrams that another serves", "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n\
        if tried(lambda: s.bind(('127.0.0.1', UDP)) or True): print('ESCAPED')").harmless_in_namespaces(),
    py("a service for the world", "for at in ('0.0.0.0', '::'):\n  \
        s = socket.socket(socket.AF_INET6 if ':' in at else socket.AF_INET)\n  \
        if tried(lambda: s.bind((at, 0)) or s.listen(5) or True) and s.getsockname()[0] in ('0.0.0.0', '::'): print('served', s.getsockname())").untried(),
    sh("connect by io_uring", "$BIN/calls io_uring_setup"),
    sh("through the proxy to this machine", "for h in 127.0.0.1 localhost LOCALHOST 127.1 2130706433 0x7f.1 0 '[::1]' '[::ffff:127.0.0.1]' 127.0.0.1.; do curl -sm 5 http://$h:$TCP/; curl -spm 5 http://$h:$TCP/; \
        curl -sm 5 --socks5-hostname ${ALL_PROXY#*://} http://$h:$TCP/; done; true").with(&["--network", "example.org"]).untried(),
    py("past the proxy", "s = socket.socket(); s.settimeout(5); tried(s.connect, ('127.0.0.1', TCP)); u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); tried(u.sendto, b'x', ('127.0.0.1', UDP))").with(&["--network", "example.org"]),
    py("a name with a hidden end for the proxy", "import urllib.parse\n\
        at = urllib.parse.urlparse(os.environ.get('http_proxy') or os.environ.get('HTTP_PROXY') or 'http://127.0.0.1:1')\n\
        for host in (b'127.0.0.1\\0.example.org', b'127.0.0.1#.example.org', b'evilexample.org', b'example.org@127.0.0.1', b'127.0.0.1'):\n  \
        s = socket.socket(); s.settimeout(5)\n  \
        try: s.connect((at.hostname, at.port)); s.sendall(b'CONNECT ' + host + b':%d HTTP/1.1\\r\\nHost: example.org\\r\\n\\r\\n' % TCP); print(s.recv(200))\n  \
        except OSError as error: print(error)").with(&["--network", "example.org"]).untried(),
];

#[test]
fn nothing_outside_is_contacted() {
    nothing_escapes("sockets", TABLE);
}

#[test]
fn they_would_be_without_a_sandbox() {
    they_are_real("sockets", TABLE);
}
