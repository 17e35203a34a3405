//! `haft mcp` as clients of other makers meet it: the SDKs of Python and TypeScript and the Inspector, over stdio and HTTP, in
//! both eras.
#![allow(clippy::disallowed_methods, reason = "tests look at the machine from outside")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../house/mod.rs"]
mod house;
#[path = "../peers/mod.rs"]
mod peers;

mod asking;
mod inspector;
mod past;
mod stopping;
mod together;
mod tour;

use peers::{stage, visitor};

/// One test for each client, era and way that there is.
macro_rules! every_client {
    ($check:path) => {
        use crate::visitor::{MODERN, Over, PYTHON, TYPESCRIPT_1, TYPESCRIPT_2};

        #[test]
        fn python_as_it_comes_over_stdio() {
            $check(PYTHON, Over::Stdio);
        }

        #[test]
        fn python_as_it_comes_over_http() {
            $check(PYTHON, Over::Http);
        }

        #[test]
        fn python_in_the_old_era_over_stdio() {
            $check(PYTHON.speaks("legacy"), Over::Stdio);
        }

        #[test]
        fn python_in_the_old_era_over_http() {
            $check(PYTHON.speaks("legacy"), Over::Http);
        }

        #[test]
        fn python_in_the_new_era_over_stdio() {
            $check(PYTHON.speaks(MODERN), Over::Stdio);
        }

        #[test]
        fn python_in_the_new_era_over_http() {
            $check(PYTHON.speaks(MODERN), Over::Http);
        }

        #[test]
        fn the_first_typescript_over_stdio() {
            $check(TYPESCRIPT_1, Over::Stdio);
        }

        #[test]
        fn the_first_typescript_over_http() {
            $check(TYPESCRIPT_1, Over::Http);
        }

        #[test]
        fn the_second_typescript_in_the_old_era_over_stdio() {
            $check(TYPESCRIPT_2.speaks("legacy"), Over::Stdio);
        }

        #[test]
        fn the_second_typescript_in_the_old_era_over_http() {
            $check(TYPESCRIPT_2.speaks("legacy"), Over::Http);
        }

        #[test]
        fn the_second_typescript_in_the_new_era_over_stdio() {
            $check(TYPESCRIPT_2.speaks(MODERN), Over::Stdio);
        }

        #[test]
        fn the_second_typescript_in_the_new_era_over_http() {
            $check(TYPESCRIPT_2.speaks(MODERN), Over::Http);
        }
    };
}
pub(crate) use every_client;
