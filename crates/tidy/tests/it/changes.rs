//! One file a change: what is not well formed is seen, and a release moves all of them into the list.

use std::fs;
use std::path::Path;

use scrinium_tidy::changes::{next, release};

const LIST: &str =
    "# Changes\n\nUnreleased: `changes/next`.\n\n## 0.1.0 (2026-01-02)\n\n### Added\n\n- All.\n";

fn write(root: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(root.join("changes/next")).unwrap();
    for (name, text) in files {
        fs::write(root.join("changes/next").join(name), text).unwrap();
    }
}

#[test]
fn changes_that_are_not_well_formed_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let long = format!("Fixed: {}.\n", "a".repeat(200));
    write(
        folder.path(),
        &[
            ("README.md", "# How to write one\n"),
            ("good.md", "Fixed: Views answer.\n\nThey did not.\n"),
            ("kind.md", "Mended: Views answer.\n"),
            ("stop.md", "Fixed: Views answer\n"),
            ("second.md", "Fixed: Views answer.\nAt once.\n"),
            ("heading.md", "Fixed: Views answer.\n\n## Views\n"),
            ("long.md", &long),
            ("Name_.md", "Fixed: Views answer.\n"),
            ("empty.md", ""),
        ],
    );
    let kinds = "its first line is not `KIND: Sentence.`; kinds are Security, Changed, Added, Fixed, Removed";
    let found: String = scrinium_tidy::check(folder.path())
        .unwrap()
        .iter()
        .map(|finding| format!("{finding}\n").replace("changes/next/", ""))
        .collect();
    assert_eq!(
        found,
        format!(
            "Name_.md: a change is called like-this.md\n\
             empty.md:1: {kinds}\n\
             heading.md:1: a change has no headings\n\
             kind.md:1: {kinds}\n\
             long.md:1: its first line has 208 letters; at most 200\n\
             second.md:1: its second line is not empty\n\
             stop.md:1: its first line is no sentence with a full stop\n"
        )
    );
    assert!(next(folder.path()).is_err(), "what is not well formed is not released");
}

#[test]
fn a_release_moves_all_changes_into_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(
        root,
        &[
            ("README.md", "# How to write one\n"),
            ("views.md", "Fixed: Views answer.\n\nThey did\nnot.\n"),
            ("mail.md", "Added: Mail.\n"),
            ("access.md", "Fixed: Access holds.\n"),
        ],
    );
    fs::write(root.join("CHANGELOG.md"), LIST).unwrap();
    let section =
        "\n### Added\n\n- Mail.\n\n### Fixed\n\n- Access holds.\n- Views answer.\n  They did\n  not.\n";
    assert_eq!(next(root).unwrap(), section);

    assert!(release(root, "0.1.0", "2026-02-03").is_err(), "this version was released already");
    release(root, "0.2.0", "2026-02-03").unwrap();
    let (before, earlier) = LIST.split_once("## 0.1.0").unwrap();
    let expected = format!("{before}## 0.2.0 (2026-02-03)\n{section}\n## 0.1.0{earlier}");
    assert_eq!(fs::read_to_string(root.join("CHANGELOG.md")).unwrap(), expected);
    let left: Vec<_> =
        fs::read_dir(root.join("changes/next")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["README.md"]);
    assert!(release(root, "0.3.0", "2026-03-04").is_err(), "there is nothing to release");

    // The first release of all.
    fs::write(root.join("CHANGELOG.md"), "# Changes\n\n").unwrap();
    write(root, &[("mail.md", "Added: Mail.\n")]);
    release(root, "0.1.0", "2026-01-02").unwrap();
    assert_eq!(
        fs::read_to_string(root.join("CHANGELOG.md")).unwrap(),
        "# Changes\n\n## 0.1.0 (2026-01-02)\n\n### Added\n\n- Mail.\n"
    );
}
