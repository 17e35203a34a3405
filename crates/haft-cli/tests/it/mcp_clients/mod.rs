//! `haft mcp` with other clients: the Python and TypeScript SDKs and the Inspector, over stdio and HTTP, in both protocol
//! families; and whole agents.

mod agents;
mod cancellation;
mod concurrency;
mod elicitation;
mod features;
mod inspector;
mod ledger_tools;

/// One test per client, protocol family and transport.
macro_rules! every_client {
    ($check:path) => {
        use crate::fixture::peer_client::{PYTHON, STATELESS, TYPESCRIPT_1, TYPESCRIPT_2, Transport};

        #[test]
        fn python_default_over_stdio() {
            $check(PYTHON, Transport::Stdio);
        }

        #[test]
        fn python_default_over_http() {
            $check(PYTHON, Transport::Http);
        }

        #[test]
        fn python_legacy_over_stdio() {
            $check(PYTHON.with_mode("legacy"), Transport::Stdio);
        }

        #[test]
        fn python_legacy_over_http() {
            $check(PYTHON.with_mode("legacy"), Transport::Http);
        }

        #[test]
        fn python_stateless_over_stdio() {
            $check(PYTHON.with_mode(STATELESS), Transport::Stdio);
        }

        #[test]
        fn python_stateless_over_http() {
            $check(PYTHON.with_mode(STATELESS), Transport::Http);
        }

        #[test]
        fn typescript_v1_over_stdio() {
            $check(TYPESCRIPT_1, Transport::Stdio);
        }

        #[test]
        fn typescript_v1_over_http() {
            $check(TYPESCRIPT_1, Transport::Http);
        }

        #[test]
        fn typescript_v2_legacy_over_stdio() {
            $check(TYPESCRIPT_2.with_mode("legacy"), Transport::Stdio);
        }

        #[test]
        fn typescript_v2_legacy_over_http() {
            $check(TYPESCRIPT_2.with_mode("legacy"), Transport::Http);
        }

        #[test]
        fn typescript_v2_stateless_over_stdio() {
            $check(TYPESCRIPT_2.with_mode(STATELESS), Transport::Stdio);
        }

        #[test]
        fn typescript_v2_stateless_over_http() {
            $check(TYPESCRIPT_2.with_mode(STATELESS), Transport::Http);
        }
    };
}
pub(crate) use every_client;
