//! Files that are encrypted but open without a password: RC4 and AES, the key made of the empty user password.

use std::rc::Rc;

use aes::cipher::{Block, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes256};
use md5::Md5;
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::Fault;
use crate::object::{Dict, Id, Object};

/// What a short password is filled up with.
const PADDING: [u8; 32] = [
    0x28, 0xbf, 0x4e, 0x5e, 0x4e, 0x75, 0x8a, 0x41, 0x64, 0x00, 0x4e, 0x56, 0xff, 0xfa, 0x01, 0x08, 0x2e,
    0x2e, 0x00, 0xb6, 0xd0, 0x68, 0x3e, 0x80, 0x2f, 0x0c, 0xa9, 0xfe, 0x64, 0x53, 0x69, 0x7a,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    None,
    Rc4,
    Aes128,
    Aes256,
}

/// The key of a file and how its streams were encrypted.
#[derive(Debug)]
pub(crate) struct Crypt {
    key: Vec<u8>,
    method: Method,
}

impl Crypt {
    /// `dict` has no references left; `file_id` is the first of the file's two names.
    pub(crate) fn new(dict: &Dict, file_id: &[u8]) -> Result<Self, Fault> {
        if !dict.is("Filter", "Standard") {
            return Err(Fault::UnknownEncryption);
        }
        let version = dict.get("V").count().unwrap_or(0);
        let revision = dict.get("R").count().unwrap_or(0);
        let method = match version {
            1 | 2 => Method::Rc4,
            4 | 5 => stream_method(dict)?,
            _ => return Err(Fault::UnknownEncryption),
        };
        let key = match revision {
            2..=4 => old_key(dict, version, revision, file_id)?,
            5 | 6 => new_key(dict, revision)?,
            _ => return Err(Fault::UnknownEncryption),
        };
        Ok(Self { key, method })
    }

    pub(crate) fn decrypt(&self, bytes: &[u8], id: Id, generation: u16) -> Vec<u8> {
        let salt: &[u8] = if self.method == Method::Aes128 { b"sAlT" } else { b"" };
        let mut hash = Md5::new();
        hash.update(&self.key);
        hash.update(&id.to_le_bytes()[..3]);
        hash.update(generation.to_le_bytes());
        hash.update(salt);
        let own = &hash.finalize()[..(self.key.len() + 5).min(16)];
        match self.method {
            Method::None => bytes.to_vec(),
            Method::Rc4 => rc4(own, bytes),
            Method::Aes128 => without_padding(cbc_stream::<Aes128>(own, bytes)),
            Method::Aes256 => without_padding(cbc_stream::<Aes256>(&self.key, bytes)),
        }
    }
}

fn stream_method(dict: &Dict) -> Result<Method, Fault> {
    let name = dict.get("StmF");
    let name = name.name().unwrap_or("Identity");
    if name == "Identity" {
        return Ok(Method::None);
    }
    let filter = dict.get("CF").dict().and_then(|filters| filters.get(name).dict()).unwrap_or_default();
    match filter.get("CFM").name() {
        Some("V2") => Ok(Method::Rc4),
        Some("AESV2") => Ok(Method::Aes128),
        Some("AESV3") => Ok(Method::Aes256),
        Some("None") => Ok(Method::None),
        _ => Err(Fault::UnknownEncryption),
    }
}

fn text(dict: &Dict, key: &str) -> Rc<[u8]> {
    match dict.get(key) {
        Object::Text(text) => text,
        _ => [].into(),
    }
}

/// The key of the empty password up to revision 4, proven against what the file stores of it.
fn old_key(dict: &Dict, version: usize, revision: usize, file_id: &[u8]) -> Result<Vec<u8>, Fault> {
    let bits = dict.get("Length").count().filter(|bits| (40..=128).contains(bits));
    let length = match version {
        1 => 5,
        4 => 16,
        _ => bits.map_or(5, |bits| bits / 8),
    };
    let rights = dict.get("P").number().unwrap_or(0.0) as i64 as u32;
    let mut hash = Md5::new();
    hash.update(PADDING);
    hash.update(&*text(dict, "O"));
    hash.update(rights.to_le_bytes());
    hash.update(file_id);
    if revision >= 4 && matches!(dict.get("EncryptMetadata"), Object::Bool(false)) {
        hash.update([0xff; 4]);
    }
    let mut key = hash.finalize().to_vec();
    key.truncate(length);
    if revision >= 3 {
        for _ in 0..50 {
            key = Md5::digest(&key)[..length].to_vec();
        }
    }
    let stored = text(dict, "U");
    let proof = if revision == 2 {
        rc4(&key, &PADDING)
    } else {
        let mut hash = Md5::new();
        hash.update(PADDING);
        hash.update(file_id);
        let start = hash.finalize().to_vec();
        (0..20_u8).fold(start, |proof, round| {
            let turned: Vec<u8> = key.iter().map(|byte| byte ^ round).collect();
            rc4(&turned, &proof)
        })
    };
    if stored.len() >= proof.len() && stored[..proof.len()] == proof {
        Ok(key)
    } else {
        Err(Fault::NeedsPassword)
    }
}

/// The key of the empty password from revision 5 on.
fn new_key(dict: &Dict, revision: usize) -> Result<Vec<u8>, Fault> {
    let user = text(dict, "U");
    let sealed = text(dict, "UE");
    if user.len() < 48 || sealed.len() < 32 {
        return Err(Fault::UnknownEncryption);
    }
    let hash = if revision == 5 { |salt: &[u8]| Sha256::digest(salt).to_vec() } else { hardened };
    if hash(&user[32..40]) != user[..32] {
        return Err(Fault::NeedsPassword);
    }
    Ok(cbc_decrypt::<Aes256>(&hash(&user[40..48]), [0; 16], &sealed[..32]))
}

/// The hash of revision 6 for the empty password.
fn hardened(salt: &[u8]) -> Vec<u8> {
    let mut key = Sha256::digest(salt).to_vec();
    let mut round = 0_u32;
    loop {
        let mut block = key.repeat(64);
        cbc_encrypt(&key[..16], &key[16..32], &mut block);
        let rest = block[..16].iter().map(|byte| u32::from(*byte)).sum::<u32>() % 3;
        key = match rest {
            0 => Sha256::digest(&block).to_vec(),
            1 => Sha384::digest(&block).to_vec(),
            _ => Sha512::digest(&block).to_vec(),
        };
        round += 1;
        let last = block.last().copied().map_or(0, u32::from);
        if round >= 64 && last <= round - 32 {
            key.truncate(32);
            return key;
        }
    }
}

fn rc4(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut state: [u8; 256] = std::array::from_fn(|index| index as u8);
    let mut other = 0_u8;
    for index in 0..256 {
        other = other.wrapping_add(state[index]).wrapping_add(key[index % key.len()]);
        state.swap(index, usize::from(other));
    }
    let (mut one, mut two) = (0_u8, 0_u8);
    bytes
        .iter()
        .map(|byte| {
            one = one.wrapping_add(1);
            two = two.wrapping_add(state[usize::from(one)]);
            state.swap(usize::from(one), usize::from(two));
            byte ^ state[usize::from(state[usize::from(one)].wrapping_add(state[usize::from(two)]))]
        })
        .collect()
}

/// Bytes that start with their own first block.
fn cbc_stream<C: KeyInit + BlockCipherDecrypt>(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let Some((first, rest)) = bytes.split_first_chunk::<16>() else { return Vec::new() };
    cbc_decrypt::<C>(key, *first, rest)
}

fn cbc_decrypt<C: KeyInit + BlockCipherDecrypt>(key: &[u8], first: [u8; 16], bytes: &[u8]) -> Vec<u8> {
    let Ok(cipher) = C::new_from_slice(key) else { return Vec::new() };
    let mut made = Vec::with_capacity(bytes.len());
    let mut before = first;
    for chunk in bytes.as_chunks::<16>().0 {
        let Ok(mut block) = Block::<C>::try_from(chunk.as_slice()) else { return made };
        cipher.decrypt_block(&mut block);
        made.extend(block.iter().zip(before).map(|(byte, before)| byte ^ before));
        before = *chunk;
    }
    made
}

fn cbc_encrypt(key: &[u8], first: &[u8], bytes: &mut [u8]) {
    let Ok(cipher) = Aes128::new_from_slice(key) else { return };
    let mut before = [0; 16];
    before.copy_from_slice(first);
    for chunk in bytes.as_chunks_mut::<16>().0 {
        for (byte, before) in chunk.iter_mut().zip(before) {
            *byte ^= before;
        }
        let mut block = Block::<Aes128>::from(*chunk);
        cipher.encrypt_block(&mut block);
        before.copy_from_slice(&block);
        *chunk = before;
    }
}

fn without_padding(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(padding @ 1..=16) = bytes.last().copied() {
        bytes.truncate(bytes.len().saturating_sub(usize::from(padding)));
    }
    bytes
}
