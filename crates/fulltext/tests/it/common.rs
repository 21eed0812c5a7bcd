//! What the tests share.

use std::path::Path;

use scrinium_fulltext::{
    AnalysisOptions, DocumentText, Field, FullTextIndex, Query, Readers, Readership, Search, Segment,
    SegmentBuilder,
};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};

pub(crate) const INDEX: u64 = 7;

pub(crate) fn open_store(folder: &Path) -> Store {
    let mut options = StoreOptions::new(folder);
    options.log_extent_bytes = 1 << 20;
    options.sync = false;
    options.budget_bytes = Some(64 << 20);
    Store::open(options, &Registry::new()).unwrap()
}

pub(crate) fn open_index(store: &Store) -> FullTextIndex {
    FullTextIndex::open(store, INDEX, AnalysisOptions::default()).unwrap()
}

/// Documents of one text, `body`, which everybody may read.
pub(crate) fn segment(documents: &[(&str, &str)]) -> Segment {
    let mut builder = SegmentBuilder::new(AnalysisOptions::default());
    for (id, body) in documents {
        let fields = vec![Field::text("body", body)];
        builder.add(&DocumentText { id, readers: Readers::Everybody, language: None, fields });
    }
    builder.finish()
}

/// The ids that an administrator finds, the newest first.
pub(crate) fn found(store: &Store, index: &FullTextIndex, query: &Query) -> Vec<String> {
    let reader = index.reader(&store.snapshot()).unwrap();
    let search = Search { sort: Vec::new(), ..Search::new(query.clone(), Readership::Everything, 1000) };
    reader.search(&search).unwrap().hits.into_iter().map(|hit| hit.id).collect()
}
