//! What is searched.

use std::fs;
use std::path::Path;

/// The corpus: small enough that no output is cut, and with every kind of file that is read in a way of its own.
pub(super) fn fill(workspace: &Path) {
    let put = |name: &str, bytes: &[u8]| {
        let path = workspace.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let utf16 = |text: &str, little: bool| -> Vec<u8> {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() }).collect()
    };
    // Longer than ripgrep's buffer, in few enough characters.
    let long = "é".repeat(18_000);

    // Rules above the workspace: git's end at the repository, the others do not.
    put("../.gitignore", b"*.md\n");
    put("../.ignore", b"*.outer\n");
    put("docs/above.outer", b"alpha needle\n");
    put(".gitignore", b"# made files\n*.log\n/target/\nbuild\n!keep.log\n\\#odd.txt\nlocal.*\n**/cache/*\nweb/**/skip.ts\n!.shown\nlogs/*\n!logs/kept/\n");
    put("src/.gitignore", b"generated_*.rs\n!generated_kept.rs\n/only_here.rs\n");
    put("docs/.ignore", b"drafts/\n!local.md\n");
    put("web/.rgignore", b"*.min.js\n!skip.ts\n");
    put(".hidden.txt", b"alpha in a hidden file\n");
    put(".shown", b"alpha in a hidden file that is not ignored\n");
    put(".config/settings.toml", b"alpha = \"needle\"\n");
    put("trace.log", b"alpha needle 1\nWARN beta\n");
    put("keep.log", b"alpha needle 2\nWARN gamma\n");
    put("#odd.txt", b"alpha odd\n");
    put("excluded.txt", b"alpha excluded\n");
    put("local.md", b"alpha local\n");
    put("docs/local.md", b"alpha local, but not ignored\n");
    put("docs/build", b"alpha: a file with the name of an ignored directory\n");
    put("logs/a.txt", b"alpha logged\n");
    put("logs/kept/b.txt", b"alpha kept\n");
    put("data/cache/c.txt", b"alpha cached\n");
    put("web/deep/skip.ts", b"let alpha = 9;\n");
    put("web/app.min.js", b"let alpha=1,alpha2=2;\n");
    put("src/only_here.rs", b"fn alpha_only() {}\n");
    put("src/deep/only_here.rs", b"fn alpha_elsewhere() {}\n");
    put("vendor/repo/.git/HEAD", b"ref: refs/heads/main\n");
    put("vendor/repo/.gitignore", b"*.csv\n");
    put("vendor/repo/inner.log", b"alpha in another repository\n");
    put("vendor/repo/inner.csv", b"alpha,ignored there\n");
    put("target/out.rs", b"fn alpha() {}\n");
    put("build/made.txt", b"alpha made\n");

    put("src/main.rs", b"use std::io;\n\nfn main() {\n    let alpha = beta(1);\n    println!(\"{alpha}\");\n}\n\nfn beta(x: u32) -> u32 {\n    // TODO: alpha and omega\n    x + 1\n}\n");
    put("src/lib.rs", b"//! Alpha, the first.\n\npub mod deep;\n\n/// Needle.\npub fn alpha() -> &'static str {\n    \"needle\"\n}\n\n#[test]\nfn omega() {\n    assert_eq!(alpha(), \"needle\");\n}\n");
    put("src/generated_a.rs", b"fn alpha_generated() {}\n");
    put("src/generated_kept.rs", b"fn alpha_kept() {}\n");
    put("src/deep/mod.rs", b"pub mod er;\npub struct Alpha;\nimpl Alpha {\n    pub fn beta(&self) {\n        self.gamma()\n    }\n}\n");
    put("src/deep/er/still/deeper/leaf.rs", b"fn leaf() {\n\tlet needle = 42;\n\tlet hay = needle * 2;\n}\n");
    put("src/script.py", b"def alpha(x):\n    return x  # needle\n\n\nclass Beta:\n    def omega(self):\n        return alpha(1)\n");
    put("src/app.js", b"const alpha = () => 'needle';\nexport default alpha;\n");
    put("web/a-b/x.ts", b"let alpha: number = 1;\n");
    put("web/a/x.ts", b"let alpha: number = 2;\nlet omega: number = 3;\n");
    put("web/a.ts", b"alpha alpha alpha\nneedle, alpha, needle\n");
    put("data/records.json", b"{\"alpha\": 1, \"beta\": [1, 2, 3],\n \"needle\": null}\n");
    put("data/table.csv", b"id,name\n1,alpha\n2,beta\n3,gamma\n4,alpha\n5,omega\n");

    put("docs/guide.md", "# Guide\n\nThe alpha of it all.\nCafé, naïve, Grüße, 日本語 and ünïcödé.\n\n- needle one\n- Needle two\n- NEEDLE three\n\nstart\n  middle alpha\nend\nstart\n  middle beta\nend\n".as_bytes());
    put("docs/windows.txt", b"alpha one\r\nbeta two\r\n\r\nneedle three\r\nomega four\r\n");
    put("docs/no_newline.txt", b"alpha\nbeta\nlast needle");
    put("docs/old_mac.txt", b"alpha\rbeta\rneedle\r");
    put("docs/spaces.txt", b"\n\n\talpha\n\n   \nbeta   \n\n");
    put("docs/drafts/idea.md", b"alpha draft\n");
    put(
        "docs/deep/notes.md",
        b"one\ntwo\nthree alpha\nfour\nfive\nsix alpha\nseven\neight\nnine\nten alpha\neleven\n",
    );
    put("docs/name with space.txt", b"alpha needle\n");
    put("docs/gr\u{fc}n.md", "grün alpha\nGRÜN ALPHA\n".as_bytes());

    put("text/utf16le.txt", &utf16("alpha in wide letters\r\nGrüße, needle\r\nomega\r\n", true));
    put("text/utf16be.txt", &utf16("alpha in wide letters\nneedle 日本語\n", false));
    put("text/utf8_bom.txt", "\u{feff}alpha after a mark\nneedle\n".as_bytes());
    put("text/latin1.txt", b"alpha caf\xe9\nneedle na\xefve \xff\n");
    put("text/long.txt", format!("alpha short\n{long}needle{long}\nbeta short\n").as_bytes());
    put("bin/nul_before.bin", b"\x7fELF\0\x01\x02\nalpha needle\nbeta\n");
    put("bin/nul_after.bin", b"alpha needle\nbeta\ngamma\0delta\nalpha again\n");
    put("bin/nul_same_line.bin", b"beta\nalpha \0 needle\nomega\n");
    put("bin/nul_late.dat", format!("alpha first\nxx{}\n\0\nalpha last\n", "ö".repeat(34_000)).as_bytes());
    put("empty.txt", b"");
    put("newline.txt", b"\n");
    std::os::unix::fs::symlink("src/lib.rs", workspace.join("link.rs")).unwrap();
    std::os::unix::fs::symlink("src", workspace.join("linked")).unwrap();
}
