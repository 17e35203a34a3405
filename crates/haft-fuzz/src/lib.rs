//! Random hostile input for the tests of parsers, on stable Rust.
//!
//! Add `haft-fuzz.workspace = true` to `[dev-dependencies]` and write one test per parser:
//!
//! ```
//! # fn parse(_: &[u8]) -> Result<(), ()> { Ok(()) }
//! haft_fuzz::check(&[b"key = 1\n", b"[table]\n"], |bytes| {
//!     // Fails on a panic; assert here what else must hold, such as the size of the output.
//!     let _ = parse(bytes);
//! });
//! ```
//!
//! Seeds are short valid inputs that together use every part of the syntax. A failing input is shrunk and printed.
//! `HAFT_FUZZ_CASES` sets how many inputs each test tries.
//!
//! Never here: knowledge of a format, and code that is used outside of tests.

mod mutation;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};

use mutation::{Mutation, mutation, tokens};

/// Inputs per test unless `HAFT_FUZZ_CASES` says otherwise.
const DEFAULT_CASE_COUNT: u32 = 300;
/// Length of inputs that no seed is the source of.
const MAX_ARBITRARY_BYTES: usize = 512;
/// Mutations of one seed.
const MAX_MUTATIONS: usize = 12;
/// A failing input is printed up to this length.
const MAX_SHOWN_BYTES: usize = 4_096;
/// How often a mutated seed is tried for each input of arbitrary bytes.
const MUTATED_COUNT_PER_ARBITRARY: u32 = 7;

/// The number of inputs that one test tries.
pub fn cases() -> u32 {
    std::env::var("HAFT_FUZZ_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(DEFAULT_CASE_COUNT)
}

/// Seeds with bits flipped, bytes removed, repeated and spliced between seeds, and tokens exchanged, as well as
/// arbitrary bytes.
pub fn mutations(seeds: &[&[u8]]) -> impl Strategy<Value = Vec<u8>> + use<> {
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.to_vec()).collect();
    let donors = seeds.clone();
    let tokens = tokens(&seeds);
    let mutated = (prop::sample::select(seeds), prop::collection::vec(mutation(), 1..=MAX_MUTATIONS))
        .prop_map(move |(seed, mutations)| {
            let apply = |bytes, mutation: &Mutation| mutation.apply(bytes, &donors, &tokens);
            mutations.iter().fold(seed, apply)
        });
    prop_oneof![
        MUTATED_COUNT_PER_ARBITRARY => mutated,
        1 => prop::collection::vec(any::<u8>(), 0..MAX_ARBITRARY_BYTES),
    ]
}

/// Runs `test` on the seeds as they are and on [`cases`] [`mutations`] of them. Panics with a small input that fails.
#[expect(clippy::panic, reason = "this is how a test fails")]
pub fn check(seeds: &[&[u8]], test: impl Fn(&[u8])) {
    for seed in seeds {
        test(seed);
    }
    let config = Config { cases: cases(), failure_persistence: None, ..Config::default() };
    let run = TestRunner::new(config).run(&mutations(seeds), |input| {
        test(&input);
        Ok(())
    });
    match run {
        Ok(()) => {}
        Err(TestError::Fail(reason, input)) => {
            let shown = &input[..input.len().min(MAX_SHOWN_BYTES)];
            panic!("{reason}\n{} bytes of input: b\"{}\"", input.len(), shown.escape_ascii())
        }
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}
