//! A process that runs functions: reads requests from its standard input and answers to its standard output.

use std::cell::RefCell;
use std::rc::Rc;

use scrinium_confinement::{allow_seconds, confine};

use crate::error::ScriptError;
use crate::sandbox::Sandbox;
use crate::text::well_formed;
use crate::wire::{Answer, CallOutcome, MAGIC, Output, Program, Request};

/// A request is at most so long; who asks sends no longer ones.
pub(crate) const REQUEST_BYTES_MAX: usize = 256 << 20;

/// When an answer is so long, or its calls took so much processor time, the rest of the request is left to a further one.
const ANSWER_BYTES: usize = 4 << 20;
const ANSWER_US: u64 = 1_000_000;

/// Processor time of one request beyond its limit, and how often that may be used: to say what was thrown, and while what
/// cannot be interrupted is under way.
const EXTRA_S: u64 = 4;
const EXTRA_CALLS: u64 = 2;

/// Lines of one answer that are passed on.
const LOG_LINES_MAX: usize = 100;

/// Processor time that a request may use in all, in milliseconds.
pub(crate) const fn allowance_ms(call_time_ms: u64) -> u64 {
    (ANSWER_US / 1000).saturating_add(call_time_ms.saturating_mul(EXTRA_CALLS)).saturating_add(EXTRA_S * 1000)
}

/// Answers until nobody asks any more. Returns how the process ends.
pub(crate) fn serve(memory_bytes: usize) -> i32 {
    let Ok(walls) = confine(memory_bytes, c"javascript", know_the_time_zone) else { return 1 };
    let mut hello = Output::frame();
    hello.bytes(MAGIC);
    hello.byte(walls);
    if write_all(&hello.framed()).is_none() {
        return 1;
    }
    let mut host = Host::default();
    while let Some(frame) = read_frame() {
        let Some(request) = Request::decode(&frame) else { return 1 };
        host.answer(request);
        if host.reply.borrow_mut().send(false).is_none() {
            return 1;
        }
    }
    0
}

/// The engine asks the C library for the local time, which reads the zone from a file the first time only.
fn know_the_time_zone() {
    if let Ok(runtime) = rquickjs::Runtime::new()
        && let Ok(context) = rquickjs::Context::full(&runtime)
    {
        context.with(|ctx| drop(ctx.eval::<f64, _>("new Date(0).getTimezoneOffset()")));
    }
}

fn read_frame() -> Option<Vec<u8>> {
    let mut head = [0; 4];
    read_exact(&mut head)?;
    let length =
        usize::try_from(u32::from_le_bytes(head)).ok().filter(|length| *length <= REQUEST_BYTES_MAX)?;
    let mut frame = vec![0; length];
    read_exact(&mut frame)?;
    Some(frame)
}

fn read_exact(mut buffer: &mut [u8]) -> Option<()> {
    while !buffer.is_empty() {
        let read = match rustix::io::read(rustix::stdio::stdin(), &mut *buffer) {
            Err(rustix::io::Errno::INTR) => continue,
            read => read.ok().filter(|read| *read > 0)?,
        };
        buffer = buffer.get_mut(read..)?;
    }
    Some(())
}

fn write_all(mut bytes: &[u8]) -> Option<()> {
    while !bytes.is_empty() {
        let written = match rustix::io::write(rustix::stdio::stdout(), bytes) {
            Err(rustix::io::Errno::INTR) => continue,
            written => written.ok().filter(|written| *written > 0)?,
        };
        bytes = bytes.get(written..)?;
    }
    Some(())
}

/// The answer under way.
#[derive(Default)]
struct Reply {
    outcomes: Output,
    outcome_count: usize,
    log: Output,
    log_count: usize,
    took_us: u64,
}

impl Reply {
    fn put(&mut self, outcome: &CallOutcome) {
        outcome.put(&mut self.outcomes);
        self.outcome_count += 1;
        self.took_us = self.took_us.saturating_add(u64::from(outcome.slow_us));
    }

    fn log(&mut self, function: usize, lines: &[String]) {
        for line in lines.iter().take(LOG_LINES_MAX.saturating_sub(self.log_count)) {
            self.log.number(function);
            self.log.text(line);
            self.log_count += 1;
        }
    }

    /// Whether the rest is left to another request.
    const fn is_enough(&self) -> bool {
        self.outcomes.len() >= ANSWER_BYTES || self.took_us >= ANSWER_US
    }

    fn send(&mut self, is_stuck: bool) -> Option<()> {
        let Self { outcomes, outcome_count, log, log_count, .. } = std::mem::take(self);
        let (outcomes, log) = (outcomes.into_bytes(), log.into_bytes());
        write_all(&Answer::encode(is_stuck, (outcome_count, &outcomes), (log_count, &log)))
    }
}

/// What runs the functions of one program.
#[derive(Default)]
struct Host {
    program: Option<Program>,
    /// Functions that are not called.
    left_out: Vec<bool>,
    sandbox: Option<Sandbox>,
    /// Whether the engine has the document under way.
    opened: bool,
    /// Whether a function was called in the engine.
    used: bool,
    reply: Rc<RefCell<Reply>>,
}

impl Host {
    fn answer(&mut self, request: Request<'_>) {
        let of_request = if let Request::Prepare { program, .. } = &request { Some(program) } else { None };
        let limits = of_request.or(self.program.as_ref()).map(|program| program.limits.clone());
        let call_time_ms = limits.map_or(0, |limits| limits.call_time_ms);
        allow_seconds(allowance_ms(call_time_ms).div_ceil(1000));
        match request {
            Request::Prepare { program, left_out } => self.prepare(program, left_out),
            Request::Map { first, calls_max, left_out, documents } => {
                self.map_all(first, calls_max, &left_out, &documents);
            }
            Request::Reduce { keys, values } => self
                .once(0, |sandbox| sandbox.reduce(keys, values).map(|json| well_formed(&json).into_owned())),
            Request::Validate(edits) => {
                for edit in edits {
                    self.once(0, |sandbox| sandbox.validate(&edit));
                    if self.reply.borrow().is_enough() {
                        break;
                    }
                }
            }
            Request::Filter(requested) => self.once(0, |sandbox| sandbox.filter(&requested)),
            Request::Update(requested) => {
                self.once(0, |sandbox| {
                    sandbox.update(&requested).map(|json| well_formed(&json).into_owned())
                });
            }
        }
    }

    /// Makes the engine, and says of each source whether it can be used. Those that cannot are left out from then on.
    fn prepare(&mut self, program: Program, left_out: Vec<bool>) {
        self.sandbox = None;
        self.left_out = left_out;
        let sources = program.sources.clone();
        self.program = Some(program);
        for (place, source) in sources.iter().enumerate() {
            let is_left_out = self.left_out.get(place) == Some(&true);
            let added = self.engine(place).and_then(|engine| match is_left_out {
                true => engine.skip().and(Err(ScriptError::Runaway)),
                false => engine.add(source),
            });
            if added.is_err() && !is_left_out {
                if let Some(flag) = self.left_out.get_mut(place) {
                    *flag = true;
                }
                // Whatever is left of it, the next one begins in a new engine.
                self.sandbox = None;
            }
            let result = added.map(|()| String::new());
            self.reply.borrow_mut().put(&CallOutcome { slow_us: 0, result });
        }
    }

    fn map_all(&mut self, first: usize, calls_max: usize, left_out: &[bool], documents: &[&str]) {
        let (mut first, mut calls) = (first, 0);
        for document in documents {
            self.opened = false;
            for (index, is_left_out) in left_out.iter().enumerate().skip(first) {
                if calls == calls_max || self.reply.borrow().is_enough() {
                    return;
                }
                calls += 1;
                if *is_left_out {
                    let result = Err(ScriptError::Runaway);
                    self.reply.borrow_mut().put(&CallOutcome { slow_us: 0, result });
                } else {
                    self.map_one(index, document);
                }
            }
            first = 0;
        }
    }

    fn map_one(&mut self, index: usize, document: &str) {
        let mut is_open = self.opened;
        self.once(index, |sandbox| {
            // A new engine has no document.
            if !is_open || !sandbox.has_document() {
                sandbox.open(document)?;
                is_open = true;
            }
            sandbox.map(index, document).map(|lines| well_formed(&lines).into_owned())
        });
        self.opened = is_open;
    }

    /// One call of a function, and its outcome. Memory may have run out by what earlier calls left, so it is called
    /// again in a new engine then.
    fn once(&mut self, index: usize, mut call: impl FnMut(&mut Sandbox) -> Result<String, ScriptError>) {
        let mut slow_us: u32 = 0;
        let mut result = Err(ScriptError::Runaway);
        let turns = if self.left_out.get(index) == Some(&false) { 2 } else { 0 };
        for _ in 0..turns {
            let used = std::mem::replace(&mut self.used, true);
            let functions = self.left_out.len();
            result = self.engine(functions).and_then(&mut call);
            let Some(sandbox) = &self.sandbox else { break };
            slow_us = slow_us.saturating_add(sandbox.take_slow_us());
            self.reply.borrow_mut().log(index, &sandbox.take_log());
            let is_damaged = sandbox.is_damaged();
            if is_damaged {
                self.sandbox = None;
            }
            if !used || !is_damaged || matches!(result, Ok(_) | Err(ScriptError::Time { .. })) {
                break;
            }
        }
        self.reply.borrow_mut().put(&CallOutcome { slow_us, result });
    }

    /// An engine with the first this many functions.
    fn engine(&mut self, functions: usize) -> Result<&mut Sandbox, ScriptError> {
        let missing = || ScriptError::Unavailable { reason: "there is no program".to_owned() };
        if self.sandbox.is_none() {
            let program = self.program.as_ref().ok_or_else(missing)?;
            let reply = Rc::clone(&self.reply);
            // Nobody else holds the reply while a function runs.
            let given_up = move || drop(reply.try_borrow_mut().map(|mut reply| reply.send(true)));
            let mut sandbox = Sandbox::new(program, Box::new(given_up))?;
            for (source, is_left_out) in program.sources.iter().zip(&self.left_out).take(functions) {
                if *is_left_out { sandbox.skip()? } else { sandbox.add(source)? }
            }
            sandbox.take_slow_us();
            self.used = false;
            self.sandbox = Some(sandbox);
        }
        self.sandbox.as_mut().ok_or_else(missing)
    }
}
