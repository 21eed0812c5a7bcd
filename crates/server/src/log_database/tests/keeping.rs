//! What is kept, and for how long.

use std::collections::BTreeSet;

use proptest::prelude::*;
use scrinium_database::{Access, DatabaseError, Edit, EditMode};

use super::super::design::{DESIGN_ID, PrepareError, prepare};
use super::super::retention::remove_old;
use super::*;

/// Tests and measurements may do everything.
static SERVER: Access = Access::of_the_server("a test");

const VIEWS: [&str; 8] = [
    "events",
    "mail_routing",
    "task_runs",
    "slow_operations",
    "usage_by_user",
    "usage_by_database",
    "statistics",
    "statistics_by_hour",
];

fn put(databases: &Databases, name: &str, document: &Value) -> Result<(), DatabaseError> {
    let database = databases.get(name)?;
    let edit = Edit { json: document.to_string().into(), ..Edit::default() };
    database.update(vec![edit], EditMode::Interactive, &SERVER)?.wait()?.remove(0).map(drop)
}

fn read(world: &World, id: &str) -> Value {
    let database = world.databases.get("log").unwrap();
    serde_json::from_str(
        &database.read(id, &scrinium_database::ReadOptions::default(), &SERVER).unwrap().json,
    )
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(6), ..ProptestConfig::default() })]
    #[test]
    fn what_is_old_goes_and_leaves_nothing(
        made in prop::collection::vec((0..Class::ALL.len(), 0_i64..300), 1..200),
        removals in prop::collection::vec((0_i64..400, 1_u64..5, 1_u64..9), 1..4),
        read_before in prop::collection::vec(0..VIEWS.len(), 0..3),
    ) {
        let world = World::new();
        drop(world.writer(World::at(0)));
        let database = world.databases.get("log").unwrap();
        let own = json!({"_id": "_design/mine", "language": "formula", "views": {"servers": {"columns":
            [{"title": "Server", "formula": "Server", "sort": "asc"}, {"title": "Time", "formula": "Time"}]}}});
        put(&world.databases, "log", &own).unwrap();
        let mut kept: BTreeSet<(usize, i64, String)> = BTreeSet::new();
        let mut edits = Vec::new();
        for (class, minute) in made {
            let record = world.log.make(Class::ALL[class], World::at(minute), Map::new());
            kept.insert((class, minute, record.id.clone()));
            edits.push(Edit { id: Some(record.id), json: record.json, ..Edit::default() });
        }
        database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
        for view in &read_before {
            world.view("log", VIEWS[*view]);
        }
        world.view("mine", "servers");
        for (minute, documents, hourly) in removals {
            let keep = Keep { documents: HOUR * u32::try_from(documents).unwrap(), mail: HOUR * u32::try_from(documents).unwrap(), hourly: HOUR * u32::try_from(hourly).unwrap(), audit: HOUR };
            remove_old(&world.databases, &database, keep, World::at(minute), &|| true).unwrap();
            kept.retain(|(class, made, _)| {
                let hours = match Class::ALL[*class] {
                    Class::Hourly => hourly,
                    Class::Audit => 1,
                    _ => documents,
                };
                *made >= minute - i64::try_from(hours * 60).unwrap()
            });
        }
        // Tombstones of this very millisecond wait for the next removal.
        world.clock.advance(Duration::from_millis(1));
        let keep = Keep { documents: HOUR * 9999, mail: HOUR * 9999, hourly: HOUR * 9999, audit: HOUR * 9999 };
        remove_old(&world.databases, &database, keep, World::at(0), &|| true).unwrap();
        let ids: BTreeSet<String> =
            world.documents().iter().map(|document| document["_id"].as_str().unwrap().to_owned()).collect();
        prop_assert_eq!(&ids, &kept.iter().map(|(_, _, id)| id.clone()).collect());
        let info = database.info().unwrap();
        prop_assert_eq!((info.document_count, info.deleted_count), (ids.len() as u64 + 2, 0));
        let shown = |world: &World| {
            let own = VIEWS.iter().map(|view| world.view("log", view));
            own.chain([world.view("mine", "servers")]).collect::<Vec<_>>()
        };
        let followed = shown(&world);
        prop_assert_eq!(followed[8].len(), ids.len());
        database.update_all_views(None, true).unwrap();
        prop_assert_eq!(shown(&world), followed);
    }
}

#[test]
fn the_design_document_is_upgraded_and_what_is_somebody_elses_is_left_alone() {
    let world = World::new();
    drop(world.writer(World::at(0)));
    let made = read(&world, DESIGN_ID);
    assert_eq!(
        world.databases.get("log").unwrap().security().unwrap()["members"]["roles"],
        json!(["_admin"])
    );
    drop(world.writer(World::at(0)));
    assert_eq!(read(&world, DESIGN_ID)["_rev"], made["_rev"], "what is of this version is not written again");
    let own = json!({"_id": "_design/mine", "views": {}});
    put(&world.databases, "log", &own).unwrap();
    let mut old = made.clone();
    (old["version"], old["views"]) = (json!(0), json!({}));
    put(&world.databases, "log", &old).unwrap();
    drop(world.writer(World::at(0)));
    let upgraded = read(&world, DESIGN_ID);
    assert_eq!((&upgraded["version"], &upgraded["views"]), (&made["version"], &made["views"]));
    assert_eq!(read(&world, "_design/mine")["views"], json!({}));
    let mut newer = upgraded;
    (newer["version"], newer["views"]) = (json!(1_000), json!({}));
    put(&world.databases, "log", &newer).unwrap();
    drop(world.writer(World::at(0)));
    assert_eq!(read(&world, DESIGN_ID)["views"], json!({}), "a later server's is left");

    world.databases.create("wood", &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&world.databases, "wood", &json!({"_id": "a", "kind": "oak"})).unwrap();
    let refused = prepare(&world.databases, "wood").err().unwrap();
    assert!(matches!(refused, PrepareError::Foreign(_)));
    assert!(refused.to_string().contains("set log_database.name to another name"));
    assert_eq!(world.databases.get("wood").unwrap().info().unwrap().document_count, 1);
}

#[test]
fn a_dropped_log_database_is_made_again() {
    let world = World::new();
    let mut writer = world.writer(World::at(0));
    world.event("before");
    quietly(|| writer.round(World::at(0)));
    world.databases.delete("log").unwrap();
    world.event("after");
    quietly(|| {
        writer.round(World::at(0));
        writer.end(World::at(0));
    });
    let [event] = <[Value; 1]>::try_from(world.of(Class::Event)).unwrap();
    assert_eq!(event["Text"], "after");
}
