//! The end of a run of all tests: everything is counted once, and what did not run says why.

use std::collections::BTreeMap;

use scrinium_tidy::closing::{Inputs, Run};
use scrinium_tidy::stamps::Stamp;

/// `a` has two programs, `b` one; tests of `c` were not to run.
fn list() -> String {
    let program = |package: &str, tests: &[&str]| {
        let tests: serde_json::Map<String, serde_json::Value> = tests
            .iter()
            .map(|name| (name.to_string(), serde_json::json!({"ignored": name.starts_with("ignored")})))
            .collect();
        // This program knows no such tests, and names no reason for one.
        let path = std::env::current_exe().unwrap();
        serde_json::json!({"package-name": package, "binary-path": path, "cwd": ".", "testcases": tests})
    };
    let suites = serde_json::json!({
        "scrinium-a": program("scrinium-a", &["tests::one", "tests::two"]),
        "scrinium-a::it": program("scrinium-a", &["kill::three", "ignored::child"]),
        "scrinium-b::it": program("scrinium-b", &["x<y>::four"]),
        "scrinium-c::it": program("scrinium-c", &["five", "six"]),
    });
    serde_json::json!({ "rust-suites": suites }).to_string()
}

fn junit(tests: &[(&str, &str, bool)]) -> String {
    let cases: String = tests
        .iter()
        .map(|(program, test, passed)| {
            let failure =
                if *passed { "" } else { "<failure type=\"test failure\">left &lt; right</failure>" };
            format!("<testcase name=\"{test}\" classname=\"{program}\" time=\"0.1\">{failure}</testcase>")
        })
        .collect();
    format!("<?xml version=\"1.0\"?><testsuites><testsuite name=\"x\">{cases}</testsuite></testsuites>")
}

const ALL_PASS: [(&str, &str, bool); 4] = [
    ("scrinium-a", "tests::one", true),
    ("scrinium-a", "tests::two", true),
    ("scrinium-a::it", "kill::three", true),
    ("scrinium-b::it", "x&lt;y&gt;::four", true),
];

fn read(junit: &str, skips: &str, documents: Option<&str>) -> Run {
    let stamp = Stamp { commit: "abc1234".to_owned(), passed: 2 };
    let stamped = BTreeMap::from([("scrinium-c".to_owned(), stamp)]);
    Run::read(&Inputs { list: &list(), junit, skips, documents }, &stamped).unwrap()
}

#[test]
fn what_passed_failed_and_was_skipped_is_counted_once() {
    let documents = "   Doc-tests scrinium_b\n\nrunning 2 tests\n\
        test crates/b/src/lib.rs - b (line 3) ... ok\n\
        test crates/b/src/lib.rs - c (line 9) ... ignored\n\
        test result: ok. 1 passed; 0 failed; 1 ignored\nexit 0\n";
    let skips =
        "scrinium-a::it\tkill::three\tno mount: root may\nscrinium-a::it\tkill::three\tno mount: root may\n";
    let run = read(&junit(&ALL_PASS), skips, Some(documents));
    assert_eq!(
        run.to_string(),
        "\
skipped: scrinium-a::it ignored::child: ignored without a reason
skipped: scrinium-a::it kill::three: no mount: root may
skipped: scrinium-c, 2 tests: they passed at abc1234, and nothing that they depend on has changed
skipped: scrinium-b crates/b/src/lib.rs - c (line 9): ignored without a reason
4 passed, 0 failed, 5 skipped"
    );
    assert!(run.has_passed("scrinium-a") && run.has_passed("scrinium-b"));
    assert_eq!(run.passed["scrinium-a"], 2);
}

#[test]
fn a_crate_passes_only_if_each_of_its_tests_did() {
    let mut failed = ALL_PASS;
    failed[1].2 = false;
    let run = read(&junit(&failed), "", None);
    assert!(!run.has_passed("scrinium-a") && run.has_passed("scrinium-b"));
    assert!(
        run.to_string().ends_with("failed: scrinium-a tests::two\n3 passed, 1 failed, 3 skipped"),
        "{run}"
    );

    // The run was broken off.
    let run = read(&junit(&ALL_PASS[..3]), "", None);
    assert!(run.has_passed("scrinium-a") && !run.has_passed("scrinium-b"));
    assert_eq!(run.counts(), [3, 1, 3]);
    let run = read("", "", None);
    assert!(!run.has_passed("scrinium-a") && !run.has_passed("scrinium-b"));

    // A test in a document fails, or ends its program.
    let failing = "   Doc-tests scrinium_b\ntest crates/b/src/lib.rs - b (line 3) ... FAILED\ntest result: FAILED. 0 passed\nexit 101\n";
    for documents in [failing, "   Doc-tests scrinium_b\nrunning 1 test\n"] {
        let run = read(&junit(&ALL_PASS), "", Some(documents));
        assert!(run.has_passed("scrinium-a") && !run.has_passed("scrinium-b"));
        assert_eq!(run.counts()[1], 1, "{run}");
    }
    // They cannot be built, or cargo was ended.
    for documents in ["error: could not compile\nexit 101\n", ""] {
        let run = read(&junit(&ALL_PASS), "", Some(documents));
        assert!(!run.has_passed("scrinium-a") && !run.has_passed("scrinium-b"));
        assert_eq!(run.counts()[1], 1, "{run}");
    }
    // Nothing is known of a crate that no test program is listed of.
    assert!(!read(&junit(&ALL_PASS), "", None).has_passed("scrinium-d"));
}

#[test]
fn what_passes_when_it_is_tried_again_has_passed_and_is_named() {
    let mut cases = ALL_PASS;
    cases[0].2 = false;
    let report = junit(&cases);
    // A test that is tried again and fails once more has `failure` for the last time, `rerunFailure` for those before.
    let twice = report.replace("</failure>", "</failure><rerunFailure type=\"test failure\"></rerunFailure>");
    assert!(!read(&twice, "", None).has_passed("scrinium-a"));
    let run = read(&report.replace("failure", "flakyFailure"), "", None);
    assert!(run.has_passed("scrinium-a"));
    let end = "passed when it was tried again: scrinium-a tests::one\n4 passed, 0 failed, 3 skipped";
    assert!(run.to_string().ends_with(end), "{run}");
}

#[test]
fn what_is_no_report_is_an_error_and_no_success() {
    let inputs = Inputs { list: "", junit: "", skips: "", documents: None };
    assert!(Run::read(&inputs, &BTreeMap::new()).is_err());
    let list = list();
    assert!(Run::read(&Inputs { list: &list, junit: "<testcase/>", ..inputs }, &BTreeMap::new()).is_err());
}
