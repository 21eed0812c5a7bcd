//! Whole plans on a calibration that stays the same: a golden file, and what must hold whatever is asked.

use std::path::{Path, PathBuf};
use std::sync::Once;

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use scrinium_planner::PlanError;
use scrinium_planner::answer::{Answer, answer};
use scrinium_planner::calibration::{Calibration, Kind, Point};
use scrinium_planner::check::{Check, Forecast};
use scrinium_planner::fit::Model;
use scrinium_planner::organisation::{EXAMPLE, Organisation};
use scrinium_planner::report::{
    Plan, Scenario, calibration_text, check_markdown, check_text, markdown, page, plan_text,
};
use scrinium_planner::what_if::changed;
use scrinium_terminal::CommandOutcome;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// `UPDATE=1` writes the file again.
fn compare(name: &str, now: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(golden(name), now).unwrap();
    }
    let before = std::fs::read_to_string(golden(name)).unwrap_or_default();
    assert!(before == now, "{name} is otherwise now; UPDATE=1 writes it again:\n{now}");
}

/// The calibration of the golden files, as a file; it is written by the same tests as they are.
fn fixed() -> (Calibration, Model) {
    static WRITTEN: Once = Once::new();
    let path = golden("calibration.json");
    WRITTEN.call_once(|| {
        if std::env::var_os("UPDATE").is_some() {
            crate::common::calibration(1000, 0.02, 42).write(&path).unwrap();
        }
    });
    let calibration = Calibration::read(&path).unwrap();
    let model = Model::of(&calibration).unwrap();
    (calibration, model)
}

fn plan(organisation: &Organisation, changes: &[&str]) -> Plan {
    let (calibration, model) = fixed();
    let what_if = changes.iter().map(|change| Scenario {
        change: (*change).to_owned(),
        plan: answer(&changed(organisation, change).unwrap(), &calibration, &model).unwrap(),
    });
    Plan { what_if: what_if.collect(), plan: answer(organisation, &calibration, &model).unwrap() }
}

#[test]
fn the_example_is_planned_as_before() {
    let (calibration, model) = fixed();
    let organisation = Organisation::parse("example.toml", EXAMPLE).unwrap();
    let plan =
        plan(&organisation, &["users=10x", "inbox=4x", "encryption=off", "servers=2", "lost=1,load=20x"]);
    compare("plan.txt", &plan_text(&plan));
    compare("plan.md", &markdown(&plan));
    compare("plan.json", &(serde_json::to_string_pretty(&plan).unwrap() + "\n"));
    compare("calibration.txt", &calibration_text(&calibration, &model));
    let page = page(&plan, &calibration, &model).unwrap();
    compare("plan.html", &page);
    assert_eq!(page.matches("<svg").count(), 2, "a chart of response and one of throughput");
    let outside =
        page.matches("src=").count() + page.matches("href=").count() + page.matches("@import").count();
    assert!(outside == 0 && page.ends_with("</html>\n"), "the page needs something else");
}

/// Four times the load, which was measured on the same machine; and a run that does not count says why.
#[test]
fn a_forecast_is_held_against_a_measurement_as_before() {
    let (calibration, model) = fixed();
    let forecast = Forecast::of(&calibration, &model, 4).unwrap();
    let largest = calibration.of(Kind::Ladder).max_by_key(|point| point.users).unwrap();
    let (users, mut rng) = (forecast.users, SmallRng::seed_from_u64(4));
    let mut run = crate::common::run(Kind::Ladder, &largest.workload, f64::from(users), 20.0, &mut rng, 0.01);
    run.invalid = vec!["the driver used 90 % of the CPUs".to_owned()];
    let point = Point { users, runs: vec![run], ..largest.clone() };
    let check = Check::of(&calibration, &forecast, &point, "/srv/check".to_owned()).unwrap();
    compare("check.md", &check_markdown(&check, &calibration, &model));
    compare("check.txt", &check_text(&check));
    compare("check.json", &(serde_json::to_string_pretty(&check).unwrap() + "\n"));
}

#[test]
fn every_figure_has_a_range_and_a_source() {
    let organisation = Organisation::parse("example.toml", EXAMPLE).unwrap();
    for figure in plan(&organisation, &[]).plan.figures {
        assert!(!figure.source.is_empty(), "{figure:?}");
        assert!(
            figure.range.low <= figure.range.value && figure.range.value <= figure.range.high,
            "{figure:?}"
        );
    }
}

/// What is needed of servers, CPU, memory and disk. Memory is that of the servers that run when some are lost: spare
/// servers are fewer for each that runs where there are many.
fn resources(answer: &Answer, lost: u32) -> [f64; 4] {
    let value = |key: &str| answer.figure(key).map_or(f64::INFINITY, |figure| figure.range.value);
    let servers = value("servers");
    let running = servers - f64::from(lost);
    [servers, value("cpu_percent") * servers, value("memory_bytes") * running, value("disk_bytes") * servers]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whoever_asks_more_never_needs_less(
        users in 1_u32..200_000, growth in 1.0_f64..20.0, average_ms in 3.0_f64..500.0, tighter in 0.2_f64..1.0,
        cpu in 10_u32..100, lost in 0_u32..3, load in 0.1_f64..20.0, encryption in any::<bool>(),
    ) {
        let (calibration, model) = fixed();
        let mut organisation = Organisation::parse("example.toml", EXAMPLE).unwrap();
        organisation.network.encryption = encryption;
        let base = format!("users={users},average={average_ms},cpu={cpu},lost={lost},load={load}");
        let base = changed(&organisation, &base).unwrap();
        let of = |organisation: &Organisation| answer(organisation, &calibration, &model).unwrap();
        let before = of(&base);
        let least = resources(&before, lost);
        for change in [
            format!("users={growth}x"),
            format!("load={growth}x"),
            format!("inbox={growth}x"),
            format!("average={}", average_ms * tighter),
            format!("cpu={}", (f64::from(cpu) * tighter).max(1.0)),
            format!("lost={}", lost + 1),
            "years=6".to_owned(),
            "encryption=on".to_owned(),
        ] {
            let more = changed(&base, &change).unwrap();
            let more = resources(&of(&more), more.availability.servers_lost);
            let no_less = least.iter().zip(more).all(|(least, more)| more >= least * (1.0 - 1e-9));
            prop_assert!(no_less, "{}: {:?}, and then {:?}", change, least, more);
        }
        // The plan keeps what it says: with this many servers everything is held, with one fewer it is not.
        if let Some(servers) = before.figure("servers").filter(|_| before.holds) {
            let servers = servers.range.value;
            let same = of(&changed(&base, &format!("servers={servers}")).unwrap());
            prop_assert!(same.holds, "{}", same.summary);
            if servers > f64::from(lost + 1) {
                let fewer = of(&changed(&base, &format!("servers={}", servers - 1.0)).unwrap());
                prop_assert!(!fewer.holds, "fewer would do: {}", fewer.summary);
            }
        }
    }
}

#[test]
fn what_cannot_be_held_is_said() {
    let organisation = Organisation::parse("example.toml", EXAMPLE).unwrap();
    let plan =
        plan(&organisation, &["average=0.01", "servers=1,lost=1", "users=100x,servers=1", "memory=64 MB"]);
    let problems: Vec<String> =
        plan.what_if.iter().map(|scenario| scenario.plan.problems.join("; ")).collect();
    let [average, lost, many, memory] = problems.as_slice() else { panic!("{problems:?}") };
    assert!(average.contains("average response") && average.contains("however many servers"), "{average}");
    assert!(lost.contains("none of 1 is left"), "{lost}");
    assert!(many.contains("processors of each would be"), "{many}");
    assert!(memory.contains("of memory, where 64 MB is the most"), "{memory}");
    assert!(plan.plan.holds && plan.what_if.iter().all(|scenario| !scenario.plan.holds));
}

fn refused(text: &str) -> String {
    let error = Organisation::parse("my.toml", text).unwrap_err();
    assert_eq!(error.outcome(), CommandOutcome::Usage);
    error.to_string()
}

#[test]
fn wrong_files_are_refused_with_their_line() {
    let group =
        "name = \"x\"\n[[users]]\nworkload = \"R5Mail\"\ncount = 10\ndocuments = 5\nmail_file = \"1 MB\"\n";
    assert!(Organisation::parse("my.toml", group).is_ok());
    for (text, wanted) in [
        ("name = \"x\"\nusers = []\n".to_owned(), "my.toml:2: there are no users"),
        (group.replace("count = 10", "count = 0"), "my.toml:4: 0 is not from 1 to"),
        (group.replace("count = 10", "count = 1.5"), "my.toml:4: 1.5 is no whole number"),
        (group.replace("1 MB", "1 lump"), "my.toml:6: 1 lump is no size"),
        (group.replace("count = 10", "count = nan"), "my.toml:4: NaN is not from"),
        (format!("{group}pages = 4\n"), "my.toml:7: unknown field `pages`"),
        (format!("{group}[objective]\ncpu_percent = 130\n"), "my.toml:8: 130 is not from 0 to 100"),
        (format!("{group}[availability]\nservers_lost = 1\n"), "my.toml:8: with 1 servers lost"),
        (format!("{group}[availability\n"), "my.toml:7: "),
    ] {
        let told = refused(&text);
        assert!(told.starts_with(wanted), "{told}\n  and not\n{wanted}");
    }
    let (calibration, model) = fixed();
    for (workload, wanted) in [("IMAP", "nothing has measured what IMAP"), ("Nothing", "called Nothing")] {
        let organisation = Organisation::parse("my.toml", &group.replace("R5Mail", workload)).unwrap();
        let error = answer(&organisation, &calibration, &model).unwrap_err();
        assert!(error.outcome() == CommandOutcome::Usage && error.to_string().contains(wanted), "{error}");
    }
    let organisation = Organisation::parse("my.toml", group).unwrap();
    for change in
        ["users", "users=0", "users=many", "servers=0", "inbox=3", "encryption=maybe", "moon=full", "cpu=0"]
    {
        let error = changed(&organisation, change).unwrap_err();
        assert!(error.to_string().contains("What can be written:\n  users "), "{error}");
    }
}

#[test]
fn wrong_calibrations_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/calibration.json");
    let missing = Calibration::read(&path).unwrap_err().to_string();
    assert!(missing.contains("scrinium plan calibrate"), "{missing}");
    let good = crate::common::calibration(100, 0.0, 1);
    good.write(&path).unwrap();
    assert_eq!(Calibration::read(&path).unwrap(), good);
    let text = std::fs::read_to_string(&path).unwrap();
    for (wrong, wanted) in [
        (text.replace("calibration/1", "calibration/2"), "its format is scrinium-calibration/2"),
        ("{}".to_owned(), "it is no calibration"),
        (text.chars().take(500).collect(), "EOF"),
        (text.replacen("\"cpus\": 4", "\"cpus\": 0", 1), "no processors"),
        (text.replacen("\"mean_ms\": ", "\"mean_ms\": -", 1), "below 0"),
    ] {
        std::fs::write(&path, wrong).unwrap();
        let error = Calibration::read(&path).unwrap_err();
        assert!(
            matches!(error, PlanError::WrongCalibration { .. }) && error.to_string().contains(wanted),
            "{error}"
        );
    }
    // Too little of it is said as well.
    let few = Calibration { points: good.points.iter().take(1).cloned().collect(), ..good };
    assert!(Model::of(&few).unwrap_err().to_string().contains("it has no ladder of loads"));
}
