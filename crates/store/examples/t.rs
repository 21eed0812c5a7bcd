//! t
#![allow(clippy::unwrap_used)]
use scrinium_store::*;
use std::time::Instant;
fn main() {
    let d = tempfile::tempdir().unwrap();
    let mut o = StoreOptions::new(d.path().join("s"));
    o.log_extent_bytes = 1 << 20;
    o.budget_bytes = Some(32 << 20);
    for i in 0..5u32 {
        let t = Instant::now();
        let s = Store::open(o.clone(), &scrinium_statistics::Registry::new()).unwrap();
        let a = t.elapsed();
        let t = Instant::now();
        let mut b = Batch::new();
        b.put(Family::Scan, &i.to_be_bytes(), b"x");
        b.put(Family::Blob, &i.to_be_bytes(), b"x");
        s.commit(b).unwrap();
        let c = t.elapsed();
        let t = Instant::now();
        s.checkpoint().unwrap();
        let e = t.elapsed();
        let t = Instant::now();
        if i % 2 == 0 {
            s.close().unwrap();
        } else {
            drop(s);
        }
        let f = t.elapsed();
        println!("open {a:?} commit {c:?} checkpoint {e:?} close/drop {f:?}");
    }
}
