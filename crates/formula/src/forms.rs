//! Functions that decide themselves which of their arguments are evaluated, and how often.

use crate::error::{ErrorValue, Reason};
use crate::functions::{SortOptions, order_values};
use crate::machine::{Fault, Machine, MachineResult, Slot};
use crate::number::whole;
use crate::program::{Form, Node};
use crate::value::Value;

impl Machine<'_> {
    pub(crate) fn form(&mut self, form: &Form) -> MachineResult {
        match form {
            Form::If { branches, otherwise } => {
                for (condition, value) in branches {
                    if self.condition("@If", condition)? {
                        return self.evaluate(value);
                    }
                }
                self.evaluate(otherwise)
            }
            Form::Choose { number, values } => self.choose(number, values),
            Form::Do(nodes) => self.body(nodes),
            Form::Return(value) => Err(Fault::Return(Box::new(self.evaluate(value)?))),
            Form::While { condition, body, check_first } => {
                if !check_first {
                    self.round(body)?;
                }
                let origin = if *check_first { "@While" } else { "@DoWhile" };
                while self.condition(origin, condition)? {
                    self.round(body)?;
                }
                Ok(Value::truth(true))
            }
            Form::For { start, condition, step, body } => {
                self.evaluate(start)?;
                while self.condition("@For", condition)? {
                    self.round(body)?;
                    self.evaluate(step)?;
                }
                Ok(Value::truth(true))
            }
            Form::IfError(nodes) => {
                let mut outcome = Ok(Value::empty());
                for node in nodes {
                    outcome = self.evaluate(node);
                    if !matches!(outcome, Err(Fault::Error(_))) {
                        break;
                    }
                }
                outcome
            }
            Form::IsError(node) => match self.operand(node) {
                Ok(_) => Ok(Value::truth(false)),
                Err(Fault::Error(_)) => Ok(Value::truth(true)),
                Err(fault) => Err(fault),
            },
            Form::IsNull(node) => match self.operand(node) {
                Ok(value) => Ok(Value::truth(value.is_empty_text())),
                Err(Fault::Error(_)) => Ok(Value::truth(false)),
                Err(fault) => Err(fault),
            },
            Form::Available { field, variable, wanted } => {
                let set = variable
                    .is_some_and(|slot| matches!(self.slots.get(usize::from(slot)), Some(Slot::Known(_))));
                Ok(Value::truth((set || self.has_field(*field)?) == *wanted))
            }
            Form::GetField(name) => {
                let Value::Text(name) = self.evaluate(name)? else {
                    return Err(ErrorValue::message("@GetField", "the name of a field is a text").into());
                };
                let found = name.first().map(|name| self.field_named(name)).transpose()?;
                Ok(found.flatten().unwrap_or_else(Value::empty))
            }
            Form::Transform { list, slot, body } => self.transform(list, *slot, body),
            Form::Sort { list, options, slots, greater } => self.sort(list, options, *slots, greater),
        }
    }

    /// Statements one after the other; the last one is the answer. As at the top of a formula, an error
    /// in one of the others does not stop the rest.
    fn body(&mut self, nodes: &[Node]) -> MachineResult {
        let mut outcome = Ok(Value::truth(true));
        for node in nodes {
            outcome = self.evaluate(node);
            if !matches!(outcome, Ok(_) | Err(Fault::Error(_))) {
                break;
            }
        }
        outcome
    }

    /// The body of a loop, whose value nobody asks for.
    fn round(&mut self, nodes: &[Node]) -> MachineResult<()> {
        match self.body(nodes) {
            Ok(_) | Err(Fault::Error(_)) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    fn choose(&mut self, number: &Node, values: &[Node]) -> MachineResult {
        let Value::Number(numbers) = self.evaluate(number)? else {
            return Err(ErrorValue::message("@Select", "its first argument is a number").into());
        };
        let number = whole(numbers.first().copied().unwrap_or(0.0));
        let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let chosen = place.and_then(|place| values.get(place).or_else(|| values.last()));
        let Some(node) = chosen else {
            return Err(ErrorValue::message(
                "@Select",
                format!("there is no value {number}; the first is 1"),
            )
            .into());
        };
        self.evaluate(node)
    }

    fn transform(&mut self, list: &Node, slot: u16, body: &Node) -> MachineResult {
        let list = self.operand(list)?;
        let before = self.set(slot, Slot::Unknown);
        self.transforms += 1;
        let mut results = Vec::new();
        let mut outcome = Ok(());
        for place in 0..list.len() {
            let Some(element) = list.element(place) else { break };
            self.set(slot, Slot::Known(element));
            match self.evaluate(body) {
                Ok(value) => results.push(crate::machine::Operand::Owned(value)),
                Err(Fault::Nothing) => {}
                Err(fault) => {
                    outcome = Err(fault);
                    break;
                }
            }
        }
        self.transforms -= 1;
        self.set(slot, before);
        outcome?;
        crate::operators::concatenate(self, &results)
    }

    /// Sorts by merging, which ends in time whatever the expression answers.
    fn sort(&mut self, list: &Node, options: &Node, slots: (u16, u16), greater: &Node) -> MachineResult {
        let options = SortOptions::read(&*self.operand(options)?)?;
        let list = self.evaluate(list)?;
        self.charge(list.weight())?;
        if !options.custom {
            return order_values(self, &list, options);
        }
        let before = (self.set(slots.0, Slot::Unknown), self.set(slots.1, Slot::Unknown));
        let mut runs: Vec<Vec<usize>> = (0..list.len()).map(|place| vec![place]).collect();
        let mut outcome = Ok(());
        while runs.len() > 1 && outcome.is_ok() {
            let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
            let mut pairs = runs.into_iter();
            while let Some(left) = pairs.next() {
                let Some(right) = pairs.next() else {
                    merged.push(left);
                    break;
                };
                match self.merge(&list, &left, &right, slots, greater) {
                    Ok(run) => merged.push(run),
                    Err(fault) => {
                        outcome = Err(fault);
                        break;
                    }
                }
            }
            runs = merged;
        }
        self.set(slots.0, before.0);
        self.set(slots.1, before.1);
        outcome?;
        let order = runs.pop().unwrap_or_default();
        Ok(if options.descending { list.pick(order.into_iter().rev()) } else { list.pick(order.into_iter()) })
    }

    fn merge(
        &mut self,
        list: &Value,
        left: &[usize],
        right: &[usize],
        slots: (u16, u16),
        greater: &Node,
    ) -> MachineResult<Vec<usize>> {
        let mut merged = Vec::with_capacity(left.len() + right.len());
        let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
        while let (Some(first), Some(second)) = (left.peek(), right.peek()) {
            let (Some(a), Some(b)) = (list.element(**first), list.element(**second)) else { break };
            self.set(slots.0, Slot::Known(a));
            self.set(slots.1, Slot::Known(b));
            let value = self.evaluate(greater)?;
            let Value::Number(numbers) = &value else {
                let reason =
                    Reason::Operand { expected: "a number from its expression", found: value.kind() };
                return Err(ErrorValue::new("@Sort", reason).into());
            };
            let next =
                if numbers.first().is_some_and(|number| *number > 0.0) { right.next() } else { left.next() };
            merged.extend(next.copied());
        }
        merged.extend(left.copied());
        merged.extend(right.copied());
        Ok(merged)
    }
}
