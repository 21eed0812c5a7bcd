//! Random steps against a map of what documents have, with a store of objects that fails, and servers that crash.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_catalog::FIRST_VOLUME;
use scrinium_contents::Relocation;
use scrinium_database::DatabaseError;

use super::bucket::Memory;
use super::{attach, content, delete, needed, options, read, settle};
use crate::common::Server;

const KB: usize = 1024;
const SIZES: [usize; 5] = [10 * KB, 257 * KB, 300 * KB, 520 * KB, 1100 * KB];

/// What may happen while the store of objects fails now and then.
fn may_fail<T>(result: Result<T, DatabaseError>) -> Option<T> {
    match result {
        Ok(done) => Some(done),
        Err(DatabaseError::Unavailable { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn check(server: &Server, bucket: &Memory, model: &BTreeMap<String, u64>, seed: u64) {
    let failing = std::mem::take(&mut bucket.0.lock().unwrap().fails_one_in);
    server.databases.set_objects(&bucket.objects(server.dir.path()));
    let database = server.databases.get("test").unwrap();
    for (id, number) in model {
        let expected = content(*number, SIZES[usize::try_from(*number).unwrap() % SIZES.len()]);
        assert!(read(&database, id).unwrap() == expected, "seed {seed}: {id} is not {number}");
    }
    bucket.0.lock().unwrap().fails_one_in = failing;
}

fn run(seed: u64, steps: usize) {
    let mut random = StdRng::seed_from_u64(seed);
    let bucket = Memory::new(seed);
    let mut server = Server::timed();
    server.databases.set_objects(&bucket.objects(server.dir.path()));
    server.databases.set_attachment_options(options(300 * KB)).unwrap();
    server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap();
    let mut model: BTreeMap<String, u64> = BTreeMap::new();
    bucket.0.lock().unwrap().fails_one_in = 9;
    for step in 0..steps {
        let database = server.databases.get("test").unwrap();
        // Another process would try again as well.
        server.databases.set_objects(&bucket.objects(server.dir.path()));
        match random.random_range(0..20) {
            0..9 => {
                let (id, number) = (random.random_range(0..6).to_string(), random.random_range(0..10));
                let bytes = content(number, SIZES[usize::try_from(number).unwrap() % SIZES.len()]);
                if may_fail(attach(&database, &id, &bytes)).is_some() {
                    model.insert(id, number);
                }
            }
            9..12 => {
                let id = random.random_range(0..6).to_string();
                if model.remove(&id).is_some() {
                    delete(&database, &id);
                }
            }
            12..15 => drop(server.databases.collect_contents().unwrap()),
            15 | 16 => {
                server.pass(std::time::Duration::from_millis(1));
                server.databases.remove_objects(&|| true).unwrap();
            }
            17 => {
                let to = if random.random_bool(0.3) { Relocation::ToVolume } else { Relocation::AsSet };
                let _moved = may_fail(server.databases.relocate_attachments(None, to, false));
            }
            18 => {
                let mut options =
                    options(*[260 * KB, 300 * KB, 1000 * KB].get(random.random_range(0..3)).unwrap());
                options.cache_bytes = if random.random_bool(0.5) { 0 } else { 2 << 20 };
                if random.random_bool(0.2) {
                    options.store = None;
                }
                server.databases.set_attachment_options(options).unwrap();
            }
            _ => {
                drop(database);
                server = server.crash();
                server.databases.set_objects(&bucket.objects(server.dir.path()));
                server.databases.set_attachment_options(options(300 * KB)).unwrap();
            }
        }
        if step % 10 == 9 {
            check(&server, &bucket, &model, seed);
        }
    }
    bucket.0.lock().unwrap().fails_one_in = 0;
    check(&server, &bucket, &model, seed);
    settle(&server);
    check(&server, &bucket, &model, seed);
    assert_eq!(bucket.names(), needed(&server, FIRST_VOLUME), "seed {seed}");
}

#[test]
fn what_is_acknowledged_can_be_read_and_nothing_else_stays() {
    let seed = std::env::var("SCRINIUM_SEED").ok().and_then(|seed| seed.parse().ok());
    match seed {
        Some(seed) => run(seed, 400),
        None => (0..6).for_each(|seed| run(seed, 120)),
    }
}
