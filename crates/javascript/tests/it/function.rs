//! Filters and update functions as CouchDB calls them.

use scrinium_javascript::{DesignFunction, Limits, Pool, PoolOptions, ScriptError, UpdateAnswer};
use serde_json::{Value, json};

fn function(design: &Value, path: &str, limits: Limits) -> DesignFunction {
    let pool = Pool::new(PoolOptions { limits, ..PoolOptions::default() });
    let source = design.pointer(path).unwrap().as_str().unwrap();
    DesignFunction::new(&pool, [1; 16], source, &design.to_string())
}

fn design() -> Value {
    json!({
        "_id": "_design/d",
        "limit": 3,
        "lib": {"words": "exports.is = function (doc, kind) { return doc.kind === kind; };"},
        "filters": {
            "kind": "function (doc, req) { return require('lib/words').is(doc, req.query.kind); }",
            "small": "function (doc) { return doc.n < this.limit; }",
            "odd": "function (doc) {
                if (doc.n === 1) throw { forbidden: 'no' };
                if (doc.n === 2) for (;;);
                if (doc.n === 3) { var all = []; for (;;) all.push(all.concat(all)); }
                if (doc.n === 4) leaked = doc;
                doc.n = typeof leaked;
                return doc.n === 'undefined';
            }",
        },
        "updates": {
            "count": "function (doc, req) {
                if (!doc) return [{_id: req.uuid, n: 0}, 'made'];
                doc.n += Number(req.query.by || 1);
                return [doc, {body: 'now ' + doc.n, headers: {'X-Count': String(doc.n)}}];
            }",
            "none": "function () { return 'text'; }",
            "forbidden": "function () { throw { forbidden: 'not you' }; }",
            "unauthorized": "function () { throw { unauthorized: 'who?' }; }",
            "nothing": "function () { return [null, undefined]; }",
            "large": "function () { return [null, 'x'.repeat(17 * 1024 * 1024)]; }",
        },
    })
}

#[test]
fn a_filter_sees_document_and_request_and_nothing_of_other_calls() {
    let design = design();
    let mut kind = function(&design, "/filters/kind", Limits::default());
    let request = json!({"query": {"kind": "memo"}}).to_string();
    assert_eq!(kind.lets_pass(r#"{"kind": "memo"}"#, &request), Ok(true));
    assert_eq!(kind.lets_pass(r#"{"kind": "task"}"#, &request), Ok(false));
    let mut small = function(&design, "/filters/small", Limits::default());
    assert_eq!(small.lets_pass(r#"{"n": 2}"#, "{}"), Ok(true));
    assert_eq!(small.lets_pass("{}", "{}"), Ok(false));

    let limits = Limits { call_time_ms: 60, memory_bytes: 16 << 20, ..Limits::default() };
    let mut odd = function(&design, "/filters/odd", limits);
    let ask = |odd: &mut DesignFunction, n: u32| odd.lets_pass(&json!({ "n": n }).to_string(), "{}");
    assert_eq!(ask(&mut odd, 0), Ok(true));
    assert!(matches!(ask(&mut odd, 1), Err(ScriptError::Thrown { .. })));
    assert_eq!(ask(&mut odd, 2), Err(ScriptError::Time { limit_ms: 60 }));
    assert!(ask(&mut odd, 3).is_err());
    assert!(matches!(ask(&mut odd, 4), Err(ScriptError::Thrown { .. })));
    assert_eq!(ask(&mut odd, 0), Ok(true), "nothing is left of what was before");
    for _ in 0..3 {
        ask(&mut odd, 2).unwrap_err();
    }
    assert!(matches!(ask(&mut odd, 0), Err(ScriptError::SwitchedOff { .. })));
}

#[test]
fn an_update_function_gives_a_document_and_an_answer() {
    let design = design();
    let mut count = function(&design, "/updates/count", Limits::default());
    let request = json!({"uuid": "u", "query": {"by": "2"}}).to_string();
    let answered = |answer: Result<UpdateAnswer, ScriptError>| match answer.unwrap() {
        UpdateAnswer::Given { json } => serde_json::from_str::<Value>(&json).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(answered(count.update("null", &request)), json!([{"_id": "u", "n": 0}, "made"]));
    let expected = json!([{"_id": "a", "n": 7}, {"body": "now 7", "headers": {"X-Count": "7"}}]);
    assert_eq!(answered(count.update(r#"{"_id": "a", "n": 5}"#, &request)), expected);
    let mut nothing = function(&design, "/updates/nothing", Limits::default());
    assert_eq!(answered(nothing.update("null", "{}")), json!([null, null]));
    let refused = |name: &str| {
        let mut function = function(&design, &format!("/updates/{name}"), Limits::default());
        function.update("null", "{}")
    };
    assert_eq!(refused("forbidden"), Ok(UpdateAnswer::Forbidden { reason: "not you".to_owned() }));
    assert_eq!(refused("unauthorized"), Ok(UpdateAnswer::Unauthorized { reason: "who?".to_owned() }));
    for name in ["none", "large"] {
        let mut function = function(&design, &format!("/updates/{name}"), Limits::default());
        assert!(function.update("null", "{}").is_err(), "{name}");
        assert!(function.update("null", "{").is_err(), "{name}");
    }
}
