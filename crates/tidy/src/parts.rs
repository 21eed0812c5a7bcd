//! What a released binary is made of: a list of all crates in it (SBOM, CycloneDX 1.5), and their licences.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// A crate that is in the binary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence as an SPDX expression; empty where it names a file.
    pub licence: String,
    /// Where it is at home.
    pub repository: String,
    /// Of its archive, as the registry has it, in hexadecimal digits; empty for a crate of this repository.
    pub sha256: String,
    /// The folder of its source.
    pub folder: String,
}

impl Part {
    /// Whether it comes from elsewhere.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        !self.sha256.is_empty()
    }

    fn url(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// The crates that `root` is built of, and what each needs; tests and build scripts are not among them. `metadata` is what
/// `cargo metadata` says, `lock` the text of Cargo.lock.
///
/// # Errors
/// Where either is not what cargo writes.
pub fn parts(metadata: &Value, lock: &str, root: &str) -> Result<Vec<(Part, Vec<String>)>, String> {
    let packages: HashMap<String, &Value> =
        list(metadata, "packages").map(|package| (text(package, "id"), package)).collect();
    let nodes = metadata.get("resolve").ok_or("cargo metadata resolved nothing")?;
    let nodes: HashMap<String, &Value> = list(nodes, "nodes").map(|node| (text(node, "id"), node)).collect();
    let begin = packages.iter().find(|(_, package)| text(package, "name") == root);
    let begin = begin.ok_or_else(|| format!("there is no crate {root}"))?.0;
    let checksums = checksums(lock)?;
    let mut seen = BTreeSet::from([begin.clone()]);
    let mut waiting = VecDeque::from([begin.clone()]);
    let mut found = Vec::new();
    while let Some(id) = waiting.pop_front() {
        let package = packages.get(&id).ok_or_else(|| format!("cargo metadata has no package {id}"))?;
        let node = nodes.get(&id).ok_or_else(|| format!("cargo metadata has not resolved {id}"))?;
        let is_linked =
            |needed: &&Value| list(needed, "dep_kinds").any(|kind| kind.get("kind") == Some(&Value::Null));
        let needs: Vec<String> =
            list(node, "deps").filter(is_linked).map(|needed| text(needed, "pkg")).collect();
        for needed in &needs {
            if seen.insert(needed.clone()) {
                waiting.push_back(needed.clone());
            }
        }
        let (name, version) = (text(package, "name"), text(package, "version"));
        let folder =
            Path::new(&text(package, "manifest_path")).parent().map(Path::to_owned).unwrap_or_default();
        let part = Part {
            sha256: checksums.get(&(name.clone(), version.clone())).cloned().unwrap_or_default(),
            licence: text(package, "license").replace('/', " OR "),
            repository: text(package, "repository"),
            folder: folder.display().to_string(),
            name,
            version,
        };
        let urls = needs.iter().filter_map(|id| packages.get(id));
        let urls =
            urls.map(|package| format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version")));
        found.push((part, urls.collect()));
    }
    found.sort();
    Ok(found)
}

fn checksums(lock: &str) -> Result<HashMap<(String, String), String>, String> {
    let lock: toml_edit::DocumentMut = lock.parse().map_err(|error| format!("Cargo.lock: {error}"))?;
    let packages = lock.get("package").and_then(toml_edit::Item::as_array_of_tables);
    let packages = packages.ok_or("Cargo.lock names no packages")?;
    let field = |package: &toml_edit::Table, name: &str| package.get(name)?.as_str().map(str::to_owned);
    Ok(packages
        .iter()
        .filter_map(|package| {
            let key = (field(package, "name")?, field(package, "version")?);
            Some((key, field(package, "checksum")?))
        })
        .collect())
}

/// The list in CycloneDX 1.5. `others` are libraries that no registry of crates has.
#[must_use]
pub fn bill_of_materials(parts: &[(Part, Vec<String>)], root: &str, others: &[(&str, &str, &str)]) -> Value {
    let component = |part: &Part| {
        let mut component = json!({
            "type": "library",
            "bom-ref": part.url(),
            "name": part.name,
            "version": part.version,
            "purl": part.url(),
            "licenses": [{"expression": part.licence}],
        });
        if let Some(members) = component.as_object_mut().filter(|_| part.is_foreign()) {
            members.insert("hashes".to_owned(), json!([{"alg": "SHA-256", "content": part.sha256}]));
        }
        component
    };
    let of_root = parts.iter().find(|(part, _)| part.name == root).map(|(part, _)| component(part));
    let others = others.iter().map(|(name, version, licence)| {
        json!({"type": "library", "bom-ref": format!("pkg:generic/{name}@{version}"), "name": name, "version": version,
            "purl": format!("pkg:generic/{name}@{version}"), "licenses": [{"expression": licence}]})
    });
    let components = parts.iter().filter(|(part, _)| part.name != root).map(|(part, _)| component(part));
    let dependencies = parts.iter().map(|(part, needs)| json!({"ref": part.url(), "dependsOn": needs}));
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": of_root},
        "components": components.chain(others).collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    })
}

/// The texts of all licences, each once, after the crates that it is of.
///
/// # Errors
/// Names a crate of which no text was found and whose licence asks for one.
pub fn licences(parts: &[(Part, Vec<String>)]) -> Result<String, String> {
    let mut by_text: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for (part, _) in parts.iter().filter(|(part, _)| part.is_foreign()) {
        let texts = licence_texts(Path::new(&part.folder));
        if texts.is_empty() {
            without.push(format!("{} {} ({}), {}", part.name, part.version, part.licence, part.repository));
        }
        for text in texts {
            by_text.entry(text).or_default().insert(format!("{} {}", part.name, part.version));
        }
    }
    let mut all = String::from("Scrinium holds the works of others, under these licences.\n");
    for (text, names) in by_text {
        let names: Vec<String> = names.into_iter().collect();
        let _ = write!(all, "\n{}\n{}\n\n{}\n", "=".repeat(78), names.join(", "), text.trim_end());
    }
    if !without.is_empty() {
        let _ = write!(all, "\n{}\nWithout a text of their own:\n\n{}\n", "=".repeat(78), without.join("\n"));
    }
    Ok(all)
}

fn licence_texts(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_licence = |name: &str| {
        let name = name.to_ascii_uppercase();
        ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT", "UNLICENSE"]
            .iter()
            .any(|word| name.starts_with(word))
    };
    let mut files: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_licence))
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files.iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// Crates whose licence nobody has said.
#[must_use]
pub fn without_licence(parts: &[(Part, Vec<String>)]) -> Vec<String> {
    let silent = |part: &&Part| part.is_foreign() && part.licence.is_empty();
    parts
        .iter()
        .map(|(part, _)| part)
        .filter(silent)
        .map(|part| format!("{} {}", part.name, part.version))
        .collect()
}
