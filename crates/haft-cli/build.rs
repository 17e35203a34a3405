//! How the program is linked: so that little is left to do at each start, and little memory goes to it.
#![expect(clippy::disallowed_methods, reason = "the compiler is asked before there is a World")]

use std::env;
use std::path::Path;
use std::process::Command;

/// The first C library that finds the addresses to adjust in a table of a few pages, instead of a megabyte.
const PACKED_RELOCATIONS: (u32, u32) = (2, 36);

/// The functions that run in a usual session, to be put beside each other.
const ORDER: &str = "order.txt";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={ORDER}");
    let told = |name| env::var(name).unwrap_or_default();
    let gnu_linux = told("CARGO_CFG_TARGET_OS") == "linux" && told("CARGO_CFG_TARGET_ENV") == "gnu";
    // For another machine nothing is known of its libraries.
    if !gnu_linux || told("HOST") != told("TARGET") {
        return;
    }
    if c_library().is_some_and(|version| version >= PACKED_RELOCATIONS) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    if is_linked_by_lld() && told("PROFILE") == "release" {
        // Names that no longer exist are no matter.
        let order = Path::new(&told("CARGO_MANIFEST_DIR")).join(ORDER);
        let order = format!("-Wl,--no-warn-symbol-ordering,--symbol-ordering-file={}", order.display());
        println!("cargo::rustc-link-arg-bins={order}");
    }
    // What unwinds after a panic is small, and a library of its own has to be found, mapped and bound at each start.
    if answer("cc", &["-print-file-name=libgcc_eh.a"]).is_some_and(|path| Path::new(&path).is_absolute()) {
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// Whether the linker is the one that comes with the compiler on this platform, which can be told an order.
fn is_linked_by_lld() -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let another = flags.contains("link") || env::var_os("RUSTC_LINKER").is_some();
    env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu") && !another
}

/// The version of this machine's C library.
fn c_library() -> Option<(u32, u32)> {
    let words = answer("getconf", &["GNU_LIBC_VERSION"])?;
    let (major, minor) = words.trim().rsplit(' ').next()?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}

/// What a program says.
fn answer(program: &str, arguments: &[&str]) -> Option<String> {
    let said = Command::new(program).args(arguments).output().ok().filter(|said| said.status.success())?;
    String::from_utf8(said.stdout).ok()
}
