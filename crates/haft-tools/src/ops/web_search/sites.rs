//! Which sites results may come from.

use haft_tool::ToolError;
use haft_tool::net::{Domains, Peer};
use url::Url;

/// Domains that results may only, or may not, come from; each includes its subdomains.
#[derive(Debug, Default)]
pub(crate) struct SiteFilter {
    pub(crate) only: Vec<String>,
    pub(crate) never: Vec<String>,
    /// Whichever of the two lists has entries.
    listed: Domains,
}

impl SiteFilter {
    /// Parses the two lists, of which only one may have entries.
    pub(crate) fn parse(only: &[String], never: &[String]) -> Result<Self, ToolError> {
        if !only.is_empty() && !never.is_empty() {
            return Err(ToolError::invalid_arguments(
                "allowed_domains and blocked_domains cannot be given together; use one of them",
            ));
        }
        let parse = |field: &str, list: &[String]| -> Result<Vec<String>, ToolError> {
            list.iter().map(|text| parse_domain(field, text)).collect()
        };
        let (only, never) = (parse("allowed_domains", only)?, parse("blocked_domains", never)?);
        let entries: Vec<String> =
            only.iter().chain(&never).flat_map(|domain| [domain.clone(), format!("*.{domain}")]).collect();
        Ok(Self { listed: Domains::parse(&entries)?, only, never })
    }

    /// Whether a result at `url` may be shown.
    pub(crate) fn allows(&self, url: &str) -> bool {
        if self.only.is_empty() && self.never.is_empty() {
            return true;
        }
        let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let Some(host) = host.and_then(|host| Peer::parse(host.as_bytes()).ok()) else { return false };
        self.listed.names(&host) != self.only.is_empty()
    }

    /// The query with these sites, in the `site:` syntax that most engines take.
    pub(crate) fn add_to(&self, query: &str) -> String {
        let only: Vec<String> = self.only.iter().map(|site| format!("site:{site}")).collect();
        let never: Vec<String> = self.never.iter().map(|site| format!("-site:{site}")).collect();
        let mut parts = vec![query.to_owned()];
        parts.extend((!only.is_empty()).then(|| only.join(" OR ")));
        parts.extend(never);
        parts.join(" ")
    }
}

/// A domain in ASCII and lower case.
fn parse_domain(field: &str, text: &str) -> Result<String, ToolError> {
    let invalid = || {
        ToolError::invalid_arguments(format!(
            "{field}: expected a domain such as \"example.com\", got {text:?}; leave out scheme, port and path"
        ))
    };
    let bare = text.trim().trim_start_matches("*.").trim_end_matches('.');
    if bare.is_empty() || bare.contains(['/', ':', '@', '?', '#', ' ', '*', '[', '\\']) {
        return Err(invalid());
    }
    let url = Url::parse(&format!("http://{bare}/")).map_err(|_| invalid())?;
    match url.host() {
        Some(url::Host::Domain(domain)) => Ok(domain.to_owned()),
        _ => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(only: &[&str], never: &[&str]) -> Result<SiteFilter, ToolError> {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        SiteFilter::parse(&owned(only), &owned(never))
    }

    #[test]
    fn a_domain_includes_its_subdomains() {
        let only = sites(&["Example.com", "*.bücher.de"], &[]).unwrap();
        for (url, allowed) in [
            ("https://example.com/a", true),
            ("https://docs.example.com:8443/", true),
            ("https://notexample.com/", false),
            ("https://example.com.evil.net/", false),
            ("https://evil.net/?example.com", false),
            ("https://example.com@evil.net/", false),
            ("https://xn--bcher-kva.de/", true),
            ("not a URL", false),
        ] {
            assert_eq!(only.allows(url), allowed, "{url}");
        }
        let never = sites(&[], &["example.com"]).unwrap();
        assert!(!never.allows("http://a.example.com/") && never.allows("http://example.org/"));
        assert!(sites(&[], &[]).unwrap().allows("anything"));
    }

    #[test]
    fn query_names_sites_in_search_syntax() {
        assert_eq!(sites(&["a.com", "b.org"], &[]).unwrap().add_to("rust"), "rust site:a.com OR site:b.org");
        assert_eq!(sites(&[], &["a.com", "b.org"]).unwrap().add_to("rust"), "rust -site:a.com -site:b.org");
        assert_eq!(sites(&[], &[]).unwrap().add_to("rust"), "rust");
    }

    #[test]
    fn invalid_domains_and_two_lists_are_refused() {
        for bad in ["", "https://a.com", "a.com/path", "a.com:80", "10.0.0.1", "a b", "user@a.com", "*"] {
            let error = sites(&[bad], &[]).unwrap_err();
            assert!(error.message.starts_with("allowed_domains: expected a domain"), "{bad}: {error}");
        }
        assert!(sites(&["a.com"], &["b.com"]).unwrap_err().message.contains("cannot be given together"));
    }
}
