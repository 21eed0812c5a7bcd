//! What people write, and by which words they find it.

use scrinium_fulltext::{
    DocumentText, Field, FullTextError, FullTextIndex, Query, Readers, Readership, Search, SegmentBuilder,
    Sort, parse_query,
};

use crate::common::{found, open_index, open_store, segment};

const TEXTS: [(&str, &str); 9] = [
    (
        "en",
        "The children were running towards the old libraries of our city, and nobody was ever late for the lectures.",
    ),
    (
        "de",
        "Die Häuser an der Straße gehören den Fußgängern, und die Verträge werden morgen unterschrieben und abgelegt.",
    ),
    (
        "fr",
        "Les chevaux étaient fatigués après la réunion, mais l’équipe avait préparé des gâteaux pour les enfants.",
    ),
    ("ja", "東京都庁で会議を行います。資料はガイドをご覧ください。"),
    ("zh", "我们在北京大学的图书馆见面"),
    ("ko", "한국어 검색은 어렵습니다"),
    (
        "mail",
        "Write to Jane.Doe@mail.example.com or see https://www.example.org/a-b_c?x=1 before 2026-11-26 about ZX-81.",
    ),
    ("numbers", "Invoice 4711 over 1,234.56 euro, version 1.2.3"),
    ("empty", ""),
];

#[test]
fn words_are_found_in_all_their_forms() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_store(folder.path());
    let index = open_index(&store);
    index.update::<&str>(&[], &segment(&TEXTS), 1).unwrap();
    for (id, words) in [
        ("en", "run runs RUNNING library libraries children lecture"),
        ("de", "haus häuser hauser strasse STRASSE straße Fussgänger fußgänger vertrag unterschrieben"),
        ("fr", "cheval chevaux fatigue fatigué reunion equipe gateau GÂTEAUX"),
        ("ja", "東京 都庁 東京都庁 会議 ガイド ｶﾞｲﾄﾞ 京"),
        ("zh", "北京大学 图书馆 北京"),
        ("ko", "한국어 검색"),
        (
            "mail",
            "jane.doe@mail.example.com JANE.DOE@MAIL.EXAMPLE.COM jane.doe jane doe mail.example.com example.com \
             www.example.org example.org a-b_c 2026-11-26 zx-81 ZX81-not zx",
        ),
        ("numbers", "4711 1,234.56 1.2.3 1234.56-not euro"),
    ] {
        for word in words.split_whitespace() {
            let (word, is_there) = word.strip_suffix("-not").map_or((word, true), |word| (word, false));
            let ids = found(&store, &index, &Query::word("body", word));
            assert_eq!(ids.contains(&id.to_owned()), is_there, "{word} in {id}: {ids:?}");
        }
    }
    for (phrase, ids) in [
        ("running towards the old", vec!["en"]),
        ("run towards", vec![]),
        ("der Strasse gehoren", vec!["de"]),
        ("doe mail example", vec!["mail"]),
        ("都庁で会議", vec!["ja"]),
    ] {
        assert_eq!(found(&store, &index, &Query::phrase("body", phrase)), ids, "{phrase}");
    }
    assert_eq!(found(&store, &index, &Query::prefix("body", "jane.d")), ["mail"]);
    assert_eq!(found(&store, &index, &Query::prefix("body", "LIBR")), ["en"]);
    let pattern = |pattern: &str| Query::Pattern { field: "body".to_owned(), pattern: pattern.to_owned() };
    assert_eq!(found(&store, &index, &pattern("l?br*ies")), ["en"]);
    assert_eq!(found(&store, &index, &pattern("*gangern")), ["de"]);
    let similar = Query::Similar { field: "body".to_owned(), text: "librareis".to_owned(), distance: 1 };
    assert_eq!(found(&store, &index, &similar), ["en"]);
    assert_eq!(found(&store, &index, &Query::Exists { field: "body".to_owned() }).len(), TEXTS.len());
}

fn add(builder: &mut SegmentBuilder, id: &str, body: &str, readers: Readers<'_>) {
    builder.add(&DocumentText { id, readers, language: None, fields: vec![Field::text("body", body)] });
}

/// Somebody who may not find a document learns nothing of it, from scores neither.
#[test]
fn hidden_documents_change_nothing_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_store(folder.path());
    let index = open_index(&store);
    let mut builder = SegmentBuilder::default();
    for number in 0..40 {
        let (id, body) =
            (format!("ann-{number}"), if number % 3 == 0 { "apple pear" } else { "apple apple plum" });
        add(&mut builder, &id, body, Readers::Names(vec!["ann"]));
    }
    index.update::<&str>(&[], &builder.finish(), 1).unwrap();
    let ask = || {
        let reader = index.reader(&store.snapshot()).unwrap();
        let query = parse_query("apple pear plum", &["body"], false).unwrap();
        let names = Readership::Names(vec!["ann".to_owned()]);
        reader.search(&Search { counts: true, ..Search::new(query, names, 30) }).unwrap()
    };
    let before = ask();
    assert_eq!(before.hits.len(), 30);
    for number in 0..200 {
        add(
            &mut builder,
            &format!("bob-{number}"),
            "pear pear plum and much more of it",
            Readers::Names(vec!["bob"]),
        );
    }
    index.update::<&str>(&[], &builder.finish(), 2).unwrap();
    let mut after = ask();
    after.bookmark.clone_from(&before.bookmark);
    let ids =
        |found: &scrinium_fulltext::Found| found.hits.iter().map(|hit| hit.id.clone()).collect::<Vec<_>>();
    assert_eq!(after.total, before.total);
    assert_eq!(ids(&after), ids(&before));
    let reader = index.reader(&store.snapshot()).unwrap();
    let all =
        Search { counts: true, ..Search::new(Query::word("body", "pear"), Readership::Everything, 300) };
    assert_eq!(reader.search(&all).unwrap().hits.len(), 214);
    let nobody = Search { readership: Readership::Names(Vec::new()), ..all };
    assert_eq!(reader.search(&nobody).unwrap().hits.len(), 0);
}

#[test]
fn the_same_scores_whatever_is_hidden() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_store(folder.path());
    let index = open_index(&store);
    let mut builder = SegmentBuilder::default();
    add(&mut builder, "hidden-at-first", "sun", Readers::Names(vec!["bob"]));
    add(&mut builder, "a", "sun moon", Readers::Names(vec!["ann"]));
    add(&mut builder, "b", "sun sun stars and clouds", Readers::Everybody);
    index.update::<&str>(&[], &builder.finish(), 1).unwrap();
    let scores = || {
        let reader = index.reader(&store.snapshot()).unwrap();
        let query = Query::Or(vec![Query::word("body", "sun"), Query::word("body", "moon")]);
        let found = reader.search(&Search::new(query, Readership::Names(vec!["ann".to_owned()]), 9)).unwrap();
        found.hits.into_iter().map(|hit| (hit.id, hit.score)).collect::<Vec<_>>()
    };
    let before = scores();
    assert_eq!(before.len(), 2);
    for number in 0..50 {
        let words = "sun moon moon ".repeat(number % 7 + 1);
        add(&mut builder, &format!("bob-{number}"), &words, Readers::Names(vec!["bob"]));
    }
    index.update::<&str>(&[], &builder.finish(), 2).unwrap();
    assert_eq!(scores(), before);
}

#[test]
fn what_asks_for_too_much_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_store(folder.path());
    let index = open_index(&store);
    let texts: Vec<(String, String)> =
        (0..50).map(|number| (format!("d{number}"), format!("same word{number}"))).collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    index.update::<&str>(&[], &segment(&texts), 1).unwrap();
    let reader = index.reader(&store.snapshot()).unwrap();
    let is_too_broad = |search: &Search| matches!(reader.search(search), Err(FullTextError::TooBroad { .. }));
    let mut search = Search::new(Query::prefix("body", "word"), Readership::Everything, 5);
    assert!(!is_too_broad(&search));
    search.limits.terms_max = 10;
    assert!(is_too_broad(&search));
    search = Search::new(Query::word("body", "same"), Readership::Everything, 5);
    search.limits.postings_max = 20;
    assert!(is_too_broad(&search));
    search = Search::new(Query::All, Readership::Everything, 20_000);
    assert!(is_too_broad(&search));
    let deep = (0..1000).fold(Query::All, |query, _| Query::Not(Box::new(query)));
    assert!(is_too_broad(&Search::new(deep, Readership::Everything, 5)));
    assert!(is_too_broad(&Search::new(Query::Or(vec![Query::All; 5000]), Readership::Everything, 5)));
    let foreign =
        Search { bookmark: Some("AAAA".to_owned()), ..Search::new(Query::All, Readership::Everything, 5) };
    assert!(matches!(reader.search(&foreign), Err(FullTextError::Bookmark)));
    let mut first =
        Search { sort: vec![Sort::Relevance], ..Search::new(Query::All, Readership::Everything, 5) };
    first.bookmark = reader.search(&first).unwrap().bookmark;
    assert!(reader.search(&first).is_ok());
    first.query = Query::word("body", "same");
    assert!(matches!(reader.search(&first), Err(FullTextError::Bookmark)));
}

#[test]
fn an_index_of_other_options_is_built_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_store(folder.path());
    open_index(&store).update::<&str>(&[], &segment(&TEXTS), 3).unwrap();
    let other = scrinium_fulltext::AnalysisOptions {
        language: scrinium_fulltext::LanguageChoice::None,
        ..scrinium_fulltext::AnalysisOptions::default()
    };
    let error = FullTextIndex::open(&store, crate::common::INDEX, other).unwrap_err();
    assert!(error.needs_rebuild(), "{error}");
    FullTextIndex::reset(&store, crate::common::INDEX).unwrap();
    assert_eq!(FullTextIndex::open(&store, crate::common::INDEX, other).unwrap().reached().unwrap(), 0);
}
