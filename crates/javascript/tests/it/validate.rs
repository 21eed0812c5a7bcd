//! `validate_doc_update` as CouchDB calls it.

use scrinium_javascript::{EditToValidate, Limits, Pool, PoolOptions, ScriptError, Validator, Verdict};
use serde_json::{Value, json};

fn verdicts(design: &Value, edits: &[(&str, &str)], limits: Limits) -> Vec<Verdict> {
    let pool = Pool::new(PoolOptions { limits, ..PoolOptions::default() });
    let source = design["validate_doc_update"].as_str().unwrap();
    let validator = Validator::new(&pool, [1; 16], source, &design.to_string());
    let edits = edits.iter().map(|(new_json, old_json)| EditToValidate {
        new_json,
        old_json,
        user_json: r#"{"db": "db", "name": "ada", "roles": ["clerk"]}"#,
        security_json: r#"{"members": {"roles": ["clerk"]}}"#,
    });
    validator.validate(&edits.collect::<Vec<_>>()).unwrap()
}

#[test]
fn what_it_throws_decides() {
    let design = json!({
        "_id": "_design/d",
        "lib": {"words": "exports.no = function (who) { return 'not by ' + who; };"},
        "limit": 10,
        "validate_doc_update": "function (newDoc, oldDoc, userCtx, secObj) {
            if (newDoc.n > this.limit) throw { forbidden: require('lib/words').no(userCtx.name) };
            if (oldDoc && oldDoc.locked) throw { unauthorized: secObj.members.roles[0] };
            if (newDoc.odd === 1) throw 'a text';
            if (newDoc.odd === 2) throw new Error('broken');
            if (newDoc.odd === 3) for (;;);
            if (newDoc.odd === 4) leaked = newDoc;
            newDoc.n = 5;
        }",
    });
    let edits = [
        (r#"{"_id": "a", "n": 1}"#, "null"),
        (r#"{"_id": "a", "n": 11}"#, "null"),
        (r#"{"_id": "a", "n": 1}"#, r#"{"locked": true}"#),
        (r#"{"_id": "a", "odd": 1}"#, "null"),
        (r#"{"_id": "a", "odd": 2}"#, "null"),
        (r#"{"_id": "a", "odd": 3}"#, "null"),
        (r#"{"_id": "a", "odd": 4}"#, "null"),
        (r#"{"_id": "a"}"#, "null"),
    ];
    let limits = Limits { call_time_ms: 60, ..Limits::default() };
    let verdicts = verdicts(&design, &edits, limits);
    assert_eq!(verdicts[0], Verdict::Allowed);
    assert_eq!(verdicts[1], Verdict::Forbidden { reason: "not by ada".to_owned() });
    assert_eq!(verdicts[2], Verdict::Unauthorized { reason: "clerk".to_owned() });
    let failed = |verdict: &Verdict, words: &str| match verdict {
        Verdict::Failed(error) => error.to_string().contains(words),
        _ => false,
    };
    assert!(failed(&verdicts[3], "a text"), "{verdicts:?}");
    assert!(failed(&verdicts[4], "broken"), "{verdicts:?}");
    assert_eq!(verdicts[5], Verdict::Failed(ScriptError::Time { limit_ms: 60 }));
    assert!(failed(&verdicts[6], "not defined"), "{verdicts:?}");
    assert_eq!(verdicts[7], Verdict::Allowed);
}
