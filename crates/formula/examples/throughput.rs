//! What views cost: evaluates the formulas of two databases over 100,000 documents each, in processor time,
//! which other programs on the machine disturb least. That many documents do not fit into a processor's caches:
//! a part of the time is spent waiting for memory, as it is when a view is built. 1,000 documents do fit.
//!
//! `cargo run --release -p scrinium-formula --example throughput [DOCUMENTS]`

use std::sync::LazyLock;
use std::time::Instant;

use scrinium_formula::{Environment, EvaluationError, Fields, Formula, Value};

const DOCUMENTS: usize = 100_000;
const ROUNDS: usize = 3;

/// How many documents a round looks at, again and again if there are fewer: the system counts processor time in
/// steps of milliseconds.
const LOOKS: usize = 1_000_000;

/// A view: its selection and its columns.
type View = (&'static str, &'static [&'static str]);

const MAIL: &[View] = &[(
    r#"SELECT Form = "Memo" & Status != "Closed""#,
    &[
        r#"@Name([CN]; From)"#,
        r#"@If(@Begins(Subject; "Re: "); @Right(Subject; "Re: "); Subject)"#,
        r#"@Date(PostedDate)"#,
        r#"@If(Size > 65536; "large"; Size > 8192; "middle"; "small") + " (" + @Text(@Elements(SendTo)) + ")""#,
    ],
)];

/// The views that `cargo bench -p scrinium-database --bench view_build` builds.
const DISCUSSION: &[View] = &[
    ("SELECT @All", &["Date", "Subject", "Size"]),
    ("SELECT @All", &["@Name([CN]; From)", "Date", "Subject"]),
    (r#"SELECT Form = "MainTopic" | Form = "Response""#, &["Categories", "Date", "Subject", "Size"]),
    (r#"SELECT Form = "MainTopic""#, &["@LowerCase(Subject)", "@Name([CN]; From)"]),
    ("SELECT @IsAvailable($REF)", &["$REF", "Date", "@Name([CN]; From)"]),
    (r#"SELECT Status != "Closed""#, &["Status", "Date", "Subject"]),
    (
        "SELECT @All",
        &[r#"@Text(@Year(Date)) + "-" + @Right("0" + @Text(@Month(Date)); 2)"#, "Subject", "Size"],
    ),
];

struct Document {
    id: String,
    fields: Vec<(&'static str, Value)>,
}

impl Fields for Document {
    fn field(&self, name: &str) -> Option<Value> {
        let found = self.fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.clone())
    }

    fn id(&self) -> &str {
        &self.id
    }
}

fn number(number: usize) -> Value {
    Value::from(f64::from(u32::try_from(number).unwrap_or(0)))
}

fn memo(place: usize) -> Document {
    let recipients =
        (0..place % 4 + 1).map(|recipient| format!("person{recipient}@acme.com").into()).collect();
    let fields = vec![
        ("Form", Value::text(if place.is_multiple_of(5) { "Reply" } else { "Memo" })),
        ("Status", Value::text(if place.is_multiple_of(7) { "Closed" } else { "Open" })),
        ("From", Value::text(format!("CN=Person {}/OU=Sales/O=Acme", place % 500))),
        ("SendTo", Value::texts(recipients)),
        ("Subject", Value::text(format!("Re: the plan for week {} of the year", place % 52))),
        (
            "PostedDate",
            Value::text(format!("2026-{:02}-{:02}T{:02}:15:00Z", place % 12 + 1, place % 28 + 1, place % 24)),
        ),
        ("Size", number(place % 90_000)),
    ];
    Document { id: format!("memo-{place}"), fields }
}

fn topic(place: usize) -> Document {
    let is_response = place % 10 < 6;
    let mut fields = vec![
        ("Form", Value::text(if is_response { "Response" } else { "MainTopic" })),
        ("Subject", Value::text(format!("agenda budget client delivery {}", place % 9000))),
        ("From", Value::text(format!("CN=Person {}/O=Acme", place % 500))),
        ("Categories", Value::text(format!("forecast {}", place % 13))),
        (
            "Date",
            Value::text(format!(
                "199{}-{:02}-{:02}T{:02}:15:00Z",
                place % 10,
                place % 12 + 1,
                place % 28 + 1,
                place % 24
            )),
        ),
        ("Size", number(place % 20_000)),
        ("Status", Value::text(["Open", "Closed", "Pending"].get(place % 3).copied().unwrap_or("Open"))),
        ("Body", Value::text("kitchen ledger meeting network office project question report ".repeat(5))),
    ];
    if is_response {
        fields.push(("$REF", Value::text(format!("topic-{}", place / 2))));
    }
    Document { id: format!("topic-{place}"), fields }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(DOCUMENTS);
    for (name, views, make) in
        [("mail", MAIL, memo as fn(usize) -> Document), ("discussion", DISCUSSION, topic)]
    {
        let documents: Vec<Document> = (0..count.clamp(1, LOOKS)).map(make).collect();
        measure_views(name, views, &documents)?;
        measure_formulas(views, &documents)?;
    }
    Ok(())
}

/// All views one after the other, document by document, as they are built: columns of what is selected.
fn measure_views(
    name: &str,
    views: &[View],
    documents: &[Document],
) -> Result<(), Box<dyn std::error::Error>> {
    let environment = Environment::default();
    let mut compiled = Vec::new();
    for (selection, columns) in views {
        let columns = columns.iter().map(|column| Formula::compile(column)).collect::<Result<Vec<_>, _>>()?;
        compiled.push((Formula::compile(selection)?, columns));
    }
    let mut evaluations = 0;
    let seconds = best_of(documents, |document| {
        for (selection, columns) in &compiled {
            evaluations += 1;
            if !selection.selects(document, &environment)? {
                continue;
            }
            for column in columns {
                evaluations += 1;
                std::hint::black_box(column.evaluate(document, &environment)?);
            }
        }
        Ok(())
    })?;
    println!("{name}, {} views: {:.0} documents/s", views.len(), per_second(documents.len(), seconds));
    println!(
        "{:6.1} ns  on average for a formula",
        1e9 / per_second(evaluations / ROUNDS / passes(documents), seconds)
    );
    Ok(())
}

/// Each formula alone.
fn measure_formulas(views: &[View], documents: &[Document]) -> Result<(), Box<dyn std::error::Error>> {
    let environment = Environment::default();
    let mut sources: Vec<&str> = views
        .iter()
        .flat_map(|(selection, columns)| std::iter::once(selection).chain(*columns))
        .copied()
        .collect();
    sources.sort_unstable();
    sources.dedup();
    for source in sources {
        let formula = Formula::compile(source)?;
        let seconds = best_of(documents, |document| {
            std::hint::black_box(formula.evaluate(document, &environment)?);
            Ok(())
        })?;
        println!("{:6.1} ns  {source}", 1e9 / per_second(documents.len(), seconds));
    }
    Ok(())
}

/// Seconds for going through the documents once, in the best of the rounds.
fn best_of(
    documents: &[Document],
    mut evaluate: impl FnMut(&Document) -> Result<(), EvaluationError>,
) -> Result<f64, EvaluationError> {
    let (mut best, passes) = (f64::MAX, passes(documents));
    for _ in 0..ROUNDS {
        let began = seconds_used();
        for document in (0..passes).flat_map(|_| documents) {
            evaluate(document)?;
        }
        best = best.min(seconds_used() - began);
    }
    Ok(best / f64::from(u32::try_from(passes).unwrap_or(1)))
}

const fn passes(documents: &[Document]) -> usize {
    LOOKS / documents.len()
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
