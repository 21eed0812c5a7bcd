//! A run of a script over a message.

mod actions;
mod flags;
mod tests;
mod variables;

use std::collections::{BTreeMap, BTreeSet};

use crate::action::{Action, HeaderEdit, ScriptOutcome, SeenMark};
use crate::budget::Budget;
use crate::error::{Position, RunError, RunFault};
use crate::fields::Fields;
use crate::limits::Limits;
use crate::message::{Delivery, Host, Message};
use crate::program::{IncludeCommand, Instruction, Location, Statement};
use crate::script::Script;
use crate::vacation::NoReply;
use variables::Frame;

pub(crate) fn run(
    script: &Script,
    message: &dyn Message,
    delivery: &Delivery<'_>,
    host: &dyn Host,
    limits: &Limits,
) -> ScriptOutcome {
    let mut run = Run {
        message,
        delivery,
        host,
        limits,
        budget: Budget::new(limits),
        position: Position { line: 1, column: 1 },
        fields: Fields::new(message, limits),
        frame: Frame::default(),
        globals: BTreeMap::new(),
        regexes: 0,
        flags: Vec::new(),
        implicit_keep: true,
        actions: Vec::new(),
        header_edits: Vec::new(),
        duplicates: BTreeMap::new(),
        seen: Vec::new(),
        no_reply: None,
        included: Vec::new(),
        included_once: BTreeSet::new(),
        includes: 0,
    };
    let result = run.block(&script.block);
    run.outcome(result.err())
}

pub(crate) struct Run<'a> {
    message: &'a dyn Message,
    delivery: &'a Delivery<'a>,
    host: &'a dyn Host,
    limits: &'a Limits,
    budget: Budget,
    /// The command that is executed.
    position: Position,
    fields: Fields<'a>,
    frame: Frame,
    globals: BTreeMap<String, String>,
    /// Regular expressions that were made in this run.
    regexes: usize,
    /// The internal variable of `imap4flags` (RFC 5232, section 2).
    flags: Vec<String>,
    implicit_keep: bool,
    actions: Vec<Action>,
    header_edits: Vec<HeaderEdit>,
    duplicates: BTreeMap<String, bool>,
    seen: Vec<SeenMark>,
    no_reply: Option<NoReply>,
    /// Scripts that include each other, the outermost first.
    included: Vec<(Location, String)>,
    included_once: BTreeSet<(Location, String)>,
    includes: usize,
}

/// What follows a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Next,
    /// Of the script that is included.
    Return,
    Stop,
}

impl Run<'_> {
    fn outcome(mut self, error: Option<RunFault>) -> ScriptOutcome {
        if let Some(fault) = error {
            // RFC 5228, section 2.10.6: as if there were no script.
            let keep = Action::Keep { flags: Vec::new(), edits: 0, is_implicit: true };
            return ScriptOutcome {
                actions: vec![keep],
                header_edits: Vec::new(),
                seen: Vec::new(),
                no_reply: None,
                error: Some(RunError { position: self.position, fault }),
            };
        }
        if self.implicit_keep {
            let flags = std::mem::take(&mut self.flags);
            self.actions.push(Action::Keep { flags, edits: self.header_edits.len(), is_implicit: true });
        }
        ScriptOutcome {
            actions: self.actions,
            header_edits: self.header_edits,
            seen: self.seen,
            no_reply: self.no_reply,
            error: None,
        }
    }

    fn block(&mut self, block: &[Statement]) -> Result<Flow, RunFault> {
        for statement in block {
            self.position = statement.position;
            self.budget.step()?;
            let flow = self.instruction(&statement.instruction)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn instruction(&mut self, instruction: &Instruction) -> Result<Flow, RunFault> {
        match instruction {
            Instruction::If(branches) => {
                for branch in branches {
                    let holds = match &branch.condition {
                        Some(condition) => self.test(condition)?,
                        None => true,
                    };
                    if holds {
                        return self.block(&branch.block);
                    }
                }
            }
            Instruction::Stop => return Ok(Flow::Stop),
            Instruction::Return => return Ok(Flow::Return),
            Instruction::Keep { flags } => self.keep(flags.as_deref())?,
            Instruction::Discard => self.implicit_keep = false,
            Instruction::FileInto(command) => self.fileinto(command)?,
            Instruction::Redirect { address, copy } => self.redirect(address, *copy)?,
            Instruction::Reject { kind, reason } => self.reject(*kind, reason)?,
            Instruction::Flags { change, variable, flags } => {
                self.change_flags(*change, variable.as_ref(), flags)?;
            }
            Instruction::Set { name, modifiers, value } => self.set(name, modifiers, value)?,
            Instruction::Vacation(command) => self.vacation(command)?,
            Instruction::Notify(command) => self.notify(command)?,
            Instruction::AddHeader { name, value, last } => self.add_header(name, value, *last)?,
            Instruction::DeleteHeader(command) => self.delete_header(command)?,
            Instruction::Include(command) => return self.include(command),
            Instruction::Global(names) => self.frame.import(names),
            Instruction::Error(message) => return Err(RunFault::Asked(self.expand(message)?)),
            Instruction::Unknown(fault) => return Err(RunFault::Unknown(fault.clone())),
        }
        Ok(Flow::Next)
    }

    /// `include` (RFC 6609, section 3.2).
    fn include(&mut self, command: &IncludeCommand) -> Result<Flow, RunFault> {
        let IncludeCommand { location, name, once, optional } = command;
        let key = (*location, name.clone());
        if *once && self.included_once.contains(&key) {
            return Ok(Flow::Next);
        }
        let fault = |reason: &str| RunFault::Include { name: name.clone(), reason: reason.to_owned() };
        if self.included.contains(&key) {
            return Err(fault("it would include itself"));
        }
        if self.included.len() >= self.limits.include_depth {
            return Err(RunFault::TooMany {
                what: "scripts that include each other",
                limit: self.limits.include_depth,
            });
        }
        self.includes += 1;
        if self.includes > self.limits.includes {
            return Err(RunFault::TooMany { what: "included scripts", limit: self.limits.includes });
        }
        let script = match self.host.script(*location, name).map_err(|reason| fault(&reason))? {
            Some(script) => script,
            None if *optional => return Ok(Flow::Next),
            None => return Err(fault("there is no such script")),
        };
        self.included_once.insert(key.clone());
        self.included.push(key);
        // Variables belong to one script (RFC 6609, section 3.4).
        let outer = std::mem::take(&mut self.frame);
        let position = self.position;
        let flow = self.block(&script.block)?;
        self.position = position;
        self.frame = outer;
        self.included.pop();
        Ok(if flow == Flow::Stop { Flow::Stop } else { Flow::Next })
    }
}
