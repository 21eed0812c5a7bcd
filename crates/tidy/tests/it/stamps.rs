//! A crate's tests run again when something changed that they depend on, and only then.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use scrinium_tidy::stamps::{Crates, Stamp, Stamps};
use tempfile::TempDir;

/// From the ground up: `store`, `http` on it, `server` on that. `lab` uses none; `http` is tested with `fault`.
const FILES: [(&str, &str); 16] = [
    ("Cargo.lock", "lock"),
    ("docs/http.md", "page"),
    ("docs/mail.md", "page"),
    ("experiments/users.toml", "users"),
    ("scripts/test", "test"),
    ("crates/store/Cargo.toml", "[dependencies]\nlibc = \"1\"\n"),
    ("crates/store/src/lib.rs", "store"),
    ("crates/store/tests/it/main.rs", "tests"),
    ("crates/fault/Cargo.toml", "[dependencies]\n"),
    ("crates/fault/src/lib.rs", "fault"),
    (
        "crates/http/Cargo.toml",
        "[package.metadata.stamps]\ntests = [\"docs/http.md\"]\n[dependencies]\nscrinium-store.workspace = true\n\
         [dev-dependencies]\nscrinium-fault.workspace = true\n",
    ),
    ("crates/http/src/lib.rs", "http"),
    ("crates/lab/Cargo.toml", "[package.metadata.stamps]\nsources = [\"experiments\"]\n"),
    ("crates/lab/src/lib.rs", "lab"),
    (
        "crates/server/Cargo.toml",
        "[dependencies]\nscrinium-http = { path = \"../http\" }\nscrinium-lab.workspace = true\n",
    ),
    ("crates/server/src/main.rs", "server"),
];

struct Repository {
    folder: TempDir,
    stamps: Stamps,
}

impl Repository {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let stamps = Stamps::new(&folder.path().join("stamps"));
        let repository = Self { folder, stamps };
        FILES.iter().for_each(|(path, text)| repository.write(path, text));
        repository
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("repository").join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn crates(&self) -> Crates {
        Crates::read(&self.path("")).unwrap()
    }

    /// All crates pass.
    fn pass(&self, surroundings: &[String]) {
        let crates = self.crates();
        for name in crates.names() {
            let fingerprint = crates.fingerprint(name, surroundings).unwrap();
            let stamp = Stamp { commit: "abc".to_owned(), passed: 3 };
            self.stamps.keep(name, &fingerprint, &stamp).unwrap();
            assert_eq!(self.stamps.find(name, &fingerprint), Some(stamp));
        }
    }

    /// The crates that have no stamp.
    fn to_run(&self, surroundings: &[String]) -> String {
        let crates = self.crates();
        let stamped =
            |name: &&str| self.stamps.find(name, &crates.fingerprint(name, surroundings).unwrap()).is_none();
        crates.names().filter(stamped).collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn a_crate_runs_again_when_what_it_depends_on_changed_and_only_then() {
    let repository = Repository::new();
    let all = "fault http lab server store";
    assert_eq!(repository.to_run(&[]), all);
    repository.pass(&[]);
    assert_eq!(repository.to_run(&[]), "");

    let manifest = "[dependencies]\nlibc = \"1\"\nscrinium-fault.workspace = true\n";
    let cases = [
        ("crates/store/src/lib.rs", "changed", "http server store"),
        ("crates/store/src/new/file.rs", "new", "http server store"),
        ("crates/store/tests/it/main.rs", "changed", "http server store"),
        ("crates/store/Cargo.toml", manifest, "http server store"),
        // Only tests of `http` use it.
        ("crates/fault/src/lib.rs", "changed", "fault http"),
        ("crates/http/src/lib.rs", "changed", "http server"),
        ("crates/lab/src/lib.rs", "changed", "lab server"),
        ("crates/server/src/main.rs", "changed", "server"),
        ("docs/http.md", "changed", "http"),
        ("docs/mail.md", "changed", ""),
        ("README.md", "changed", ""),
        ("crates/store/target/debug/made", "made", ""),
        // Compiled into `lab`, and with it into the server.
        ("experiments/users.toml", "changed", "lab server"),
        ("experiments/new.toml", "new", "lab server"),
        ("Cargo.lock", "changed", all),
        ("scripts/test", "changed", all),
        (".config/nextest.toml", "new", all),
        ("rust-toolchain.toml", "new", all),
    ];
    for (path, text, expected) in cases {
        let before = std::fs::read(repository.path(path)).ok();
        repository.write(path, text);
        assert_eq!(repository.to_run(&[]), expected, "{path}");
        match before {
            Some(before) => std::fs::write(repository.path(path), before).unwrap(),
            None => std::fs::remove_file(repository.path(path)).unwrap(),
        }
        assert_eq!(repository.to_run(&[]), "", "{path} is as it was");
    }

    std::fs::remove_file(repository.path("crates/http/src/lib.rs")).unwrap();
    assert_eq!(repository.to_run(&[]), "http server");
    repository.write("crates/http/src/moved.rs", "http");
    assert_eq!(repository.to_run(&[]), "http server");
}

#[test]
fn another_compiler_or_environment_runs_all_again() {
    let repository = Repository::new();
    let surroundings = |compiler: &str| vec![compiler.to_owned(), "SCRINIUM_KILLS=10".to_owned()];
    repository.pass(&surroundings("rustc 1"));
    assert_eq!(repository.to_run(&surroundings("rustc 1")), "");
    assert_eq!(repository.to_run(&surroundings("rustc 2")), "fault http lab server store");
    assert_eq!(repository.to_run(&["rustc 1".to_owned()]), "fault http lab server store");
}

#[test]
fn damaged_stamps_count_as_none_and_old_ones_go() {
    let repository = Repository::new();
    repository.pass(&[]);
    for stamp in std::fs::read_dir(repository.folder.path().join("stamps/store")).unwrap() {
        std::fs::write(stamp.unwrap().path(), "{\"commit\":").unwrap();
    }
    assert_eq!(repository.to_run(&[]), "store");
    for turn in 0..60 {
        repository.pass(&[turn.to_string()]);
    }
    let kept = std::fs::read_dir(repository.folder.path().join("stamps/store")).unwrap().count();
    assert!((10..60).contains(&kept), "{kept} stamps are kept");
    assert_eq!(repository.to_run(&["59".to_owned()]), "", "the latest stay");
}

/// The repository's own manifests give the tests of `store` to all that stand on it, and to nobody else.
#[test]
fn crates_of_this_repository_depend_on_what_their_manifests_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let crates = Crates::read(&root).unwrap();
    let on = |ground: &str| -> BTreeSet<&str> {
        crates.names().filter(|name| crates.tested_with(name).contains(ground)).collect()
    };
    assert!(
        on("store").is_superset(&["store", "database", "mail", "http", "server"].into()),
        "{:?}",
        on("store")
    );
    assert!(!on("store").contains("formula") && !on("store").contains("log"));
    assert_eq!(on("server"), ["server"].into());
}
