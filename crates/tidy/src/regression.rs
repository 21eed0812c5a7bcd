//! Whether anything became slower: rows of benchmarks of two commits, whose rounds alternated.
//!
//! A row is a line of a benchmark by its name and case; a file holds each row once for every round.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use serde_json::Value;

/// Worse by more than this is a regression.
const ALLOWED: f64 = 1.10;

/// For JavaScript, whose programs run in a process of their own: 0.8 of the speed.
const ALLOWED_IN_JAVASCRIPT: f64 = 1.25;

/// Where the rounds of one side lie so far apart, by the median, 10 % cannot be told.
const WIDE_SPREAD: f64 = 0.20;

/// At most this many rows may be left out for their spread.
const LEFT_OUT_ROWS: usize = 2;

/// What a result may be compared with within its benchmark that is a measurement of this project too, and a row of its own.
const OWN: [&str; 2] = ["the same at ", "an administrator"];

/// The values of a row, round by round.
#[derive(Clone, Debug, Default)]
struct Values {
    unit: String,
    rounds: Vec<f64>,
}

type Rows = BTreeMap<String, Values>;

/// A row of both sides.
#[derive(Clone, Debug)]
pub struct Row {
    /// The benchmark and its case.
    pub name: String,
    /// The median of the base's rounds and of the present ones.
    pub medians: [f64; 2],
    /// Of the values.
    pub unit: String,
    /// How much worse the present is: above 1 it is slower or larger.
    pub worse: f64,
    /// How far the rounds of the side that varies more lie apart, by their median.
    pub spread: f64,
    /// What is made of it.
    pub verdict: Verdict,
}

/// What is made of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within what is allowed.
    Holds,
    /// Worse by more than is allowed.
    Worse,
    /// It seems worse, but its rounds lie too far apart to tell.
    LeftOut,
}

/// Two commits side by side.
#[derive(Debug)]
pub struct Comparison {
    /// Rows of both.
    pub rows: Vec<Row>,
    /// Rows of the base that the present does not have, and of benchmarks that do not have one in common.
    pub missing: Vec<String>,
    /// Rows of the present alone.
    pub new: Vec<String>,
}

impl Comparison {
    /// Compares the lines of both.
    ///
    /// # Errors
    /// If a line is no result.
    pub fn of(base: &str, present: &str) -> io::Result<Self> {
        let (base, mut present) = (rows(base)?, rows(present)?);
        let (mut rows, mut missing) = (Vec::new(), Vec::new());
        for (name, before) in base {
            match present.remove(&name) {
                Some(after) => rows.push(Row::of(name, &before, &after)),
                None => missing.push(name),
            }
        }
        leave_out(&mut rows);
        Ok(Self { rows, missing, new: present.into_keys().collect() })
    }

    /// Whether nothing became worse, and everything was measured that the base has.
    #[must_use]
    pub fn holds(&self) -> bool {
        let holds = self.rows.iter().all(|row| row.verdict != Verdict::Worse);
        holds && self.missing.is_empty() && !self.rows.is_empty()
    }
}

impl Row {
    fn of(name: String, before: &Values, after: &Values) -> Self {
        let medians = [median(&before.rounds), median(&after.rounds)];
        let [base, present] = medians;
        // Rates are better when they are higher, everything else when it is lower.
        let worse = if before.unit.ends_with("/s") { base / present } else { present / base };
        let worse = if medians == [0.0, 0.0] { 1.0 } else { worse };
        let spread = spread(&before.rounds).max(spread(&after.rounds));
        let allowed = if name.contains("JavaScript") { ALLOWED_IN_JAVASCRIPT } else { ALLOWED };
        // What is no number is not known to hold.
        let verdict = if worse <= allowed { Verdict::Holds } else { Verdict::Worse };
        Self { name, medians, unit: before.unit.clone(), worse, spread, verdict }
    }
}

/// Of the rows that seem worse, those that vary most cannot be judged; more than a few of them are no accident.
fn leave_out(rows: &mut [Row]) {
    let mut unclear: Vec<&mut Row> =
        rows.iter_mut().filter(|row| row.verdict == Verdict::Worse && row.spread > WIDE_SPREAD).collect();
    unclear.sort_by(|a, b| b.spread.total_cmp(&a.spread));
    unclear.into_iter().take(LEFT_OUT_ROWS).for_each(|row| row.verdict = Verdict::LeftOut);
}

fn rows(lines: &str) -> io::Result<Rows> {
    let mut rows = Rows::new();
    for line in lines.lines() {
        let wrong = |what: &str| io::Error::other(format!("{what}: {line}"));
        let result: Value = serde_json::from_str(line).map_err(|_| wrong("this line is no JSON"))?;
        let text = |key: &str| result.get(key).and_then(Value::as_str).ok_or_else(|| wrong("no result"));
        let number = |key: &str| result.get(key).and_then(Value::as_f64).ok_or_else(|| wrong("no result"));
        let (bench, case, unit) = (text("name")?, text("case")?, text("unit")?);
        let against = text("against").unwrap_or_default();
        let mut seen = vec![(format!("{bench}: {case}"), number("value")?)];
        if OWN.iter().any(|own| against.starts_with(own)) {
            let case = case.rsplit_once(", ").map_or(case, |(case, _)| case);
            seen.push((format!("{bench}: {case}, {against}"), number("against_value")?));
        }
        for (name, value) in seen {
            let row = rows.entry(name).or_default();
            unit.clone_into(&mut row.unit);
            row.rounds.push(value);
        }
    }
    Ok(rows)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let at = |at: usize| sorted.get(at).copied().unwrap_or(f64::NAN);
    if sorted.len() % 2 == 1 { at(middle) } else { f64::midpoint(at(middle.saturating_sub(1)), at(middle)) }
}

fn spread(values: &[f64]) -> f64 {
    let highest = values.iter().copied().fold(f64::MIN, f64::max);
    let lowest = values.iter().copied().fold(f64::MAX, f64::min);
    let middle = median(values);
    if middle > 0.0 { (highest - lowest) / middle } else { 0.0 }
}

impl fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{:>10} {:>10} {:>9} {:>7} {:>7}  row",
            "base", "present", "unit", "ratio", "spread"
        )?;
        for row in &self.rows {
            let [base, present] = row.medians;
            let verdict = match row.verdict {
                Verdict::Holds => "",
                Verdict::Worse => "  WORSE",
                Verdict::LeftOut => "  left out for its spread",
            };
            writeln!(
                formatter,
                "{base:>10.3} {present:>10.3} {:>9} {:>7.3} {:>6.0}%  {}{verdict}",
                row.unit,
                present / base,
                row.spread * 100.0,
                row.name
            )?;
        }
        self.missing.iter().try_for_each(|name| writeln!(formatter, "MISSING: the present has no {name}"))?;
        self.new.iter().try_for_each(|name| writeln!(formatter, "new, not compared: {name}"))?;
        let count = |verdict| self.rows.iter().filter(|row| row.verdict == verdict).count();
        write!(
            formatter,
            "{} rows: {} hold, {} are worse, {} left out, {} missing",
            self.rows.len(),
            count(Verdict::Holds),
            count(Verdict::Worse),
            count(Verdict::LeftOut),
            self.missing.len()
        )
    }
}
