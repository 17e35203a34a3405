//! Variables in the text of a server's entry: `${NAME}` and `${NAME:-default}`.

/// Expands the variables; one that is not set and has no default is an error.
pub(super) fn expand(text: &str, var: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        done.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let Some(end) = inside.find('}') else {
            return Err(format!("{text:?} has a ${{ without its }}"));
        };
        let (name, default) = match inside[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&inside[..end], None),
        };
        match var(name).filter(|value| default.is_none() || !value.is_empty()) {
            Some(value) => done.push_str(&value),
            None => match default {
                Some(default) => done.push_str(default),
                None => return Err(format!("the variable {name} is not set")),
            },
        }
        rest = &inside[end + 1..];
    }
    done.push_str(rest);
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expansion_is_not_recursive_and_missing_variables_are_errors() {
        let var = |name: &str| match name {
            "A" => Some("${B}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        assert_eq!(
            expand("x${A}y${A}", &var).as_deref(),
            Ok("x${B}y${B}"),
            "expanded text is not expanded again"
        );
        assert_eq!(expand("${B:-b}${EMPTY:-e}${EMPTY}", &var).as_deref(), Ok("be"));
        assert_eq!(expand("$A {A} }", &var).as_deref(), Ok("$A {A} }"));
        assert!(expand("${B}", &var).is_err_and(|why| why.contains('B')));
        assert!(expand("${A", &var).is_err());
    }
}
