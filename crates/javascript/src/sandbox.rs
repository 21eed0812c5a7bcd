//! One engine with the functions of one program in it, in a process that runs nothing else.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use rquickjs::context::intrinsic;
use rquickjs::function::Func;
use rquickjs::{Context, Ctx, Error, Function, Object, Persistent, Runtime, String as ScriptString};

use crate::error::ScriptError;
use crate::limits::Limits;
use crate::modules;
use crate::source::{self, Makers, SourcePlace};
use crate::watch::Watch;
use crate::wire::{Edited, Program, Requested};

const GUARDS: &str = include_str!("guards.js");
const SANDBOX: &str = include_str!("sandbox.js");

/// Lines that one call may log.
const LOG_LINES_MAX: usize = 10;

/// Bytes kept back, so that a script which filled the memory can still be ended.
const BALLAST_BYTES: usize = 64 << 10;

/// Calls after which memory in cycles is collected.
const COLLECT_CALLS: u32 = 500;

/// What to know where an assignment is refused.
const UNCHANGEABLE: &str = "global variables, built-in objects, modules and the document cannot be changed: nothing may pass from one document to another";

/// What to know of a name that is not defined.
const UNDECLARED: &str = "a function cannot make a global variable; declare it by `var`, `let` or `const`";

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
    skip: Handle,
    open: Handle,
    map: Handle,
    map_own: Handle,
    map_loosely: Handle,
    reduce: Handle,
    validate: Handle,
    filter: Handle,
    update: Handle,
    describe: Handle,
}

type Handle = Persistent<Function<'static>>;

/// An engine. Nothing that a call leaves in it can be found by the next one.
pub(crate) struct Sandbox {
    // In the order in which they have to be dropped.
    handles: Handles,
    context: Context,
    runtime: Runtime,
    watch: Rc<Watch>,
    log: Rc<RefCell<Vec<String>>>,
    limits: Limits,
    damaged: Cell<bool>,
    /// Whether the last error was of an assignment to what cannot be changed.
    wrote: Cell<bool>,
    slow_us: Cell<u32>,
    calls: u32,
    has_document: bool,
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.watch.hold(None);
    }
}

impl Sandbox {
    /// A new engine without functions. `given_up` is called at most once, for a call that cannot be ended and does not return.
    pub(crate) fn new(program: &Program, given_up: Box<dyn Fn()>) -> Result<Self, ScriptError> {
        let limits = &program.limits;
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
        let log = Rc::default();
        let handles = context.with(|ctx| {
            let ballast = ScriptString::from_str(ctx.clone(), &" ".repeat(BALLAST_BYTES))?;
            watch.hold(Some(Persistent::save(&ctx, ballast)));
            furnish(&ctx, program, &log)
        });
        let handles = handles.inspect_err(|_| watch.hold(None)).map_err(too_small)?;
        // Not sooner: the engine does not look whether there is memory for all that it is made of.
        runtime.set_memory_limit(limits.memory_bytes);
        Ok(Self {
            handles,
            context,
            runtime,
            watch,
            log,
            limits: limits.clone(),
            damaged: Cell::new(false),
            wrote: Cell::new(false),
            slow_us: Cell::new(0),
            calls: 0,
            has_document: false,
        })
    }

    /// Adds a function after those that are there.
    pub(crate) fn add(&mut self, source: &str) -> Result<(), ScriptError> {
        source::check(source)?;
        let refused: Option<String> = self.call(|ctx, handles| {
            let Makers { strict, loose } = source::makers(ctx, source)?;
            handles.add.clone().restore(ctx)?.call((strict, loose))
        })?;
        refused.map_or(Ok(()), |found| Err(ScriptError::NotAFunction { found }))
    }

    /// Leaves the place of a function empty, which is not to be called.
    pub(crate) fn skip(&mut self) -> Result<(), ScriptError> {
        self.call(|ctx, handles| handles.skip.clone().restore(ctx)?.call(()))
    }

    /// The document, as JSON, that the map functions are given from now on.
    pub(crate) fn open(&mut self, document: &str) -> Result<(), ScriptError> {
        self.has_document = false;
        let opened = self.call(|ctx, handles| {
            let document = ctx.json_parse(document)?;
            handles.open.clone().restore(ctx)?.call((document,))
        });
        self.has_document = opened.is_ok();
        opened.map_err(|error| match error {
            ScriptError::Syntax { message, .. } | ScriptError::Thrown { message } => {
                ScriptError::Json { message }
            }
            ScriptError::Stack { .. } => ScriptError::Json { message: "it is nested too deeply".to_owned() },
            error => error,
        })
    }

    /// What function `index` emits for the open document, which is given once more: a line of JSON for each key and each
    /// value.
    ///
    /// An assignment to what cannot be changed is an error, but to the document, where CouchDB ignores it. Which of them one
    /// was shows with a document of its own.
    pub(crate) fn map(&mut self, index: usize, document: &str) -> Result<String, ScriptError> {
        let mapped = self.mapped(|ctx, handles| handles.map.clone().restore(ctx)?.call((index,)));
        if !self.wrote.get() || self.is_damaged() {
            return mapped;
        }
        self.take_log();
        let own = self.mapped(|ctx, handles| {
            let own = ctx.json_parse(document)?;
            handles.map_own.clone().restore(ctx)?.call((index, own))
        });
        if self.wrote.get() || self.is_damaged() {
            return own;
        }
        self.take_log();
        self.mapped(|ctx, handles| handles.map_loosely.clone().restore(ctx)?.call((index,)))
    }

    fn mapped(
        &mut self,
        run: impl FnOnce(&Ctx<'_>, &Handles) -> rquickjs::Result<Option<String>>,
    ) -> Result<String, ScriptError> {
        let Limits { emitted_max: entries_max, emitted_bytes_max: bytes_max, .. } = self.limits;
        let lines = self.call(run).map_err(thrown_later)?.filter(|lines| lines.len() <= bytes_max);
        lines.ok_or(ScriptError::TooMuchEmitted { entries_max, bytes_max })
    }

    /// Why the first function refuses an edit: `F` or `U` and words for those who edit; nothing if it does not.
    pub(crate) fn validate(&mut self, edit: &Edited<'_>) -> Result<String, ScriptError> {
        let refused = self.call(|ctx, handles| {
            let parse = |json: &str| ctx.json_parse(json);
            let given = (parse(edit.new)?, parse(edit.old)?, parse(edit.user)?, parse(edit.security)?);
            handles.validate.clone().restore(ctx)?.call(given)
        });
        refused.map_err(thrown_later)
    }

    /// Whether the first function lets a document pass: a text, or none if it does not.
    pub(crate) fn filter(&mut self, requested: &Requested<'_>) -> Result<String, ScriptError> {
        self.requested(requested, |handles| &handles.filter)
    }

    /// What the first function makes of a document: `A` and a JSON array of the document to store or `null`, and the answer;
    /// or as [`validate`](Self::validate).
    pub(crate) fn update(&mut self, requested: &Requested<'_>) -> Result<String, ScriptError> {
        self.requested(requested, |handles| &handles.update)
    }

    fn requested(
        &mut self,
        requested: &Requested<'_>,
        handle: impl Fn(&Handles) -> &Handle,
    ) -> Result<String, ScriptError> {
        let answered = self.call(|ctx, handles| {
            let given = (ctx.json_parse(requested.document)?, ctx.json_parse(requested.request)?);
            handle(handles).clone().restore(ctx)?.call(given)
        });
        answered.map_err(thrown_later)
    }

    /// Whether a document was opened and no later one has failed to be.
    pub(crate) const fn has_document(&self) -> bool {
        self.has_document
    }

    /// Processor time of the calls since the last time that took long.
    pub(crate) fn take_slow_us(&self) -> u32 {
        self.slow_us.take()
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

    /// Whether the engine has to be made again: a call was stopped somewhere, or left something to be run later.
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
        self.wrote.set(false);
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(COLLECT_CALLS) {
            self.runtime.run_gc();
        }
        self.watch.begin(Duration::from_millis(self.limits.call_time_ms));
        let outcome = self.context.with(|ctx| {
            let outcome = run(&ctx, &self.handles);
            self.slow_us.set(self.slow_us.get().saturating_add(self.watch.slow_us()));
            outcome.map_err(|error| self.told(&ctx, &error))
        });
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
        let place = SourcePlace::of_stack(&stack);
        let told = match (kind, place) {
            (Some("M"), _) => ScriptError::Memory { limit_bytes: memory_bytes },
            (Some("S"), _) => ScriptError::Stack { limit_bytes: stack_bytes },
            (Some("W"), place) => {
                self.wrote.set(true);
                let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
                ScriptError::Thrown { message: format!("{message}{place}; {UNCHANGEABLE}") }
            }
            (Some("X"), place) => {
                let (line, column) = place.map_or((0, 0), |place| (place.line, place.column));
                ScriptError::Syntax { line, column, message: message.to_owned() }
            }
            (_, Some(place)) if message.ends_with("is not defined") => {
                ScriptError::Thrown { message: format!("{message} ({place}); {UNDECLARED}") }
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
fn furnish(ctx: &Ctx<'_>, program: &Program, log: &Rc<RefCell<Vec<String>>>) -> rquickjs::Result<Handles> {
    let globals = ctx.globals();
    let host = Object::new(ctx.clone())?;
    let written = Rc::clone(log);
    host.set("log", Func::from(move |line: String| written.borrow_mut().push(line)))?;
    host.set("resolve", Func::from(modules::resolve))?;
    host.set("module", Func::from(modules::compile))?;
    let make: Function = ctx.eval_with_options(SANDBOX, source::options("sandbox.js"))?;
    let Program { limits, modules, this, .. } = program;
    let sandbox: Object = make.call((
        host,
        limits.emitted_max,
        limits.emitted_bytes_max,
        LOG_LINES_MAX,
        modules.as_deref(),
        this.as_deref(),
    ))?;
    let environment: Object = sandbox.get("environment")?;
    for name in environment.keys::<String>() {
        let name = name?;
        globals.set(name.as_str(), environment.get::<_, Function>(name.as_str())?)?;
    }
    let math: Object = globals.get("Math")?;
    math.set("random", sandbox.get::<_, Function>("random")?)?;
    let guards: Object = ctx.eval_with_options(GUARDS, source::options("guards.js"))?;
    globals.set("toJSON", globals.get::<_, Object>("JSON")?.get::<_, Function>("stringify")?)?;
    guards.get::<_, Function>("lock")?.call::<_, ()>((globals,))?;
    let handle = |name: &str| -> rquickjs::Result<Handle> {
        Ok(Persistent::save(ctx, sandbox.get::<_, Function>(name)?))
    };
    Ok(Handles {
        add: handle("add")?,
        skip: handle("skip")?,
        open: handle("open")?,
        map: handle("map")?,
        map_own: handle("mapOwn")?,
        map_loosely: handle("mapLoosely")?,
        reduce: handle("reduce")?,
        validate: handle("validate")?,
        filter: handle("filter")?,
        update: handle("update")?,
        describe: handle("describe")?,
    })
}
