//! Evaluates a program for one document.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::environment::{Environment, Fields};
use crate::error::{ErrorValue, EvaluationError, Reason};
use crate::functions::{Arguments, Function, Native};
use crate::lexer::position;
use crate::number::whole;
use crate::operators;
use crate::program::{BinaryStep, Node, Program};
use crate::syntax::{Binary, Operator};
use crate::value::Value;

/// Steps that one evaluation may take: about one for every operation, element, and 16 bytes of text.
/// That is some tens of milliseconds; ordinary formulas take less than a hundred.
pub const MAX_STEPS: u32 = 2_000_000;

/// The longest text that a formula may make. A document is at most 8 MB by default.
pub const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// The longest list that a formula may make.
pub const MAX_ELEMENTS: usize = 100_000;

/// Why an evaluation does not simply go on.
pub(crate) enum Fault {
    /// An error value: everything it is given to answers with it, except what asks for errors.
    Error(Arc<ErrorValue>),
    /// `@Return`.
    Return(Box<Value>),
    /// `@Nothing`: this element of `@Transform` is left out.
    Nothing,
    Limit(EvaluationError),
    /// What is being reckoned as a constant depends on the document or the environment.
    NotConstant,
}

impl From<Arc<ErrorValue>> for Fault {
    fn from(error: Arc<ErrorValue>) -> Self {
        Self::Error(error)
    }
}

pub(crate) type MachineResult<T = Value> = Result<T, Fault>;

/// A value, borrowed where it is a constant of the program.
pub(crate) enum Operand<'p> {
    Constant(&'p Value),
    Owned(Value),
}

impl Operand<'_> {
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Constant(value) => value.clone(),
            Self::Owned(value) => value,
        }
    }
}

impl Deref for Operand<'_> {
    type Target = Value;

    fn deref(&self) -> &Value {
        match self {
            Self::Constant(value) => value,
            Self::Owned(value) => value,
        }
    }
}

/// What is known of a variable, or of a field that is read more than once.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    /// Not asked for yet, or never assigned.
    Unknown,
    /// The document does not have the field.
    Missing,
    Known(Value),
}

/// What ends where a statement does not simply come to a value.
enum Ended {
    Statement(Value),
    Formula(Result<Value, EvaluationError>),
}

pub(crate) struct Machine<'e> {
    program: &'e Program,
    surroundings: Option<(&'e dyn Fields, &'e Environment)>,
    pub(crate) slots: Vec<Slot>,
    steps_left: u32,
    step_limit: u32,
    /// The condition of the last SELECT.
    pub(crate) selected: Option<bool>,
    pub(crate) random_numbers: u64,
    /// How many `@Transform` stand around what is being evaluated.
    pub(crate) transforms: u32,
}

impl<'e> Machine<'e> {
    pub(crate) fn new(program: &'e Program, document: &'e dyn Fields, environment: &'e Environment) -> Self {
        Self {
            program,
            surroundings: Some((document, environment)),
            slots: vec![Slot::Unknown; program.slots],
            steps_left: MAX_STEPS,
            step_limit: MAX_STEPS,
            selected: None,
            random_numbers: 0,
            transforms: 0,
        }
    }

    /// The same with at most this many steps.
    pub(crate) fn with_steps(mut self, steps: u32) -> Self {
        (self.steps_left, self.step_limit) = (steps.min(MAX_STEPS), steps.min(MAX_STEPS));
        self
    }

    /// The steps so far.
    pub(crate) const fn steps_taken(&self) -> u32 {
        self.step_limit.saturating_sub(self.steps_left)
    }

    /// Reckons a node whose operands are constants; none if it has no constant value. Also the steps
    /// that this took.
    pub(crate) fn fold(node: &Node, step_limit: u32) -> (Option<Value>, u32) {
        static EMPTY: LazyLock<Program> = LazyLock::new(|| Program {
            source: "".into(),
            statements: [].into(),
            fields: [].into(),
            slots: 0,
        });
        let mut machine = Machine {
            program: &EMPTY,
            surroundings: None,
            slots: Vec::new(),
            steps_left: step_limit,
            step_limit,
            selected: None,
            random_numbers: 0,
            transforms: 0,
        };
        let value = machine.evaluate(node).ok();
        (value, step_limit - machine.steps_left)
    }

    /// Carries out the statements; the value is that of the last.
    pub(crate) fn run(&mut self) -> Result<Value, EvaluationError> {
        let program = self.program;
        let Some((last, before)) = program.statements.split_last() else { return Ok(Value::empty()) };
        for statement in before {
            if let Err(fault) = self.evaluate(statement)
                && let Ended::Formula(outcome) = self.ended(fault, statement)
            {
                return outcome;
            }
        }
        self.evaluate(last).or_else(|fault| match self.ended(fault, last) {
            Ended::Formula(outcome) => outcome,
            Ended::Statement(value) => Ok(value),
        })
    }

    /// What it means that a statement did not simply come to a value.
    #[cold]
    fn ended(&mut self, fault: Fault, statement: &Node) -> Ended {
        match fault {
            Fault::Error(error) => {
                // A condition that is an error selects nothing, whatever an earlier one said.
                if matches!(statement, Node::Select { .. }) {
                    self.selected = Some(false);
                }
                Ended::Statement(Value::Error(error))
            }
            Fault::Return(value) => Ended::Formula(Ok(*value)),
            Fault::Limit(error) => Ended::Formula(Err(error)),
            // Neither leaves what it belongs to.
            Fault::Nothing | Fault::NotConstant => Ended::Statement(Value::empty()),
        }
    }

    /// Counts work, and stops the evaluation when it was too much.
    pub(crate) fn charge(&mut self, steps: usize) -> MachineResult<()> {
        let left = u32::try_from(steps).ok().and_then(|steps| self.steps_left.checked_sub(steps));
        match left {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => {
                self.steps_left = 0;
                Err(Fault::Limit(EvaluationError::TooMuchWork { limit: self.step_limit }))
            }
        }
    }

    /// Counts the making of a text of this many bytes.
    pub(crate) fn charge_text(&mut self, bytes: usize) -> MachineResult<()> {
        if bytes > MAX_TEXT_BYTES {
            return Err(Fault::Limit(EvaluationError::TextTooLong { limit_bytes: MAX_TEXT_BYTES }));
        }
        self.charge(1 + bytes / 16)
    }

    /// Counts the making of a list of this many elements.
    pub(crate) fn charge_list(&mut self, elements: usize) -> MachineResult<()> {
        if elements > MAX_ELEMENTS {
            return Err(Fault::Limit(EvaluationError::ListTooLong { limit: MAX_ELEMENTS }));
        }
        self.charge(elements)
    }

    /// Counts the making of more elements of a list that has some.
    pub(crate) fn charge_growth(&mut self, elements: usize, more: usize) -> MachineResult<()> {
        if elements.saturating_add(more) > MAX_ELEMENTS {
            return Err(Fault::Limit(EvaluationError::ListTooLong { limit: MAX_ELEMENTS }));
        }
        self.charge(more)
    }

    pub(crate) fn document(&self) -> MachineResult<&'e dyn Fields> {
        self.surroundings.map(|(document, _)| document).ok_or(Fault::NotConstant)
    }

    pub(crate) fn environment(&self) -> MachineResult<&'e Environment> {
        self.surroundings.map(|(_, environment)| environment).ok_or(Fault::NotConstant)
    }

    pub(crate) fn zone(&self) -> MachineResult<&'e TimeZone> {
        self.environment().map(|environment| &environment.time_zone)
    }

    pub(crate) fn now(&self) -> MachineResult<Timestamp> {
        self.environment().map(|environment| environment.now)
    }

    /// Notes on an error where it arose.
    #[inline]
    pub(crate) fn located<T>(&mut self, outcome: MachineResult<T>, at: u32) -> MachineResult<T> {
        outcome.map_err(|fault| self.locate(fault, at))
    }

    #[cold]
    fn locate(&mut self, fault: Fault, at: u32) -> Fault {
        match fault {
            Fault::Error(error) if error.position().is_none() => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                // The source is counted through up to there.
                if let Err(limit) = self.charge(at / 64) {
                    return limit;
                }
                let (line, column) = position(&self.program.source, at);
                Fault::Error(error.located(line, column))
            }
            other => other,
        }
    }

    pub(crate) fn operand<'p>(&mut self, node: &'p Node) -> MachineResult<Operand<'p>> {
        match node {
            Node::Constant(value) => Ok(Operand::Constant(value)),
            _ => self.evaluate(node).map(Operand::Owned),
        }
    }

    pub(crate) fn evaluate(&mut self, node: &Node) -> MachineResult {
        self.charge(1)?;
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::LocalTime(written) => written
                .in_zone(self.zone()?)
                .map(Value::time)
                .map_err(|fault| ErrorValue::message("", fault.message()).into()),
            Node::Field(number) => self.field(*number),
            Node::Variable { slot, field } => match self.slots.get(usize::from(*slot)) {
                Some(Slot::Known(value)) => usable(value.clone()),
                _ => self.field(*field),
            },
            Node::SetVariable { slot, value } | Node::SetField { slot, value } => self.assign(*slot, value),
            Node::DefaultField { field, slot, value } => {
                if self.has_field(*field)? {
                    self.field(*field)
                } else {
                    self.assign(*slot, value)
                }
            }
            Node::Select { condition, at } => {
                let outcome = self.condition("SELECT", condition);
                let selected = self.located(outcome, *at)?;
                self.selected = Some(selected);
                Ok(Value::truth(selected))
            }
            Node::List { elements, at } => {
                let outcome = self.list(elements);
                self.located(outcome, *at)
            }
            Node::Negate { operand, at } => {
                let value = self.operand(operand)?;
                let outcome = operators::negate(self, &value);
                self.located(outcome, *at)
            }
            Node::Plus { operand, at } => {
                let value = self.operand(operand)?.into_value();
                self.located(operators::plus(value), *at)
            }
            Node::Not { operand, at } => {
                let outcome = self.condition("'!'", operand);
                self.located(outcome, *at).map(|truth| Value::truth(!truth))
            }
            Node::Compare { left, right, binary, at } => {
                self.comparison(left, right, *binary, *at).map(Value::truth)
            }
            Node::Chain { first, rest } => self.chain(first, rest),
            Node::Logic { first, rest } => self.logic(first, rest).map(Value::truth),
            Node::Subscript { list, index, at } => {
                let (list, index) = (self.operand(list)?, self.operand(index)?);
                self.located(subscript(&list, &index), *at)
            }
            Node::Call { function, native, arguments, at } => {
                let outcome = self.call(function, *native, arguments);
                self.located(outcome, *at)
            }
            Node::Form { form, at } => {
                let outcome = self.form(form);
                self.located(outcome, *at)
            }
        }
    }

    fn list(&mut self, nodes: &[Node]) -> MachineResult {
        let mut values = Vec::with_capacity(nodes.len());
        for node in nodes {
            values.push(self.operand(node)?);
        }
        operators::concatenate(self, &values)
    }

    fn chain(&mut self, first: &Node, rest: &[BinaryStep]) -> MachineResult {
        let mut left = self.operand(first)?;
        for BinaryStep { binary, operand, at } in rest {
            let right = self.operand(operand)?;
            let outcome = operators::binary(self, *binary, &left, &right);
            left = Operand::Owned(self.located(outcome, *at)?);
        }
        Ok(left.into_value())
    }

    /// Whether a condition holds, without making a value of it where that is not needed.
    pub(crate) fn condition(&mut self, origin: &'static str, node: &Node) -> MachineResult<bool> {
        match node {
            Node::Compare { left, right, binary, at } => {
                self.charge(1)?;
                self.comparison(left, right, *binary, *at)
            }
            Node::Logic { first, rest } => {
                self.charge(1)?;
                self.logic(first, rest)
            }
            _ => truth(origin, &*self.operand(node)?),
        }
    }

    fn comparison(&mut self, left: &Node, right: &Node, binary: Binary, at: u32) -> MachineResult<bool> {
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        let outcome = operators::compare(self, binary, &left, &right);
        self.located(outcome, at)
    }

    /// AND and OR from left to right; an operand that cannot change the outcome is not evaluated.
    fn logic(&mut self, first: &Node, rest: &[BinaryStep]) -> MachineResult<bool> {
        let (symbol, at) = rest.first().map_or(("'&'", 0), |step| (step.binary.symbol(), step.at));
        let outcome = self.condition(symbol, first);
        let mut result = self.located(outcome, at)?;
        for BinaryStep { binary, operand, at } in rest {
            if result == (binary.operator == Operator::Or) {
                continue;
            }
            let outcome = self.condition(binary.symbol(), operand);
            result = self.located(outcome, *at)?;
        }
        Ok(result)
    }

    fn call(&mut self, function: &'static Function, native: Native, arguments: &[Node]) -> MachineResult {
        let call =
            |machine: &mut Self, values: &[Operand<'_>]| native(machine, &Arguments { function, values });
        // The usual numbers of arguments need no allocation.
        match arguments {
            [] => call(self, &[]),
            [first] => {
                let values = [self.operand(first)?];
                call(self, &values)
            }
            [first, second] => {
                let values = [self.operand(first)?, self.operand(second)?];
                call(self, &values)
            }
            [first, second, third] => {
                let values = [self.operand(first)?, self.operand(second)?, self.operand(third)?];
                call(self, &values)
            }
            more => {
                let mut values = Vec::with_capacity(more.len());
                for node in more {
                    values.push(self.operand(node)?);
                }
                call(self, &values)
            }
        }
    }

    /// Stores a value, an error too; the statement itself then answers with it.
    fn assign(&mut self, slot: u16, node: &Node) -> MachineResult {
        let value = match self.evaluate(node) {
            Ok(value) => value,
            Err(Fault::Error(error)) => Value::Error(error),
            Err(fault) => return Err(fault),
        };
        self.set(slot, Slot::Known(value.clone()));
        usable(value)
    }

    pub(crate) fn set(&mut self, slot: u16, to: Slot) -> Slot {
        match self.slots.get_mut(usize::from(slot)) {
            Some(place) => std::mem::replace(place, to),
            None => Slot::Unknown,
        }
    }

    fn field(&mut self, number: u16) -> MachineResult {
        let Some(field) = self.program.fields.get(usize::from(number)) else { return Ok(Value::empty()) };
        let Some(slot) = field.slot else {
            return self.document()?.field(&field.name).map_or_else(|| Ok(Value::empty()), usable);
        };
        match self.look_up(slot, &field.name)? {
            Slot::Known(value) => usable(value.clone()),
            _ => Ok(Value::empty()),
        }
    }

    pub(crate) fn has_field(&mut self, number: u16) -> MachineResult<bool> {
        let Some(field) = self.program.fields.get(usize::from(number)) else { return Ok(false) };
        match field.slot {
            None => Ok(self.document()?.field(&field.name).is_some()),
            Some(slot) => Ok(matches!(self.look_up(slot, &field.name)?, Slot::Known(_))),
        }
    }

    /// A field by its name; none if the document lacks it.
    pub(crate) fn field_named(&mut self, name: &str) -> MachineResult<Option<Value>> {
        let program = self.program;
        self.charge(program.fields.len())?;
        let known = program.fields.iter().find(|field| same_name(&field.name, name));
        let Some((field, slot)) = known.and_then(|field| Some((field, field.slot?))) else {
            return self.document()?.field(name).map(usable).transpose();
        };
        match self.look_up(slot, &field.name)? {
            Slot::Known(value) => usable(value.clone()).map(Some),
            _ => Ok(None),
        }
    }

    /// Asks the document for a field, once.
    fn look_up(&mut self, slot: u16, name: &str) -> MachineResult<&Slot> {
        let slot = usize::from(slot);
        if matches!(self.slots.get(slot), Some(Slot::Unknown)) {
            let found = self.document()?.field(name).map_or(Slot::Missing, Slot::Known);
            if let Some(place) = self.slots.get_mut(slot) {
                *place = found;
            }
        }
        Ok(self.slots.get(slot).unwrap_or(&Slot::Missing))
    }
}

/// Whether two names are the same but for the case of their letters.
fn same_name(left: &str, right: &str) -> bool {
    fn lower(name: &str) -> impl Iterator<Item = char> {
        name.chars().flat_map(char::to_lowercase)
    }
    let ascii = left.is_ascii() && right.is_ascii();
    if ascii { left.eq_ignore_ascii_case(right) } else { lower(left).eq(lower(right)) }
}

fn usable(value: Value) -> MachineResult {
    match value {
        Value::Error(error) => Err(Fault::Error(error)),
        value => Ok(value),
    }
}

/// Whether a condition holds: a number other than 0, or a list with one. The empty text, which is what a
/// missing field reads as, does not.
pub(crate) fn truth(origin: &'static str, value: &Value) -> MachineResult<bool> {
    match value {
        Value::Number(_) => Ok(value.is_true()),
        _ if value.is_empty_text() => Ok(false),
        _ => {
            let reason = Reason::Operand { expected: "true or false (1 or 0)", found: value.kind() };
            Err(ErrorValue::new(origin, reason).into())
        }
    }
}

fn subscript(list: &Value, index: &Value) -> MachineResult {
    const ORIGIN: &str = "a subscript";
    let Value::Number(numbers) = index else {
        let reason = Reason::Operand { expected: "a number", found: index.kind() };
        return Err(ErrorValue::new(ORIGIN, reason).into());
    };
    let number = whole(numbers.first().copied().unwrap_or(0.0));
    let element = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    element.and_then(|place| list.element(place)).ok_or_else(|| {
        let message = format!("there is no element {number} in a list of {}; the first is 1", list.len());
        ErrorValue::message(ORIGIN, message).into()
    })
}
