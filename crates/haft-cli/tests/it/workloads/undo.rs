//! After real work, `haft undo` brings back the very same tree, and `haft redo` the other one.

use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::tree::{Tree, differences, timeless};
use crate::fixture::wait_until;

struct Job {
    name: &'static str,
    needs: &'static str,
    /// Sets the workspace up, outside of Haft.
    before: &'static str,
    /// What is undone.
    script: &'static str,
}

const fn job(name: &'static str, before: &'static str, script: &'static str) -> Job {
    Job { name, needs: "true", before, script }
}

const SMALL: &str = "mkdir -p a/b c; echo 1 > a/1; echo 2 > a/b/2; chmod 750 a; chmod 600 a/1; ln -s 1 a/l; ln a/b/2 c/h; printf '#!/bin/sh\\n' > run; chmod 755 run; touch empty; mkdir hollow; head -c 300000 /dev/urandom > big";
const REPOSITORY: &str = "git init -q; seq 20 > f; mkdir d; for i in $(seq 60); do echo $i > d/$i; done; git add .; git commit -qm one; git checkout -qb side; sed -i s/9/nine/ f; rm d/5; git add -A; git commit -qm side; git checkout -q main; sed -i s/^1$/one/ f; git commit -qam first";

const JOBS: &[Job] = &[
    job("new files", SMALL, "echo new > new; mkdir -p x/y; echo z > x/y/z; ln -s new l; mkfifo p; rm p"),
    job(
        "changed files",
        SMALL,
        "echo more >> a/1; echo other > a/b/2; : > big; sed -i s/sh/bash/ run; echo filled > empty",
    ),
    job("removed files", SMALL, "rm a/1 big; rm -r a/b; rmdir hollow; rm a/l"),
    job(
        "removed and made again",
        SMALL,
        "rm -rf a; mkdir a; echo other > a/1; rm big; mkdir big; rm -r c; echo c > c; rm empty; ln -s a empty",
    ),
    job("a whole folder removed", SMALL, "rm -rf ./* ; ls -A"),
    job(
        "modes",
        SMALL,
        "chmod 777 a; chmod 400 a/1; chmod -x run; chmod 1744 big; chmod 000 empty; chmod 700 hollow",
    ),
    job(
        "links",
        SMALL,
        "ln -sfn nowhere a/l; ln -s a other; rm a/1; ln -s b/2 a/1; ln big big2; ln -s ../.. c/up",
    ),
    job(
        "exchanged folders",
        SMALL,
        "cat > x.py <<'X'\nimport ctypes\nfor a, b in ((b'a', b'c'), (b'a', b'run'), (b'run/h', b'c/b'), (b'hollow', b'c')): assert ctypes.CDLL(None).renameat2(-100, a, -100, b, 2) == 0\nX\npython3 x.py; rm x.py; echo more >> hollow/1; echo new > c/new",
    ),
    job("hard links changed in place", SMALL, "echo through >> c/h"),
    job(
        "hard links changed and removed",
        SMALL,
        "echo through > a/b/2; rm c/h; ln a/1 again; echo more >> again",
    ),
    job("hard links broken", SMALL, "cp a/b/2 t; mv t a/b/2; echo x >> c/h"),
    job("hard links moved", SMALL, "mv c/h a/h; rm a/b/2; ln a/h c/other"),
    job("hard links changed under a name that goes", SMALL, "echo through > c/h; rm c/h"),
    job("hard links changed under a new name", SMALL, "mv c/h z; echo through > z; chmod 600 z"),
    job("hard links changed, then replaced", SMALL, "echo through >> c/h; echo n > n; mv n c/h"),
    job(
        "hard links changed in a folder that moves",
        SMALL,
        "echo through > c/h; mv c z; echo x >> z/h; rm z/h",
    ),
    job("hard links changed by a handle", SMALL, "exec 5>> c/h; rm c/h; echo late >&5"),
    job(
        "large hard links changed, then moved",
        "head -c 90000 /dev/zero > a; ln a b; ln a c; echo x > d",
        "echo more >> a; mv b z; truncate -s 0 a; mv c d; chmod 600 d",
    ),
    job("equal files made one", "echo x > a; echo x > b; mkdir d; echo x > d/c", "ln -f a b; ln -f a d/c"),
    job("moved files", SMALL, "mv a/1 c/1; mv big c/; mv run empty; mv c/1 a/b/; mv -n hollow c/"),
    job("moved folders", SMALL, "mv a z; echo edited > z/1; mv z/b .; mv c z/; echo new > z/c/new; rm z/l"),
    job(
        "a new folder over an empty one",
        SMALL,
        "mkdir -p n/m; echo x > n/f; echo y > n/m/f; mv -T n hollow",
    ),
    job(
        "a new folder where one was",
        SMALL,
        "rm -r a hollow; mkdir -p n/b; echo x > n/b/2; mv n a; mkdir k; mv k hollow",
    ),
    job(
        "a new folder where a file was",
        SMALL,
        "rm big; mkdir n; echo x > n/f; mv n big; mkdir n; mv n run 2>&1 || true",
    ),
    job(
        "a new folder over a full one",
        SMALL,
        "mkdir n; echo x > n/1; echo x > n/b; mv -T n a 2>/dev/null || echo no > said",
    ),
    job("links where folders were", SMALL, "rm -r c; ln -s a c; rm -r a/b; ln -s b a/b; mv a k; ln -s .. a"),
    job("swapped folders", SMALL, "mv a t; mv c a; mv t c; echo x >> c/1; echo y > a/y"),
    job(
        "moved after edits",
        SMALL,
        "echo one >> a/1; mv a m; echo two >> m/1; mv m n; echo three >> n/1; mkdir a; echo other > a/1; rm -r n/b",
    ),
    job(
        "moved into itself and back",
        SMALL,
        "mkdir -p x; mv a x/; mv x/a a2; mv a2 a; rmdir x; echo new > a/new",
    ),
    job(
        "exchanged",
        SMALL,
        "python3 -c \"import ctypes; l=ctypes.CDLL(None); print(l.renameat2(-100,b'a',-100,b'c',2), l.renameat2(-100,b'big',-100,b'a',2))\"; echo x > c/new",
    ),
    job(
        "a chain of renames",
        SMALL,
        "for i in $(seq 20); do mv big big$i; mv big$i big; mv a a$i; mv a$i a; done; mv big end; echo x >> end",
    ),
    job(
        "python's tricks",
        SMALL,
        r"cat > p.py <<'X'
import ctypes, mmap, os
with open('big', 'r+b') as f:
    m = mmap.mmap(f.fileno(), 0); m[1000:1010] = b'0123456789'; m.flush(); m.close()
os.rename('big', 'tmp'); open('big', 'wb').write(b'x' * 1000); os.replace('tmp', 'big')
fd = os.open('a/1', os.O_RDWR); os.unlink('a/1'); os.write(fd, b'gone'); os.fchmod(fd, 0o777); os.close(fd)
fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o644); os.write(fd, b'nameless'); ctypes.CDLL(None).linkat(-100, b'/proc/self/fd/%d' % fd, -100, b'named', 0x400)
d = os.open('a', os.O_RDONLY); os.rename('a', 'moved'); os.mkdir('late', dir_fd=d); os.write(os.open('late/f', os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=d), b'late'); os.rename('moved', 'again')
os.truncate('run', 3); os.truncate('empty', 100000)
with open('empty', 'r+b') as f: f.seek(99999); f.write(b'!'); os.posix_fallocate(f.fileno(), 0, 200000)
X
python3 p.py",
    ),
    job(
        "descriptors kept open",
        SMALL,
        "exec 5>> a/1; mv a z; echo late >&5; exec 6<> big; printf x >&6; rm big; printf y >&6; exec 5>&- 6>&-",
    ),
    job(
        "attributes",
        "echo x > f; python3 -c \"import os; os.setxattr('f', 'user.kept', b'1')\"; echo y > g; echo k > k; ln k h",
        "python3 -c \"import os; os.setxattr('f', 'user.kept', b'2'); os.setxattr('f', 'user.new', b'3'); os.setxattr('g', 'user.new', b'4'); os.setxattr('h', 'user.new', b'5')\"; echo z > f",
    ),
    job(
        "sparse files",
        "truncate -s 64M s; printf x | dd of=s bs=1 seek=1000000 conv=notrunc status=none",
        "printf yy | dd of=s bs=1 seek=30000000 conv=notrunc status=none; truncate -s 10M s; truncate -s 300M t; printf z | dd of=t bs=1 seek=200000000 conv=notrunc status=none",
    ),
    job(
        "a file of 200 megabytes",
        "head -c 200M /dev/urandom > large; mkdir d",
        "printf x | dd of=large bs=1 seek=100000000 conv=notrunc status=none; mv large d/; truncate -s 1000 d/large",
    ),
    job(
        "a file of 200 megabytes removed",
        "head -c 200M /dev/zero > large",
        "rm large; head -c 200M /dev/urandom > other",
    ),
    job(
        "a thousand files edited in place",
        "mkdir d; for i in $(seq 1000); do printf 'old %s\\nend\\n' $i > d/$i; done; chmod 640 d/7",
        "sed -i s/old/new/ d/*; grep -L old d/* | wc -l",
    ),
    job(
        "an archive unpacked",
        "mkdir -p t/u; seq 100 > t/f; ln -s f t/l; ln t/f t/h; chmod 711 t/u; tar -cf x.tar t; echo changed > t/f; rm t/l",
        "tar -xf x.tar; tar -xf x.tar --transform s,^t,t2,",
    ),
    Job {
        name: "archives zipped",
        needs: "zip -v && unzip -v",
        before: "mkdir z; seq 50 > z/f; zip -qr z.zip z",
        script: "rm -r z; unzip -q z.zip; seq 9 > z/f; zip -qr z.zip z",
    },
    job(
        "a new repository",
        "echo 1 > f",
        "git init -q; git add .; git commit -qm one; git tag t; git branch b; git checkout -q b; echo 2 > f; git commit -qam two; git gc -q",
    ),
    job(
        "checkout and merge",
        REPOSITORY,
        "git checkout -q side; git checkout -q main; git merge -q -m m side; git tag t; git rm -rq d; git commit -qm gone",
    ),
    job(
        "rebase and stash",
        REPOSITORY,
        "git checkout -q side; git rebase -q main || git rebase --abort; echo x >> f; git stash -q; git stash pop -q; git reset -q --hard HEAD~1; git gc -q",
    ),
    job(
        "clone and worktree",
        REPOSITORY,
        "git clone -q . cloned; git worktree add -q wt side; cd wt; echo w > w; git add w; git commit -qm w; cd ..; git worktree remove wt; git remote add o ./cloned; git fetch -q o",
    ),
    Job {
        name: "cargo new and build",
        needs: "cargo -V",
        before: "true",
        script: "cargo new -q --vcs none one; cd one; cargo build -q --offline; ./target/debug/one; sed -i s/Hello/Bye/ src/main.rs; cargo build -q --offline; ./target/debug/one",
    },
    Job {
        name: "npm install",
        needs: "npm -v",
        before: "mkdir -p dep app; echo '{\"name\":\"dep\",\"version\":\"1.0.0\"}' > dep/package.json; echo '{\"name\":\"app\",\"version\":\"1.0.0\"}' > app/package.json; seq 100 > dep/i.js",
        script: "cd app; npm install --offline --no-audit --no-fund --no-update-notifier ../dep > /dev/null; npm pack -s ../dep > /dev/null; npm install --offline --no-audit --no-fund ./dep-1.0.0.tgz > /dev/null || true; ls",
    },
    job(
        "a database",
        "python3 -c \"import sqlite3; c=sqlite3.connect('x.db'); c.execute('create table t(a)'); c.executemany('insert into t values(?)', [(str(i)*50,) for i in range(2000)]); c.commit()\"",
        "python3 -c \"import sqlite3; c=sqlite3.connect('x.db'); c.execute('pragma journal_mode=wal'); c.execute('update t set a=1'); c.commit(); c.execute('delete from t'); c.commit(); c.execute('vacuum'); c.close()\"",
    ),
    job(
        "many files",
        "mkdir m; for i in $(seq 300); do echo $i > m/$i; done",
        "python3 -c \"import os; [open(f'm/n{i}', 'w').write('x') for i in range(3000)]; [os.unlink(f'm/{i}') for i in range(1, 300, 2)]; os.rename('m', 'k')\"",
    ),
    job(
        "deep trees",
        "p=d; for i in $(seq 60); do p=$p/d; done; mkdir -p $p; echo x > $p/f",
        "p=d; for i in $(seq 60); do p=$p/d; done; echo y > $p/f; mv d e; rm -r e/d/d; mkdir -p $p; echo z > $p/z",
    ),
    job(
        "odd names",
        "printf x > $'new\\nline'; printf y > $'\\xff\\xfe'; printf z > ' space '; mkdir -- -dash",
        "rm $'new\\nline'; echo changed > $'\\xff\\xfe'; mv ' space ' $'tab\\t'; echo x > -- ./-dash/f; echo q > $'\\x01'",
    ),
    job(
        "sockets and fifos",
        "echo x > f; mkfifo there",
        "mkfifo p; python3 -c \"import socket; s=socket.socket(socket.AF_UNIX); s.bind('s')\"; echo y > f; mv f g",
    ),
    job(
        "sockets and fifos that move",
        SMALL,
        "mkfifo a/p p; mkfifo c/q; mv p run; mv a k; rm k/p run; echo x >> k/1; mv k/1 k/p; mv c k/",
    ),
    job(
        "background work",
        SMALL,
        "(for i in $(seq 50); do echo $i > bg$i; done; rm a/1) & echo fg > fg; wait; (sleep 0.05; echo late > late) &",
    ),
    job(
        "concurrent changes",
        SMALL,
        "for i in $(seq 8); do (for j in $(seq 40); do echo $i-$j > shared.tmp$i; mv shared.tmp$i shared; echo $i >> log; rm -f big; echo $j > big; done) & done; wait",
    ),
    job(
        "folders made, moved and filled",
        SMALL,
        "mkdir -p n/o; echo 1 > n/o/1; mv n a/; mv a/n/o c/; mv c q; echo 2 > q/o/2; mkdir c; mv q/o c/; rm -r a",
    ),
    job("a failing command", SMALL, "echo half > half; rm big; false"),
    job("one's own folder left", SMALL, "cd a/b; rm -r $OLDPWD/a; echo x > gone 2>/dev/null || true"),
];

fn set(job: &Job, user: User) -> Option<SandboxFixture> {
    let fixture = SandboxFixture::new(user);
    if fixture.unsandboxed(job.needs).code != 0 {
        return None;
    }
    let ran = fixture.unsandboxed(&format!("set -e; {}", job.before));
    assert_eq!(ran.code, 0, "{}: {}", job.name, ran.stderr);
    Some(fixture)
}

fn look(fixture: &SandboxFixture) -> Tree {
    timeless(&fixture.work(), &[])
}

#[test]
fn undo_brings_back_the_very_same_tree_and_redo_the_other() {
    back_and_forth(User::Current);
}

#[test]
fn so_it_does_for_an_ordinary_user() {
    // Without root there is no second user, and the other test covers the first.
    if User::is_root() {
        back_and_forth(User::Unprivileged);
    }
}

fn back_and_forth(user: User) {
    let mut failures = String::new();
    for job in JOBS.iter().filter(|job| std::env::var("WORK").map_or(true, |wanted| wanted == job.name)) {
        let Some(fixture) = set(job, user) else { continue };
        let mut fail = |what: &str| failures.push_str(&format!("{} ({}): {what}\n", job.name, user.word()));
        let before = look(&fixture);
        let ran = fixture.inside(job.script);
        let after = look(&fixture);
        if ran.code != 0 && !job.name.contains("failing") {
            fail(&format!("the work ended with {}: {}", ran.code, ran.stderr));
        }
        if differences(&before, &after).is_empty() {
            fail("the work did nothing");
            continue;
        }
        let undo = fixture.haft(&["undo", "--yes"]);
        if undo.code != 0 {
            fail(&format!("undo ended with {}: {}{}", undo.code, undo.stdout, undo.stderr));
        }
        let wrong = differences(&before, &look(&fixture));
        if !wrong.is_empty() {
            fail(&format!("after undo: {}", wrong.join("; ")));
            continue;
        }
        // What is seen and never made again does not come back.
        if job.name.contains("sockets") {
            continue;
        }
        let redo = fixture.haft(&["redo", "--yes"]);
        if redo.code != 0 {
            fail(&format!("redo ended with {}: {}{}", redo.code, redo.stdout, redo.stderr));
        }
        let wrong = differences(&after, &look(&fixture));
        if !wrong.is_empty() {
            fail(&format!("after redo: {}", wrong.join("; ")));
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// Several commands are undone one by one.
#[test]
fn a_row_of_commands_is_taken_back_one_by_one() {
    for user in User::all() {
        let fixture = SandboxFixture::new(*user);
        let mut trees = vec![look(&fixture)];
        for script in [
            "mkdir a; echo 1 > a/f",
            "echo 2 >> a/f; cp a/f a/g",
            "mv a b; echo 3 >> b/f",
            "rm -r b; echo b > b",
            "rm b; mkdir -p b/c",
        ] {
            let ran = fixture.inside(script);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            trees.push(look(&fixture));
        }
        trees.pop();
        let log = fixture.haft(&["log", "--json"]).stdout;
        let ids: Vec<i64> = log
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()?.get("id")?.as_i64())
            .collect();
        for (id, tree) in ids.iter().zip(trees.iter().rev()) {
            let undo = fixture.haft(&["undo", "--yes", &id.to_string()]);
            assert_eq!(undo.code, 0, "{}{}", undo.stdout, undo.stderr);
            let wrong = differences(tree, &look(&fixture));
            assert!(wrong.is_empty(), "{} call {id}: {wrong:?}", user.word());
        }
    }
}

/// A command that timed out, or whose Haft was killed, can be undone too.
#[test]
fn an_interrupted_command_is_taken_back() {
    for user in User::all() {
        let fixture = SandboxFixture::new(*user);
        assert_eq!(fixture.unsandboxed(SMALL).code, 0);
        let before = look(&fixture);
        let script =
            "echo more >> a/1; mv a z; rm big; mkdir -p n/m; echo x > n/m/x; while :; do sleep 9; done";
        let ran = fixture.run(&mut fixture.sandboxed(&["--timeout", "5000"], script));
        assert_eq!(ran.code, 124, "{}", ran.stderr);
        assert!(!differences(&before, &look(&fixture)).is_empty());
        let undo = fixture.haft(&["undo", "--yes"]);
        assert_eq!(undo.code, 0, "{}{}", undo.stdout, undo.stderr);
        let wrong = differences(&before, &look(&fixture));
        assert!(wrong.is_empty(), "after the time was up, {}: {wrong:?}", user.word());

        let mut command = fixture.bare(&fixture.program());
        command.args(["sandbox", "--", "bash", "-c", &script.replace("while", "echo ready > ready; while")]);
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        wait_until(|| fixture.path("work/ready").exists());
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until(|| fixture.processes().is_empty());
        let undo = fixture.haft(&["undo", "--yes"]);
        assert_eq!(undo.code, 0, "{}{}", undo.stdout, undo.stderr);
        let wrong = differences(&before, &look(&fixture));
        assert!(wrong.is_empty(), "after a kill, {}: {wrong:?}", user.word());
    }
}
