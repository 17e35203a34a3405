//! A strict parser of Prometheus' text format, which the tests of `haft serve` use too.

use std::collections::BTreeMap;

/// A sample: its name and labels.
pub(crate) type SampleKey = (String, BTreeMap<String, String>);

/// The samples of a text that follows the format to the letter.
pub(crate) fn parse(text: &str) -> BTreeMap<SampleKey, f64> {
    assert!(text.ends_with('\n'));
    let (mut types, mut samples) = (BTreeMap::new(), BTreeMap::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let help = line.strip_prefix("# HELP ").unwrap_or_else(|| panic!("no HELP: {line}"));
        let (name, words) = help.split_once(' ').unwrap();
        assert!(is_name(name) && !words.is_empty() && !words.contains('\\'), "{line}");
        let kind = lines.next().and_then(|line| line.strip_prefix(&format!("# TYPE {name} "))).unwrap();
        assert!(["counter", "gauge", "histogram"].contains(&kind), "{kind}");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
        assert_eq!(types.insert(name.to_owned(), kind.to_owned()), None, "{name} twice");
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let (key, value) = sample(line);
            let suffixes: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(suffixes.iter().any(|suffix| key.0 == format!("{name}{suffix}")), "{line}");
            assert_eq!(samples.insert(key, value), None, "twice: {line}");
        }
    }
    check_histograms(&types, &samples);
    samples
}

/// One line: `name{label="value",…} number`.
fn sample(line: &str) -> (SampleKey, f64) {
    let (head, value) = line.rsplit_once(' ').unwrap();
    let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
    assert!(value.is_finite() && value >= 0.0, "{line}");
    let Some((name, labels)) = head.split_once('{') else {
        assert!(is_name(head), "{line}");
        return ((head.to_owned(), BTreeMap::new()), value);
    };
    let (mut rest, mut all) = (labels.strip_suffix('}').unwrap(), BTreeMap::new());
    while !rest.is_empty() {
        let (label, quoted) = rest.split_once("=\"").unwrap();
        let end = quoted.find('"').unwrap();
        let text = &quoted[..end];
        assert!(is_name(label) && !text.contains('\\'), "{line}");
        assert_eq!(all.insert(label.to_owned(), text.to_owned()), None);
        rest = quoted[end + 1..].strip_prefix(',').unwrap_or(&quoted[end + 1..]);
    }
    ((name.to_owned(), all), value)
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Buckets never decrease, and the last one counts everything.
fn check_histograms(types: &BTreeMap<String, String>, samples: &BTreeMap<SampleKey, f64>) {
    for (name, _) in types.iter().filter(|(_, kind)| *kind == "histogram") {
        let bucket = format!("{name}_bucket");
        let mut series: BTreeMap<_, Vec<(f64, f64)>> = BTreeMap::new();
        for ((_, labels), count) in samples.iter().filter(|((of, _), _)| *of == bucket) {
            let mut labels = labels.clone();
            let bound = match labels.remove("le").unwrap().as_str() {
                "+Inf" => f64::INFINITY,
                bound => bound.parse().unwrap(),
            };
            series.entry(labels).or_default().push((bound, *count));
        }
        for (labels, mut buckets) in series {
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(buckets.is_sorted_by_key(|(_, count)| *count), "{name} {labels:?}");
            let (bound, count) = *buckets.last().unwrap();
            assert!(bound.is_infinite());
            assert_eq!(Some(&count), samples.get(&(format!("{name}_count"), labels)));
        }
    }
}

pub(crate) fn value(samples: &BTreeMap<SampleKey, f64>, name: &str, labels: &[(&str, &str)]) -> String {
    let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let found = samples.get(&(name.to_owned(), labels));
    found.unwrap_or_else(|| panic!("no {name}: {samples:?}")).to_string()
}
