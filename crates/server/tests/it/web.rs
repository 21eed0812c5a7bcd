//! The web console and the client in a browser: what stands in `web/tests/browser.mjs`, against this server. Skipped where there is no Chromium,
//! or no Node or npm to build the console with.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::common::{PASSWORD, start_with};

/// Where Debian's package `chromium` has it.
const CHROMIUM: &str = "/usr/bin/chromium";

/// What `scripts/web` ends with where the machine lacks something.
const MISSING: i32 = 3;

#[test]
fn the_console_works_in_a_browser() {
    check_part("console");
}

#[test]
fn the_client_works_in_a_browser() {
    check_part("mail");
}

#[test]
fn the_calendar_works_in_a_browser() {
    check_part("calendar");
}

/// Runs the steps of a part; those of the console after types and the tests that need no browser.
fn check_part(part: &str) {
    if !Path::new(CHROMIUM).exists() {
        return scrinium_fault::skip(format_args!("there is no {CHROMIUM} (package chromium)"));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = TempDir::new().unwrap();
    let files = folder.path().join("web");
    let built = Command::new(root.join("scripts/web")).arg("build").arg(&files).output().unwrap();
    if built.status.code() == Some(MISSING) {
        return scrinium_fault::skip(String::from_utf8_lossy(&built.stderr).trim());
    }
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let scripts: &[&str] = if part == "console" { &["check", "test"] } else { &[] };
    for &script in scripts {
        let ran =
            Command::new("npm").args(["run", "--silent", script]).current_dir(root.join("web")).output();
        let ran = ran.unwrap();
        assert!(ran.status.success(), "npm run {script}: {}", String::from_utf8_lossy(&ran.stdout));
    }
    // Passkeys belong to a host with a name, and to its port.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = vec![
        ("SCRINIUM_WEB", files.display().to_string()),
        ("SCRINIUM_HTTP__LISTEN", format!("127.0.0.1:{port}")),
        ("SCRINIUM_SIGN_IN__URL", format!("http://localhost:{port}")),
        ("SCRINIUM_DMARC__REPORTS_DATABASE", "dmarc".to_owned()),
    ];
    let server = start_with(folder.path(), &settings);
    let ran = Command::new("node")
        .arg(root.join("web/tests/browser.mjs"))
        .args([&format!("http://{}", server.address()), PASSWORD, CHROMIUM])
        .env("SCRINIUM_PART", part)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{told}\n{}", String::from_utf8_lossy(&ran.stderr));
    print!("{told}");
}
