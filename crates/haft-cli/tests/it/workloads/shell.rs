//! What shells and small programs do all day.

use crate::workloads::work::{Work, all_work, work};

pub(crate) const TABLE: &[Work] = &[
    work("pipes and here-documents", "printf 'b\\na\\n' | sort | tee out.txt | wc -l; cat <<X > here.txt\none\ntwo\nX\ncat here.txt; cat <<< three"),
    work("process substitution", "diff <(echo a) <(echo a) && echo same; tee >(cat > copy.txt) < /dev/null; wait; paste <(seq 3) <(seq 3)"),
    work("devices", "echo x > /dev/null; head -c 3 /dev/zero | od -An -c; head -c 8 /dev/urandom | wc -c; head -c 8 /dev/random | wc -c; echo in | cat /dev/stdin; (echo out > /dev/stdout; echo err > /dev/stderr) 2>&1 | cat; echo fd | cat /dev/fd/0; ! echo x > /dev/full 2>/dev/null; echo done"),
    work("standard streams that are files", "(echo out >> /dev/stdout; echo err >> /dev/stderr; seq 2 | tee -a /dev/fd/1) > f 2> g; cat f g; echo again >> /dev/stdout; sed -n 'w /dev/stdout' f"),
    work("temporary files", "f=$(mktemp); d=$(mktemp -d); echo x > $f; cat $f; touch $d/y; ls $d; rm -r $f $d; echo ${TMPDIR:+set} >/dev/null"),
    work("the folder for temporary files", "d=${TMPDIR:-/tmp}; n=$d/haft-work-$$; echo x > $n; mv $n $n.2; cat $n.2; rm $n.2; mkdir $n; rmdir $n; test -w $d && echo writable"),
    work("/tmp itself", "n=/tmp/haft-work-$$-$RANDOM; mkdir $n; echo x > $n/a; ln -s a $n/b; cat $n/b; rm -r $n; echo fine").needs_namespaces(),
    work("sorting with temporary files", "seq 200000 | sort -S 1M -R | sort -S 1M -n | tail -1"),
    work("editing in place", "seq 100 > f; sed -i s/50/fifty/ f; grep -n fifty f; perl -i -pe s/fifty/50/ f; sha1sum f").needs(&["perl"]),
    work("find and xargs", "mkdir -p t/{a,b,c}; touch t/{a,b,c}/{1,2,3}; find t -type f -exec chmod 600 {} +; find t -type f | sort | xargs -P 4 -n 2 sh -c 'cat \"$@\" | wc -c' x; find t -name 2 -delete; find t | sort"),
    work("locks", "for i in 1 2 3 4; do (flock 9; n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) > n) 9>lock & done; wait; cat n"),
    work("fifos", "mkfifo p; (echo through > p) & cat p; wait; rm p"),
    work("jobs and signals", "sleep 100 & p=$!; kill -TERM $p; wait $p || echo $?; trap 'echo got' USR1; kill -USR1 $$; (trap '' TERM; sleep 0) ; set -m; sleep 50 & kill -9 -- -$!; wait || true; echo done"),
    work("timeout and nohup", "timeout 0.1 sleep 5 || echo $?; nohup echo hello < /dev/null; timeout 5 true && echo ok"),
    work("archives", "mkdir -p a/b; echo 1 > a/1; ln -s 1 a/l; ln a/1 a/h; chmod 640 a/1; tar -czf a.tgz a; rm -r a; tar -xzf a.tgz; ls -R a; cat a/l").leaves_anything(),
    work("zip", "mkdir -p z; seq 100 > z/f; zip -qr z.zip z; rm -r z; unzip -q z.zip; sha1sum z/f").needs(&["zip", "unzip"]).leaves_anything(),
    work("copies that keep everything", "mkdir -p a/b; seq 10 > a/f; chmod 751 a/b; ln -s ../f a/b/l; ln a/f a/g; cp -a a c; cp -al a d; diff -r a c; rm -rf a d; ls -R c"),
    work("links", "echo x > f; ln f g; ln -s f s; ln -s nowhere n; stat -c %h f; readlink s n; test -L n; echo y > s; cat g; rm f; cat g; ln -sfn g s; cat s; cat n 2>/dev/null || echo dangling"),
    work("sparse files", "truncate -s 1G big; stat -c %s big; du -k big | cut -f1; printf x | dd of=big bs=1 seek=5000000 conv=notrunc status=none; fallocate -l 1M solid; fallocate -p -o 0 -l 65536 solid; stat -c %s solid; rm big solid"),
    work("modes", "touch f; for m in 600 644 755 711 1777 000; do chmod $m f; stat -c %a f; done; chmod 644 f; mkdir d; chmod 700 d; chmod g+s d; stat -c %a d; touch d/x; stat -c %a d/x"),
    work("owners", "touch f; chown $(id -u):$(id -g) f; chgrp $(id -g) f; stat -c %u f; id -u"),
    work("times", "touch -d '2020-02-02 02:02:02 UTC' f; stat -c %Y f; touch -r f g; stat -c %Y g; cp -p f h; stat -c %Y h; mkdir d; touch -d @5 d; stat -c %Y d; ln -s f l; touch -h -d @7 l; stat -c %Y l"),
    work("masks", "for m in 000 022 027 077 177; do umask $m; touch f$m; mkdir d$m; mkfifo p$m; python3 -c \"import os; os.close(os.open('o$m', os.O_CREAT|os.O_WRONLY, 0o1777)); os.mkdir('e$m', 0o1777); os.mknod('n$m', 0o664)\"; stat -c '%a %F' f$m d$m p$m o$m e$m n$m; done; rm p*"),
    work("locale and time zone", "printf 'ä\\nz\\na\\n' | LC_ALL=C.UTF-8 sort; TZ=Asia/Tokyo date -d @0 +%H; echo 'grün' | wc -m; touch 'ü x'; ls"),
    work("awk and bc and friends", "seq 10 | awk '{s+=$1} END {print s}'; seq 5 | tac; echo abc | rev; expr 3 + 4; seq 9 | split -l 3; ls x*; comm -12 <(seq 3) <(seq 2 4)"),
    work("ten thousand files", "mkdir m; cd m; python3 -c \"for i in range(10000): open(f'f{i}', 'w').write(str(i))\"; ls | wc -l; cat f9999; echo; cd ..; rm -r m; echo gone"),
    work("deep trees", "p=d; for i in $(seq 100); do p=$p/d; done; mkdir -p $p; echo x > $p/f; cat $p/f; find d | wc -l; mv d e; cat e${p#d}/f; rm -r e"),
    work("a large file", "head -c 200M /dev/zero > big; stat -c %s big; cp big big2; cmp big big2; mv big2 big3; rm big; echo x >> big3; truncate -s 10 big3; stat -c %s big3"),
    work("shells in shells", "sh -c 'bash -c \"sh -c \\\"echo deep\\\"\"'; env -i sh -c 'echo ok'; (cd / && pwd); pushd . > /dev/null; popd > /dev/null; exec 3> f; echo x >&3; exec 3>&-; cat f; exec 4<> f; echo y >&4; exec 4>&-; cat f"),
    work("a terminal", "script -qec 'tty > /dev/null && echo on a terminal' /dev/null; python3 -c \"import pty; pty.spawn(['sh', '-c', 'test -t 0 && echo tty; stty size > /dev/null && echo stty'])\" < /dev/null").needs(&["script"]),
    work("swaps and moves of folders", "mkdir -p a/x b/y; mv a b/; mv b c; mv c/a .; mkdir e; mv -T a e; find . | sort; mv e/x .; mv x e/; rmdir c/y c"),
    work("appending together", "for i in $(seq 8); do (for j in $(seq 100); do echo line-$i-$j >> log; done) & done; wait; sort -u log | wc -l; awk 'length > 12' log | wc -l; sort -o log log"),
    work("programs as files", "printf '#!/bin/sh\\necho script $1\\n' > s; chmod +x s; ./s a; cp /bin/echo e; ./e own; PATH=$PWD:$PATH s b; cp /usr/bin/env t; ./t true; rm e t"),
    work("a database", "sqlite3 x.db 'create table t(a); insert into t values(1),(2); select sum(a) from t'; sqlite3 x.db 'pragma journal_mode=wal; begin; insert into t values(3); commit; select count(*) from t; pragma wal_checkpoint(truncate); vacuum; pragma integrity_check'").needs(&["sqlite3"]).leaves_anything(),
    work("tracing one's own", "cat > p.sh <<'X'\nstrace -f -qq -e trace=openat -o t sh -c 'cat /etc/passwd > /dev/null; echo traced'\nX\nbash p.sh; grep -c passwd t > /dev/null && echo seen; rm t p.sh").needs(&["strace"]),
    work("debugging one's own", "printf 'int main(void) {\\n int x = 41;\\n x++;\\n return x;\\n}\\n' > d.c; cc -g d.c -o d; gdb -batch -ex 'break main' -ex run -ex next -ex next -ex 'print x' ./d 2>/dev/null | tail -1; rm d").needs(&["gdb"]),
];

#[test]
fn shells_work() {
    all_work(TABLE);
}
