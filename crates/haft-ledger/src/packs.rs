//! Many small images of one call, kept as the spool has written them: thousands of rows would cost more than the
//! command itself. A pack belongs to one call and goes with it.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use haft_tool::lock;

use crate::blobs::Key;
use crate::home::{Home, make_private_dirs};
use crate::spool::{Place, Reader};

/// How many packs are remembered at once.
const MOST_OPEN: usize = 16;

/// A call's images and where they lie.
#[derive(Debug)]
struct Pack {
    lines: Reader,
    places: HashMap<Key, Place>,
}

/// The packs that were looked into.
#[derive(Debug, Default)]
pub(crate) struct Packs {
    open: Mutex<HashMap<i64, Arc<Pack>>>,
}

impl Packs {
    /// The bytes behind a key, if any pack has them; as they lie there.
    pub(crate) fn find(&self, home: &Home, key: &Key) -> io::Result<Option<Vec<u8>>> {
        let known = || {
            let open = lock(&self.open);
            open.values().find(|pack| pack.places.contains_key(key)).cloned()
        };
        if let Some(pack) = known() {
            return pack.read(key);
        }
        for (call, _) in all(home)?.into_iter().rev() {
            if let Some(pack) = self.open(home, call)?
                && pack.places.contains_key(key)
            {
                return pack.read(key);
            }
        }
        Ok(None)
    }

    fn open(&self, home: &Home, call: i64) -> io::Result<Option<Arc<Pack>>> {
        let mut open = lock(&self.open);
        if let Some(pack) = open.get(&call) {
            return Ok(Some(Arc::clone(pack)));
        }
        let Some(mut lines) = Reader::of(&file_of(home, call))? else { return Ok(None) };
        let places = lines.places()?;
        if open.len() >= MOST_OPEN {
            open.clear();
        }
        let pack = Arc::new(Pack { lines, places });
        open.insert(call, Arc::clone(&pack));
        Ok(Some(pack))
    }
}

impl Pack {
    fn read(&self, key: &Key) -> io::Result<Option<Vec<u8>>> {
        let Some(place) = self.places.get(key) else { return Ok(None) };
        let mut bytes = Vec::new();
        Ok(self.lines.read(*place, &mut bytes)?.then_some(bytes))
    }
}

/// The pack of a call.
pub(crate) fn file_of(home: &Home, call: i64) -> PathBuf {
    home.packs().join(call.to_string())
}

/// Keeps a call's spool as its pack; the spool keeps its own name too, until the call is committed.
pub(crate) fn adopt(home: &Home, call: i64, spool: &std::path::Path) -> io::Result<()> {
    make_private_dirs(&home.packs())?;
    match fs::hard_link(spool, file_of(home, call)) {
        // Whoever tried before died before the call was committed.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(_) => fs::copy(spool, file_of(home, call)).map(drop),
        done => done,
    }
}

/// All packs: the call of each and its size, oldest first.
pub(crate) fn all(home: &Home) -> io::Result<Vec<(i64, u64)>> {
    let entries = match fs::read_dir(home.packs()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut packs = Vec::new();
    for entry in entries {
        let entry = entry?;
        if let Some(call) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
            // One that is gone by now belonged to a call that was forgotten.
            packs.extend(entry.metadata().ok().map(|meta| (call, meta.len())));
        }
    }
    packs.sort_unstable();
    Ok(packs)
}

/// Removes the pack of a call, if it has one.
pub(crate) fn remove(home: &Home, call: i64) -> io::Result<()> {
    match fs::remove_file(file_of(home, call)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
