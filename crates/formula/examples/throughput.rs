//! What a view costs: evaluates a selection and four columns over 100,000 documents and prints how many
//! documents that is in a second of processor time, which other programs on the machine disturb least. So
//! many documents do not fit into a processor's caches: a part of the time is spent waiting for memory, as it
//! is when a view is built.
//!
//! `cargo run --release -p scrinium-formula --example throughput`

use std::sync::LazyLock;
use std::time::Instant;

use scrinium_formula::{Environment, Fields, Formula, Value};

const DOCUMENTS: usize = 100_000;
const ROUNDS: usize = 5;

struct Memo {
    id: String,
    fields: Vec<(&'static str, Value)>,
}

impl Fields for Memo {
    fn field(&self, name: &str) -> Option<Value> {
        let found = self.fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.clone())
    }

    fn id(&self) -> &str {
        &self.id
    }
}

fn memo(number: usize) -> Memo {
    let sender = format!("CN=Person {}/OU=Sales/O=Acme", number % 500);
    let posted = format!("2026-{:02}-{:02}T{:02}:15:00Z", number % 12 + 1, number % 28 + 1, number % 24);
    let recipients =
        (0..number % 4 + 1).map(|recipient| format!("person{recipient}@acme.com").into()).collect();
    let fields = vec![
        ("Form", Value::text(if number.is_multiple_of(5) { "Reply" } else { "Memo" })),
        ("Status", Value::text(if number.is_multiple_of(7) { "Closed" } else { "Open" })),
        ("From", Value::text(sender)),
        ("SendTo", Value::texts(recipients)),
        ("Subject", Value::text(format!("Re: the plan for week {} of the year", number % 52))),
        ("PostedDate", Value::text(posted)),
        ("Size", Value::from(f64::from(u32::try_from(number % 90_000).unwrap_or(0)))),
    ];
    Memo { id: format!("memo-{number}"), fields }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let documents: Vec<Memo> = (0..DOCUMENTS).map(memo).collect();
    let environment = Environment::default();
    let selection = r#"SELECT Form = "Memo" & Status != "Closed""#;
    let columns = [
        r#"@Name([CN]; From)"#,
        r#"@If(@Begins(Subject; "Re: "); @Right(Subject; "Re: "); Subject)"#,
        r#"@Date(PostedDate)"#,
        r#"@If(Size > 65536; "large"; Size > 8192; "middle"; "small") + " (" + @Text(@Elements(SendTo)) + ")""#,
    ];

    let mut evaluations = 0;
    let began = seconds_used();
    let chosen = Formula::compile(selection)?;
    let formulas = columns.iter().map(|column| Formula::compile(column)).collect::<Result<Vec<_>, _>>()?;
    for document in &documents {
        evaluations += 1;
        if !chosen.selects(document, &environment)? {
            continue;
        }
        for formula in &formulas {
            evaluations += 1;
            std::hint::black_box(formula.evaluate(document, &environment)?);
        }
    }
    let seconds = seconds_used() - began;
    println!("a view of four columns: {:.0} documents/s", per_second(DOCUMENTS, seconds));
    println!("on average {:.0} ns for a formula", seconds * 1e9 / f64::from(evaluations));

    println!("each alone, the best of {ROUNDS} rounds:");
    for source in std::iter::once(selection).chain(columns) {
        let formula = Formula::compile(source)?;
        let mut best = f64::MAX;
        for _ in 0..ROUNDS {
            let began = seconds_used();
            for document in &documents {
                std::hint::black_box(formula.evaluate(document, &environment)?);
            }
            best = best.min(seconds_used() - began);
        }
        println!("{:6.0} ns  {source}", 1e9 / per_second(DOCUMENTS, best));
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "a rate for people to read")]
fn per_second(count: usize, seconds: f64) -> f64 {
    count as f64 / seconds
}

/// Processor time of this thread where the system tells it (Linux), else the time that has passed.
fn seconds_used() -> f64 {
    static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
    let used = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds =
        used.and_then(|text| text.split(' ').next().and_then(|first| first.parse::<f64>().ok()));
    nanoseconds.map_or_else(|| STARTED.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}
