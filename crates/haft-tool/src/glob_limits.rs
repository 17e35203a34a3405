//! Limits of the globs that Haft compiles: the compiler recurses for each brace, and a glob can come from a model, a request or a
//! project's settings.

/// More alternatives (`{a,b}`) in one glob are refused.
const MAX_GLOB_BRACES_COUNT: usize = 100;
const MAX_GLOB_BYTES: usize = 64 << 10;

/// Why a glob is not compiled, if it is too long or has too many alternatives.
pub fn check_glob(glob: &str) -> Result<(), String> {
    if glob.len() > MAX_GLOB_BYTES {
        return Err(format!("it is longer than {} KiB", MAX_GLOB_BYTES >> 10));
    }
    if glob.matches('{').count() > MAX_GLOB_BRACES_COUNT {
        return Err(format!("it has more than {MAX_GLOB_BRACES_COUNT} braces"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_deep_globs_are_refused() {
        assert_eq!(check_glob("**/*.{rs,toml}"), Ok(()));
        assert!(check_glob(&format!("{}x{}", "{a,".repeat(101), "}".repeat(101))).is_err());
        assert!(check_glob(&"a".repeat(MAX_GLOB_BYTES + 1)).is_err());
    }
}
