//! The discussion database of the seeds' Test Case #3: documents of some 600 bytes, and seven views.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark stops at the first error"
)]

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::scatter;

/// As many different words as a person's mail has.
const WORDS: u64 = 5000;

const SYLLABLES: [&str; 32] = [
    "a", "be", "con", "de", "er", "fi", "ga", "ho", "in", "ja", "ko", "li", "ment", "na", "or", "pro", "qua",
    "re", "sta", "tion", "un", "ver", "wi", "ex", "ya", "zo", "pre", "ster", "ble", "tro", "chu", "ing",
];

/// Word number `rank` by how often it occurs: frequent ones are short, as in any language.
fn word(rank: u64) -> String {
    let syllables = 1 + rank.checked_ilog(8).unwrap_or(0) + u32::from(rank.is_multiple_of(3));
    let syllable = |at: u32| SYLLABLES[usize::try_from(scatter(rank * 7 + u64::from(at)) % 32).unwrap()];
    (0..syllables).map(syllable).collect()
}

/// Words as often as in texts: word number n occurs 1/n times as often as the first (Zipf).
fn words(seed: u64, count: u64) -> String {
    static ALL: LazyLock<Vec<String>> = LazyLock::new(|| (1..=WORDS).map(word).collect());
    let word = |at: u64| {
        let random = (scatter(seed ^ scatter(at)) >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = (WORDS as f64).powf(random) as usize;
        ALL[rank.min(ALL.len()) - 1].as_str()
    };
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// The id of document number `number`.
#[must_use]
pub fn id(number: u64) -> String {
    format!("{:016x}", scatter(number ^ 0xabcd))
}

/// The date of document number `number`.
#[must_use]
pub fn date(number: u64) -> String {
    let random = scatter(number);
    let (year, month, day) = (random % 10, random / 7 % 12 + 1, random / 11 % 28 + 1);
    format!("199{year}-{month:02}-{day:02}T{:02}:{:02}:00Z", random / 13 % 24, random / 17 % 60)
}

/// Document number `number`; of some 600 bytes.
#[must_use]
pub fn document(number: u64) -> Value {
    let random = scatter(number);
    let is_response = random % 10 < 6 && number > 0;
    let status = ["Open", "Closed", "Pending"][usize::try_from(random % 3).unwrap()];
    let mut document = json!({
        "_id": id(number),
        "Form": if is_response { "Response" } else { "MainTopic" },
        "Subject": words(random, 4 + random % 5),
        "From": format!("CN={} {}/O=Acme", words(random % 97, 1), words(random % 389, 1)),
        "Categories": format!("{} {}", words(random % 13, 1), random % 13),
        "Date": date(number),
        "Size": random % 20_000,
        "Status": status,
        "Body": words(random ^ 1, 44),
    });
    if is_response {
        document["$REF"] = json!(id(number / 2));
    }
    document
}

/// A text of random letters: four letters take three bytes, however well they are compressed.
#[must_use]
pub fn letters(random: u64, count: usize) -> String {
    let mut bytes = vec![0; count / 4 * 3];
    let mut random = random;
    for part in bytes.chunks_mut(8) {
        random = scatter(random);
        part.copy_from_slice(&random.to_le_bytes()[..part.len()]);
    }
    STANDARD.encode(bytes)
}

/// The design document with seven views.
#[must_use]
pub fn design() -> Value {
    let column = |title: &str, formula: &str| json!({"title": title, "formula": formula});
    let sorted =
        |title: &str, formula: &str, sort: &str| json!({"title": title, "formula": formula, "sort": sort});
    let category = |formula: &str| json!({"title": "Category", "formula": formula, "category": true});
    let size = json!({"title": "Size", "formula": "Size", "total": true});
    let name = "@Name([CN]; From)";
    json!({"_id": "_design/discussion", "language": "formula", "views": {
        "all documents": {"selection": "SELECT @All",
            "columns": [sorted("Date", "Date", "desc"), column("Subject", "Subject"), size]},
        "by author": {"selection": "SELECT @All",
            "columns": [{"title": "Author", "formula": name, "category": true}, sorted("Date", "Date", "desc"),
                column("Subject", "Subject")]},
        "by category": {"selection": "SELECT Form = \"MainTopic\" | Form = \"Response\"",
            "columns": [category("Categories"), sorted("Date", "Date", "asc"), column("Subject", "Subject"), size]},
        "topics": {"selection": "SELECT Form = \"MainTopic\"",
            "columns": [sorted("Subject", "@LowerCase(Subject)", "asc"), column("Author", name)]},
        "responses": {"selection": "SELECT @IsAvailable($REF)",
            "columns": [sorted("Parent", "$REF", "asc"), sorted("Date", "Date", "asc"), column("Author", name)]},
        "open": {"selection": "SELECT Status != \"Closed\"",
            "columns": [sorted("Status", "Status", "asc"), sorted("Date", "Date", "desc"), column("Subject", "Subject")]},
        "by month": {"selection": "SELECT @All",
            "columns": [category("@Text(@Year(Date)) + \"-\" + @Right(\"0\" + @Text(@Month(Date)); 2)"),
                column("Subject", "Subject"), size]},
    }})
}

/// The seven views with other titles, `_design/anotherN`: to a server that has [`design`], they are new.
#[must_use]
pub fn another_design(number: u64) -> Value {
    let mut design = design();
    design["_id"] = json!(format!("_design/another{number}"));
    for view in design["views"].as_object_mut().unwrap().values_mut() {
        view["columns"][0]["title"] = json!(format!("Column {number}"));
    }
    design
}

/// The same seven views as map functions, `_design/javascript`.
#[must_use]
pub fn design_in_javascript() -> Value {
    let name = "doc.From.replace(/^CN=([^/]*).*/, '$1')";
    let view = |body: &str| json!({"map": format!("function (doc) {{ {body} }}")});
    json!({"_id": "_design/javascript", "views": {
        "all documents": view("emit(doc.Date, {Subject: doc.Subject, Size: doc.Size});"),
        "by author": view(&format!("emit([{name}, doc.Date], {{Subject: doc.Subject}});")),
        "by category": view("if (doc.Form == 'MainTopic' || doc.Form == 'Response') \
            emit([doc.Categories, doc.Date], {Subject: doc.Subject, Size: doc.Size});"),
        "topics": view(&format!("if (doc.Form == 'MainTopic') emit(doc.Subject.toLowerCase(), {{Author: {name}}});")),
        "responses": view(&format!("if (doc.$REF) emit([doc.$REF, doc.Date], {{Author: {name}}});")),
        "open": view("if (doc.Status != 'Closed') emit([doc.Status, doc.Date], {Subject: doc.Subject});"),
        "by month": view("emit(doc.Date.substr(0, 7), {Subject: doc.Subject, Size: doc.Size});"),
    }})
}

#[cfg(test)]
mod tests {
    #[test]
    fn documents_are_as_large_as_the_articles() {
        let bytes: usize = (0..2000).map(|number| super::document(number).to_string().len()).sum();
        assert!((585..625).contains(&(bytes / 2000)), "{}", bytes / 2000);
    }
}
