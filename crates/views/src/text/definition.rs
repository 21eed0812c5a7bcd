//! What an index of words is made of: CouchDB's `nouveau` in a design document, or all that the documents of a database say.
//!
//! ```json
//! { "_id": "_design/search", "nouveau": {
//!     "notes": { "default_analyzer": "english", "field_analyzers": { "kind": "keyword" },
//!                "index": "function (doc) { index('text', 'body', doc.body, {store: true}); }" } } }
//! ```

use std::collections::HashSet;

use scrinium_database::Result;
use scrinium_fulltext::{AnalysisOptions, Language, LanguageChoice, tokens};
use scrinium_javascript::{MapEngine, Owner, Pool};
use serde_json::{Value, json};

use crate::compile::wrong;
use crate::design::refused;
use crate::error::OrDatabaseError as _;

/// Changes when documents are taken apart in another way, so that indexes are built again.
const TEXT_VERSION: u8 = 1;

/// A design document has at most this many indexes of words.
const INDEXES_MAX: usize = 64;

/// Words of a document that a function gave, or that its fields and attachments have.
const WORDS_MAX: u32 = 200_000;

/// The name under which the index of a whole database is known.
pub(crate) const WHOLE: &str = "_fulltext";

/// An index of words.
#[derive(Clone, Debug)]
pub(crate) struct TextDefinition {
    pub(crate) name: String,
    /// What it holds, not what it is called: equal ones share an index.
    pub(crate) identity: [u8; 16],
    pub(crate) source: TextSource,
    pub(crate) options: AnalysisOptions,
}

/// Where the words come from.
#[derive(Clone, Debug)]
pub(crate) enum TextSource {
    /// All fields and attachments.
    Documents,
    /// A function.
    Function(IndexFunction),
}

/// The function of an index in a design document.
#[derive(Clone, Debug)]
pub(crate) struct IndexFunction {
    /// As a map function that emits what the function indexes.
    pub(crate) map: String,
    /// Whether it may store values to be answered with each hit.
    pub(crate) stores: bool,
    keywords: HashSet<String>,
    others: HashSet<String>,
    is_keyword: bool,
}

impl IndexFunction {
    /// Whether texts of a field are found as wholes alone.
    pub(crate) fn is_keyword(&self, field: &str) -> bool {
        self.keywords.contains(field) || self.is_keyword && !self.others.contains(field)
    }
}

impl TextDefinition {
    /// The index of all that the documents of a database say.
    pub(crate) fn of_documents() -> Self {
        let options = AnalysisOptions { words_max: WORDS_MAX, ..AnalysisOptions::default() };
        let identity = crate::design::identity_of(&json!({"fulltext": "documents", "version": TEXT_VERSION}));
        Self { name: WHOLE.to_owned(), identity, source: TextSource::Documents, options }
    }

    /// Fields that words are looked for in where a query names none.
    pub(crate) fn default_fields(&self) -> &'static [&'static str] {
        match self.source {
            TextSource::Documents => &super::gather::DEFAULT_FIELDS,
            TextSource::Function(_) => &["default"],
        }
    }
}

/// The indexes of words in a design document.
///
/// # Errors
/// `compilation_error`, naming the index.
pub(crate) fn parse(design: &Value) -> Result<Vec<TextDefinition>> {
    let indexes = match design.get("nouveau") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(indexes)) => indexes,
        Some(_) => return Err(wrong("`nouveau` must be an object of indexes".to_owned())),
    };
    if indexes.is_empty() {
        return Ok(Vec::new());
    }
    if indexes.len() > INDEXES_MAX {
        return Err(wrong(format!("a design document has at most {INDEXES_MAX} indexes in `nouveau`")));
    }
    if !matches!(design.get("language").and_then(Value::as_str), None | Some("javascript")) {
        return Err(wrong(
            "the functions in `nouveau` are JavaScript; put them into a design document of that language"
                .to_owned(),
        ));
    }
    indexes.iter().map(|(name, index)| parse_index(name, index)).collect()
}

/// Those of a stored design document. It may have come from another server, where other analyzers are known; an index
/// that is none is left out.
pub(crate) fn parse_stored(design: &Value) -> Vec<TextDefinition> {
    let is_ours = matches!(design.get("language").and_then(Value::as_str), None | Some("javascript"));
    let indexes = design.get("nouveau").and_then(Value::as_object).filter(|_| is_ours);
    let indexes = indexes.into_iter().flatten().take(INDEXES_MAX);
    indexes.filter_map(|(name, index)| parse_index(name, index).ok()).collect()
}

/// Refuses a design document with a function that cannot be used.
///
/// # Errors
/// As [`parse`], and those of compiling; [`scrinium_database::DatabaseError::Unavailable`] if that cannot be told now.
pub(crate) fn check(pool: &Pool, owner: Owner, design: &Value) -> Result<()> {
    compile(pool, owner, &parse(design)?)
}

/// As [`check`] of a design document that comes from another server.
///
/// # Errors
/// As there.
pub(crate) fn compile_stored(pool: &Pool, owner: Owner, design: &Value) -> Result<()> {
    compile(pool, owner, &parse_stored(design))
}

fn compile(pool: &Pool, owner: Owner, definitions: &[TextDefinition]) -> Result<()> {
    let functions = definitions.iter().filter_map(|definition| match &definition.source {
        TextSource::Function(function) => Some((definition, function.map.as_str())),
        TextSource::Documents => None,
    });
    let (definitions, sources): (Vec<&TextDefinition>, Vec<&str>) = functions.unzip();
    if sources.is_empty() {
        return Ok(());
    }
    let checked = MapEngine::new(pool, owner, &sources, None).check().or_database_error()?;
    for (definition, checked) in definitions.iter().zip(checked) {
        checked.map_err(|error| refused(&format!("nouveau `{}`, index", definition.name), &error))?;
    }
    Ok(())
}

fn parse_index(name: &str, index: &Value) -> Result<TextDefinition> {
    let place = format!("nouveau `{name}`");
    let source = match index.get("index") {
        Some(Value::String(source)) => source,
        _ => return Err(wrong(format!("{place}: `index` must be the text of a function"))),
    };
    let analyzer = |value: &Value, of: &str| match value.as_str().and_then(analyzer_of) {
        Some(analyzer) => Ok(analyzer),
        None => Err(wrong(format!(
            "{place}: the analyzer {value} of {of} is not known; known are standard, simple, classic, email, whitespace, \
             keyword, and languages such as english"
        ))),
    };
    let default =
        index.get("default_analyzer").map(|value| analyzer(value, "`default_analyzer`")).transpose()?;
    let (mut keywords, mut others) = (HashSet::new(), HashSet::new());
    match index.get("field_analyzers") {
        None | Some(Value::Null) => {}
        Some(Value::Object(fields)) => {
            for (field, value) in fields {
                match analyzer(value, &format!("field `{field}`"))? {
                    Analyzer::Keyword => keywords.insert(field.clone()),
                    Analyzer::Words(_) => others.insert(field.clone()),
                };
            }
        }
        Some(_) => return Err(wrong(format!("{place}: `field_analyzers` must be an object of names"))),
    }
    let (language, is_keyword) = match default {
        None => (LanguageChoice::None, false),
        Some(Analyzer::Words(language)) => (language, false),
        Some(Analyzer::Keyword) => (LanguageChoice::None, true),
    };
    let identity = json!({"nouveau": index, "version": TEXT_VERSION});
    let function =
        IndexFunction { map: mapped(source), stores: source.contains("store"), keywords, others, is_keyword };
    Ok(TextDefinition {
        name: name.to_owned(),
        identity: crate::design::identity_of(&identity),
        source: TextSource::Function(function),
        options: AnalysisOptions { language, words_max: WORDS_MAX },
    })
}

/// The function as one that emits: what it indexes is a key with kind, name and whether it is stored, and a value. It stays on
/// the lines that it was written on.
fn mapped(source: &str) -> String {
    let source = source.trim_end().trim_end_matches(';');
    format!(
        "function (doc) {{ var index = function (kind, name, value, options) \
         {{ emit([kind, name, !!(options && options.store)], value); }}; return ({source}\n)(doc); }}"
    )
}

/// What an analyzer of this name makes of a text, as an index with it would; `None`: there is no such analyzer.
#[must_use]
pub fn analyzed(analyzer: &str, text: &str) -> Option<Vec<String>> {
    Some(match analyzer_of(analyzer)? {
        Analyzer::Keyword => vec![text.to_owned()],
        Analyzer::Words(language) => tokens(text, AnalysisOptions { language, words_max: WORDS_MAX }),
    })
}

/// What an analyzer makes of a text.
enum Analyzer {
    Words(LanguageChoice),
    Keyword,
}

/// Analyzers by Lucene's names. Case, accents and scripts are treated as the index does in all of them.
fn analyzer_of(name: &str) -> Option<Analyzer> {
    const PLAIN: [&str; 7] =
        ["standard", "simple", "simple_asciifolding", "classic", "email", "whitespace", "cjk"];
    /// Languages that Lucene stems and the index does not.
    const UNSTEMMED: [&str; 7] = ["basque", "brazilian", "bulgarian", "galician", "irish", "latvian", "thai"];
    if name == "keyword" {
        return Some(Analyzer::Keyword);
    }
    if name == "brazilian" {
        return Some(Analyzer::Words(LanguageChoice::Fixed(Language::Portuguese)));
    }
    if PLAIN.contains(&name) || UNSTEMMED.contains(&name) {
        return Some(Analyzer::Words(LanguageChoice::None));
    }
    let language = Language::all().find(|language| format!("{language:?}").eq_ignore_ascii_case(name))?;
    Some(Analyzer::Words(LanguageChoice::Fixed(language)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn definitions_are_refused_with_their_place() {
        let refused = |design: &Value| parse(design).unwrap_err().reason();
        assert!(refused(&json!({"nouveau": []})).contains("`nouveau` must be an object"));
        assert!(refused(&json!({"nouveau": {"a": {}}})).contains("nouveau `a`: `index`"));
        let index =
            |more: &Value| json!({"nouveau": {"a": {"index": "function(d){}", "default_analyzer": more}}});
        assert!(refused(&index(&json!("klingon"))).contains("klingon"));
        assert!(refused(&index(&json!(7))).contains('7'));
        let mut formula = index(&json!("english"));
        formula["language"] = json!("formula");
        assert!(refused(&formula).contains("JavaScript") && parse_stored(&formula).is_empty());
        assert!(parse_stored(&index(&json!("klingon"))).is_empty());
    }

    #[test]
    fn equal_functions_share_an_index_and_other_analyzers_do_not() {
        let of = |name: &str, analyzer: &str| {
            let design = json!({"nouveau": {name: {"index": "function(d){}", "default_analyzer": analyzer}}});
            parse(&design).unwrap().remove(0)
        };
        assert_eq!(of("a", "english").identity, of("b", "english").identity);
        assert_ne!(of("a", "english").identity, of("a", "german").identity);
        assert_eq!(of("a", "german").options.language, LanguageChoice::Fixed(Language::German));
        let TextSource::Function(function) = of("a", "keyword").source else { panic!("it is a function") };
        assert!(function.is_keyword("any"));
    }
}
