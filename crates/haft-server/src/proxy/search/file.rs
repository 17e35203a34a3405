//! Searches a file in place of the web.

use std::path::Path;

use haft_files::read_named;
use haft_tools::SearchHit;
use serde::Deserialize;

use super::super::failure::ProxyFailure;
use super::key::normalized;

/// The largest file.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A page of the file.
#[derive(Deserialize)]
struct FilePage {
    title: String,
    url: String,
    #[serde(default)]
    snippet: String,
}

/// The first pages in a file that contain every word of the query. The file is read for each search.
pub(super) fn search(path: &Path, query: &str, count: usize) -> Result<Vec<SearchHit>, ProxyFailure> {
    let unusable =
        |why: String| ProxyFailure::new(500, format!("The search file of this server cannot be used: {why}"));
    let bytes = read_named(path, MAX_FILE_BYTES).map_err(|error| unusable(error.message))?;
    let pages: Vec<FilePage> =
        serde_json::from_slice(&bytes).map_err(|error| unusable(format!("{}: {error}", path.display())))?;
    let query = normalized(query).to_lowercase();
    let is_found = |page: &FilePage| {
        let text = format!("{} {} {}", page.title, page.url, page.snippet).to_lowercase();
        query.split(' ').all(|word| text.contains(word))
    };
    let hit = |FilePage { title, url, snippet }| SearchHit { title, url, snippet };
    Ok(pages.into_iter().filter(is_found).take(count).map(hit).collect())
}
