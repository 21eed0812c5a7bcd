//! Whatever was added, replaced, removed, brought together and compacted: queries find what looking at every document finds.

use std::cmp::Reverse;
use std::ops::Bound;

use proptest::prelude::*;
use scrinium_fulltext::{
    AnalysisOptions, Bounds, DocumentText, Field, FullTextIndex, LanguageChoice, Query, Reader, Readers,
    Readership, Search, SearchLimits, Segment, SegmentBuilder, Sort, Total, Value,
};
use scrinium_store::Store;

use crate::common::{INDEX, open_store};

const WORDS: [&str; 9] = ["alpha", "beta", "bet", "gamma", "delta", "x1", "common", "common", "common"];
const PEOPLE: [&str; 3] = ["ann", "bob", "staff"];
const OPTIONS: AnalysisOptions = AnalysisOptions { language: LanguageChoice::None, words_max: 1000 };

#[derive(Clone, Debug)]
struct ModelDocument {
    id: String,
    subject: Vec<usize>,
    body: Vec<usize>,
    size: f64,
    kind: usize,
    readers: Option<Vec<usize>>,
}

#[derive(Clone, Debug)]
enum Step {
    Update { removed: Vec<u8>, added: Vec<ModelDocument> },
    Compact { bytes: usize, times: usize },
}

fn words() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..WORDS.len(), 0..7)
}

fn document() -> impl Strategy<Value = ModelDocument> {
    let readers = prop::option::weighted(0.6, prop::collection::vec(0..PEOPLE.len(), 0..3));
    (0_u16..400, words(), words(), -5_i8..60, 0..WORDS.len(), readers).prop_map(
        |(id, subject, body, size, kind, readers)| {
            let (id, size) = (format!("document-{id}"), f64::from(size) / 4.0);
            ModelDocument { id, subject, body, size, kind, readers }
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let update = |most| {
        (prop::collection::vec(any::<u8>(), 0..4), prop::collection::vec(document(), 0..most))
            .prop_map(|(removed, added)| Step::Update { removed, added })
    };
    prop_oneof![
        12 => update(4),
        3 => update(40),
        1 => update(180),
        2 => (1_usize..20_000, 1_usize..9).prop_map(|(bytes, times)| Step::Compact { bytes, times }),
    ]
}

fn query() -> impl Strategy<Value = Query> {
    let field = || prop_oneof![Just("subject"), Just("body")];
    let word = || (0..WORDS.len()).prop_map(|at| WORDS[at]);
    let leaf = prop_oneof![
        1 => Just(Query::All),
        6 => (field(), word()).prop_map(|(field, word)| Query::word(field, word)),
        3 => (field(), word(), word(), 0_u32..4).prop_map(|(field, one, two, slop)| Query::Phrase {
            field: field.to_owned(),
            text: format!("{one} {two}"),
            slop,
        }),
        2 => (field(), word(), 1_usize..4)
            .prop_map(|(field, word, letters)| Query::prefix(field, word.get(..letters.min(word.len())).unwrap())),
        2 => (-6_i8..70, 0_i8..40).prop_map(|(from, more)| {
            Query::numbers("size", f64::from(from) / 4.0, f64::from(from.saturating_add(more)) / 4.0)
        }),
        1 => word().prop_map(|word| Query::Exact { field: "kind".to_owned(), text: word.to_owned() }),
        1 => (word(), word()).prop_map(|(one, two)| Query::Range {
            field: "kind".to_owned(),
            bounds: Bounds {
                from: Bound::Included(Value::Text(one.to_owned())),
                to: Bound::Excluded(Value::Text(two.to_owned())),
            },
        }),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Query::And),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Query::Or),
            inner.clone().prop_map(|query| Query::Not(Box::new(query))),
            (inner.clone(), inner).prop_map(|(one, two)| Query::Preferred(Box::new(one), vec![two])),
        ]
    })
}

fn text(words: &[usize]) -> String {
    words.iter().map(|at| WORDS[*at]).collect::<Vec<_>>().join(" ")
}

impl ModelDocument {
    fn words(&self, field: &str) -> Vec<&'static str> {
        let words = if field == "subject" { &self.subject } else { &self.body };
        words.iter().map(|at| WORDS[*at]).collect()
    }

    fn fits(&self, query: &Query) -> bool {
        match query {
            Query::All => true,
            Query::Word { field, text } => self.words(field).contains(&text.as_str()),
            Query::Phrase { field, text, slop } => {
                let words = self.words(field);
                let (one, two) = text.split_once(' ').unwrap();
                let places = |wanted| (0_i64..).zip(&words).filter(move |(_, word)| **word == wanted);
                places(one).any(|(first, _)| {
                    places(two).any(|(second, _)| (second - 1 - first).unsigned_abs() <= u64::from(*slop))
                })
            }
            Query::Prefix { field, text } => self.words(field).iter().any(|word| word.starts_with(text)),
            Query::Exact { text, .. } => WORDS[self.kind] == text,
            Query::Range { bounds: Bounds { from, to }, .. } => match (from, to) {
                (Bound::Included(Value::Number(from)), Bound::Included(Value::Number(to))) => {
                    *from <= self.size && self.size <= *to
                }
                (Bound::Included(Value::Text(from)), Bound::Excluded(Value::Text(to))) => {
                    from.as_str() <= WORDS[self.kind] && WORDS[self.kind] < to.as_str()
                }
                other => panic!("{other:?} is not asked here"),
            },
            Query::And(parts) => parts.iter().all(|part| self.fits(part)),
            Query::Or(parts) => parts.iter().any(|part| self.fits(part)),
            Query::Not(part) => !self.fits(part),
            Query::Preferred(part, _) => self.fits(part),
            other => panic!("{other:?} is not asked here"),
        }
    }

    fn may_find(&self, readership: &Readership) -> bool {
        match (readership, &self.readers) {
            (Readership::Everything, _) | (_, None) => true,
            (Readership::Names(names), Some(readers)) => {
                readers.iter().any(|reader| names.iter().any(|name| name == PEOPLE[*reader]))
            }
        }
    }
}

fn segment(documents: &[ModelDocument]) -> Segment {
    let mut builder = SegmentBuilder::new(OPTIONS);
    for document in documents {
        let (subject, body) = (text(&document.subject), text(&document.body));
        let names = document.readers.as_ref().map(|names| names.iter().map(|name| PEOPLE[*name]).collect());
        let fields = vec![
            Field::text("subject", &subject),
            Field::text("body", &body),
            Field::number("size", document.size).sorted(),
            Field::exact("kind", WORDS[document.kind]).sorted(),
        ];
        let readers = names.map_or(Readers::Everybody, Readers::Names);
        builder.add(&DocumentText { id: &document.id, readers, language: None, fields });
    }
    builder.finish()
}

/// The documents that there are, the oldest first.
#[derive(Clone, Debug, Default)]
struct Model(Vec<ModelDocument>);

impl Model {
    fn apply(&mut self, removed: &[String], added: &[ModelDocument]) {
        self.0.retain(|document| !removed.contains(&document.id));
        for document in added {
            self.0.retain(|other| other.id != document.id);
            self.0.push(document.clone());
        }
    }

    fn ids(&self, query: &Query, readership: &Readership) -> Vec<&ModelDocument> {
        let fits = |document: &&ModelDocument| document.may_find(readership) && document.fits(query);
        self.0.iter().rev().filter(fits).collect()
    }
}

fn removed_ids(removed: &[u8]) -> Vec<String> {
    removed.iter().map(|id| format!("document-{id}")).collect()
}

fn check(reader: &Reader, model: &Model, query: &Query, readership: &Readership, page: usize) {
    let expected = model.ids(query, readership);
    let ids: Vec<&str> = expected.iter().map(|document| document.id.as_str()).collect();
    let mut each = Vec::new();
    let mut take = |id: &str| {
        each.push(id.to_owned());
        true
    };
    reader.each(query, readership, &SearchLimits::default(), &mut take).unwrap();
    assert_eq!(each, ids, "{query:?} for {readership:?}");

    let by = |name: &str, is_descending| Sort::Field { name: name.to_owned(), is_descending };
    let size = |document: &&ModelDocument| (document.size * 4.0) as i64;
    let kind = |document: &&ModelDocument| WORDS[document.kind];
    let mut orders = vec![(Vec::new(), expected.clone())];
    let mut sorted = expected.clone();
    sorted.sort_by_key(|document| Reverse(size(document)));
    orders.push((vec![by("size", true)], sorted.clone()));
    sorted.clone_from(&expected);
    sorted.sort_by_key(|document| (size(document), Reverse(kind(document))));
    orders.push((vec![by("size", false), by("kind", true)], sorted.clone()));
    sorted.clone_from(&expected);
    sorted.sort_by_key(kind);
    orders.push((vec![by("kind", false), by("none", true)], sorted));
    for (sort, sorted) in orders {
        let mut search = Search { sort, ..Search::new(query.clone(), readership.clone(), page) };
        let mut got = Vec::new();
        loop {
            let found = reader.search(&search).unwrap();
            got.extend(found.hits.into_iter().map(|hit| hit.id));
            search.bookmark = found.bookmark;
            if search.bookmark.is_none() {
                break;
            }
        }
        let sorted: Vec<&str> = sorted.iter().map(|document| document.id.as_str()).collect();
        assert_eq!(got, sorted, "{query:?} for {readership:?} by {:?}", search.sort);
    }
    let search = Search { counts: true, ..Search::new(query.clone(), readership.clone(), 3) };
    let found = reader.search(&search).unwrap();
    assert_eq!(found.total, Total::Exactly(ids.len() as u64), "{query:?} for {readership:?}");
    assert_eq!(found.hits.len(), ids.len().min(3));
    assert!(found.hits.is_sorted_by(|one, two| one.score >= two.score), "{:?}", found.hits);
}

fn run(store: &Store, steps: &[Step]) -> (FullTextIndex, Model) {
    let (mut model, mut reached) = (Model::default(), 0);
    let mut index = FullTextIndex::open(store, INDEX, OPTIONS).unwrap();
    for step in steps {
        match step {
            Step::Update { removed, added } => {
                let removed = removed_ids(removed);
                reached += 1;
                let before = index.reader(&store.snapshot()).unwrap();
                let ahead = before.with_latest(&removed, &segment(added)).unwrap();
                index.update(&removed, &segment(added), reached).unwrap();
                model.apply(&removed, added);
                check(&ahead, &model, &Query::word("body", "common"), &Readership::Everything, 50);
            }
            Step::Compact { bytes, times } => {
                for _ in 0..*times {
                    index.compact(*bytes).unwrap();
                }
            }
        }
        assert_eq!(index.reached().unwrap(), reached);
        assert_eq!(index.figures().unwrap().documents, model.0.len() as u64);
        index = FullTextIndex::open(store, INDEX, OPTIONS).unwrap();
    }
    (index, model)
}

fn cases() -> ProptestConfig {
    let times: u32 = std::env::var("SCRINIUM_TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    ProptestConfig { cases: 2 * times, max_shrink_iters: 40, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn queries_find_what_looking_at_every_document_finds(
        steps in prop::collection::vec(step(), 1..14),
        queries in prop::collection::vec((query(), prop::collection::vec(0..PEOPLE.len(), 0..3), any::<bool>()), 6),
        page in 5_usize..90,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let store = open_store(folder.path());
        let (index, model) = run(&store, &steps);
        let reader = index.reader(&store.snapshot()).unwrap();
        for (query, names, is_everything) in &queries {
            let names = names.iter().map(|name| PEOPLE[*name].to_owned()).collect();
            let readership = if *is_everything { Readership::Everything } else { Readership::Names(names) };
            check(&reader, &model, query, &readership, page);
        }
        // Built again from the documents, it is the same; and so it is when all is compacted.
        FullTextIndex::reset(&store, INDEX).unwrap();
        let rebuilt = FullTextIndex::open(&store, INDEX, OPTIONS).unwrap();
        rebuilt.update::<&str>(&[], &segment(&model.0), 1).unwrap();
        while !rebuilt.compact(100_000).unwrap() {}
        let reader = rebuilt.reader(&store.snapshot()).unwrap();
        for (query, _, _) in &queries {
            check(&reader, &model, query, &Readership::Everything, page);
        }
    }
}
