//! What programs find in the sandbox: settings, names, other users' files, links of earlier commands.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

use crate::fixture::sandbox::{SandboxFixture, User};

use super::sandbox::{in_every_mode, python, run};

/// The uid of another user.
const OTHER_UID: u32 = 65534;

#[test]
fn e13_links_of_commands_in_their_home_are_not_followed_by_haft() {
    in_every_mode(|fixture, namespaces| {
        fixture.dir("home/.cargo/registry");
        fixture.file("home/.npmrc", "registry=https://npm.example/\n");
        fixture.file("home/.config/pip/pip.conf", "[global]\n");
        fixture.dir("outside/target");
        let target = fixture.path("outside/target");
        let names = [".cargo-offline", ".config", ".npmrc", ".pip", ".cache"];
        let link = |name| format!("rm -rf ~/{name}; ln -s {} ~/{name}", target.display());
        run(fixture, namespaces, &names.map(link).join("; "));
        for flags in [&[][..], &["--network", "npm.example"]] {
            let mut again = fixture.sandboxed(flags, "true");
            let ran = fixture.run(again.env("HAFT_NAMESPACES", namespaces));
            assert_eq!(ran.code, 0, "{namespaces}: {}", ran.stderr);
        }
        let made: Vec<_> = fs::read_dir(&target).unwrap().collect();
        assert!(made.is_empty(), "{namespaces}: {made:?}");
    });
}

#[test]
fn e29_files_with_names_that_look_removed_are_checked() {
    in_every_mode(|fixture, namespaces| {
        let outside = ["outside/x (deleted)", "outside/store"];
        for name in outside {
            fixture.file(name, "kept\n");
            fs::set_permissions(fixture.path(name), Permissions::from_mode(0o644)).unwrap();
        }
        fs::hard_link(fixture.path("outside/store"), fixture.path("work/linked")).unwrap();
        let before = outside.map(|name| fs::metadata(fixture.path(name)).unwrap().mtime());
        let ran = python(
            fixture,
            namespaces,
            "import os\n\
             def tried(act, *a):\n    \
                 try: act(*a); return True\n    \
                 except OSError: return False\n\
             x = os.open('../outside/x (deleted)', os.O_RDONLY)\n\
             linked = os.open('linked', os.O_RDONLY); os.unlink('linked')\n\
             print([tried(*call) for fd in (x, linked) for call in ((os.fchmod, fd, 0o777), (os.utime, fd, (5, 5)), (os.setxattr, fd, 'user.a', b'x'))])\n\
             os.mkdir('d (deleted)'); open('d (deleted)/f', 'w').write('new'); os.chdir('d (deleted)'); open('g (deleted)', 'w').write('new')\n\
             here = os.open('g (deleted)', os.O_RDWR); os.fchmod(here, 0o600); print(oct(os.fstat(here).st_mode))\n",
        );
        let refused = "[False, False, False, False, False, False]\n0o100600\n";
        assert_eq!(ran.stdout, refused, "{namespaces}: {}", ran.stderr);
        let after = outside.map(|name| fs::metadata(fixture.path(name)).unwrap());
        assert_eq!(after.each_ref().map(|meta| meta.mode() & 0o777), [0o644; 2], "{namespaces}");
        assert_eq!(after.map(|meta| meta.mtime()), before, "{namespaces}");
        let undone = fixture.haft(&["undo", "--yes"]);
        assert!(
            !fixture.path("work/d (deleted)").exists(),
            "{namespaces}: {}{}",
            undone.stdout,
            undone.stderr
        );
    });
}

#[test]
fn e39_root_uses_the_workspace_of_another_user() {
    if !User::is_root() {
        return;
    }
    for namespaces in ["true", "false"] {
        for owns_parent in [false, true] {
            let fixture = SandboxFixture::new(User::Current);
            let own = |name: &str, uid: u32, mode: u32| {
                chown(fixture.path(name), Some(uid), Some(uid)).unwrap();
                fs::set_permissions(fixture.path(name), Permissions::from_mode(mode)).unwrap();
            };
            for (name, text) in [
                ("work/mine", "private\n"),
                ("work/dir/inner", "inner\n"),
                (".ssh/id", "CANARY\n"),
                ("outside/other", "CANARY\n"),
            ] {
                fixture.file(name, text);
            }
            own("outside/other", OTHER_UID - 1, 0o600);
            own(".ssh/id", OTHER_UID - u32::from(!owns_parent), 0o600);
            own(".ssh", OTHER_UID - u32::from(!owns_parent), 0o700);
            for (name, mode) in
                [("work/mine", 0o600), ("work/dir/inner", 0o600), ("work/dir", 0o700), ("work", 0o755)]
            {
                own(name, OTHER_UID, mode);
            }
            if owns_parent {
                own(".", OTHER_UID, 0o755);
            }
            let files = "cat mine; echo new > dir/new; echo more >> mine; cat mine; stat -c %u mine";
            let ran = run(&fixture, namespaces, files);
            assert_eq!(ran.stdout, "private\nprivate\nmore\n65534\n", "{namespaces}: {}", ran.stderr);
            if namespaces == "true" {
                let script = "test -w mine && test -r mine && test -w . && echo writable; ls dir; cat dir/inner; cd dir; test -e inner && echo there";
                let ran = run(&fixture, namespaces, script);
                assert_eq!(ran.stdout, "writable\ninner\nnew\ninner\nthere\n", "{}", ran.stderr);
            }
            let secrets = "cat ../outside/other ../.ssh/id; head -c 1 /etc/shadow; ls ../.ssh; touch /etc/haft-test; true";
            let ran = run(&fixture, namespaces, secrets);
            assert_eq!(ran.stdout, "", "{namespaces}, {owns_parent}: {}", ran.stderr);
        }
    }
}

#[test]
fn e40_registries_of_the_user_are_seen_without_their_credentials() {
    in_every_mode(|fixture, namespaces| {
        fixture.file(
            "home/.npmrc",
            "registry=https://me:CANARY@npm.example/\n//npm.example/:_authToken=CANARY\n",
        );
        fixture.file(
            "home/.config/pip/pip.conf",
            "[global]\nindex-url = https://me:CANARY@pip.example/simple\n",
        );
        fixture.file(
            "home/.cargo/config.toml",
            "[registries.own]\nindex = \"sparse+https://cargo.example/\"\ntoken = \"CANARY\"\n",
        );
        fixture
            .file("home/.yarnrc.yml", "npmRegistryServer: \"https://yarn.example\"\nnpmAuthToken: CANARY\n");
        for flags in [&[][..], &["--network", "npm.example"]] {
            let script = "cat ~/.npmrc ~/.config/pip/pip.conf ${CARGO_HOME:-~/.cargo}/config.toml ~/.yarnrc.yml; if command -v npm > /dev/null; then npm config get registry; else echo https://npm.example/; fi";
            let ran = fixture.run(fixture.sandboxed(flags, script).env("HAFT_NAMESPACES", namespaces));
            let seen = "registry=https://npm.example/\n[global]\nindex-url = https://pip.example/simple\n[registries.own]\nindex = \"sparse+https://cargo.example/\"\nnpmRegistryServer: \"https://yarn.example\"\nhttps://npm.example/\n";
            assert_eq!(ran.stdout, seen, "{namespaces}: {}", ran.stderr);
        }
    });
}

#[test]
fn refused_secret_names_the_entry_that_allows_it() {
    in_every_mode(|fixture, namespaces| {
        fixture.file("work/.env.local", "CANARY\n");
        let ran = run(fixture, namespaces, "cat .env.local; true");
        assert!(ran.stderr.contains("--allow-read '.env.*'"), "{namespaces}: {}", ran.stderr);
        let mut again = fixture.sandboxed(&["--allow-read", ".env.*"], "cat .env.local");
        let ran = fixture.run(again.env("HAFT_NAMESPACES", namespaces));
        assert_eq!(ran.stdout, "CANARY\n", "{namespaces}: {}", ran.stderr);
    });
}
