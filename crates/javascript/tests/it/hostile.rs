//! Whatever a function does costs its document the entries in its view, and nothing else.

use std::sync::Arc;

use scrinium_javascript::{
    Conduct, Emitted, Limits, MapEngine, Mapped, Pool, PoolOptions, ReduceEngine, Reducer, Row, STOPPED_MAX,
    ScriptError,
};

const DATABASE: [u8; 16] = [1; 16];

fn pool(limits: &Limits) -> Pool {
    Pool::new(PoolOptions { processes_max: 8, limits: limits.clone(), ..PoolOptions::default() })
}

fn engine(sources: &[&str], limits: &Limits) -> MapEngine {
    MapEngine::new(&pool(limits), DATABASE, sources, None)
}

fn check(source: &str, limits: &Limits) -> Result<(), ScriptError> {
    engine(&[source], limits).check().unwrap().remove(0)
}

fn limits() -> Limits {
    Limits { call_time_ms: 2_000, memory_bytes: 32 << 20, emitted_max: 1_000, ..Limits::default() }
}

fn entries(of: &[(&str, &str)]) -> Mapped {
    let entry = |(key, value): &(&str, &str)| Emitted {
        key_json: (*key).to_owned(),
        value_json: (*value).to_owned(),
    };
    Ok(of.iter().map(entry).collect())
}

/// Where time is what is to run out.
fn short() -> Limits {
    Limits { call_time_ms: 60, ..limits() }
}

/// What a function that does this for one document gives for it. A document before and one after it, and another
/// function all along, give what they should.
fn outcome(evil: &str, limits: &Limits) -> Mapped {
    let source = format!("function (doc) {{ if (doc.evil) {{ {evil}\n }} emit(doc._id, doc.n); }}");
    let beside = "function (doc) { emit([doc._id].concat(doc.n).join(), Object.keys(doc).length > 2 ? { a: 1 } : 2); }";
    let mut engine = engine(&[&source, beside], limits);
    let documents =
        [r#"{"_id": "a", "n": 1}"#, r#"{"_id": "b", "n": 2, "evil": true}"#, r#"{"_id": "c", "n": 3}"#];
    let mut mapped = engine.map_many(&documents).unwrap();
    let [last, middle, first] = [(); 3].map(|()| mapped.pop().unwrap());
    assert_eq!(first, [entries(&[("\"a\"", "1")]), entries(&[("\"a,1\"", "2")])], "before {evil}");
    let of_evil = middle[0].clone();
    assert_eq!(middle[1], entries(&[("\"b,2\"", "{\"a\":1}")]), "beside {evil}");
    assert_eq!(last[0], entries(&[("\"c\"", "3")]), "after {evil}, which gave {of_evil:?}");
    assert_eq!(last[1], entries(&[("\"c,3\"", "2")]), "after {evil}");
    of_evil
}

/// Checks for each line of a list that a function which does what it says is stopped as it should be.
fn each(list: &str, limits: &Limits, expected: impl Fn(&Mapped) -> bool) {
    for evil in list.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let outcome = outcome(evil, limits);
        assert!(expected(&outcome), "{evil}\ngave {outcome:?}");
    }
}

#[test]
fn what_does_not_end_is_stopped() {
    let list = r"
        for (;;);
        while (true) { doc.n + 1; }
        for (;;) try { for (;;); } catch (e) {}
        try { for (;;); } finally { for (;;); }
        function f() { for (;;); } for (;;) try { f(); } catch (e) {} finally { continue; }
        (function f() { try { f(); } catch (e) { f(); } finally { f(); } })();
        var a; try { for (;;) a = { a }; } catch (e) {} for (;;) try { for (;;); } catch (e) {}
        (function* () { try { for (;;); } finally { for (;;); } })().next();
        for (;;) (async function () { for (;;); })();
        for (;;) for (var x of { [Symbol.iterator]() { return { next() { return {}; }, return() { for (;;); } }; } }) break;
        /(a+)+$/.test('a'.repeat(40) + 'b');
        'x'.repeat(5000).replace(/(x+x+)+y/g, '');
        for (;;) try { /a*a*a*a*a*a*b/.exec('a'.repeat(3000)); } catch (e) {}
        [1, 2].sort(function () { for (;;); });
        emit({ toJSON() { for (;;); } });
        emit({ get x() { for (;;); } });
        ({ toString() { for (;;); } }) + '';
        JSON.parse('[1]', function () { for (;;); });
        Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1);
        var a = []; a.length = 4294967295; a.every(x => 1);
        eval('for (;;);');
        new Function('for (;;);')();
        class A { static { for (;;); } }
        for (;;) try { emit(1); } catch (e) {}
        for (;;) log('x');
        for (;;) new Date().toString();
    ";
    each(list, &short(), |outcome| *outcome == Err(ScriptError::Time { limit_ms: 60 }));
}

#[test]
fn what_eats_memory_is_stopped() {
    let list = r"
        var a = []; for (;;) a.push(new Array(1000).fill(1));
        var a = []; for (;;) a.push({ a });
        var a; for (;;) a = { a };
        for (;;) { let a = {}; a.a = a; }
        var a = []; for (;;) a.push(function () {});
        var a = []; for (;;) a.push('x'.repeat(100000) + a.length);
        var a = []; for (;;) a.push(/x/.exec('x'));
        var m = new Map; for (var i = 0; ; i++) m.set(i, i);
        var o = {}; for (var i = 0; ; i++) o['a' + i] = i;
        new Array(2 ** 32 - 1).fill(0);
        [...Array(2 ** 32 - 1)];
        emit(Array(2 ** 32 - 1));
        Array.from({ length: 2 ** 31 });
        'x'.repeat(4e7);
        'a'.repeat(5e6).replace(/a/g, '$&$&$&');
        'a'.repeat(1e7).split('');
        throw null;
    ";
    each(list, &limits(), |outcome| *outcome == Err(ScriptError::Memory { limit_bytes: 32 << 20 }));
}

#[test]
fn what_nests_too_deeply_is_stopped() {
    let list = r"
        (function f() { f(); })();
        var o = { get x() { return o.x; } }; o.x;
        var o = { toString() { return '' + o; } }; '' + o;
        var o = { toJSON() { return { o }; } }; emit(o);
        var a = []; for (var i = 0; i < 100000; i++) a = [a]; emit(a);
        var a = []; for (var i = 0; i < 100000; i++) a = [a]; a.toString();
        var a = []; for (var i = 0; i < 100000; i++) a = [a]; a.flat(Infinity);
        JSON.parse('['.repeat(1e6));
        eval('('.repeat(1e6));
        eval('x='.repeat(1e5) + '1');
        class A { constructor() { new A; } } new A;
        'x'.replace(/x/, function f() { return 'x'.replace(/x/, f); });
    ";
    each(list, &limits(), |outcome| *outcome == Err(ScriptError::Stack { limit_bytes: 512 << 10 }));
}

#[test]
fn what_is_thrown_is_told() {
    let told = |evil: &str| match outcome(evil, &limits()) {
        Err(ScriptError::Thrown { message }) => message,
        outcome => panic!("{evil} gave {outcome:?}"),
    };
    assert_eq!(told("throw new Error('no')"), "Error: no (line 1, column 44)");
    assert_eq!(told("\n\n  doc.x.y"), "TypeError: cannot read property 'y' of undefined (line 3, column 3)");
    assert_eq!(told("throw 'a text'"), "a text");
    assert_eq!(told("throw undefined"), "undefined");
    assert_eq!(told("throw { error: 'e', reason: 'r' }"), r#"{"error":"e","reason":"r"}"#);
    assert_eq!(told("throw Symbol('x')"), "symbol");
    assert_eq!(told("throw 'x'.repeat(1e6)").len(), 1_000);
    assert_eq!(told("throw new Error('x'.repeat(1e6))").chars().filter(|letter| *letter == 'x').count(), 993);
    assert_eq!(told("throw '\\ud800'"), "\u{fffd}");
    assert_eq!(
        told("throw { toString() { throw 1; }, toJSON() { throw 2; } }"),
        "a value that cannot be shown"
    );
    assert_eq!(told("throw { get x() { for (;;); } }"), "an error that cannot be shown");
    assert_eq!(
        told("var e = new Error; Object.defineProperty(e, 'stack', { get() { throw e; } }); throw e"),
        "a value that cannot be shown"
    );
    assert_eq!(told("throw 5n"), "a value that cannot be shown");
    assert!(told("var a = []; a[0] = a; emit(a)").contains("circular"));
    assert!(told("emit(5n)").contains("BigInt"));
    assert!(told("new Function('}')").starts_with("SyntaxError"));
    assert!(told("emit({ toJSON() { throw new Error('no'); } })").starts_with("Error: no"));
    assert!(told("new Proxy({}, {})").starts_with("ReferenceError"));
}

/// An assignment to what is there before a function runs fails, and says so.
#[test]
fn what_is_shared_cannot_be_changed() {
    let list = r"
        emit = null;
        leaked = doc.n;
        for (i = 0; i < 2; i++) emit(i);
        globalThis.leaked = doc.n;
        JSON.stringify = function () { return 'x\ny'; };
        JSON = { stringify() { return 'evil'; } };
        Array.prototype.push = null;
        Array.prototype.evil = doc.n;
        Object.prototype.evil = doc.n;
        String.prototype.evil = doc.n;
        Object.prototype.toString = null;
        Function.prototype.call = null;
        Math.evil = doc.n; Math.PI = 3;
        emit.evil = doc.n;
        (function () {}).constructor.evil = doc.n;
        (async () => {}).constructor.prototype.evil = doc.n;
        (function* () {})().__proto__.__proto__.evil = doc.n;
        (async function* () {})().__proto__.__proto__.evil = doc.n;
        [].values().__proto__.evil = doc.n;
        [].values().map(x => x).__proto__.evil = doc.n;
        Iterator.from({ next() {} }).__proto__.evil = doc.n;
        new Map().entries().__proto__.evil = doc.n;
        new Set().values().__proto__.evil = doc.n;
        ''[Symbol.iterator]().__proto__.evil = doc.n;
        'x'.matchAll(/x/g).__proto__.evil = doc.n;
        Promise.resolve().__proto__.evil = doc.n;
        Error.stackTraceLimit = doc.n;
        Error.prepareStackTrace = function () { for (;;); };
        new TypeError().__proto__.evil = doc.n;
        Array.prototype[Symbol.iterator] = null;
        Array.prototype[Symbol.unscopables].evil = doc.n;
        delete Array.prototype.concat;
        Object.defineProperty(globalThis, 'emit', { get() { for (;;); } });
        Object.defineProperty(Array.prototype, 'join', { value: null, configurable: true });
        Array.prototype.__defineSetter__('0', function () { throw 1; });
        Object.setPrototypeOf(globalThis, null);
        Object.setPrototypeOf(Array.prototype, null);
        (0, eval)('var leaked = 1');
        (0, eval)('function emit() {}');
    ";
    each(list, &limits(), |outcome| match outcome {
        Err(ScriptError::Thrown { message }) => [
            "read-only",
            "not extensible",
            "not defined",
            "no setter",
            "could not delete",
            "cannot define",
            "not configurable",
        ]
        .iter()
        .any(|words| message.contains(words)),
        _ => false,
    });
    let Err(ScriptError::Thrown { message }) = outcome("globalThis.leaked = 1", &limits()) else {
        panic!("it was not refused")
    };
    assert!(message.contains("nothing may pass from one document to another"), "{message}");
}

/// What a function has of its own it may change, under any name; and the document is as it was, without an error.
#[test]
fn what_is_a_functions_own_can_be_changed() {
    let list = r"
        doc.n = 5; doc.x = 6; delete doc._id;
        var o = {}; o.toString = function () { return 'own'; }; o.constructor = 1; emit('' + o, o.constructor);
        var a = []; a.join = 1; a.concat = 2; emit(a.join + a.concat);
        function Own() {} Own.prototype.toString = function () { return 'own'; }; emit('' + new Own());
        var e = new Error('x'); e.name = 'Own'; e.message = 'y'; emit(e.toString());
        var emit2 = emit; { let emit = emit2; emit(1); }
        Promise.resolve().then(function () { for (;;); });
        (async function () { await 1; for (;;); })();
    ";
    each(list, &limits(), |outcome| {
        outcome.as_ref().is_ok_and(|entries| entries.last().is_some_and(|last| last.value_json == "2"))
    });
    let shown = |evil: &str| outcome(evil, &limits()).unwrap().remove(0).key_json;
    assert_eq!(shown("var o = {}; o.toString = function () { return 'own'; }; emit('' + o);"), "\"own\"");
    assert_eq!(shown("doc.n = 5; emit(doc.n);"), "2", "the document is frozen, as in CouchDB");
}

/// The words of one document are nowhere to be found by a later one, whatever the first one does with them.
#[test]
fn no_value_crosses_documents_or_databases() {
    let hides = [
        "(function () { var kept = []; return function (doc) { kept.push(doc.word); emit(kept.join()); }; })()",
        "var kept = []; (function (doc) { kept.push(doc.word); emit(kept.join()); })",
        "let kept = []; (function (doc) { kept.push(doc.word); emit(kept.join()); })",
        "function keep(word) { (keep.all = keep.all || []).push(word); return keep.all; }\nfunction (doc) { emit(keep(doc.word).join()); }",
        "function map(doc) { map.kept = (map.kept || '') + doc.word; emit(map.kept); }",
        "function (doc) { emit(require('views/lib/keeper').keep(doc.word).join()); }",
        "function (doc) { var k = require('views/lib/open'); try { k.words.push(doc.word); } catch (e) {} emit(k.words.join()); }",
        "function (doc) { try { globalThis.kept = (globalThis.kept || '') + doc.word; } catch (e) {} emit(typeof kept); }",
        "function (doc) { new Function('w', 'kept = (typeof kept === \"undefined\" ? \"\" : kept) + w')(doc.word); emit(typeof kept); }",
        "function (doc) { function t(s) { (s.kept = s.kept || []).push(doc.word); return s.kept; } try { emit(t`x`.join()); } catch (e) { emit(1); } }",
        "function (doc) { var r = /x/g; r.kept = (r.kept || '') + doc.word; emit(r.kept); }",
        "function (doc) { var s = Symbol.for('kept'); try { Symbol.prototype[s] = doc.word; } catch (e) {} emit(Symbol.prototype[s]); }",
        "function (doc) { with (globalThis) { kept = doc.word; } emit(typeof kept); }",
        "function (doc) { emit(Math.random() < 2); for (var i = 0; i < doc.word.length; i++) Math.random(); }",
        "function (doc) { try { Error.stackTraceLimit = doc.word.length; } catch (e) {} emit(Error.stackTraceLimit); }",
    ];
    let library = serde_json::json!({
        "keeper": "var all = []; exports.keep = function (word) { all.push(word); return all; };",
        "open": "exports.words = [];",
    });
    let pool = pool(&limits());
    let documents: Vec<String> =
        (0..20).map(|number| format!(r#"{{"_id": "d{number}", "word": "canary{number}x"}}"#)).collect();
    let texts: Vec<&str> = documents.iter().map(String::as_str).collect();
    let mut engine = MapEngine::new(&pool, DATABASE, &hides, Some(&library));
    let together = engine.map_many(&texts).unwrap();
    for (number, by_function) in together.iter().enumerate() {
        for (mapped, source) in by_function.iter().zip(hides) {
            let shown = format!("{mapped:?}");
            for other in (0..20).filter(|other| *other != number) {
                assert!(!shown.contains(&format!("canary{other}x")), "{source}\ngave {shown} for {number}");
            }
        }
    }
    // And each gives what it gives where it is the first one, in the same database and in another.
    for database in [DATABASE, [2; 16]] {
        for (text, expected) in texts.iter().zip(&together).rev().take(4) {
            let mut engine = MapEngine::new(&pool, database, &hides, Some(&library));
            assert_eq!(&engine.map(text).unwrap(), expected);
        }
    }
}

#[test]
fn too_much_is_not_emitted() {
    let list = r"
        for (;;) emit(1);
        for (var i = 0; i < 1001; i++) emit(i);
        for (var i = 0; i < 2000; i++) try { emit(i); } catch (e) {}
        for (var i = 0; i < 900; i++) emit('x'.repeat(10000));
        emit('\u0001'.repeat(1.4e6));
        emit(null, 'ü'.repeat(4.2e6));
    ";
    each(list, &limits(), |outcome| {
        *outcome == Err(ScriptError::TooMuchEmitted { entries_max: 1_000, bytes_max: 8 << 20 })
    });
    assert_eq!(outcome("for (var i = 0; i < 999; i++) emit(i);", &limits()).unwrap().len(), 1_000);
}

/// What the engine would do in one long step, or as long as memory lasts, is refused.
#[test]
fn long_steps_are_refused() {
    let mut list = String::from(
        "Array.prototype.concat.call([], { length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true })
        var a = []; a.length = 4294967295; JSON.stringify({}, a);
        'a'.repeat(1e6).indexOf('a'.repeat(5e5) + 'b')
        'a'.repeat(1e6).split('a'.repeat(5e5) + 'b')
        'a'.repeat(1e6).replace('a'.repeat(5e5) + 'b', '')
        ('a' + '\\u0301\\u0316'.repeat(1e5)).normalize()\n",
    );
    for method in [
        "copyWithin(0, 5)",
        "flat()",
        "join()",
        "reverse()",
        "shift()",
        "slice(1)",
        "sort()",
        "splice(0, 1)",
        "unshift(1)",
        "toLocaleString()",
        "toString()",
    ] {
        list.push_str(&format!("var a = []; a.length = 4294967290; a.{method}\n"));
        let call = method.replace('(', ".call({ length: 2 ** 53 - 2 }, ");
        if method != "toString()" {
            list.push_str(&format!("Array.prototype.{call}\n"));
        }
    }
    each(
        &list,
        &limits(),
        |outcome| matches!(outcome, Err(ScriptError::Thrown { message }) if message.contains("RangeError")),
    );
}

/// QuickJS forgets that it was interrupted when it closes an iterator, and where promises catch everything.
#[test]
fn what_cannot_be_stopped_costs_its_process() {
    let list = "
        for (;;) try { for (var x of (function* () { try { yield 1; } finally { for (;;); } })()) throw 1; } catch (e) {}
        for (;;) new Promise(function () { for (;;); });
        for (;;) (async () => ({ get then() { for (;;); } }))();
    ";
    each(list, &short(), |outcome| *outcome == Err(ScriptError::Runaway));
}

/// After three times in a row a function is not called any more, and the others go on; so it is with reductions.
#[test]
fn a_function_that_is_stopped_time_and_again_is_switched_off() {
    let evil = "function (doc) { if (doc.evil) for (;;) new Promise(function () { for (;;); }); emit(1); }";
    let slow = "function (doc) { if (doc.evil) for (;;); emit(1); }";
    let good = "function (doc) { emit(1); }";
    let mut engine = engine(&[evil, slow, good], &short());
    let documents = [
        "{}",
        "{\"evil\": 1}",
        "{\"evil\": 1}",
        "{}",
        "{\"evil\": 1}",
        "{\"evil\": 1}",
        "{\"evil\": 1}",
        "{}",
    ];
    let mapped = engine.map_many(&documents).unwrap();
    for (place, error) in [(0, ScriptError::Runaway), (1, ScriptError::Time { limit_ms: 60 })] {
        let of: Vec<&Mapped> = mapped.iter().map(|by_function| &by_function[place]).collect();
        assert!(of[0].is_ok() && of[3].is_ok(), "{of:?}");
        assert!([1, 2, 4, 5, 6].iter().all(|number| *of[*number] == Err(error.clone())), "{of:?}");
        assert!(matches!(of[7], Err(ScriptError::SwitchedOff { .. })), "{of:?}");
    }
    assert!(mapped.iter().all(|by_function| by_function[2] == entries(&[("1", "null")])));
    // One that was switched off has one more chance in the next build.
    let conduct = Arc::new(Conduct::on_probation());
    engine.share_conduct(1, &conduct);
    assert!(engine.map("{}").unwrap()[1].is_ok() && conduct.switched_off().is_none());
    engine.share_conduct(1, &Arc::new(Conduct::on_probation()));
    assert_eq!(engine.map("{\"evil\": 1}").unwrap()[1], Err(ScriptError::Time { limit_ms: 60 }));
    assert!(matches!(engine.map("{}").unwrap()[1], Err(ScriptError::SwitchedOff { .. })));

    let pool = pool(&short());
    let source = "function (keys, values) { for (;;) new Promise(function () { for (;;); }); }";
    let reduce = || ReduceEngine::new(&pool, DATABASE, Reducer::parse(source).unwrap()).reduce(&[]);
    for _ in 0..STOPPED_MAX {
        assert_eq!(reduce(), Err(ScriptError::Runaway));
    }
    assert!(matches!(reduce(), Err(ScriptError::SwitchedOff { .. })));
}

#[test]
fn documents_that_are_not_json_are_told() {
    let mut engine = engine(&["function (doc) { emit(doc); }"; 2], &limits());
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    for document in ["", "{", "{\"a\":1}}", "nul", "\u{0}", "{\"a\":\u{0}}", "'a'", deep.as_str()] {
        for mapped in engine.map(document).unwrap() {
            assert!(matches!(mapped, Err(ScriptError::Json { .. })), "{mapped:?}");
        }
        assert_eq!(engine.map("[1]").unwrap()[1], entries(&[("[1]", "null")]));
    }
    assert_eq!(engine.map("null").unwrap()[0], entries(&[("null", "null")]));
    let huge = format!("\"{}\"", "x".repeat(40 << 20));
    assert_eq!(engine.map(&huge).unwrap()[1], Err(ScriptError::Memory { limit_bytes: 32 << 20 }));
    assert_eq!(engine.map("2").unwrap()[1], entries(&[("2", "null")]));
}

/// Memory that a function leaves used costs no later document anything.
#[test]
fn leaks_are_forgotten() {
    let source =
        "function (doc) { var kept = []; kept.push(kept, 'x'.repeat(1e6) + doc._id); emit(doc._id); }";
    let mut engine = engine(&[source], &limits());
    for number in 0..100 {
        let mapped = engine.map(&format!("{{\"_id\": {number}}}")).unwrap();
        assert_eq!(mapped, [entries(&[(&number.to_string(), "null")])]);
    }
}

/// Memory runs out at every place where it can.
#[test]
fn any_amount_of_memory_is_survived() {
    let sources = [
        "function (doc) { var a; for (;;) a = [{ a, b: 'x' + 1, c() {} }, new Map([[1, a]])]; }",
        "function (doc) { var n = {}; for (var i = 0; ; i++) n['n' + i] = eval('(function () { return /x/.exec(\"x\"); })')(); }",
        "function (doc) { var a = []; for (;;) try { a.push((async () => { throw new Error; })(), { ...doc, a }); } catch (e) { a.pop(); } }",
        "function (doc) { emit([doc._id], doc); }",
    ];
    let document = r#"{"_id": "a", "list": [1, {"b": "c"}], "text": "ü"}"#;
    let mut mapped_once = false;
    for step in 0..40 {
        let limits =
            Limits { memory_bytes: 1_000_000 + step * 29_989, call_time_ms: 10, ..Limits::default() };
        let mut engine = engine(&sources, &limits);
        if engine.check().unwrap().iter().any(Result::is_err) {
            continue;
        }
        for _ in 0..2 {
            let mapped = engine.map(document).unwrap();
            assert!(mapped.iter().take(3).all(Result::is_err), "{mapped:?}");
            mapped_once |= mapped[3].is_ok();
        }
    }
    assert!(mapped_once);
}

#[test]
fn engines_are_refused_where_they_have_no_room() {
    let tiny = Limits { memory_bytes: 10_000, ..Limits::default() };
    assert_eq!(check("doc => 1", &tiny), Err(ScriptError::Memory { limit_bytes: 10_000 }));
    let flat = Limits { stack_bytes: 1_000, ..Limits::default() };
    assert!(check("doc => 1", &flat).is_err());
}

#[test]
fn reduce_functions_are_bounded_too() {
    for (source, expected) in [
        ("function () { for (;;); }", ScriptError::Time { limit_ms: 60 }),
        ("function () { var a; for (;;) a = { a }; }", ScriptError::Memory { limit_bytes: 32 << 20 }),
        ("function f() { f(); }", ScriptError::Stack { limit_bytes: 512 << 10 }),
        ("function () { throw 'no'; }", ScriptError::Thrown { message: "no".to_owned() }),
    ] {
        let limits = if matches!(expected, ScriptError::Time { .. }) { short() } else { limits() };
        let guarded =
            format!("function (keys, values) {{ return values[0] ? ({source})() : values.length; }}");
        let mut engine = ReduceEngine::new(&pool(&limits), DATABASE, Reducer::parse(&guarded).unwrap());
        let row = |value_json| [Row { key_json: "1", id: "a", value_json, order: b"" }];
        assert_eq!(engine.reduce(&row("1")), Err(expected.clone()), "{source}");
        assert_eq!(engine.rereduce(&["0".to_owned(), "0".to_owned()]).as_deref(), Ok("2"), "{source}");
        assert_eq!(engine.rereduce(&["1".to_owned()]), Err(expected), "{source}");
        assert_eq!(engine.reduce(&row("0")).as_deref(), Ok("1"), "{source}");
    }
}
