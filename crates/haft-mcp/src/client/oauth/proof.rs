//! Random words that prove that an answer and a question belong together.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft_tool::Secret;
use sha2::{Digest as _, Sha256};

use super::words::refused;
use crate::client::ClientError;

/// What only this attempt knows.
#[derive(Debug)]
pub(super) struct Proof {
    /// Comes back with the browser's answer.
    pub(super) state: Secret,
    /// Goes with the code, so that a stolen code is worth nothing.
    pub(super) verifier: Secret,
}

impl Proof {
    pub(super) fn new() -> Result<Self, ClientError> {
        Ok(Self { state: random()?, verifier: random()? })
    }

    /// The verifier's hash, which may be seen.
    pub(super) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.expose().as_bytes()))
    }
}

fn random() -> Result<Secret, ClientError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| refused(format!("this machine gives no random bytes ({error}); try again")))?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}

/// Compares in a time that does not tell how much of `said` is right.
pub(super) fn is_same(said: &str, expected: &Secret) -> bool {
    let expected = expected.expose().as_bytes();
    let pairs = said.bytes().zip(expected);
    said.len() == expected.len() && pairs.fold(0, |differ, (one, other)| differ | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_the_one_of_the_standard() {
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        let proof = Proof { state: Secret::new(""), verifier };
        assert_eq!(proof.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn no_two_proofs_are_alike_and_none_is_shown() {
        let (one, other) = (Proof::new().unwrap(), Proof::new().unwrap());
        assert!(one.state != other.state && one.verifier != other.verifier && one.state != one.verifier);
        assert_eq!(one.verifier.expose().len(), 43);
        assert!(!format!("{one:?}").contains(one.state.expose()));
    }

    #[test]
    fn only_the_same_word_is_the_same() {
        let state = Secret::new("abc");
        assert!(is_same("abc", &state));
        for other in ["", "ab", "abd", "abcd", "Abc"] {
            assert!(!is_same(other, &state), "{other}");
        }
    }
}
