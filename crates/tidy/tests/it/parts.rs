//! The list of what a binary is made of.

use scrinium_tidy::parts::{bill_of_materials, licences, parts, without_licence};
use serde_json::{Value, json};

const LOCK: &str = "
[[package]]
name = \"server\"
version = \"0.1.0\"

[[package]]
name = \"linked\"
version = \"1.2.3\"
source = \"registry+https://github.com/rust-lang/crates.io-index\"
checksum = \"abcd\"
";

fn metadata(folder: &str) -> Value {
    let package = |name: &str, version: &str, license: Option<&str>| {
        json!({"id": name, "name": name, "version": version, "license": license, "repository": "https://example.com",
            "manifest_path": format!("{folder}/{name}/Cargo.toml")})
    };
    let needs = |name: &str, kind: Option<&str>| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
    let packages = [
        package("server", "0.1.0", Some("Apache-2.0")),
        package("linked", "1.2.3", Some("MIT/Apache-2.0")),
        package("tests-only", "1.0.0", None),
        package("build-only", "1.0.0", None),
        package("of-nobody", "1.0.0", None),
    ];
    let of_server =
        [needs("linked", None), needs("tests-only", Some("dev")), needs("build-only", Some("build"))];
    let nodes =
        ["linked", "tests-only", "build-only", "of-nobody"].map(|name| json!({"id": name, "deps": []}));
    let nodes: Vec<Value> = nodes.into_iter().chain([json!({"id": "server", "deps": of_server})]).collect();
    json!({"packages": packages, "resolve": {"nodes": nodes}})
}

#[test]
fn what_is_linked_is_listed_with_its_digest_and_licence_and_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let of_linked = folder.path().join("linked");
    std::fs::create_dir(&of_linked).unwrap();
    std::fs::write(of_linked.join("LICENSE-MIT"), "Permission is granted.\n").unwrap();
    let found = parts(&metadata(&folder.path().display().to_string()), LOCK, "server").unwrap();
    let names: Vec<&str> = found.iter().map(|(part, _)| part.name.as_str()).collect();
    assert_eq!(names, ["linked", "server"]);
    assert!(without_licence(&found).is_empty());
    let list = bill_of_materials(&found, "server", &[("rocksdb", "11.8.1", "Apache-2.0")]);
    assert_eq!(list["metadata"]["component"]["name"], "server");
    let linked = &list["components"][0];
    assert_eq!(
        (&linked["purl"], &linked["hashes"][0]["content"], &linked["licenses"][0]["expression"]),
        (&json!("pkg:cargo/linked@1.2.3"), &json!("abcd"), &json!("MIT OR Apache-2.0"))
    );
    assert_eq!(list["components"][1]["purl"], "pkg:generic/rocksdb@11.8.1");
    assert_eq!(list["dependencies"][1]["dependsOn"], json!(["pkg:cargo/linked@1.2.3"]));
    let texts = licences(&found).unwrap();
    assert!(texts.contains("linked 1.2.3\n\nPermission is granted."), "{texts}");
    assert!(parts(&metadata("/"), LOCK, "none").is_err());
}
