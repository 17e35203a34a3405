//! Finds the URLs that git's own files give to remote repositories.

use super::parse;

/// The remotes of a configuration, or of one of git's older files.
#[derive(Debug, Default)]
pub(crate) struct GitRemotes {
    /// URLs and paths, as they are written.
    pub(crate) urls: Vec<Vec<u8>>,
    /// How URLs begin, and what git puts there instead.
    pub(crate) rewrites: Vec<(Vec<u8>, Vec<u8>)>,
}

impl GitRemotes {
    /// Those that a configuration names.
    pub(crate) fn of_config(bytes: &[u8]) -> Self {
        let config = parse::parse(bytes);
        let mut found = Self::default();
        for entry in &config.entries {
            let section = &config.sections[entry.section];
            let value = entry.value.as_deref();
            match (section.section(), entry.key.as_slice()) {
                (b"remote" | b"submodule", b"url" | b"pushurl")
                | (b"branch", b"remote" | b"pushremote")
                | (b"remote", b"pushdefault") => found.urls.extend(value.map(<[u8]>::to_vec)),
                (b"url", b"insteadof" | b"pushinsteadof") => {
                    let base = section.subsection().unwrap_or_default();
                    found.rewrites.extend(value.map(|value| (value.to_vec(), base.to_vec())));
                }
                _ => {}
            }
        }
        // Without a URL, the name of a remote is one.
        let remotes = config.sections.iter().filter(|section| section.section() == b"remote");
        found.urls.extend(remotes.filter_map(|section| section.subsection()).map(<[u8]>::to_vec));
        found
    }

    /// Those that a file in `remotes` or `branches` of a git directory names.
    pub(crate) fn of_file(bytes: &[u8]) -> Self {
        let lines = || bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let listed = lines().filter_map(|line| line.strip_prefix(b"URL:")).map(<[u8]>::trim_ascii);
        let first = lines().next().unwrap_or_default();
        let branch = first.split(|&byte| byte == b'#').next();
        Self { urls: listed.chain(branch).map(<[u8]>::to_vec).collect(), rewrites: Vec::new() }
    }

    /// The URLs as they are and as rewritten by any of `rewrites`.
    pub(crate) fn rewritten(mut self, rewrites: &[(Vec<u8>, Vec<u8>)]) -> Vec<Vec<u8>> {
        let rewritten = |url: &Vec<u8>| {
            let rests = rewrites.iter().filter_map(|(start, base)| Some((base, url.strip_prefix(&**start)?)));
            rests.map(|(base, rest)| [base, rest].concat()).collect::<Vec<_>>()
        };
        let more: Vec<_> = self.urls.iter().flat_map(rewritten).collect();
        self.urls.extend(more);
        self.urls
    }
}

/// Whether a URL that begins like this can be a path of this machine.
pub(super) fn may_be_local(base: &[u8]) -> bool {
    let colon = base.iter().position(|&byte| byte == b':');
    let slash = base.iter().position(|&byte| byte == b'/').unwrap_or(base.len());
    colon.is_none_or(|colon| colon > slash || base[..colon].eq_ignore_ascii_case(b"file"))
}
