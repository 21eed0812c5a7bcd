//! Whatever a function does costs its document the entries in its view, and nothing else.

use scrinium_javascript::{
    Emitted, Limits, MapEngine, Mapped, ReduceEngine, Reducer, Row, ScriptError, check_map,
};

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
    let mut engine = MapEngine::new(&[&source, beside], None, limits.clone()).unwrap();
    let mut mapped = engine.map_many(&[
        r#"{"_id": "a", "n": 1}"#,
        r#"{"_id": "b", "n": 2, "evil": true}"#,
        r#"{"_id": "c", "n": 3}"#,
    ]);
    let [last, middle, first] = [(); 3].map(|()| mapped.pop().unwrap());
    assert_eq!(first, [entries(&[("\"a\"", "1")]), entries(&[("\"a,1\"", "2")])], "before {evil}");
    let of_evil = middle[0].clone();
    assert_eq!(middle[1], entries(&[("\"b,2\"", "{\"a\":1}")]), "beside {evil}");
    if of_evil != Err(ScriptError::Runaway) {
        assert_eq!(last[0], entries(&[("\"c\"", "3")]), "after {evil}, which gave {of_evil:?}");
    }
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
        Error.prepareStackTrace = function () { for (;;); }; for (;;) try { null.x; } catch (e) {}
        eval('for (;;);');
        new Function('for (;;);')();
        class A { static { for (;;); } }
        emit = function () { for (;;); };
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
        for (var i = 0; ; i++) globalThis['a' + i] = i;
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

#[test]
fn what_is_redefined_is_put_back() {
    let list = r"
        emit(1); emit = null; sum = null; log = null; JSON = null; require = null; isArray = null; toJSON = null;
        JSON.stringify = function () { return 'x\ny'; }; JSON = { stringify() { return 'evil'; } };
        Array.prototype.push = Array.prototype.concat = null; Array.prototype.join = function () { return 'evil'; };
        delete Array.prototype.concat; delete Array.prototype.join; delete Object.keys;
        Array.prototype.__defineSetter__('0', function () { throw 1; });
        Object.prototype.__defineSetter__('1', function () { throw 1; });
        Object.prototype.toString = Object.prototype.hasOwnProperty = Object.prototype.valueOf = null;
        globalThis.Object = globalThis.Array = globalThis.Reflect = undefined;
        Function.prototype.call = Function.prototype.apply = Reflect.apply = null;
        String.prototype.slice = String.prototype.toWellFormed = RegExp.prototype.exec = null;
        Object.freeze(globalThis); Object.freeze(Array.prototype); Array.prototype.join = 1; emit(5);
        emit(1); emit = null; Object.freeze(globalThis);
        Object.setPrototypeOf(globalThis, null); Object.preventExtensions(globalThis);
        Object.setPrototypeOf(Array.prototype, null); Object.setPrototypeOf(Object.prototype, null);
        (0, eval)('function emit() {}'); emit(1);
        (0, eval)('var Object = 1');
        Error.prototype.name = { toString() { for (;;); } };
        Array.prototype[Symbol.iterator] = null; [].values().__proto__.next = null;
        doc.n = 5; doc.x = 6; delete doc._id;
        Promise.resolve().then(function () { for (;;); });
        (async function () { await 1; for (;;); })();
    ";
    each(list, &limits(), |outcome| {
        outcome.as_ref().map_or_else(
            |error| matches!(error, ScriptError::Thrown { message } if message.contains("not a function")),
            |entries| entries.iter().all(|entry| !entry.key_json.contains("evil")),
        )
    });
    for evil in [
        "Object.defineProperty(globalThis, 'emit', { get() { for (;;); } })",
        "Object.defineProperty(Array.prototype, 'join', { value: null, configurable: true })",
    ] {
        assert!(matches!(outcome(evil, &limits()), Err(ScriptError::Thrown { .. })), "{evil}");
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
fn what_cannot_be_stopped_is_left_behind() {
    let list = "
        for (;;) try { for (var x of (function* () { try { yield 1; } finally { for (;;); } })()) throw 1; } catch (e) {}
        for (;;) new Promise(function () { for (;;); });
        for (;;) (async () => ({ get then() { for (;;); } }))();
    ";
    each(list, &short(), |outcome| *outcome == Err(ScriptError::Runaway));
    let source = "function (keys, values) { for (;;) new Promise(function () { for (;;); }); }";
    let mut engine = ReduceEngine::new(Reducer::parse(source).unwrap(), short()).unwrap();
    for _ in 0..2 {
        assert_eq!(engine.reduce(&[]), Err(ScriptError::Runaway));
    }
}

#[test]
fn documents_that_are_not_json_are_told() {
    let mut engine = MapEngine::new(&["function (doc) { emit(doc); }"; 2], None, limits()).unwrap();
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    for document in ["", "{", "{\"a\":1}}", "nul", "\u{0}", "{\"a\":\u{0}}", "'a'", deep.as_str()] {
        for mapped in engine.map(document) {
            assert!(matches!(mapped, Err(ScriptError::Json { .. })), "{mapped:?}");
        }
        assert_eq!(engine.map("[1]")[1], entries(&[("[1]", "null")]));
    }
    assert_eq!(engine.map("null")[0], entries(&[("null", "null")]));
    let huge = format!("\"{}\"", "x".repeat(40 << 20));
    assert_eq!(engine.map(&huge)[1], Err(ScriptError::Memory { limit_bytes: 32 << 20 }));
    assert_eq!(engine.map("2")[1], entries(&[("2", "null")]));
}

/// Memory that a function leaves used costs no later document anything.
#[test]
fn leaks_are_forgotten() {
    let source =
        "function (doc) { (globalThis.kept ??= []).push('x'.repeat(1e6) + doc._id); emit(doc._id); }";
    let mut engine = MapEngine::new(&[source], None, limits()).unwrap();
    for number in 0..100 {
        let mapped = engine.map(&format!("{{\"_id\": {number}}}"));
        assert_eq!(mapped, [entries(&[(&number.to_string(), "null")])]);
    }
}

/// Memory runs out at every place where it can.
#[test]
fn any_amount_of_memory_is_survived() {
    let sources = [
        "function (doc) { var a; for (;;) a = [{ a, b: 'x' + 1, c() {} }, new Map([[1, a]])]; }",
        "function (doc) { for (var i = 0; ; i++) globalThis['n' + i] = eval('(function () { return /x/.exec(\"x\"); })')(); }",
        "function (doc) { var a = []; for (;;) try { a.push((async () => { throw new Error; })(), { ...doc, a }); } catch (e) { a.pop(); } }",
        "function (doc) { emit([doc._id], doc); }",
    ];
    let document = r#"{"_id": "a", "list": [1, {"b": "c"}], "text": "ü"}"#;
    let mut mapped_once = false;
    for step in 0..40 {
        let limits =
            Limits { memory_bytes: 1_000_000 + step * 29_989, call_time_ms: 10, ..Limits::default() };
        let Ok(mut engine) = MapEngine::new(&sources, None, limits) else { continue };
        for _ in 0..2 {
            let mapped = engine.map(document);
            assert!(mapped.iter().take(3).all(Result::is_err), "{mapped:?}");
            mapped_once |= mapped[3].is_ok();
        }
    }
    assert!(mapped_once);
}

#[test]
fn engines_are_refused_where_they_have_no_room() {
    let tiny = Limits { memory_bytes: 10_000, ..Limits::default() };
    assert_eq!(check_map("doc => 1", &tiny), Err(ScriptError::Memory { limit_bytes: 10_000 }));
    let flat = Limits { stack_bytes: 1_000, ..Limits::default() };
    assert!(check_map("doc => 1", &flat).is_err());
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
        let mut engine = ReduceEngine::new(Reducer::parse(&guarded).unwrap(), limits).unwrap();
        let row = |value_json| [Row { key_json: "1", id: "a", value_json }];
        assert_eq!(engine.reduce(&row("1")), Err(expected.clone()), "{source}");
        assert_eq!(engine.rereduce(&["0".to_owned(), "0".to_owned()]).as_deref(), Ok("2"), "{source}");
        assert_eq!(engine.rereduce(&["1".to_owned()]), Err(expected), "{source}");
        assert_eq!(engine.reduce(&row("0")).as_deref(), Ok("1"), "{source}");
    }
}
