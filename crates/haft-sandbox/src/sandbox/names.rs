//! Names of files that are secret wherever they lie.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Shown to everybody on purpose: they say which secrets a program wants, not what they are.
pub(super) const SHOWN: &[&str] = &[".env.example", ".env.sample", ".env.template"];

/// Globs for a name: `*`, `?` and `[a-z]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names(Vec<String>);

impl Names {
    /// The names that fit any of `globs`.
    pub(crate) fn new(globs: Vec<String>) -> Self {
        Self(globs)
    }

    /// Whether nothing is secret by its name.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a file of that name is secret.
    pub(crate) fn matches(&self, name: &OsStr) -> bool {
        let name = name.as_bytes();
        let shown = SHOWN.iter().any(|shown| shown.as_bytes() == name);
        self.0.iter().any(|glob| if shown { glob.as_bytes() == name } else { fits(glob.as_bytes(), name) })
    }
}

/// Whether `name` fits `glob`, in time that grows with their product and no faster.
pub(super) fn fits(glob: &[u8], name: &[u8]) -> bool {
    let (mut g, mut n) = (0, 0);
    // Where to go on when what came after the last star does not fit: the star takes one byte more.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if glob.get(g) == Some(&b'*') {
            star = Some((g, n));
            g += 1;
        } else if let Some(width) = one(&glob[g..], name[n]) {
            g += width;
            n += 1;
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            (g, n) = (at + 1, taken + 1);
        } else {
            return false;
        }
    }
    glob[g..].iter().all(|&rest| rest == b'*')
}

/// How much of `glob` stands for `byte`, if it does.
fn one(glob: &[u8], byte: u8) -> Option<usize> {
    match glob.first()? {
        b'?' => Some(1),
        b'[' => match class(glob) {
            Some((inside, negated, width)) => (holds(inside, byte) != negated).then_some(width),
            None => (byte == b'[').then_some(1),
        },
        b'\\' if glob.len() > 1 => (glob[1] == byte).then_some(2),
        &plain => (plain == byte).then_some(1),
    }
}

/// What stands between the brackets, whether it is negated, and how long all of it is.
fn class(glob: &[u8]) -> Option<(&[u8], bool, usize)> {
    let negated = matches!(glob.get(1), Some(b'!' | b'^'));
    let start = 1 + usize::from(negated);
    // A bracket right at the beginning is one of the bytes.
    let end = start + 1 + glob.get(start + 1..)?.iter().position(|&byte| byte == b']')?;
    Some((&glob[start..end], negated, end + 1))
}

fn holds(inside: &[u8], byte: u8) -> bool {
    let mut rest = inside;
    while let Some((&first, tail)) = rest.split_first() {
        if let [b'-', last, after @ ..] = tail {
            if (first..=*last).contains(&byte) {
                return true;
            }
            rest = after;
        } else if first == byte {
            return true;
        } else {
            rest = tail;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_mean_what_they_mean_in_a_shell() {
        let yes = [
            ("", ""),
            ("*", "anything"),
            (".env*", ".env"),
            ("*.pem", "a.b.pem"),
            ("a*b*c", "aXbXbYc"),
            ("id_?sa", "id_rsa"),
            ("[a-c]x", "bx"),
            ("[!a]x", "bx"),
            ("[]]", "]"),
            ("[", "["),
            ("\\*", "*"),
            ("a**", "a"),
        ];
        for (glob, name) in yes {
            assert!(fits(glob.as_bytes(), name.as_bytes()), "{glob} {name}");
        }
        let no = [
            ("", "a"),
            ("a", ""),
            (".env", ".env2"),
            ("*.pem", "pem"),
            ("[a-c]x", "dx"),
            ("[!a]x", "ax"),
            ("\\*", "a"),
        ];
        for (glob, name) in no {
            assert!(!fits(glob.as_bytes(), name.as_bytes()), "{glob} {name}");
        }
    }

    #[test]
    fn what_is_shown_on_purpose_is_no_secret_unless_it_is_named() {
        let names = Names::new(vec![".env".into(), ".env.*".into()]);
        for secret in [".env", ".env.local", ".env.production", ".env.example.bak"] {
            assert!(names.matches(OsStr::new(secret)), "{secret}");
        }
        for open in [".env.example", ".env.sample", ".env.template", "env", ".envrc", "a.env"] {
            assert!(!names.matches(OsStr::new(open)), "{open}");
        }
        assert!(Names::new(vec![".env.sample".into()]).matches(OsStr::new(".env.sample")));
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let glob = "a*".repeat(200) + "b";
        assert!(!fits(glob.as_bytes(), "a".repeat(5000).as_bytes()));
    }
}
