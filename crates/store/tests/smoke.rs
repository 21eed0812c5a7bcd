//! The store opens, writes, reads and opens again.
use scrinium_statistics::Registry;
use scrinium_store::*;
#[test]
fn smoke() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Store::open(StoreOptions::new(dir.path()), &Registry::new()).unwrap();
    let store = open();
    let mut batch = Batch::new();
    batch.put(Family::Scan, b"a", b"1");
    batch.put(Family::Scan, b"b", b"2");
    store.commit(batch).unwrap();
    let snapshot = store.snapshot();
    let mut cursor = snapshot.cursor(Family::Scan, KeyRange::ALL, Direction::Backward);
    assert_eq!(cursor.next().unwrap(), Some((&b"b"[..], &b"2"[..])));
    assert_eq!(cursor.next().unwrap(), Some((&b"a"[..], &b"1"[..])));
    assert_eq!(cursor.next().unwrap(), None);
    drop(cursor);
    drop(snapshot);
    store.close().unwrap();
    let store = open();
    assert_eq!(&*store.get(Family::Scan, b"a").unwrap().unwrap(), b"1");
}
