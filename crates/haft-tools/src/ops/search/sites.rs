//! Which sites results may come from.

use haft_tool::ToolError;
use haft_tool::net::{Domains, Peer};
use url::Url;

/// Sites that results may only, or may not, come from; each with everything below it.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    pub(crate) only: Vec<String>,
    pub(crate) never: Vec<String>,
    listed: Domains,
}

impl Sites {
    /// Reads the two lists; only one of them may have entries.
    pub(crate) fn parse(only: &[String], never: &[String]) -> Result<Self, ToolError> {
        if !only.is_empty() && !never.is_empty() {
            return Err(ToolError::invalid_arguments(
                "allowed_domains and blocked_domains cannot be given together; use one of them",
            ));
        }
        let read = |field: &str, list: &[String]| -> Result<Vec<String>, ToolError> {
            list.iter().map(|text| domain(field, text)).collect()
        };
        let (only, never) = (read("allowed_domains", only)?, read("blocked_domains", never)?);
        let entries: Vec<String> =
            only.iter().chain(&never).flat_map(|domain| [domain.clone(), format!("*.{domain}")]).collect();
        Ok(Self { listed: Domains::parse(&entries)?, only, never })
    }

    /// Whether a result at `url` may be shown.
    pub(crate) fn admit(&self, url: &str) -> bool {
        if self.only.is_empty() && self.never.is_empty() {
            return true;
        }
        let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let Some(host) = host.and_then(|host| Peer::parse(host.as_bytes()).ok()) else { return false };
        self.listed.names(&host) != self.only.is_empty()
    }

    /// The query with these sites in the words that most engines know.
    pub(crate) fn in_words(&self, query: &str) -> String {
        let only: Vec<String> = self.only.iter().map(|site| format!("site:{site}")).collect();
        let never: Vec<String> = self.never.iter().map(|site| format!("-site:{site}")).collect();
        let mut words = vec![query.to_owned()];
        words.extend((!only.is_empty()).then(|| only.join(" OR ")));
        words.extend(never);
        words.join(" ")
    }
}

/// A domain as lists of hosts write it: in ASCII and small letters.
fn domain(field: &str, text: &str) -> Result<String, ToolError> {
    let wrong = || {
        ToolError::invalid_arguments(format!(
            "{field}: expected a domain such as \"example.com\", got {text:?}; leave out scheme, port and path"
        ))
    };
    let bare = text.trim().trim_start_matches("*.").trim_end_matches('.');
    if bare.is_empty() || bare.contains(['/', ':', '@', '?', '#', ' ', '*', '[', '\\']) {
        return Err(wrong());
    }
    let url = Url::parse(&format!("http://{bare}/")).map_err(|_| wrong())?;
    match url.host() {
        Some(url::Host::Domain(domain)) => Ok(domain.to_owned()),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(only: &[&str], never: &[&str]) -> Result<Sites, ToolError> {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Sites::parse(&owned(only), &owned(never))
    }

    #[test]
    fn a_domain_stands_for_itself_and_everything_below_it() {
        let only = sites(&["Example.com", "*.bücher.de"], &[]).unwrap();
        for (url, shown) in [
            ("https://example.com/a", true),
            ("https://docs.example.com:8443/", true),
            ("https://notexample.com/", false),
            ("https://example.com.evil.net/", false),
            ("https://evil.net/?example.com", false),
            ("https://example.com@evil.net/", false),
            ("https://xn--bcher-kva.de/", true),
            ("no address", false),
        ] {
            assert_eq!(only.admit(url), shown, "{url}");
        }
        let never = sites(&[], &["example.com"]).unwrap();
        assert!(!never.admit("http://a.example.com/") && never.admit("http://example.org/"));
        assert!(sites(&[], &[]).unwrap().admit("anything"));
    }

    #[test]
    fn sites_are_said_in_the_words_of_engines() {
        assert_eq!(
            sites(&["a.com", "b.org"], &[]).unwrap().in_words("rust"),
            "rust site:a.com OR site:b.org"
        );
        assert_eq!(sites(&[], &["a.com", "b.org"]).unwrap().in_words("rust"), "rust -site:a.com -site:b.org");
        assert_eq!(sites(&[], &[]).unwrap().in_words("rust"), "rust");
    }

    #[test]
    fn what_is_no_domain_or_contradicts_itself_is_refused() {
        for bad in ["", "https://a.com", "a.com/path", "a.com:80", "10.0.0.1", "a b", "user@a.com", "*"] {
            let error = sites(&[bad], &[]).unwrap_err();
            assert!(error.message.starts_with("allowed_domains: expected a domain"), "{bad}: {error}");
        }
        assert!(sites(&["a.com"], &["b.com"]).unwrap_err().message.contains("cannot be given together"));
    }
}
