//! The random values of one login: state and PKCE verifier.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft_tool::Secret;
use sha2::{Digest as _, Sha256};

use super::errors::unauthorized;
use crate::client::ClientError;

const RANDOM_BYTES: usize = 32;

/// The random values of one login.
#[derive(Debug)]
pub(super) struct Pkce {
    /// Comes back with the browser's answer.
    pub(super) state: Secret,
    /// Is sent with the code; without it a stolen code is useless.
    pub(super) verifier: Secret,
}

impl Pkce {
    pub(super) fn new() -> Result<Self, ClientError> {
        Ok(Self { state: random()?, verifier: random()? })
    }

    /// The hash of the verifier, which is public.
    pub(super) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.expose().as_bytes()))
    }
}

fn random() -> Result<Secret, ClientError> {
    let mut bytes = [0_u8; RANDOM_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| unauthorized(format!("no random bytes: {error}")))?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}

/// Compares in constant time.
pub(super) fn is_same(given: &str, expected: &Secret) -> bool {
    let expected = expected.expose().as_bytes();
    let pairs = given.bytes().zip(expected);
    given.len() == expected.len() && pairs.fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenge_matches_the_example_of_the_standard() {
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        let pkce = Pkce { state: Secret::new(""), verifier };
        assert_eq!(pkce.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn values_are_unique_and_not_printed() {
        let (one, other) = (Pkce::new().unwrap(), Pkce::new().unwrap());
        assert!(one.state != other.state && one.verifier != other.verifier && one.state != one.verifier);
        assert_eq!(one.verifier.expose().len(), 43);
        assert!(!format!("{one:?}").contains(one.state.expose()));
    }

    #[test]
    fn only_equal_values_are_the_same() {
        let state = Secret::new("abc");
        assert!(is_same("abc", &state));
        for other in ["", "ab", "abd", "abcd", "Abc"] {
            assert!(!is_same(other, &state), "{other}");
        }
    }
}
