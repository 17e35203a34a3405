//! Single changes of an input. Positions are taken modulo the length, so that every mutation applies to every input.

use proptest::prelude::*;

/// Bytes that one mutation inserts or removes.
const MAX_PIECE_BYTES: usize = 256;
/// Copies that one mutation makes of a piece; more than any bound on nesting in the workspace.
const MAX_REPEATS: usize = 600;
/// Inputs beyond this length grow no further.
const MAX_INPUT_BYTES: usize = 256 * 1_024;
/// Values at the edges of number types, and text that parsers treat in special ways.
const EDGE_TOKENS: [&[u8]; 20] = [
    b"0",
    b"-1",
    b"255",
    b"65536",
    b"2147483648",
    b"4294967295",
    b"9223372036854775807",
    b"18446744073709551616",
    b"99999999999999999999999999",
    b"1e999",
    b"-0.0",
    b"NaN",
    b"\0",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\r\n",
    b"\xe2\x80\xae",
    b"\\",
    b"\"",
    b"..",
];

/// A change of one place. The numbers are positions, lengths and indices into lists.
#[derive(Debug, Clone)]
pub(crate) enum Mutation {
    FlipBits {
        at: usize,
        bits: u8,
    },
    Truncate {
        at: usize,
    },
    Remove {
        at: usize,
        length: usize,
    },
    /// Inserts a part of a seed.
    Splice {
        at: usize,
        seed: usize,
        from: usize,
        length: usize,
    },
    /// Repeats a part of the input, which makes nesting deep and lists long.
    Repeat {
        at: usize,
        length: usize,
        count: usize,
    },
    InsertToken {
        at: usize,
        token: usize,
    },
    ReplaceToken {
        at: usize,
        token: usize,
    },
    SwapTokens {
        one: usize,
        two: usize,
    },
}

pub(crate) fn mutation() -> impl Strategy<Value = Mutation> {
    let at = || any::<usize>();
    let length = || 0..MAX_PIECE_BYTES;
    prop_oneof![
        (at(), 1..=u8::MAX).prop_map(|(at, bits)| Mutation::FlipBits { at, bits }),
        at().prop_map(|at| Mutation::Truncate { at }),
        (at(), length()).prop_map(|(at, length)| Mutation::Remove { at, length }),
        (at(), at(), at(), length()).prop_map(|(at, seed, from, length)| Mutation::Splice {
            at,
            seed,
            from,
            length
        }),
        (at(), length(), 1..MAX_REPEATS).prop_map(|(at, length, count)| Mutation::Repeat {
            at,
            length,
            count
        }),
        (at(), at()).prop_map(|(at, token)| Mutation::InsertToken { at, token }),
        (at(), at()).prop_map(|(at, token)| Mutation::ReplaceToken { at, token }),
        (at(), at()).prop_map(|(one, two)| Mutation::SwapTokens { one, two }),
    ]
}

impl Mutation {
    /// Changes `bytes`; `seeds` and `tokens` are what may be inserted.
    pub(crate) fn apply(&self, mut bytes: Vec<u8>, seeds: &[Vec<u8>], tokens: &[Vec<u8>]) -> Vec<u8> {
        if bytes.is_empty() {
            return bytes;
        }
        let size = bytes.len();
        let piece = |at: usize, length: usize| at % size..(at % size + length).min(size);
        match *self {
            Self::FlipBits { at, bits } => bytes[at % size] ^= bits,
            Self::Truncate { at } => bytes.truncate(at % size),
            Self::Remove { at, length } => drop(bytes.drain(piece(at, length))),
            Self::Splice { at, seed, from, length } => {
                let seed = &seeds[seed % seeds.len()];
                let from = from % seed.len().max(1);
                let end = (from + length).min(seed.len());
                insert(&mut bytes, at % size, &seed[from..end]);
            }
            Self::Repeat { at, length, count } => {
                let range = piece(at, length);
                let room = MAX_INPUT_BYTES / range.len().max(1);
                let copies = bytes[range.clone()].repeat(count.min(room));
                insert(&mut bytes, range.end, &copies);
            }
            Self::InsertToken { at, token } => insert(&mut bytes, at % size, &tokens[token % tokens.len()]),
            Self::ReplaceToken { at, token } => {
                let replaced = token_at(&bytes, at % size);
                bytes.splice(replaced, tokens[token % tokens.len()].iter().copied());
            }
            Self::SwapTokens { one, two } => {
                let (one, two) = (token_at(&bytes, one % size), token_at(&bytes, two % size));
                let (first, second) = if one.start <= two.start { (one, two) } else { (two, one) };
                if first.end <= second.start {
                    let moved = bytes[first.clone()].to_vec();
                    let other: Vec<u8> = bytes.splice(second.clone(), moved).collect();
                    bytes.splice(first, other);
                }
            }
        }
        bytes
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    if bytes.len() + piece.len() <= MAX_INPUT_BYTES {
        bytes.splice(at..at, piece.iter().copied());
    }
}

/// The distinct tokens of all seeds, and the edge cases.
pub(crate) fn tokens(seeds: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut tokens: Vec<Vec<u8>> = EDGE_TOKENS.iter().map(|token| token.to_vec()).collect();
    for seed in seeds {
        let mut at = 0;
        while at < seed.len() {
            let token = token_at(seed, at);
            at = token.end;
            tokens.push(seed[token].to_vec());
        }
    }
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

/// The run of word characters, or of the same other byte, that contains `at`.
fn token_at(bytes: &[u8], at: usize) -> std::ops::Range<usize> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let same = |byte: &u8| if is_word(bytes[at]) { is_word(*byte) } else { *byte == bytes[at] };
    let before = bytes[..at].iter().rev().take_while(|byte| same(byte)).count();
    let after = bytes[at..].iter().take_while(|byte| same(byte)).count();
    at - before..at + after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_words_and_runs_of_one_sign() {
        let text = b"<<ab_1  /c";
        assert_eq!(token_at(text, 1), 0..2);
        assert_eq!(token_at(text, 3), 2..6);
        assert_eq!(token_at(text, 6), 6..8);
        assert_eq!(token_at(text, 9), 9..10);
    }

    #[test]
    fn token_mutations_keep_the_rest() {
        let (seeds, tokens) = (vec![b"a=1;b=2".to_vec()], vec![b"X".to_vec()]);
        let apply = |mutation: Mutation| mutation.apply(seeds[0].clone(), &seeds, &tokens);
        assert_eq!(apply(Mutation::SwapTokens { one: 6, two: 0 }), b"2=1;b=a");
        assert_eq!(apply(Mutation::ReplaceToken { at: 2, token: 5 }), b"a=X;b=2");
        assert_eq!(apply(Mutation::InsertToken { at: 4, token: 0 }), b"a=1;Xb=2");
    }

    proptest! {
        #[test]
        fn every_mutation_applies_to_every_input(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
            mutations in prop::collection::vec(mutation(), 0..30),
        ) {
            let seeds = vec![bytes.clone(), Vec::new()];
            let tokens = tokens(&seeds);
            let end = mutations.iter().fold(bytes, |bytes, mutation| mutation.apply(bytes, &seeds, &tokens));
            prop_assert!(end.len() <= MAX_INPUT_BYTES + MAX_PIECE_BYTES);
        }
    }
}
