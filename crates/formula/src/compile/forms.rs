//! Compiles the functions that decide themselves which of their arguments are evaluated.

use super::{Compiler, offset, text_constant};
use crate::error::{FormulaError, FormulaErrorKind};
use crate::functions::{self, FormKind, Function, flags};
use crate::program::{Form, Node};
use crate::syntax::{Expression, ExpressionKind, Target};
use crate::value::Value;

impl Compiler<'_> {
    pub(super) fn form(
        &mut self,
        function: &'static Function,
        kind: FormKind,
        arguments: Vec<Expression>,
        at: usize,
    ) -> Result<Node, FormulaError> {
        let wrong = |compiler: &Self, message: &str| {
            let message = format!("{} {message}", function.name);
            compiler.error(at, FormulaErrorKind::Arguments, message, format!("write {}", function.usage()))
        };
        let mut arguments = arguments.into_iter();
        let mut next = || arguments.next().ok_or(());
        // Arity has been checked, so that the arguments asked for below are there.
        let missing = |()| wrong(self, "lacks an argument");
        let form = match kind {
            FormKind::If => {
                let all: Vec<_> = arguments.collect();
                if all.len() % 2 == 0 {
                    return Err(wrong(self, "needs a value for the case that no condition holds"));
                }
                self.branches_of(all)?
            }
            FormKind::Select => {
                let first = next().map_err(missing)?;
                let number = self.node(first)?;
                let values = self.optional(|compiler| compiler.nodes(arguments.collect()))?;
                Form::Choose { number, values: values.into() }
            }
            FormKind::Do => Form::Do(self.nodes(arguments.collect())?.into()),
            FormKind::Return => {
                let value = next().map_err(missing)?;
                Form::Return(self.node(value)?)
            }
            FormKind::While => {
                let condition = next().map_err(missing)?;
                self.looped(|compiler| {
                    let condition = compiler.node(condition)?;
                    let body = compiler.nodes(arguments.collect())?.into();
                    Ok(Form::While { condition, body, check_first: true })
                })?
            }
            FormKind::DoWhile => self.looped(|compiler| {
                let mut body = compiler.nodes(arguments.collect())?;
                let condition = body.pop().unwrap_or(Node::Constant(Value::empty()));
                Ok(Form::While { condition, body: body.into(), check_first: false })
            })?,
            FormKind::For => {
                let (start, condition, step) =
                    (next().map_err(missing)?, next().map_err(missing)?, next().map_err(missing)?);
                let start = self.node(start)?;
                self.looped(|compiler| {
                    let condition = compiler.node(condition)?;
                    let body = compiler.nodes(arguments.collect())?.into();
                    Ok(Form::For { start, condition, step: compiler.node(step)?, body })
                })?
            }
            FormKind::IfError => {
                let mut all = vec![];
                let first = next().map_err(missing)?;
                all.push(self.node(first)?);
                all.extend(self.optional(|compiler| compiler.nodes(arguments.collect()))?);
                if all.len() == 1 {
                    all.push(Node::Constant(Value::empty()));
                }
                Form::IfError(all.into())
            }
            FormKind::IsError => {
                let value = next().map_err(missing)?;
                Form::IsError(self.node(value)?)
            }
            FormKind::IsAvailable | FormKind::IsUnavailable => {
                let Expression { kind: ExpressionKind::Name(name), .. } = next().map_err(missing)? else {
                    return Err(wrong(self, "takes the plain name of a field"));
                };
                let variable = self.variables.get(&name.to_lowercase()).map(|variable| variable.slot);
                let field = self.read_field(&name, at)?;
                Form::Available { field, variable, wanted: kind == FormKind::IsAvailable }
            }
            FormKind::GetField => {
                let name = next().map_err(missing)?;
                if let Some(name) = text_constant(&name) {
                    return self.read_field(&name, at).map(Node::Field);
                }
                self.traits.flags |= flags::ANY_FIELD;
                Form::GetField(self.node(name)?)
            }
            FormKind::Set | FormKind::SetField => {
                let (name, value) = (next().map_err(missing)?, next().map_err(missing)?);
                let Some(name) = text_constant(&name) else {
                    return Err(wrong(self, "needs its name as a constant in double quotes"));
                };
                let target = if kind == FormKind::Set { Target::Temporary } else { Target::Field };
                return self.assign(target, &name, value, at);
            }
            FormKind::Transform => {
                let (list, name, body) =
                    (next().map_err(missing)?, next().map_err(missing)?, next().map_err(missing)?);
                let Some(name) = text_constant(&name) else {
                    return Err(wrong(self, "needs the name of its variable as a constant in double quotes"));
                };
                let list = self.node(list)?;
                let slot = self.variable(&name, at)?;
                let body = self.looped(|compiler| compiler.with_set(&[&name], |inside| inside.node(body)))?;
                Form::Transform { list, slot, body }
            }
            FormKind::Sort => return self.sort(function, arguments.collect(), at),
        };
        Ok(Node::Form { form: Box::new(form), at: offset(at) })
    }

    /// `@If`: its first condition is always evaluated, the rest perhaps.
    fn branches_of(&mut self, arguments: Vec<Expression>) -> Result<Form, FormulaError> {
        let mut arguments = arguments.into_iter();
        let mut nodes = Vec::new();
        if let Some(condition) = arguments.next() {
            nodes.push(self.node(condition)?);
        }
        nodes.extend(self.optional(|compiler| compiler.nodes(arguments.collect()))?);
        let otherwise = nodes.pop().unwrap_or(Node::Constant(Value::empty()));
        let mut branches = Vec::with_capacity(nodes.len() / 2);
        let mut nodes = nodes.into_iter();
        while let (Some(condition), Some(value)) = (nodes.next(), nodes.next()) {
            branches.push((condition, value));
        }
        Ok(Form::If { branches: branches.into(), otherwise })
    }

    /// `@Sort`: with an expression that compares, it is a form; without one, an ordinary function.
    fn sort(
        &mut self,
        function: &'static Function,
        arguments: Vec<Expression>,
        at: usize,
    ) -> Result<Node, FormulaError> {
        let mut arguments = arguments.into_iter();
        let given: Vec<Node> = self.nodes(arguments.by_ref().take(2).collect())?;
        let Some(greater) = arguments.next() else {
            let node = Node::Call {
                function,
                native: functions::plain_sort,
                arguments: given.into(),
                at: offset(at),
            };
            return Ok(node);
        };
        let slots = (self.variable("$A", at)?, self.variable("$B", at)?);
        let greater =
            self.looped(|compiler| compiler.with_set(&["$A", "$B"], |inside| inside.node(greater)))?;
        let mut given = given.into_iter();
        let empty = || Node::Constant(Value::empty());
        let (list, options) = (given.next().unwrap_or_else(empty), given.next().unwrap_or_else(empty));
        Ok(Node::Form { form: Box::new(Form::Sort { list, options, slots, greater }), at: offset(at) })
    }

    /// Compiles where these variables have a value.
    fn with_set<T>(
        &mut self,
        names: &[&str],
        compile: impl FnOnce(&mut Self) -> Result<T, FormulaError>,
    ) -> Result<T, FormulaError> {
        let mut before = Vec::new();
        for name in names {
            if let Some(variable) = self.variables.get_mut(&name.to_lowercase()) {
                before.push((name.to_lowercase(), variable.set));
                variable.set = true;
            }
        }
        let result = compile(self);
        for (name, set) in before {
            if let Some(variable) = self.variables.get_mut(&name) {
                variable.set = set;
            }
        }
        result
    }
}
