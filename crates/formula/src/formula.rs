//! A compiled formula, as the rest of the server sees it.

use std::fmt;

use crate::compile::{Traits, compile};
use crate::environment::{Environment, Fields};
use crate::error::{EvaluationError, FormulaError};
use crate::functions::flags;
use crate::machine::Machine;
use crate::program::Program;
use crate::value::Value;

/// A formula, compiled. It can be evaluated by many threads at once.
#[derive(Clone, Debug)]
pub struct Formula {
    program: Program,
    traits: Traits,
}

/// Which responses a selection adds to the documents that it selects.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Responses {
    /// None: each document is selected for itself.
    None,
    /// The responses to selected documents (`@AllChildren`).
    Children,
    /// The responses to selected documents, the responses to those, and so on (`@AllDescendants`).
    Descendants,
}

impl Formula {
    /// Compiles a formula.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, where, and what to do about it: a mistake of grammar, an unknown
    /// function, unsuitable arguments, a function that is not permitted on a server, or a formula that is too
    /// long or too deeply nested.
    pub fn compile(source: &str) -> Result<Self, FormulaError> {
        let (program, traits) = compile(source)?;
        Ok(Self { program, traits })
    }

    /// The value of the formula for a document: that of its last statement. It may be an error value.
    ///
    /// # Errors
    ///
    /// When the evaluation was stopped because it took too many steps or made too large a text or list.
    pub fn evaluate(
        &self,
        document: &dyn Fields,
        environment: &Environment,
    ) -> Result<Value, EvaluationError> {
        Machine::new(&self.program, document, environment).run()
    }

    /// Whether the formula selects a document: whether the condition of its SELECT statement or, if it has
    /// none, the value of its last statement is true. An error value does not select.
    ///
    /// # Errors
    ///
    /// As of [`Formula::evaluate`].
    pub fn selects(&self, document: &dyn Fields, environment: &Environment) -> Result<bool, EvaluationError> {
        let mut machine = Machine::new(&self.program, document, environment);
        let value = machine.run()?;
        Ok(machine.selected.unwrap_or_else(|| value.is_true()))
    }

    /// The same with at most `steps` steps of the evaluation, if that is fewer than it may take anyway; takes those that it took
    /// off `steps`.
    ///
    /// # Errors
    ///
    /// As of [`Formula::evaluate`].
    pub fn selects_within(
        &self,
        document: &dyn Fields,
        environment: &Environment,
        steps: &mut u32,
    ) -> Result<bool, EvaluationError> {
        let mut machine = Machine::new(&self.program, document, environment).with_steps(*steps);
        let value = machine.run();
        *steps = steps.saturating_sub(machine.steps_taken());
        let value = value?;
        Ok(machine.selected.unwrap_or_else(|| value.is_true()))
    }

    /// Whether it has a `SELECT` statement, which decides what [`Formula::selects`]; without one its value does.
    #[must_use]
    pub const fn has_selection(&self) -> bool {
        self.traits.has_selection
    }

    /// Whether its value depends on the time, because `@Now`, `@Today` or the like stands anywhere in it: a view
    /// made with it is out of date as soon as it is built.
    #[must_use]
    pub const fn is_time_variant(&self) -> bool {
        self.has(flags::TIME_VARIANT)
    }

    /// Whether its value depends on the user for whom it runs, because it uses `@UserName` or the like.
    #[must_use]
    pub const fn is_user_dependent(&self) -> bool {
        self.has(flags::USER)
    }

    /// The names of the fields that it may read, each once, as it spells them first. Case does not count in
    /// them. `$REF` is among them if it asks whether the document is a response.
    #[must_use]
    pub fn fields(&self) -> &[String] {
        &self.traits.reads
    }

    /// Whether it may read fields other than those of [`Formula::fields`], whose names it finds out only
    /// while it runs.
    #[must_use]
    pub const fn reads_any_field(&self) -> bool {
        self.has(flags::ANY_FIELD)
    }

    /// Whether it adds responses to what it selects.
    #[must_use]
    pub fn uses_responses(&self) -> bool {
        self.responses() != Responses::None
    }

    /// Which responses it adds to what it selects.
    #[must_use]
    pub const fn responses(&self) -> Responses {
        if self.has(flags::DESCENDANTS) {
            Responses::Descendants
        } else if self.has(flags::CHILDREN) {
            Responses::Children
        } else {
            Responses::None
        }
    }

    /// The text that it was compiled from.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.program.source
    }

    const fn has(&self, flag: u16) -> bool {
        self.traits.flags & flag != 0
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.source())
    }
}
