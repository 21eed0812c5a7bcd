//! Conflicts that replications bring are settled by rules, at every server in the same way.

use std::time::Duration;

use scrinium_database::Identity;
use scrinium_replication::{JobState, SettleRule, settle};
use scrinium_views::DatabaseSession;
use serde_json::{Map, Value, json};

use crate::ground::{Ground, bring, everything, leaves, person, put};

fn members(order: Value) -> Map<String, Value> {
    order.as_object().unwrap().clone()
}

async fn replicate(ground: &Ground, source: &str, target: &str, rule: &Value) {
    let order = json!({"source": source, "target": target, "settle_conflicts": rule});
    let job = ground.replicator().order(&members(order), &person("admin")).unwrap();
    job.over().await.unwrap();
}

fn living(leaves: &[Value]) -> Vec<&Value> {
    leaves.iter().filter(|leaf| leaf.get("_deleted").is_none()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_settle_a_conflict_by_one_rule_agree() {
    let cases = [
        (json!({"newest": "Modified"}), json!("b"), json!(["red"])),
        (json!({"formula": "@If(State = \"final\"; 1; 0)"}), json!("a"), json!(["blue", "red"])),
        (json!({"newest": "Modified", "union": ["Tags"]}), json!("b"), json!(["red", "blue"])),
        // Without more, the winner is kept: that with the greatest name.
        (json!({"union": ["Tags"]}), json!("c"), json!(["green", "blue", "red"])),
    ];
    for (rule, kept, tags) in cases {
        let ground = Ground::new();
        let (one, two) = (ground.create("one"), ground.create("two"));
        let leaf = |name: &str, more: Value| {
            let mut leaf = json!({"_id": "d", "_rev": format!("1-{}", name.repeat(32)), "Who": name});
            leaf.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            leaf
        };
        bring(&one, leaf("a", json!({"Modified": "2026-03-01", "State": "final", "Tags": ["blue", "red"]})))
            .await;
        bring(&two, leaf("b", json!({"Modified": "2026-03-03", "Tags": ["red"]}))).await;
        if rule.get("newest").is_none() && rule.get("formula").is_none() {
            bring(&two, leaf("c", json!({"Modified": "2026-02-01", "Tags": "green"}))).await;
        }
        // Both settle the conflict by themselves, before they hear of each other's result.
        replicate(&ground, "one", "two", &rule).await;
        replicate(&ground, "two", "one", &rule).await;
        replicate(&ground, "one", "two", &rule).await;
        assert_eq!(everything(&one), everything(&two), "{rule}");
        let leaves = leaves(&one, "d");
        let living = living(&leaves);
        assert_eq!(living.len(), 1, "{rule}: {living:?}");
        assert_eq!(living[0]["Who"], kept, "{rule}");
        let mut found: Vec<&Value> = living[0]["Tags"].as_array().unwrap().iter().collect();
        let mut wanted: Vec<&Value> = tags.as_array().unwrap().iter().collect();
        found.sort_by_key(|tag| tag.to_string());
        wanted.sort_by_key(|tag| tag.to_string());
        assert_eq!(found, wanted, "{rule}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_stay_where_the_one_that_takes_over_from_them_is_refused() {
    let ground = Ground::new();
    let one = ground.create("one");
    for name in ["a", "b"] {
        bring(&one, json!({"_id": "d", "_rev": format!("1-{}", name.repeat(32)), "Tags": [name]})).await;
    }
    let formula = "@If($Deleted; @Success; @Elements(Tags) > 1; @Failure(\"one tag\"); @Success)";
    let design = json!({"_id": "_design/one", "language": "formula", "validate_doc_update": formula});
    put(&one, design).await;
    let before = leaves(&one, "d");
    let administrator = Identity::new("admin", vec!["_admin".to_owned()]);
    let session = DatabaseSession::open(ground.databases.get("one").unwrap(), &administrator).unwrap();
    let rule = SettleRule::parse(&json!({"union": ["Tags"]})).unwrap();
    let refusal = settle(&session, "d", &rule).unwrap_err();
    assert!(refusal.to_string().contains("one tag"), "{refusal}");
    assert_eq!(leaves(&one, "d"), before);
    // One that takes nothing over is stored, and settles it.
    let rule = SettleRule::parse(&json!({"newest": "Tags"})).unwrap();
    assert!(settle(&session, "d", &rule).unwrap());
    assert_eq!(living(&leaves(&one, "d")).len(), 1);
}

#[test]
fn rules_that_make_no_sense_are_refused() {
    for wrong in [
        json!(null),
        json!({}),
        json!({"oldest": "x"}),
        json!({"newest": 7}),
        json!({"newest": "Modified\" + \"x"}),
        json!({"newest": "a\\b"}),
        json!({"formula": "@Nothing("}),
        json!({"newest": "a", "formula": "b"}),
        json!({"union": ["_id"]}),
        json!({"union": "Tags"}),
    ] {
        assert!(SettleRule::parse(&wrong).is_err(), "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_replication_waits_for_its_next_time_and_says_so() {
    let ground = Ground::new();
    let (a, b) = (ground.create("a"), ground.create("b"));
    put(&a, json!({"_id": "first"})).await;
    let replicator = ground.replicator();
    let order =
        members(json!({"source": "a", "target": "b", "schedule": {"every_s": 3600}, "priority": "low"}));
    let job = replicator.order(&order, &person("bob")).unwrap();
    for _ in 0..500 {
        if job.status().state == JobState::Waiting {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!((job.status().state, job.is_over()), (JobState::Waiting, false));
    assert_eq!(everything(&a), everything(&b));
    assert_eq!(job.shown("node")["state"], "pending");
    replicator.cancel(&order, &person("bob")).unwrap();
    job.over().await.unwrap_err();
}
