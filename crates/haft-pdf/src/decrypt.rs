//! Decryption of files that open without a password: RC4 and AES, with the key of the empty user password.

use std::rc::Rc;

use aes::cipher::{Block, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes256};
use md5::Md5;
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::PdfError;
use crate::object::{Dict, Object, ObjectId};

/// Fills short passwords up to 32 bytes; alone, it is the empty password.
const PASSWORD_PADDING: [u8; 32] = [
    0x28, 0xbf, 0x4e, 0x5e, 0x4e, 0x75, 0x8a, 0x41, 0x64, 0x00, 0x4e, 0x56, 0xff, 0xfa, 0x01, 0x08, 0x2e,
    0x2e, 0x00, 0xb6, 0xd0, 0x68, 0x3e, 0x80, 0x2f, 0x0c, 0xa9, 0xfe, 0x64, 0x53, 0x69, 0x7a,
];
const AES_BLOCK_BYTES: usize = 16;
/// Length of an RC4 key of 40 bits, the default.
const SHORT_KEY_BYTES: usize = 5;
/// Length of a key of 128 bits.
const LONG_KEY_BYTES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CryptMethod {
    Identity,
    Rc4,
    Aes128,
    Aes256,
}

/// The key of a file, and the method by which its streams are encrypted.
#[derive(Debug)]
pub(crate) struct Decryptor {
    key: Vec<u8>,
    method: CryptMethod,
}

impl Decryptor {
    /// `dict` contains no references; `file_id` is the first of the file's two identifiers.
    pub(crate) fn new(dict: &Dict, file_id: &[u8]) -> Result<Self, PdfError> {
        if !dict.has_name("Filter", "Standard") {
            return Err(PdfError::UnsupportedEncryption);
        }
        let version = dict.get("V").unsigned().unwrap_or(0);
        let revision = dict.get("R").unsigned().unwrap_or(0);
        let method = match version {
            1 | 2 => CryptMethod::Rc4,
            4 | 5 => stream_method(dict)?,
            _ => return Err(PdfError::UnsupportedEncryption),
        };
        let key = match revision {
            2..=4 => key_until_revision_4(dict, version, revision, file_id)?,
            5 | 6 => key_from_revision_5(dict, revision)?,
            _ => return Err(PdfError::UnsupportedEncryption),
        };
        Ok(Self { key, method })
    }

    pub(crate) fn decrypt(&self, bytes: &[u8], id: ObjectId, generation: u16) -> Vec<u8> {
        match self.method {
            CryptMethod::Identity => bytes.to_vec(),
            CryptMethod::Rc4 => rc4(&self.object_key(id, generation, b""), bytes),
            CryptMethod::Aes128 => decrypt_stream::<Aes128>(&self.object_key(id, generation, b"sAlT"), bytes),
            CryptMethod::Aes256 => decrypt_stream::<Aes256>(&self.key, bytes),
        }
    }

    fn object_key(&self, id: ObjectId, generation: u16, salt: &[u8]) -> Vec<u8> {
        let mut hash = Md5::new();
        hash.update(&self.key);
        hash.update(&id.to_le_bytes()[..3]);
        hash.update(generation.to_le_bytes());
        hash.update(salt);
        hash.finalize()[..(self.key.len() + 5).min(LONG_KEY_BYTES)].to_vec()
    }
}

fn stream_method(dict: &Dict) -> Result<CryptMethod, PdfError> {
    let name = dict.get("StmF");
    let name = name.name().unwrap_or("Identity");
    if name == "Identity" {
        return Ok(CryptMethod::Identity);
    }
    let filter = dict.get("CF").dict().and_then(|filters| filters.get(name).dict()).unwrap_or_default();
    match filter.get("CFM").name() {
        Some("V2") => Ok(CryptMethod::Rc4),
        Some("AESV2") => Ok(CryptMethod::Aes128),
        Some("AESV3") => Ok(CryptMethod::Aes256),
        Some("None") => Ok(CryptMethod::Identity),
        _ => Err(PdfError::UnsupportedEncryption),
    }
}

fn string(dict: &Dict, key: &str) -> Rc<[u8]> {
    match dict.get(key) {
        Object::String(string) => string,
        _ => [].into(),
    }
}

/// Derives the key of the empty password, and verifies it with the hash in the file.
fn key_until_revision_4(
    dict: &Dict,
    version: usize,
    revision: usize,
    file_id: &[u8],
) -> Result<Vec<u8>, PdfError> {
    let bits = dict.get("Length").unsigned().filter(|bits| (40..=128).contains(bits));
    let length = match version {
        1 => SHORT_KEY_BYTES,
        4 => LONG_KEY_BYTES,
        _ => bits.map_or(SHORT_KEY_BYTES, |bits| bits / 8),
    };
    let permissions = dict.get("P").number().unwrap_or(0.0) as i64 as u32;
    let mut hash = Md5::new();
    hash.update(PASSWORD_PADDING);
    hash.update(&*string(dict, "O"));
    hash.update(permissions.to_le_bytes());
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
    let expected = string(dict, "U");
    let actual = if revision == 2 {
        rc4(&key, &PASSWORD_PADDING)
    } else {
        let mut hash = Md5::new();
        hash.update(PASSWORD_PADDING);
        hash.update(file_id);
        let start = hash.finalize().to_vec();
        (0..20_u8).fold(start, |text, round| {
            let round_key: Vec<u8> = key.iter().map(|byte| byte ^ round).collect();
            rc4(&round_key, &text)
        })
    };
    if expected.starts_with(&actual) { Ok(key) } else { Err(PdfError::NeedsPassword) }
}

/// Decrypts the file key with the hash of the empty password.
fn key_from_revision_5(dict: &Dict, revision: usize) -> Result<Vec<u8>, PdfError> {
    let user = string(dict, "U");
    let encrypted_key = string(dict, "UE");
    let (Some((expected, salts)), Some(encrypted_key)) =
        (user.split_first_chunk::<32>(), encrypted_key.first_chunk::<32>())
    else {
        return Err(PdfError::UnsupportedEncryption);
    };
    let Some((validation_salt, rest)) = salts.split_first_chunk::<8>() else {
        return Err(PdfError::UnsupportedEncryption);
    };
    let Some(key_salt) = rest.first_chunk::<8>() else { return Err(PdfError::UnsupportedEncryption) };
    let hash = if revision == 5 { |salt: &[u8]| Sha256::digest(salt).to_vec() } else { hash_revision_6 };
    if hash(validation_salt) != expected {
        return Err(PdfError::NeedsPassword);
    }
    Ok(cbc_decrypt::<Aes256>(&hash(key_salt), [0; AES_BLOCK_BYTES], encrypted_key))
}

/// The hash of the empty password in revision 6.
fn hash_revision_6(salt: &[u8]) -> Vec<u8> {
    let mut hash = Sha256::digest(salt).to_vec();
    let mut round = 0_u32;
    loop {
        let mut block = hash.repeat(64);
        cbc_encrypt(&hash[..16], &hash[16..32], &mut block);
        let remainder = block[..16].iter().map(|byte| u32::from(*byte)).sum::<u32>() % 3;
        hash = match remainder {
            0 => Sha256::digest(&block).to_vec(),
            1 => Sha384::digest(&block).to_vec(),
            _ => Sha512::digest(&block).to_vec(),
        };
        round += 1;
        let last = block.last().copied().map_or(0, u32::from);
        if round >= 64 && last <= round - 32 {
            hash.truncate(32);
            return hash;
        }
    }
}

fn rc4(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut state: [u8; 256] = std::array::from_fn(|index| index as u8);
    let mut other = 0_u8;
    for index in 0..state.len() {
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

/// Decrypts bytes that begin with their initialization vector and end with padding.
fn decrypt_stream<C: KeyInit + BlockCipherDecrypt>(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let Some((iv, rest)) = bytes.split_first_chunk() else { return Vec::new() };
    let mut output = cbc_decrypt::<C>(key, *iv, rest);
    if let Some(padding @ 1..=16) = output.last().copied() {
        output.truncate(output.len().saturating_sub(usize::from(padding)));
    }
    output
}

fn cbc_decrypt<C: KeyInit + BlockCipherDecrypt>(
    key: &[u8],
    iv: [u8; AES_BLOCK_BYTES],
    bytes: &[u8],
) -> Vec<u8> {
    let Ok(cipher) = C::new_from_slice(key) else { return Vec::new() };
    let mut output = Vec::with_capacity(bytes.len());
    let mut previous = iv;
    for chunk in bytes.as_chunks::<AES_BLOCK_BYTES>().0 {
        let Ok(mut block) = Block::<C>::try_from(chunk.as_slice()) else { return output };
        cipher.decrypt_block(&mut block);
        output.extend(block.iter().zip(previous).map(|(byte, previous)| byte ^ previous));
        previous = *chunk;
    }
    output
}

fn cbc_encrypt(key: &[u8], iv: &[u8], bytes: &mut [u8]) {
    let Ok(cipher) = Aes128::new_from_slice(key) else { return };
    let mut previous = [0; AES_BLOCK_BYTES];
    previous.copy_from_slice(iv);
    for chunk in bytes.as_chunks_mut::<AES_BLOCK_BYTES>().0 {
        for (byte, previous) in chunk.iter_mut().zip(previous) {
            *byte ^= previous;
        }
        let mut block = Block::<Aes128>::from(*chunk);
        cipher.encrypt_block(&mut block);
        previous.copy_from_slice(&block);
        *chunk = previous;
    }
}
