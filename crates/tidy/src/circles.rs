//! Circles: files of a crate that import each other, directly or through others. A large one can be understood and changed
//! only as a whole. No circle crosses a crate's border, since the compiler allows none.

use std::collections::{BTreeMap, BTreeSet};

use crate::{File, Finding};

/// The largest circle that a crate may have, in files.
const FILES_MAX: usize = 24;

/// The modules of a crate by their paths, such as `update::build`, and what each imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn check(files: &[File], findings: &mut Vec<Finding>) {
    let mut crates: BTreeMap<String, Vec<(String, &File)>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.has_extension("rs")) {
        if let Some((name, module)) = module_of(file) {
            crates.entry(name).or_default().push((module, file));
        }
    }
    for (name, modules) in &crates {
        let circle = largest_circle(&imports(modules));
        let first = circle.iter().next().and_then(|first| modules.iter().find(|(module, _)| module == first));
        if let Some((_, file)) = first.filter(|_| circle.len() > FILES_MAX) {
            let all: Vec<&str> = circle.iter().map(String::as_str).collect();
            findings.push(file.finding(
                0,
                format!(
                    "{} files of `{name}` import each other in a circle, and {FILES_MAX} may: {}",
                    all.len(),
                    all.join(", ")
                ),
            ));
        }
    }
}

/// The crate and the path of the module that a file is; `None` for the root of a crate, and for what is no source of one.
fn module_of(file: &File) -> Option<(String, String)> {
    let path = file.path.to_str()?.strip_prefix("crates/")?;
    let (name, path) = path.split_once("/src/")?;
    let path = path.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let is_root = matches!(path, "lib" | "main") || path.starts_with("bin/");
    (!is_root).then(|| (name.to_owned(), path.replace('/', "::")))
}

fn imports(modules: &[(String, &File)]) -> Imports {
    let known: BTreeSet<&str> = modules.iter().map(|(module, _)| module.as_str()).collect();
    let imports_of = |(module, file): &(String, &File)| {
        let paths = used_paths(&file.text).into_iter();
        let imported = paths.filter_map(|path| resolved(module, &path, &known));
        (module.clone(), imported.filter(|imported| imported != module).collect())
    };
    modules.iter().map(imports_of).collect()
}

/// What the `use` statements of a file name, one by one; those of its tests are not looked at.
fn used_paths(text: &str) -> Vec<String> {
    let code: Vec<&str> =
        without_tests(text).map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let mut paths = Vec::new();
    for statement in code.split(';') {
        let words = statement.rsplit_once("use ").map(|(_, tree)| tree).unwrap_or_default();
        if words.starts_with("crate::") || words.starts_with("super::") {
            expand("", &words.split_whitespace().collect::<String>(), &mut paths);
        }
    }
    paths
}

/// The lines before a module of tests, which is the last thing in a file.
fn without_tests(text: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = text.lines().collect();
    let begins_tests = |place: usize| {
        let mut behind = lines.iter().skip(place);
        behind.next() == Some(&"#[cfg(test)]")
            && behind.find(|line| !line.starts_with("#[")).is_some_and(|line| line.ends_with("mod tests {"))
    };
    let end = (0..lines.len()).find(|place| begins_tests(*place)).unwrap_or(lines.len());
    lines.into_iter().take(end)
}

/// The paths of a tree such as `crate::a::{b, c::{d, e}}`.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let Some((before, inside)) = tree.split_once('{') else {
        paths.push(format!("{prefix}{tree}"));
        return;
    };
    let inside = inside.strip_suffix('}').unwrap_or(inside);
    let (mut depth, mut begin) = (0_usize, 0);
    for (at, letter) in inside.char_indices().chain([(inside.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                let part = inside.get(begin..at).unwrap_or_default();
                if !part.is_empty() {
                    expand(&format!("{prefix}{before}"), part, paths);
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
}

/// The module that a path leads to, from within a module.
fn resolved(module: &str, path: &str, known: &BTreeSet<&str>) -> Option<String> {
    let mut base: Vec<&str> = module.split("::").collect();
    let mut parts = path.split("::").peekable();
    if parts.next_if_eq(&"crate").is_some() {
        base.clear();
    }
    while parts.next_if_eq(&"super").is_some() {
        base.pop();
    }
    for part in parts {
        let deeper = base.iter().copied().chain([part]).collect::<Vec<_>>().join("::");
        if !known.contains(deeper.as_str()) {
            break;
        }
        base.push(part);
    }
    let found = base.join("::");
    known.contains(found.as_str()).then_some(found)
}

/// The modules of the largest circle; none if there is no circle.
fn largest_circle(imports: &Imports) -> BTreeSet<String> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|module| (module.as_str(), reached_from(module, imports))).collect();
    let circle_of = |module: &&str| -> BTreeSet<String> {
        let there = reached.get(module).into_iter().flatten();
        let back = |other: &&&str| reached.get(*other).is_some_and(|reached| reached.contains(module));
        there.filter(back).map(|other| (*other).to_owned()).collect()
    };
    reached.keys().map(circle_of).max_by_key(BTreeSet::len).unwrap_or_default()
}

/// The modules that one imports, directly or through others.
fn reached_from<'a>(module: &str, imports: &'a Imports) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<&str> = imports.get(module).into_iter().flatten().map(String::as_str).collect();
    while let Some(next) = left.pop() {
        if reached.insert(next) {
            left.extend(imports.get(next).into_iter().flatten().map(String::as_str));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: PathBuf::from(path), text: text.to_owned() }
    }

    #[test]
    fn files_that_import_each_other_are_a_circle() {
        let files = [
            file("crates/a/src/lib.rs", "mod one;\nmod two;\nuse crate::one::One;\n"),
            file("crates/a/src/one.rs", "use crate::{two::inner::{self, Inner}, three};\n"),
            file("crates/a/src/two.rs", "mod inner;\n"),
            file("crates/a/src/two/inner.rs", "use super::super::three::Three;\nuse std::fmt;\n"),
            file(
                "crates/a/src/three.rs",
                "// use crate::four;\nuse crate::one::{\n    One,\n    Other,\n};\n",
            ),
            file(
                "crates/a/src/four.rs",
                "use crate::one::One;\n#[cfg(test)]\n#[allow(dead_code)]\npub(crate) mod tests {\n    use crate::five;\n}\n",
            ),
            file("crates/a/src/five.rs", "use crate::four;\n"),
        ];
        let modules: Vec<_> = files.iter().filter_map(|file| Some((module_of(file)?.1, file))).collect();
        let circle = largest_circle(&imports(&modules));
        assert_eq!(circle.into_iter().collect::<Vec<_>>(), ["one", "three", "two::inner"]);
    }

    #[test]
    fn a_circle_that_is_too_large_is_found_and_one_file_fewer_is_not() {
        let ring = |count: usize| -> Vec<File> {
            let text = |number: usize| format!("use crate::m{};\n", (number + 1) % count);
            (0..count).map(|number| file(&format!("crates/a/src/m{number}.rs"), &text(number))).collect()
        };
        let found = |count: usize| {
            let mut findings = Vec::new();
            check(&ring(count), &mut findings);
            findings.len()
        };
        assert_eq!((found(FILES_MAX), found(FILES_MAX + 1)), (0, 1));
    }
}
