//! Attempts to read secrets: of the workspace, of the home, of the ledger.

use crate::escapes::attempt::{Escape, nothing_escapes, py, sh, they_are_real};

pub(crate) const TABLE: &[Escape] = &[
    sh("read", "cat .env"),
    sh("read by the shell", "echo $(<.env); while read -r line; do echo $line; done < .env"),
    sh("read a variant", "cat .env.production"),
    sh("read below", "cat sub/.env.local"),
    sh("read all", "grep -r KEY . ; find . -name '.env*' -exec cat {} +"),
    sh("read with an odd spelling", "cat ./sub/../.env; cat $WORK/../work/.env; cat .//.env"),
    sh("read by /proc/self/root", "cat /proc/self/root$WORK/.env"),
    sh("read by /proc/self/cwd", "cat /proc/self/cwd/.env"),
    sh("read by a link", "ln -s .env e; cat e"),
    sh("read by a linked folder", "ln -s . d; cat d/.env; ln -s sub s; cat s/.env.local"),
    sh("read by a hard link", "ln .env e; cat e"),
    sh("read by a new name", "mv .env e; cat e; mv e .env"),
    sh("read by a new name of the folder", "mv sub other; cat other/.env.local"),
    sh("read by a copy", "cp .env copy; cat copy"),
    sh("read by an archive", "tar -cf t.tar .env sub; tar -xOf t.tar"),
    sh(
        "read by git",
        "git add -f .env; git show :.env; git diff --cached; git hash-object -w .env | xargs git cat-file -p",
    ),
    sh("read as a program", "bash .env; . ./.env; echo $KEY; python3 -c 'print(open(\".env\").read())'"),
    sh(
        "read by sort and dd",
        "sort .env; dd if=.env status=none; base64 .env | base64 -d; split .env part; cat part*",
    ),
    py(
        "read by a folder's handle",
        "d = os.open('.', os.O_RDONLY); tried(lambda: print(os.read(os.open('.env', os.O_RDONLY, dir_fd=d), 99)))\n\
        p = os.open('.', os.O_PATH); tried(lambda: print(os.read(os.open('.env', os.O_RDONLY, dir_fd=p), 99)))",
    ),
    py(
        "read by a handle without rights",
        "def run(): fd = os.open('.env', os.O_PATH); print(open('/proc/self/fd/%d' % fd).read())\ntried(run)",
    ),
    py(
        "read by openat2",
        "fd = libc.syscall(437, -100, b'.env', struct.pack('QQQ', 0, 0, 0), 24)\nif fd >= 0: print(os.read(fd, 99))",
    ),
    py(
        "read by opening for writing",
        "tried(lambda: print(os.read(os.open('.env', os.O_RDWR), 99)))\n\
        tried(lambda: print(os.read(os.open('.env', os.O_RDWR | os.O_CREAT), 99)))\n\
        tried(lambda: print(os.read(os.open('.env', os.O_RDWR | os.O_APPEND), 99)))",
    ),
    py(
        "read by mapping",
        "def run():\n  with open('.env', 'rb') as f: print(bytes(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)))\ntried(run)",
    ),
    py(
        "read by exchange",
        "open('x', 'w').write('x'); libc.renameat2(-100, b'x', -100, b'.env', 2); tried(lambda: print(open('x').read()))",
    ),
    py(
        "read by the name of an example",
        "tried(os.rename, '.env', '.env.example'); tried(lambda: print(open('.env.example').read()))",
    ),
    sh("the keys of ssh", "cat ~/.ssh/id_rsa; cat $USER_HOME/.ssh/id_rsa; cat $USER_HOME/.ssh/*"),
    sh("the keys of ssh by a hard link", "ln $USER_HOME/.ssh/id_rsa k; cat k"),
    sh("the keys of ssh by a link", "ln -s $USER_HOME/.ssh s; cat s/id_rsa"),
    sh(
        "the keys of ssh by moving their folder",
        "mv $USER_HOME/.ssh $USER_HOME/dot-ssh; cat $USER_HOME/dot-ssh/id_rsa; mv $USER_HOME/.ssh ./ssh; cat ssh/id_rsa",
    ),
    sh(
        "the keys of ssh by two dots",
        "cat $USER_HOME/.config/../.ssh/id_rsa; cd $USER_HOME/.ssh && cat id_rsa",
    ),
    sh("the keys of a cloud", "cat ~/.aws/credentials"),
    sh("passwords of the net", "cat ~/.netrc; cat ~/.npmrc; cat ~/.config/gh/hosts.yml"),
    sh(
        "credentials in the directories of toolchains",
        "for dir in .rye .local/share/uv .stack .cabal .dotnet .opam; do cat $(find -L $USER_HOME/$dir -type f); done",
    ),
    sh(
        "credentials of toolchains by their paths",
        "cd $USER_HOME; cat .rye/credentials .rye/config.toml .local/share/uv/credentials/credentials.toml\n\
        cat .stack/upload/credentials.json .cabal/config .dotnet/corefx/cryptography/x509stores/my/0123.pfx\n\
        cat .opam/plugins/opam-publish/me.token",
    ),
    sh(
        "a file of another user",
        "cat $OUT/foreign; cp $OUT/foreign copy; cat copy; ln -s $OUT/foreign l; cat l",
    )
    .as_root(),
    sh("the ledger", "cat $LEDGER/private; cat $LEDGER/*"),
    sh(
        "the ledger by another spelling",
        "cat $LEDGER/../ledger/private; cat /proc/self/root$LEDGER/private; cd $LEDGER && cat private",
    ),
    sh("the ledger by a link", "ln -s $LEDGER l; cat l/private; ln $LEDGER/private k; cat k"),
    sh("the ledger written", "echo pwned > $LEDGER/private; rm -f $LEDGER/private; mv $LEDGER $LEDGER-moved"),
    sh(
        "the ledger's database",
        "for f in $LEDGER/*.db $LEDGER/*.sqlite* $LEDGER/*/*; do head -c 20 \"$f\" 2>/dev/null | grep -a SQLite && echo ESCAPED; done; cat $LEDGER/private",
    ),
    sh(
        "file names of a secret folder do not help",
        "cp -r ~/.ssh ./stolen; cat stolen/*; rsync -a ~/.aws . 2>/dev/null; cat .aws/* 2>/dev/null; cd ~; tar -cf - .ssh .aws | tar -xOf -",
    ),
];

#[test]
fn no_secret_is_read() {
    nothing_escapes("secrets", TABLE);
}

#[test]
fn they_would_be_without_a_sandbox() {
    they_are_real("secrets", TABLE);
}
