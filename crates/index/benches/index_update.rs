//! What bringing seven indexes up to date for one document costs at 1,000 documents and at many more, below everything
//! else: in each an entry goes and another comes, anywhere, in one batch.
//!
//! Rounds alternate between the sizes. `cargo bench -p scrinium-index --bench index_update`; `SCRINIUM_SIZES=1000,5000000` for
//! other sizes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark stops at the first error")]

use std::time::Instant;

use scrinium_bench::{Against, Line, compare_sizes, folder, report, scatter, sizes};
use scrinium_index::{Change, Index, IndexError, Sums, Update};
use scrinium_statistics::Registry;
use scrinium_store::{Batch, Store, StoreOptions};

const SIZES: [u64; 2] = [1000, 1_000_000];
const VIEWS: u64 = 7;
const COLLATION: u32 = 1;
const UPDATES: u64 = 2000;
const OPENED: usize = 3;
/// Everything is in memory.
const BUDGET_BYTES: u64 = 4 << 30;
const VALUE: &[u8] = b"what a row of the view shows beside";

/// Seven indexes of this many documents, each with an entry for every document.
struct Place {
    first_id: u64,
    indexes: Vec<Index>,
    /// How often each document was changed, which its entries' places depend on.
    versions: Vec<u32>,
    reached: u64,
}

fn key(view: u64, document: u64, version: u32) -> Vec<u8> {
    let place = scatter(document << 20 ^ u64::from(version) << 3 ^ view);
    [&place.to_be_bytes()[..], format!("{document:016x}").as_bytes()].concat()
}

fn sums(document: u64) -> Sums {
    vec![f64::from(u32::try_from(document % 1000).unwrap())]
}

impl Place {
    fn fill(store: &Store, first_id: u64, documents: u64) -> Self {
        let build = |view: u64| {
            let index = Index::open(store, first_id + view, 1, COLLATION).unwrap();
            let mut entries: Vec<(Vec<u8>, u64)> =
                (0..documents).map(|document| (key(view, document, 0), document)).collect();
            entries.sort_unstable();
            let whole = |(key, document)| Ok::<_, IndexError>((key, VALUE.to_vec(), sums(document)));
            index.rebuild(entries.into_iter().map(whole), 1).unwrap();
            index
        };
        let versions = vec![0; usize::try_from(documents).unwrap()];
        Self { first_id, indexes: (0..VIEWS).map(build).collect(), versions, reached: 1 }
    }

    fn update(&mut self, document: u64) {
        let at = usize::try_from(document).unwrap();
        let version = self.versions[at];
        self.versions[at] += 1;
        self.reached += 1;
        let change = |(view, index)| {
            let old = Change::Remove { key: key(view, document, version), sums: sums(document) };
            let (key, value) = (key(view, document, version + 1), VALUE.to_vec());
            let new = Change::Insert { key, value, sums: sums(document) };
            Update { index, changes: vec![old, new], reached: self.reached }
        };
        Update::all((0..).zip(&self.indexes).map(change).collect(), Batch::new()).unwrap();
    }

    /// Milliseconds of opening the seven indexes again, with what the updates have left.
    fn open(&mut self, store: &Store) -> f64 {
        self.indexes.clear();
        let began = Instant::now();
        self.indexes =
            (0..VIEWS).map(|view| Index::open(store, self.first_id + view, 1, COLLATION).unwrap()).collect();
        began.elapsed().as_secs_f64() * 1e3
    }
}

fn main() {
    let folder = folder();
    let mut options = StoreOptions::new(folder.path());
    options.budget_bytes = Some(BUDGET_BYTES);
    let store = Store::open(options, &Registry::new()).unwrap();
    let sizes = sizes(&SIZES);
    let mut places: Vec<Place> = (1..)
        .step_by(usize::try_from(VIEWS).unwrap())
        .zip(&sizes)
        .map(|(first_id, documents)| Place::fill(&store, first_id, *documents))
        .collect();
    compare_sizes("index-update", "seven indexes follow an update", &sizes, UPDATES, |place, random| {
        let place = &mut places[place];
        place.update(random % place.versions.len() as u64);
    });
    let opened: Vec<Vec<f64>> =
        places.iter_mut().map(|place| (0..OPENED).map(|_| place.open(&store)).collect()).collect();
    for (documents, opened) in sizes.iter().zip(&opened).skip(1) {
        report(&Line {
            name: "index-update",
            case: &format!("seven indexes opened after the updates, {documents} documents"),
            values: opened,
            unit: "ms",
            against: Against::Given("a second", 1000.0),
        });
    }
}
