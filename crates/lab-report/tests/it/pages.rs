//! The pages as they were: a change of their templates shows in the golden files, where it can be looked at.

use std::path::{Path, PathBuf};

use scrinium_lab_report::compare::{Comparison, Side};
use scrinium_lab_report::experiment::{ExperimentReport, write_index};
use scrinium_lab_report::run::{Report, page};

fn golden_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn golden<T: serde::de::DeserializeOwned>(name: &str) -> T {
    serde_json::from_slice(&std::fs::read(golden_path(name)).unwrap()).unwrap()
}

/// Compares with a golden file; `UPDATE_GOLDEN=1` writes it again. Charts are left out: the library that draws them has
/// tests of its own, and its pictures are long.
fn assert_golden(name: &str, page: &str) {
    let path = golden_path(name);
    let now = without_charts(page);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    assert_eq!(now, std::fs::read_to_string(&path).unwrap(), "{name}");
}

fn without_charts(page: &str) -> String {
    let mut parts = page.split("<svg");
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        text.push_str("<svg></svg>");
        text.push_str(part.split_once("</svg>").unwrap().1);
    }
    let (before, style) = text.split_once("<style>").unwrap();
    format!("{before}<style>{}", style.split_once("</style>").unwrap().1)
}

#[test]
fn the_page_of_a_run() {
    let mut report: Report = golden("report.json");
    report.failures[0].first.push("<script>alert(1)</script> & \"more\"".to_owned());
    report.workload.published.push("IBM, 1999: <1 s".to_owned());
    assert_golden("report.html", &page::page(&report).unwrap());
    let mut third = report.clone();
    third.summary.latency.mean_ms *= 1.5;
    third.validity.valid = true;
    let second = report.drivers.first().cloned().unwrap_or_default();
    third.drivers = vec![second.clone(), second];
    third.set_findings();
    let all = Report::repeated(&[report.clone(), third, report]).unwrap();
    assert_golden("repeated.html", &page::page(&all).unwrap());
}

#[test]
fn the_pages_of_experiments() {
    let folder = tempfile::tempdir().unwrap();
    let report: ExperimentReport = golden("experiment.json");
    report.write(folder.path()).unwrap();
    let written = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_golden("experiment.html", &written("experiment.html"));
    let inner = folder.path().join("small");
    std::fs::create_dir(&inner).unwrap();
    std::fs::copy(golden_path("experiment.json"), inner.join("experiment.json")).unwrap();
    write_index(folder.path()).unwrap();
    assert_golden("index.html", &written("index.html"));
}

#[test]
fn the_page_of_a_comparison() {
    let folder = tempfile::tempdir().unwrap();
    let side = |name: &str, factor: f64| {
        for number in 1..=2 {
            let run = folder.path().join(name).join(format!("run-{number}"));
            std::fs::create_dir_all(&run).unwrap();
            let mut report: Report = golden("report.json");
            report.summary.latency.mean_ms *= factor + f64::from(number) / 100.0;
            report.workload.name = format!("<{name}>");
            std::fs::write(run.join("report.json"), serde_json::to_vec(&report).unwrap()).unwrap();
        }
        let mut side = Side::read(name, &folder.path().join(name)).unwrap();
        side.path = name.to_owned();
        side
    };
    let sides = [side("A", 1.0), side("B", 2.0)];
    let comparison = Comparison::of(&sides, "lab compare A B").unwrap();
    assert_golden("comparison.html", &comparison.page(&sides).unwrap());
    let same = Comparison::of(&[sides[0].clone(), sides[0].clone()], "lab compare A A").unwrap();
    assert_golden("comparison-same.html", &same.page(&sides[..1]).unwrap());
}
