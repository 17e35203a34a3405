//! Mutated git configurations.

use std::path::Path;

use super::new_programs;
use super::parse::parse;

const PATH: &str = ".git/config";
const CONFIGS: [&[u8]; 6] = [
    b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = /bin/true\n",
    b"[remote \"origin\"]\n\turl = https://example.com/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
    b"\xef\xbb\xbf[Alias]\n  x = \"!sh -c \\\"echo a\\\\\n b\\\"\" ; comment\n  y\n# end\n",
    b"[include]\r\n\tpath = ../other\r\n[includeIf \"gitdir:~/w/\"]\r\n\tpath=a\r\n",
    b"[a.b.c]k=v\\t\\b\\n\\\"q\\\" # c\n[filter \"l\\\\f\\\"s\"] clean = git-lfs clean -- %f\n",
    b"[user]\n\tname = A  B   \n[credential] helper = !f() { echo; }; f\n",
];

#[test]
fn mutated_configurations_are_parsed_up_to_the_first_error() {
    haft_fuzz::check(&CONFIGS, |bytes| {
        let config = parse(bytes);
        let lines = bytes.split(|byte| *byte == b'\n').count();
        assert!(config.error_line.is_none_or(|line| line <= lines));
        assert!(config.entries.iter().all(|entry| entry.section < config.sections.len()));
        let names: usize = config.sections.iter().map(|section| section.name.len()).sum();
        let values =
            config.entries.iter().map(|entry| entry.key.len() + entry.value.as_ref().map_or(0, Vec::len));
        assert!(names + values.sum::<usize>() <= bytes.len() + config.sections.len());
    });
}

#[test]
fn unchanged_configurations_have_no_new_programs() {
    haft_fuzz::check(&CONFIGS, |bytes| {
        if parse(bytes).error_line.is_none() {
            assert_eq!(new_programs(Path::new(PATH), bytes, bytes), Vec::<String>::new());
        } else {
            let _ = new_programs(Path::new(PATH), bytes, bytes);
        }
        let _ = new_programs(Path::new(PATH), b"", bytes);
    });
}
