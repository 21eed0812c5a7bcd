//! Passwords come from places that only their owner can read.

use std::os::unix::fs::PermissionsExt;

use scrinium_server::credentials::{Credentials, FILE_NAME, Wanted};

#[test]
fn the_file_is_private_and_refused_when_it_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE_NAME);
    let written = Credentials { name: "admin".to_owned(), password: "a:b c".to_owned() };
    written.write(folder.path()).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(Credentials::read(&path).unwrap(), written);
    assert!(!format!("{written:?}").contains("a:b c"), "never shown");

    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    let refused = Credentials::read(&path).unwrap_err().to_string();
    let shown = path.display();
    assert_eq!(refused, format!("others can read the credentials in {shown}; run: chmod 600 {shown}"));

    // Written again over one that others could read.
    written.write(folder.path()).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    for malformed in ["", "admin", ":secret", "admin:one\ntwo\n", "admin:\u{7}"] {
        std::fs::write(&path, malformed).unwrap();
        let refused = Credentials::read(&path).unwrap_err().to_string();
        assert!(refused.ends_with("it must be one line, NAME:PASSWORD"), "{malformed:?}: {refused}");
    }
}

#[test]
fn the_named_file_wins_over_the_environment_and_that_over_the_data_folder() {
    let folder = tempfile::tempdir().unwrap();
    let credentials =
        |name: &str, password: &str| Credentials { name: name.to_owned(), password: password.to_owned() };
    credentials("boss", "of the folder").write(folder.path()).unwrap();
    let mut wanted = Wanted { data_dir: folder.path().to_owned(), ..Wanted::default() };
    assert_eq!(Credentials::find(&wanted).unwrap(), credentials("boss", "of the folder"));
    wanted.environment = Some("of the environment".to_owned());
    assert_eq!(Credentials::find(&wanted).unwrap(), credentials("admin", "of the environment"));
    wanted.name = Some("ann".to_owned());
    assert_eq!(Credentials::find(&wanted).unwrap(), credentials("ann", "of the environment"));
    wanted.file = Some(folder.path().join(FILE_NAME));
    assert_eq!(Credentials::find(&wanted).unwrap(), credentials("ann", "of the folder"));
}
