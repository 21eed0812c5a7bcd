//! Jobs: ordered, found, cancelled, tried again, and ordered by documents.

use std::sync::Arc;
use std::time::Duration;

use scrinium_database::{Database, InitialAccess};
use scrinium_replication::{BackOff, JobState, REPLICATOR_DATABASE, ReplicatorOptions};
use serde_json::{Map, Value, json};

use crate::ground::{Ground, everything, leaves, person, put};

fn members(order: Value) -> Map<String, Value> {
    order.as_object().unwrap().clone()
}

/// Waits until something is so, for some seconds at most.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came that {what}");
}

fn quick() -> ReplicatorOptions {
    let back_off = BackOff { first: Duration::from_millis(20), longest: Duration::from_millis(50) };
    ReplicatorOptions { back_off, ..ReplicatorOptions::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_continuous_job_brings_what_comes_until_it_is_cancelled() {
    let ground = Ground::new();
    let (a, b) = (ground.create("a"), ground.create("b"));
    let replicator = ground.replicator_with(quick());
    let order = members(json!({"source": "a", "target": "b", "continuous": true}));
    let job = replicator.order(&order, &person("bob")).unwrap();
    assert!(
        Arc::ptr_eq(&job, &replicator.order(&order, &person("bob")).unwrap()),
        "the same order is the same job"
    );
    for number in 0..5 {
        put(&a, json!({"_id": format!("{number}")})).await;
        until("it is there", || leaves(&b, &format!("{number}")).len() == 1).await;
    }
    assert_eq!(everything(&a), everything(&b));
    assert_eq!(job.status().state, JobState::Running);
    assert!(replicator.cancel(&order, &person("eve")).is_err());
    replicator.cancel(&order, &person("bob")).unwrap();
    job.over().await.unwrap_err();
    put(&a, json!({"_id": "late"})).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(leaves(&b, "late").is_empty());
    assert!(replicator.cancel(&order, &person("bob")).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_cancelled_just_now_is_neither_cancelled_nor_ordered_as_the_same_job() {
    let ground = Ground::new();
    let (a, b) = (ground.create("a"), ground.create("b"));
    let replicator = ground.replicator_with(quick());
    let order = members(json!({"source": "a", "target": "b", "continuous": true}));
    for number in 0..20 {
        let job = replicator.order(&order, &person("bob")).unwrap();
        replicator.cancel(&order, &person("bob")).unwrap();
        assert!(replicator.cancel(&order, &person("bob")).is_err(), "before it is over too");
        let next = replicator.order(&order, &person("bob")).unwrap();
        assert!(!Arc::ptr_eq(&job, &next));
        put(&a, json!({"_id": format!("{number}")})).await;
        until("the next one brings it", || leaves(&b, &format!("{number}")).len() == 1).await;
        assert_eq!(job.status().state, JobState::Cancelled);
        replicator.cancel(&order, &person("bob")).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_no_administrator_replicates_databases_of_this_server_only() {
    let ground = Ground::new();
    ground.create("a");
    let replicator = ground.replicator();
    for order in [
        json!({"source": "http://db.example/a", "target": "a"}),
        json!({"source": "a", "target": {"url": "https://db.example/a"}}),
        json!({"source": "a", "target": "b", "user_ctx": {"name": "admin"}}),
    ] {
        let refused = replicator.order(&members(order.clone()), &person("bob")).err().unwrap();
        assert!(refused.reason.contains("administrator"), "{order}: {refused}");
    }
    // And nobody makes the server connect to itself, or to what its own wire alone reaches.
    for url in [
        "http://127.0.0.1:22/a",
        "http://[::1]/a",
        "http://[::ffff:127.0.0.1]/a",
        "http://169.254.169.254/latest",
        "http://0.0.0.0/a",
        "http://2130706433/a",
        "http://0x7f.1/a",
    ] {
        let order = json!({"source": url, "target": "a"});
        let refused = replicator.order(&members(order), &person("admin")).err().unwrap();
        assert!(refused.reason.contains("replication.allowed_networks"), "{url}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_tried_again_and_says_why() {
    let ground = Ground::new();
    let a = ground.create("a");
    put(&a, json!({"_id": "x"})).await;
    let replicator = ground.replicator_with(quick());
    let order = members(json!({"source": "a", "target": "later", "continuous": true}));
    let job = replicator.order(&order, &person("bob")).unwrap();
    until("it has failed twice", || job.status().failures >= 2).await;
    assert!(job.status().reason.unwrap().contains("later"));
    let later = ground.create("later");
    until("it goes on", || leaves(&later, "x").len() == 1).await;
    // Who waits for the end of an order hears of its failure at once.
    let order = members(json!({"source": "a", "target": "never"}));
    let once = replicator.order(&order, &person("bob")).unwrap();
    let error = once.over().await.unwrap_err();
    assert_eq!((error.word(), once.status().state), ("db_not_found", JobState::Failed));
}

fn document(database: &Arc<Database>, id: &str) -> Value {
    leaves(database, id).pop().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_order_replications_and_tell_how_they_ended() {
    let ground = Ground::new();
    let (a, b) = (ground.create("a"), ground.create("b"));
    put(&a, json!({"_id": "x"})).await;
    let orders = ground.databases.create(REPLICATOR_DATABASE, &InitialAccess::Closed).unwrap();
    let replicator = ground.replicator_with(quick());
    put(&orders, json!({"_id": "once", "source": "a", "target": "b", "owner": "bob"})).await;
    put(&orders, json!({"_id": "wrong", "source": 7, "target": "b", "owner": "bob"})).await;
    put(&orders, json!({"_id": "left", "source": "a", "target": "c", "owner": "nobody"})).await;
    let following = replicator.follow();
    until("it is done", || document(&orders, "once")["_replication_state"] == "completed").await;
    assert_eq!(everything(&a), everything(&b));
    let once = document(&orders, "once");
    assert_eq!(once["_replication_stats"]["docs_written"], 1);
    until("it has failed", || document(&orders, "wrong")["_replication_state"] == "failed").await;
    until("it has failed", || document(&orders, "left")["_replication_state"] == "failed").await;
    assert!(document(&orders, "left")["_replication_state_reason"].as_str().unwrap().contains("owner"));
    // A changed document is another order, and a deleted one orders nothing.
    let revision = document(&orders, "once")["_rev"].clone();
    put(&orders, json!({"_id": "once", "_rev": revision, "source": "a", "target": "b", "continuous": true, "owner": "bob"}))
        .await;
    until("it runs", || replicator.document_shown("once").is_some_and(|shown| shown["state"] == "running"))
        .await;
    put(&a, json!({"_id": "y"})).await;
    until("it came", || leaves(&b, "y").len() == 1).await;
    let revision = document(&orders, "once")["_rev"].clone();
    put(&orders, json!({"_id": "once", "_rev": revision, "_deleted": true})).await;
    until("it is gone", || replicator.jobs().is_empty()).await;
    assert!(replicator.document_shown("once").is_none());
    replicator.stop().await;
    following.await.unwrap();
}
