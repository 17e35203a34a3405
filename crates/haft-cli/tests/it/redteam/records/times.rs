//! Modification times: what was only moved or removed keeps its time, what was changed gets a new one.

use std::fs;
use std::time::SystemTime;

use crate::fixture::sandbox::{SandboxFixture, User};

/// A program of two objects and a library, built, with times that are far apart.
const BUILT: &str = "mkdir -p t/lib; cd t; printf 'int f(void);\\nint main(void) { return f(); }\\n' > main.c; printf 'int f(void) { return 0; }\\n' > lib/f.c; touch config.h; \
    printf 'p: main.o lib/f.o\\n\\tcc -o p main.o lib/f.o\\nmain.o: main.c config.h\\n\\tcc -c main.c -o main.o\\nlib/f.o: lib/f.c config.h Makefile\\n\\tcc -c lib/f.c -o lib/f.o\\n' > Makefile; \
    touch -d 2020-01-01T01:02:03.123456789 *.c lib/*.c config.h Makefile; make -s; touch -d 2020-01-02T01:02:03.987654321 *.o lib/*.o; touch -d 2020-01-03 p";

fn built() -> SandboxFixture {
    let fixture = SandboxFixture::new(User::Current);
    let ran = fixture.unsandboxed(BUILT);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    fixture
}

fn modified(fixture: &SandboxFixture, name: &str) -> SystemTime {
    fs::metadata(fixture.path("work/t").join(name)).unwrap().modified().unwrap()
}

#[test]
fn undo_of_a_removal_or_move_leaves_nothing_to_build() {
    for command in [
        "rm -rf t",
        "rm -r t/lib t/p t/main.o t/config.h",
        "mv t/main.o t/old.o; mv t/lib/f.c f.c; mv t/p t/lib/p",
        "mv t u; rm u/main.o; mv u/config.h u/lib/",
        "chmod 700 t/main.o t/main.c; chmod 000 t/lib/f.o",
        "rm -rf t; mkdir t; echo other > t/other",
    ] {
        let fixture = built();
        let names = ["main.c", "main.o", "lib/f.c", "lib/f.o", "config.h", "Makefile", "p"];
        let before = names.map(|name| modified(&fixture, name));
        assert_eq!(fixture.inside(command).code, 0);
        // Twice: the second time from the states that the first undo recorded.
        for round in 0..2 {
            let undo = fixture.haft(&["undo", "--yes"]);
            assert_eq!(undo.code, 0, "{command}: {}", undo.stderr);
            assert_eq!(names.map(|name| modified(&fixture, name)), before, "{command}, round {round}");
            let make = fixture.unsandboxed("cd t && make --question");
            assert_eq!(make.code, 0, "{command}: {}", make.stdout);
            assert_eq!(fixture.haft(&["redo", "--yes"]).code, 0);
        }
    }
}

#[test]
fn undo_of_new_bytes_gives_a_new_time() {
    let fixture = built();
    let before = modified(&fixture, "main.c");
    assert_eq!(fixture.inside("sed -i 's/f()/f() + 1/' t/main.c; make -s -C t; ./t/p; test $? = 1").code, 0);
    assert_eq!(fixture.haft(&["undo", "--yes"]).code, 0);
    assert!(modified(&fixture, "main.c") > before);
    // The program is built from the restored source, whatever its objects are.
    let ran = fixture.unsandboxed("touch t/main.c; make -s -C t && ./t/p");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn hard_links_of_a_removed_file_keep_its_time() {
    let fixture = built();
    assert_eq!(fixture.unsandboxed("ln t/p t/q").code, 0);
    let before = modified(&fixture, "p");
    assert_eq!(fixture.inside("rm t/p t/q").code, 0);
    assert_eq!(fixture.haft(&["undo", "--yes"]).code, 0);
    assert_eq!([modified(&fixture, "p"), modified(&fixture, "q")], [before; 2]);
    assert_eq!(fixture.inside("chmod 700 t/p").code, 0);
    assert_eq!(fixture.haft(&["undo", "--yes"]).code, 0);
    assert_eq!([modified(&fixture, "p"), modified(&fixture, "q")], [before; 2], "only its mode was changed");
}
