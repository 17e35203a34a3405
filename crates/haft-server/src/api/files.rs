//! What changed in a workspace or session, and the contents before and after.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft_ledger::{ReceiptQuery, cumulative_changes};
use haft_runtime::{MAX_DIFF_FILE_BYTES, recorded_content, text_changes};
use haft_tool::{FileNode, Node, Receipt, path_to_text};
use hyper::StatusCode;
use hyper::header::CONTENT_DISPOSITION;

use super::Api;
use super::describe::{of_cumulative, part_of, shown_path};
use super::error::ApiError;
use super::query::Query;
use super::types::{ChangedFiles, VersionDiff};
use crate::image_type::image_type;
use crate::reply::HttpReply;

const DEFAULT_FILES: usize = 200;
const MAX_FILES: usize = 1_000;
/// Calls with changes that are examined.
const MAX_CALLS: usize = 5_000;
/// Changes of all these calls together that are examined.
const MAX_CHANGES: usize = 200_000;
/// Lines of a difference that are sent.
pub(super) const MAX_DIFF_LINES: usize = 5_000;
/// Larger files are not compared line by line.
const MAX_COMPARED_BYTES: usize = 4 << 20;
/// The length of a hash in hexadecimal.
const HASH_CHARS: usize = 64;

/// What changed, each path once.
pub(super) fn list(api: &Api, query: &Query) -> Result<ChangedFiles, ApiError> {
    let ledger = &api.ledger;
    let session = query.get("session").map(|id| ledger.session_with_id(id)).transpose()?;
    let workspace = match (&session, query.path("workspace")?) {
        (Some(session), _) => session.workspace.clone(),
        (None, Some(workspace)) => workspace,
        (None, None) => return Err(ApiError::bad_request("Give a session or a workspace.")),
    };
    let until: Option<i64> = query.number("until")?;
    let wanted = ReceiptQuery {
        workspace: session.is_none().then(|| workspace.clone()),
        session: session.map(|session| session.id),
        limit: MAX_CALLS,
        before: until.map(|id| id.saturating_add(1)),
        only_changes: true,
    };
    let (mut receipts, mut change_count) = (Vec::new(), 0);
    let summaries = ledger.summaries(&wanted)?;
    let mut is_cut = summaries.len() == MAX_CALLS;
    for summary in summaries {
        change_count += usize::try_from(summary.change_count).unwrap_or(usize::MAX);
        if change_count > MAX_CHANGES && !receipts.is_empty() {
            is_cut = true;
            break;
        }
        receipts.push(ledger.complete(summary)?);
    }
    let calls_of = calls_by_path(&receipts);
    let text = query.get("path").map(str::to_lowercase);
    let changes = cumulative_changes(&receipts);
    let shown = changes.iter().filter(|change| {
        text.as_ref().is_none_or(|text| shown_path(&change.path, &workspace).to_lowercase().contains(text))
    });
    let shown: Vec<_> = shown.collect();
    let offset = query.number("offset")?.unwrap_or(0);
    let limit = query.limit(DEFAULT_FILES, MAX_FILES)?;
    let changes = part_of(&shown, offset, limit, |change| {
        let of_path = |path: &Path| calls_of.get(path).cloned().unwrap_or_default();
        let mut calls = of_path(&change.path);
        calls.extend(change.moved_from.as_deref().map(of_path).unwrap_or_default());
        calls.sort_unstable_by(|a, b| b.cmp(a));
        calls.dedup();
        of_cumulative(change, &workspace, calls)
    });
    let workspace = path_to_text(&workspace).into_owned();
    Ok(ChangedFiles { workspace, changes, calls: receipts.len() as u64, is_cut })
}

/// The calls that changed each path.
fn calls_by_path(receipts: &[Receipt]) -> BTreeMap<&Path, Vec<i64>> {
    let mut calls: BTreeMap<&Path, Vec<i64>> = BTreeMap::new();
    for receipt in receipts {
        for change in &receipt.changes {
            for path in std::iter::once(&change.path).chain(&change.moved_to) {
                calls.entry(path).or_default().push(receipt.id);
            }
        }
    }
    calls
}

/// The difference between two versions of a file.
pub(super) fn diff(api: &Api, query: &Query) -> Result<VersionDiff, ApiError> {
    let why = "Give an absolute path, or a path and its workspace.";
    let path = named_path(query)?.ok_or_else(|| ApiError::bad_request(why))?;
    let (before, after) = (version(api, query, "before", &path)?, version(api, query, "after", &path)?);
    let image = |bytes: &[u8]| image_type(bytes).map(str::to_owned);
    Ok(match (before, after) {
        (Version::TooLarge, _) | (_, Version::TooLarge) => VersionDiff::TooLarge,
        (Version::Unknown, _) | (_, Version::Unknown) => VersionDiff::Unknown,
        (Version::Known(before), Version::Known(after)) => {
            let media_types = (image(&before), image(&after));
            match (text(&before), text(&after), media_types) {
                (_, _, (before, after)) if before.is_some() || after.is_some() => {
                    VersionDiff::Image { before, after }
                }
                (Some(before), Some(after), _) if before.len().max(after.len()) <= MAX_COMPARED_BYTES => {
                    VersionDiff::Text { changes: text_changes(before, after, MAX_DIFF_LINES) }
                }
                (Some(_), Some(_), _) => VersionDiff::TooLarge,
                _ => VersionDiff::Binary,
            }
        }
    })
}

/// The file that a query names.
fn named_path(query: &Query) -> Result<Option<PathBuf>, ApiError> {
    let workspace = query.path("workspace")?;
    Ok(match (query.get("path").map(haft_tool::path_from_text), workspace) {
        (Some(path), _) if path.is_absolute() => Some(path),
        (Some(path), Some(workspace)) => Some(workspace.join(path)),
        _ => None,
    })
}

/// One version of a file.
enum Version {
    Known(Vec<u8>),
    TooLarge,
    Unknown,
}

fn version(api: &Api, query: &Query, name: &str, path: &Path) -> Result<Version, ApiError> {
    let Some(hash) = query.get(name) else { return Ok(Version::Known(Vec::new())) };
    check_hash(hash)?;
    if api.ledger.blob_size(hash)?.is_some_and(|size| size > MAX_DIFF_FILE_BYTES) {
        return Ok(Version::TooLarge);
    }
    Ok(content(api, path, hash).map_or(Version::Unknown, Version::Known))
}

/// The content with a hash: from the ledger, or from the file if it still has that content.
fn content(api: &Api, path: &Path, hash: &str) -> Option<Vec<u8>> {
    let node = Node::File(FileNode {
        hash: hash.to_owned(),
        size: 0,
        mode: 0,
        owner: None,
        xattrs: Vec::new(),
        linked: None,
        modified: None,
    });
    recorded_content(&api.ledger, path, &node)
}

fn check_hash(hash: &str) -> Result<(), ApiError> {
    if hash.len() == HASH_CHARS && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("{hash:?} is not a hash.")))
}

/// The bytes as text, if they are text.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// The content with a hash. What the ledger does not keep is read from the file that the query names.
pub(super) fn blob(api: &Api, hash: &str, query: &Query) -> Result<HttpReply, ApiError> {
    check_hash(hash)?;
    let size = api.ledger.blob_size(hash)?.unwrap_or_default();
    if size > MAX_DIFF_FILE_BYTES {
        let why =
            format!("{size} bytes are too many to be shown. `haft diff` and `haft undo` work with them.");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", why));
    }
    let path = named_path(query)?.unwrap_or_default();
    let missing = || ApiError::not_found(format!("The ledger has no content {hash}."));
    let bytes = content(api, &path, hash).ok_or_else(missing)?;
    let media_type = image_type(&bytes);
    let reply = HttpReply::bytes(StatusCode::OK, media_type.unwrap_or("application/octet-stream"), bytes);
    Ok(if media_type.is_some() { reply } else { reply.with(CONTENT_DISPOSITION, "attachment") })
}

/// A path from a request, made absolute.
pub(super) fn absolute(path: &str, workspace: &Path) -> PathBuf {
    workspace.join(haft_tool::path_from_text(path))
}
