//! What is said of two runs: only what their spread lets be said, and what they do not have in common.

use std::path::Path;

use scrinium_lab_report::ReportError;
use scrinium_lab_report::compare::{Comparison, Side};
use scrinium_lab_report::run::Report;

fn report() -> Report {
    let path = format!("{}/tests/golden/report.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A folder with a folder for each run.
fn side(folder: &Path, name: &str, means_ms: &[f64], change: impl Fn(&mut Report)) -> Side {
    for (number, mean_ms) in means_ms.iter().enumerate() {
        let run = folder.join(name).join(format!("run-{number}"));
        std::fs::create_dir_all(&run).unwrap();
        let mut report = report();
        report.summary.latency.mean_ms = *mean_ms;
        change(&mut report);
        std::fs::write(run.join("report.json"), serde_json::to_string(&report).unwrap()).unwrap();
    }
    Side::read(name, &folder.join(name)).unwrap()
}

#[test]
fn a_difference_is_one_where_runs_do_not_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let slow = side(folder.path(), "A", &[100.0, 110.0], |_| {});
    let fast = side(folder.path(), "B", &[50.0, 55.0], |_| {});
    let between = side(folder.path(), "C", &[90.0, 104.0], |_| {});
    let comparison = Comparison::of(&[slow.clone(), fast.clone()], "lab compare A B").unwrap();
    assert_eq!(
        comparison.verdicts[0],
        "Average response: 52.5 ms with B and 105 ms with A (\u{d7}0.50), which is better; no run of one was among those of the other."
    );
    assert!(comparison.differences.is_empty(), "{:?}", comparison.differences);
    let comparison = Comparison::of(&[slow.clone(), between.clone()], "").unwrap();
    assert_eq!(comparison.verdicts.len(), 1);
    assert!(comparison.verdicts[0].starts_with("No difference between C and A"), "{:?}", comparison.verdicts);

    let once = side(folder.path(), "D", &[50.0], |_| {});
    let comparison = Comparison::of(&[slow.clone(), once], "").unwrap();
    assert!(comparison.warnings.iter().any(|warning| warning.contains("once")), "{:?}", comparison.warnings);

    // Three at a time; the page needs nothing else, and has a chart for each thing that was seen.
    let sides = [slow, fast, between];
    let comparison = Comparison::of(&sides, "").unwrap();
    assert!(comparison.text().contains("B/A") && comparison.text().contains("C/A"));
    let page = comparison.page(&sides).unwrap();
    assert_eq!(page.matches("<svg").count(), 6);
    for outside in ["<script", "<link", "<img", "@import", "url(", "src=", "#FE0"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn other_work_is_told_before_anything_else() {
    let folder = tempfile::tempdir().unwrap();
    let one = side(folder.path(), "A", &[100.0], |_| {});
    let other = side(folder.path(), "B", &[100.0], |report| {
        report.run.users += 1;
        report.run.server_version = "another".to_owned();
        report.workload.variables.insert("NumMailNotesPerUser".to_owned(), "7".to_owned());
        report.validity.valid = false;
    });
    let comparison = Comparison::of(&[one.clone(), other], "").unwrap();
    let differences: Vec<(&str, bool)> = comparison
        .differences
        .iter()
        .map(|difference| (difference.what.as_str(), difference.of_the_workload))
        .collect();
    assert_eq!(
        differences,
        [("users", true), ("server\u{2019}s version", false), ("[NumMailNotesPerUser]", true)]
    );
    assert!(comparison.warnings[0].contains("users, [NumMailNotesPerUser]"), "{:?}", comparison.warnings);
    assert!(
        comparison.warnings.iter().any(|warning| warning.starts_with("B is not valid")),
        "{:?}",
        comparison.warnings
    );
    let page = comparison.page(&[one.clone(), one]).unwrap();
    assert!(page.contains("other work"));
}

#[test]
fn what_is_no_report_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let error = Side::read("A", &path).unwrap_err();
        assert!(matches!(error, ReportError::Usage(_)), "{error}");
        error.to_string()
    };
    assert!(refused("a.json", "{}").contains("does not say its format"));
    assert!(
        refused("b.json", "{\"format\": \"scrinium-lab-report/999\"}")
            .contains("has the format scrinium-lab-report/999")
    );
    assert!(refused("c.json", "no JSON").contains("is no report that can be read"));
    assert!(
        refused("d.json", "{\"format\": \"scrinium-lab-report/1\"}")
            .contains("is no report that can be read")
    );
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    assert!(Side::read("A", &empty).unwrap_err().to_string().contains("holds no report.json"));
    assert!(matches!(Side::read("A", &folder.path().join("none")).unwrap_err(), ReportError::File { .. }));
}
