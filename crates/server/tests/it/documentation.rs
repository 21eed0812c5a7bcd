//! Pages that are generated from the code are the ones in docs/. `UPDATE=1` writes them.

use std::path::Path;

use scrinium_server::config;

/// Compares a page with what the code says, or writes it.
fn check(page: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    if std::env::var_os("UPDATE").is_some() {
        assert!(std::fs::write(&path, text).is_ok(), "cannot write {}", path.display());
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "docs/{page} is not what the code says; write it by:\n  UPDATE=1 cargo test -p scrinium-server --test it documentation"
    );
}

#[test]
fn configuration() {
    check("reference/configuration.md", &config::documentation());
}

#[test]
fn advice() {
    check("operate/advise.md", &scrinium_advise::documentation());
}
