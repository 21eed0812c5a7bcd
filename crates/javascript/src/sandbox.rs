//! One engine with the functions of one design document in it, on the thread that made it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use rquickjs::context::intrinsic;
use rquickjs::function::Func;
use rquickjs::{Context, Ctx, Error, Function, Object, Persistent, Runtime, String as ScriptString};

use crate::error::ScriptError;
use crate::limits::Limits;
use crate::modules;
use crate::source::{self, Place};
use crate::watch::Watch;

const GUARDS: &str = include_str!("guards.js");
const SANDBOX: &str = include_str!("sandbox.js");

/// Lines that one call may log.
const LOG_LINES_MAX: usize = 100;

/// Bytes kept back, so that a script which filled the memory can still be ended.
const BALLAST_BYTES: usize = 64 << 10;

/// Calls after which memory in cycles is collected.
const COLLECT_CALLS: u32 = 500;

/// For telling what a script threw, which may run the script's code once more.
const DESCRIBE_TIME: Duration = Duration::from_millis(100);

/// The parts of the language that are there. Left out are proxies, typed arrays and weak references: no view
/// needs them, and they make the engine's steps long and its objects treacherous.
type Language = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::MapSet,
    intrinsic::Promise,
);

/// What sandbox.js gives to be called.
struct Handles {
    add: Handle,
    open: Handle,
    map: Handle,
    reduce: Handle,
    describe: Handle,
}

type Handle = Persistent<Function<'static>>;

/// An engine. What a function adds to it, such as global variables, is there for the next call; what it
/// overwrote is put back.
pub(crate) struct Sandbox {
    // In the order in which they have to be dropped.
    handles: Handles,
    context: Context,
    runtime: Runtime,
    watch: Rc<Watch>,
    log: Rc<RefCell<Vec<String>>>,
    limits: Limits,
    damaged: Rc<Cell<bool>>,
    calls: u32,
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.watch.hold(None);
    }
}

impl Sandbox {
    /// A new engine without functions. `library` is the content of `views.lib`. `given_up` is called on this
    /// thread, at most once, for a call that cannot be ended and does not return.
    pub(crate) fn new(
        limits: &Limits,
        library: Option<&serde_json::Value>,
        given_up: Box<dyn Fn()>,
    ) -> Result<Self, ScriptError> {
        let too_small = |_| ScriptError::Memory { limit_bytes: limits.memory_bytes };
        let runtime = Runtime::new().map_err(too_small)?;
        runtime.set_max_stack_size(limits.stack_bytes);
        // Memory in cycles is collected between calls only. When memory runs out inside of the engine, it makes an
        // error, for which it may collect, while objects are half changed; QuickJS-ng 0.16 crashes then.
        runtime.set_gc_threshold(usize::MAX);
        let watch = Rc::new(Watch::new(given_up));
        watch.begin(Duration::from_millis(limits.call_time_ms));
        let asked = Rc::clone(&watch);
        runtime.set_interrupt_handler(Some(Box::new(move || asked.is_over())));
        let context = Context::builder().with::<Language>().build(&runtime).map_err(too_small)?;
        let (log, damaged) = (Rc::default(), Rc::default());
        let handles = context.with(|ctx| {
            let ballast = ScriptString::from_str(ctx.clone(), &" ".repeat(BALLAST_BYTES))?;
            watch.hold(Some(Persistent::save(&ctx, ballast)));
            furnish(&ctx, limits, library, &log, &damaged)
        });
        let handles = handles.inspect_err(|_| watch.hold(None)).map_err(too_small)?;
        // Not sooner: the engine does not look whether there is memory for all that it is made of.
        runtime.set_memory_limit(limits.memory_bytes);
        Ok(Self { handles, context, runtime, watch, log, limits: limits.clone(), damaged, calls: 0 })
    }

    /// Adds a function after those that are there.
    pub(crate) fn add(&mut self, source: &str) -> Result<(), ScriptError> {
        source::check(source)?;
        let refused: Option<String> = self.call(|ctx, handles| {
            let candidate = source::evaluate(ctx, source)?;
            handles.add.clone().restore(ctx)?.call((candidate,))
        })?;
        refused.map_or(Ok(()), |found| Err(ScriptError::NotAFunction { found }))
    }

    /// The document, as JSON, that the map functions are given from now on.
    pub(crate) fn open(&mut self, document: &str) -> Result<(), ScriptError> {
        let opened = self.call(|ctx, handles| {
            let document = ctx.json_parse(document)?;
            handles.open.clone().restore(ctx)?.call((document,))
        });
        opened.map_err(|error| match error {
            ScriptError::Syntax { message, .. } | ScriptError::Thrown { message } => {
                ScriptError::Json { message }
            }
            ScriptError::Stack { .. } => ScriptError::Json { message: "it is nested too deeply".to_owned() },
            error => error,
        })
    }

    /// What function `index` emits for the open document: a line of JSON for each key and each value.
    pub(crate) fn map(&mut self, index: usize) -> Result<String, ScriptError> {
        let Limits { emitted_max: entries_max, emitted_bytes_max: bytes_max, .. } = self.limits;
        let lines: Option<String> = self
            .call(|ctx, handles| handles.map.clone().restore(ctx)?.call((index,)))
            .map_err(thrown_later)?;
        let lines = lines.filter(|lines| lines.len() <= bytes_max);
        lines.ok_or(ScriptError::TooMuchEmitted { entries_max, bytes_max })
    }

    /// What the first function gives for lists of keys and values, as JSON; without keys it reduces reductions.
    pub(crate) fn reduce(&mut self, keys: Option<&str>, values: &str) -> Result<String, ScriptError> {
        let reduced = self.call(|ctx, handles| {
            let reduce = handles.reduce.clone().restore(ctx)?;
            let again = keys.is_none();
            reduce.call((ctx.json_parse(keys.unwrap_or("null"))?, ctx.json_parse(values)?, again))
        });
        reduced.map_err(thrown_later)
    }

    /// Whether the engine has to be made anew: a call was stopped somewhere, or left something to be run later.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.get() || self.runtime.is_job_pending()
    }

    /// What was logged since the last time.
    pub(crate) fn take_log(&self) -> Vec<String> {
        self.log.borrow_mut().split_off(0)
    }

    /// Calls into the engine within the limits.
    fn call<T>(
        &mut self,
        run: impl FnOnce(&Ctx<'_>, &Handles) -> rquickjs::Result<T>,
    ) -> Result<T, ScriptError> {
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(COLLECT_CALLS) {
            self.runtime.run_gc();
        }
        self.watch.begin(Duration::from_millis(self.limits.call_time_ms));
        let outcome =
            self.context.with(|ctx| run(&ctx, &self.handles).map_err(|error| self.told(&ctx, &error)));
        let (error, damaged) = match outcome {
            Ok(value) if !self.watch.has_expired() => return Ok(value),
            // A script may catch what ended it; what it gives then is what it had.
            Ok(_) => (ScriptError::Time { limit_ms: self.limits.call_time_ms }, true),
            Err(told) => told,
        };
        self.damaged.set(damaged || self.damaged.get());
        Err(error)
    }

    /// What went wrong, and whether the engine may have been damaged by it.
    fn told(&self, ctx: &Ctx<'_>, error: &Error) -> (ScriptError, bool) {
        let thrown = ctx.catch();
        let Limits { memory_bytes, call_time_ms, stack_bytes, .. } = self.limits;
        if self.watch.has_expired() {
            return (ScriptError::Time { limit_ms: call_time_ms }, true);
        }
        match error {
            // Without memory for an error the engine throws null.
            Error::Exception if thrown.is_null() => {
                return (ScriptError::Memory { limit_bytes: memory_bytes }, true);
            }
            Error::Exception => {}
            Error::Allocation | Error::Unknown => {
                return (ScriptError::Memory { limit_bytes: memory_bytes }, true);
            }
            error => return (ScriptError::Thrown { message: error.to_string() }, true),
        }
        self.watch.begin(DESCRIBE_TIME);
        let described: Result<String, Error> =
            self.handles.describe.clone().restore(ctx).and_then(|describe| describe.call((thrown,)));
        let Ok(described) = described else {
            drop(ctx.catch());
            return (ScriptError::Thrown { message: "an error that cannot be shown".to_owned() }, true);
        };
        let mut parts = described.splitn(3, '\n');
        let (kind, stack, message) = (parts.next(), parts.next(), parts.next().unwrap_or_default());
        let stack: String = stack.and_then(|stack| serde_json::from_str(stack).ok()).unwrap_or_default();
        let place = Place::of_stack(&stack);
        let told = match (kind, place) {
            (Some("M"), _) => ScriptError::Memory { limit_bytes: memory_bytes },
            (Some("S"), _) => ScriptError::Stack { limit_bytes: stack_bytes },
            (Some("X"), place) => {
                let (line, column) = place.map_or((0, 0), |place| (place.line, place.column));
                ScriptError::Syntax { line, column, message: message.to_owned() }
            }
            (_, Some(place)) => ScriptError::Thrown { message: format!("{message} ({place})") },
            _ => ScriptError::Thrown { message: message.to_owned() },
        };
        let damaged = matches!(told, ScriptError::Memory { .. }) || self.watch.has_expired();
        (told, damaged)
    }
}

/// A syntax error that comes while a function runs is of a text that it made.
fn thrown_later(error: ScriptError) -> ScriptError {
    match error {
        ScriptError::Syntax { message, .. } => {
            ScriptError::Thrown { message: format!("SyntaxError: {message}") }
        }
        error => error,
    }
}

/// Puts everything into a new engine that a function finds there.
fn furnish(
    ctx: &Ctx<'_>,
    limits: &Limits,
    library: Option<&serde_json::Value>,
    log: &Rc<RefCell<Vec<String>>>,
    damaged: &Rc<Cell<bool>>,
) -> rquickjs::Result<Handles> {
    let globals = ctx.globals();
    let host = Object::new(ctx.clone())?;
    let written = Rc::clone(log);
    host.set("log", Func::from(move |line: String| written.borrow_mut().push(line)))?;
    let seen = Rc::clone(damaged);
    host.set("damaged", Func::from(move || seen.set(true)))?;
    host.set("resolve", Func::from(modules::resolve))?;
    host.set("module", Func::from(modules::compile))?;
    let make: Function = ctx.eval_with_options(SANDBOX, source::options("sandbox.js"))?;
    let texts = library.map(modules::texts);
    let sandbox: Object =
        make.call((host, limits.emitted_max, limits.emitted_bytes_max, LOG_LINES_MAX, texts))?;
    let environment: Object = sandbox.get("environment")?;
    for name in environment.keys::<String>() {
        let name = name?;
        globals.set(name.as_str(), environment.get::<_, Function>(name.as_str())?)?;
    }
    let guards: Object = ctx.eval_with_options(GUARDS, source::options("guards.js"))?;
    globals.set("toJSON", globals.get::<_, Object>("JSON")?.get::<_, Function>("stringify")?)?;
    guards.get::<_, Function>("lock")?.call::<_, ()>((globals,))?;
    let restore: Function = guards.get::<_, Function>("restorer")?.call(())?;
    sandbox.get::<_, Function>("seal")?.call::<_, ()>((restore,))?;
    let handle = |name: &str| -> rquickjs::Result<Handle> {
        Ok(Persistent::save(ctx, sandbox.get::<_, Function>(name)?))
    };
    Ok(Handles {
        add: handle("add")?,
        open: handle("open")?,
        map: handle("map")?,
        reduce: handle("reduce")?,
        describe: handle("describe")?,
    })
}
