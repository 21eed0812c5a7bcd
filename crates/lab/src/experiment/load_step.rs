//! Users at work in a cell: `lab load` as a process of its own, so that the driver is measured by itself, and what its
//! report says as values of the cell.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use scrinium_lab_report::experiment::SearchPoint;
use serde_json::Value;
use tokio::process::Command;

use super::cells::{Values, slug, substitute};
use super::definition::Scalar;
use super::error::ExperimentError;
use super::server::{ServerCommand, end_of};
use super::step::{Load, ProbeStep};
use super::usage::Measured;
use crate::program::laboratory;

/// Everything that a load needs of its cell.
pub(super) struct LoadCell<'a> {
    pub(super) step: &'a str,
    pub(super) values: &'a Values,
    pub(super) urls: &'a [Address],
    pub(super) command: &'a ServerCommand,
    /// Reports and what the driver said go below this.
    pub(super) folder: &'a Path,
}

/// Where a server is.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) plain: String,
    pub(super) encrypted: String,
    /// Where mail is read, plain and encrypted, and where it is sent.
    pub(super) imap: [String; 2],
    pub(super) smtp: String,
    /// What has to be believed for the encrypted one.
    pub(super) certificate: PathBuf,
}

/// What stands behind the @ of everybody's address where mail is read by IMAP; `mail.domains` of the server has it.
const MAIL_DOMAIN: &str = "lab.invalid";

/// What a load gave.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) measured: Measured,
    /// Why the run says nothing of the server.
    pub(super) invalid: Vec<String>,
    /// The only reason is that the server did not keep up.
    pub(super) overloaded: bool,
    pub(super) warnings: Vec<String>,
    pub(super) search: Vec<SearchPoint>,
    /// Folders of the reports, in the cell's.
    pub(super) reports: Vec<String>,
}

impl LoadCell<'_> {
    fn text(&self, text: &str) -> Result<String, ExperimentError> {
        substitute(text, self.values).map_err(|why| self.wrong(why))
    }

    fn number<T: std::str::FromStr>(&self, scalar: &Scalar) -> Result<T, ExperimentError> {
        let text = self.text(&scalar.0)?;
        text.parse().map_err(|_| self.wrong(format!("{text} is no number that can be used here")))
    }

    fn wrong(&self, why: String) -> ExperimentError {
        ExperimentError::Step { step: self.step.to_owned(), why }
    }

    /// Two loads of a cell are steps of different names, and their reports lie in different folders.
    fn folder_name(&self) -> String {
        slug(&[self.step.to_owned()])
    }

    /// Users at work, and others alongside them.
    pub(super) async fn load(&self, load: &Load) -> Result<Loaded, ExperimentError> {
        match &load.search {
            None => {
                let users = self.number(&load.users)?;
                self.with_others(load, users, &self.folder_name()).await
            }
            Some(search) => {
                let limits = (
                    self.number(&search.most_users)?,
                    self.number(&search.max_average_ms)?,
                    self.number(&search.halvings)?,
                );
                self.search(load, limits).await
            }
        }
    }

    /// Doubles the users until the objective is missed, then halves the interval.
    async fn search(
        &self,
        load: &Load,
        (most, max_average_ms, halvings): (u32, f64, u32),
    ) -> Result<Loaded, ExperimentError> {
        let (mut reached, mut missed): (Option<(u32, Loaded)>, Option<u32>) = (None, None);
        let (mut points, mut reports) = (Vec::new(), Vec::new());
        let mut users: u32 = self.number(&load.users)?;
        let mut halved = 0;
        loop {
            let loaded = self.with_others(load, users, &format!("{}-{users}", self.folder_name())).await?;
            reports.extend(loaded.reports.clone());
            let value = |name: &str| loaded.measured.get(name).copied().unwrap_or(f64::NAN);
            let invalid = loaded.invalid.first().filter(|_| !loaded.overloaded).cloned();
            let good = loaded.invalid.is_empty() && value("mean_ms") <= max_average_ms;
            points.push(SearchPoint {
                users: f64::from(users),
                average_ms: value("mean_ms"),
                p99_ms: value("p99_ms"),
                transactions_per_minute: value("transactions_per_minute"),
                reached: good,
                invalid,
            });
            if good {
                reached = Some((users, loaded));
            } else {
                missed = Some(users);
            }
            let low = reached.as_ref().map_or(0, |(users, _)| *users);
            users = match missed {
                None if low >= most => break,
                None => (low * 2).min(most),
                Some(high) if halved >= halvings || high - low <= 1 => break,
                Some(high) => {
                    halved += 1;
                    low + (high - low) / 2
                }
            };
            if users == low {
                break;
            }
        }
        let (largest, mut loaded) = reached.ok_or_else(|| {
            let why = points.iter().find_map(|point| point.invalid.clone());
            self.wrong(match why {
                Some(why) => format!("not even with the fewest users was a run valid ({why}); begin with fewer"),
                None => format!("not even the fewest users reached an average response of {max_average_ms} ms; begin with fewer"),
            })
        })?;
        loaded.measured.insert("users".to_owned(), f64::from(largest));
        if missed.is_none() {
            loaded.warnings.push(format!("the search ended at {most} users, the most that it was to try"));
        }
        points.sort_by(|left, right| left.users.total_cmp(&right.users));
        loaded.search = points;
        loaded.reports = reports;
        Ok(loaded)
    }

    async fn with_others(&self, load: &Load, users: u32, name: &str) -> Result<Loaded, ExperimentError> {
        let mut others = Vec::new();
        for (number, other) in load.beside.iter().enumerate() {
            let folder = self.folder.join(format!("{name}-beside-{}", number + 1));
            let users = self.number(&other.users)?;
            if users == 0 {
                continue;
            }
            others.push((self.begin(other, users, &folder)?, folder));
        }
        let folder = self.folder.join(name);
        let mut driver = self.begin(load, users, &folder)?;
        let status = driver.wait().await.map_err(|error| self.wrong(error.to_string()))?;
        let mut loaded = self.finish(status, &folder)?;
        loaded.reports.push(name.to_owned());
        for (mut other, folder) in others {
            let status = other.wait().await.map_err(|error| self.wrong(error.to_string()))?;
            self.finish(status, &folder)?;
        }
        Ok(loaded)
    }

    /// Begins `lab load`. The process ends with this one.
    fn begin(
        &self,
        load: &Load,
        users: u32,
        folder: &Path,
    ) -> Result<tokio::process::Child, ExperimentError> {
        let log = folder.with_extension("log");
        let failed =
            |source| ExperimentError::File { what: "write", path: log.display().to_string(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let said = std::fs::File::create(&log).map_err(failed)?;
        let arguments = self.arguments(load, users, folder)?;
        let (program, first) = laboratory().map_err(|why| self.wrong(why.to_string()))?;
        Command::new(program)
            .args(first)
            .args(arguments)
            .env("SCRINIUM_LAB_PASSWORD", &self.command.password)
            .env("SSL_CERT_FILE", &self.server_of(load)?.certificate)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| self.wrong(error.to_string()))
    }

    /// The server that a load is for.
    fn server_of(&self, load: &Load) -> Result<&Address, ExperimentError> {
        self.server_of_number(load.server.as_ref().map_or(Ok(1), |server| self.number(server))?)
    }

    fn server_of_number(&self, server: usize) -> Result<&Address, ExperimentError> {
        self.urls
            .get(server.saturating_sub(1))
            .ok_or_else(|| self.wrong(format!("there is no server {server}: a separate step starts servers")))
    }

    fn arguments(&self, load: &Load, users: u32, folder: &Path) -> Result<Vec<String>, ExperimentError> {
        let address = self.server_of(load)?;
        let is_true = |scalar: Option<&Scalar>| {
            scalar.is_some_and(|scalar| self.text(&scalar.0).is_ok_and(|text| text == "true"))
        };
        let (encrypted, by_imap) = (is_true(load.encrypted.as_ref()), is_true(load.imap.as_ref()));
        // Those who read by IMAP are only entered by HTTP.
        let url = if encrypted && !by_imap { &address.encrypted } else { &address.plain };
        let mut words: Vec<String> =
            ["load", "--json", "--target", url, "--admin", &self.command.admin].map(str::to_owned).to_vec();
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if by_imap {
            let [plain, secret] = &address.imap;
            add("--target", if encrypted { secret.clone() } else { plain.clone() });
            add("--target", address.smtp.clone());
            add("--mail-domain", MAIL_DOMAIN.to_owned());
        }
        add("--users", users.to_string());
        add("--duration", self.text(&load.duration.0)?);
        add("--report", folder.display().to_string());
        let optional = [
            ("--ramp-up", &load.ramp_up),
            ("--speedup", &load.speedup),
            ("--keep-alive", &load.keep_alive),
            ("--messages-per-user", &load.messages_per_user),
        ];
        for (name, value) in optional {
            let Some(value) = value else { continue };
            let text = self.text(&value.0)?;
            if !text.is_empty() {
                add(name, text);
            }
        }
        match load.edge.as_ref().map_or(Ok(0), |server| self.number(server))? {
            0 => {}
            server => add("--edge", self.server_of_number(server)?.plain.clone()),
        }
        if let Some(prefix) = &load.user_prefix {
            add("--user-prefix", self.text(prefix)?);
        }
        for (name, value) in &load.set {
            add("--set", format!("{name}={}", self.text(&value.0)?));
        }
        if let Some(probe) = &load.probe {
            for (name, value) in self.probe_arguments(probe, "probe-")? {
                add(&name, value);
            }
            words.push("--probe".to_owned());
            if probe.mail {
                words.push("--probe-mail".to_owned());
            }
        }
        if is_true(load.closed.as_ref()) {
            words.push("--closed-model".to_owned());
        }
        if is_true(load.compressed.as_ref()) {
            words.push("--compressed".to_owned());
        }
        words.push(self.text(&load.workload)?);
        Ok(words)
    }

    /// Options of a probe, with what stands before their names.
    fn probe_arguments(
        &self,
        probe: &ProbeStep,
        prefix: &str,
    ) -> Result<Vec<(String, String)>, ExperimentError> {
        let mut options = vec![(format!("--{prefix}interval"), self.text(&probe.interval.0)?)];
        for (name, value) in [("database", &probe.database), ("view", &probe.view)] {
            if let Some(value) = value {
                options.push((format!("--{prefix}{name}"), self.text(value)?));
            }
        }
        Ok(options)
    }

    /// What the report of an ended driver says.
    fn finish(&self, status: ExitStatus, folder: &Path) -> Result<Loaded, ExperimentError> {
        let report = std::fs::read(folder.join("report.json")).ok();
        let report: Option<Value> = report.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        // 99: the run is not valid, or missed an objective; the report says which.
        match report.filter(|_| matches!(status.code(), Some(0 | 99))) {
            Some(report) => Ok(loaded(&report)),
            None => Err(ExperimentError::Command {
                step: self.step.to_owned(),
                command: "lab load".to_owned(),
                status: status.to_string(),
                said: end_of(&folder.with_extension("log")),
            }),
        }
    }

    /// A probe alone, for the time that the step says.
    pub(super) async fn probe(&self, probe: &ProbeStep) -> Result<Loaded, ExperimentError> {
        let url = self.urls.first().ok_or_else(|| self.wrong("no server is running".to_owned()))?;
        let length = probe.length.as_ref().ok_or_else(|| self.wrong("it needs `for`".to_owned()))?;
        let mut words: Vec<String> = [
            "probe",
            "--json",
            "--target",
            &url.plain,
            "--user",
            &self.command.admin,
            "--for",
            &self.text(&length.0)?,
        ]
        .map(str::to_owned)
        .to_vec();
        for (name, value) in self.probe_arguments(probe, "")? {
            words.extend([name, value]);
        }
        if probe.mail {
            words.push("--mail".to_owned());
        }
        let (program, first) = laboratory().map_err(|why| self.wrong(why.to_string()))?;
        let output = Command::new(program)
            .args(first)
            .args(words)
            .env("SCRINIUM_LAB_PASSWORD", &self.command.password)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|error| self.wrong(error.to_string()))?;
        let last = String::from_utf8_lossy(&output.stdout);
        let last: Option<Value> = last.lines().last().and_then(|line| serde_json::from_str(line).ok());
        match last
            .as_ref()
            .and_then(|last| last.get("summary"))
            .filter(|_| matches!(output.status.code(), Some(0 | 99)))
        {
            Some(summary) => {
                let mut loaded = Loaded::default();
                add_probe(summary, "", &mut loaded);
                Ok(loaded)
            }
            None => Err(ExperimentError::Command {
                step: self.step.to_owned(),
                command: "lab probe".to_owned(),
                status: output.status.to_string(),
                said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            }),
        }
    }
}

/// Values from a load's report. It is read as it lies there, so that a new member of it is a value by itself.
fn loaded(report: &Value) -> Loaded {
    let mut loaded = Loaded::default();
    if let Some(summary) = report.get("summary").and_then(Value::as_object) {
        for (name, value) in summary {
            match value {
                Value::Object(times) if name == "latency" => add_numbers(times, "", &mut loaded.measured),
                Value::Object(times) => add_numbers(times, &format!("{name}."), &mut loaded.measured),
                other => add_number(name, other, &mut loaded.measured),
            }
        }
    }
    // So that loads can be compared which got through different numbers of transactions.
    let value = |name: &str| loaded.measured.get(name).copied();
    if let (Some(cpu), Some(rate)) =
        (value("cpu_percent"), value("transactions_per_minute").filter(|rate| *rate > 0.0))
    {
        loaded.measured.insert("cpu_percent_per_1000".to_owned(), cpu * 1000.0 / rate);
    }
    for (operation, (sum_ms, count)) in transactions(report) {
        let mean_ms = if count > 0.0 { sum_ms / count } else { 0.0 };
        loaded.measured.insert(format!("{operation}.mean_ms"), mean_ms);
        loaded.measured.insert(format!("{operation}.count"), count);
    }
    if let Some(summary) = report.pointer("/probe/summary") {
        add_probe(summary, "probe.", &mut loaded);
    }
    let texts = |pointer: &str| -> Vec<String> {
        let list = report.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    loaded.warnings = texts("/validity/warnings");
    if report.pointer("/validity/valid") != Some(&Value::Bool(true)) {
        loaded.invalid = texts("/validity/reasons");
        if loaded.invalid.is_empty() {
            loaded.invalid.push("the run is not valid".to_owned());
        }
        loaded.overloaded = report.pointer("/validity/overloaded") == Some(&Value::Bool(true));
    }
    loaded
}

fn add_numbers(from: &serde_json::Map<String, Value>, prefix: &str, into: &mut Measured) {
    for (name, value) in from {
        add_number(&format!("{prefix}{name}"), value, into);
    }
}

fn add_number(name: &str, value: &Value, into: &mut Measured) {
    if let Some(number) = value.as_f64() {
        into.insert(name.to_owned(), number);
    }
}

/// Milliseconds and count of each transaction, whatever commands made it.
fn transactions(report: &Value) -> BTreeMap<String, (f64, f64)> {
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for row in report.get("operations").and_then(Value::as_array).into_iter().flatten() {
        let number = |pointer: &str| row.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
        let Some(transaction) = row.get("transaction").and_then(Value::as_str) else { continue };
        let sum = sums.entry(transaction.to_owned()).or_default();
        sum.0 += number("/latency/mean_ms") * number("/latency/count");
        sum.1 += number("/latency/count");
    }
    sums
}

/// Values of a probe's summary; the shared database's have no further name. Rounds that all failed spoil the cell.
fn add_probe(summary: &Value, prefix: &str, loaded: &mut Loaded) {
    for (subject, seen) in summary.as_object().into_iter().flatten() {
        let prefix = if subject == "database" { prefix.to_owned() } else { format!("{prefix}{subject}.") };
        let number = |name: &str| seen.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let (rounds, failed) = (number("rounds"), number("failed"));
        loaded.measured.insert(format!("{prefix}rounds"), rounds);
        loaded.measured.insert(format!("{prefix}failed"), failed);
        if failed > 0.0 {
            let why = seen.get("last_failure").and_then(Value::as_str).unwrap_or_default();
            let text = format!("{failed} of {rounds} rounds of the probe failed; the last: {why}");
            if failed >= rounds { loaded.invalid.push(text) } else { loaded.warnings.push(text) }
        }
        if let Some(times) = seen.get("response").and_then(Value::as_object).filter(|_| rounds > failed) {
            add_numbers(times, &prefix, &mut loaded.measured);
        }
        for (operation, times) in seen.get("operations").and_then(Value::as_object).into_iter().flatten() {
            if let Some(times) = times.as_object() {
                add_numbers(times, &format!("{prefix}{operation}."), &mut loaded.measured);
            }
        }
    }
}
