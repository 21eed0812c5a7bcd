//! Compiles the functions that decide themselves which of their arguments are evaluated.

use super::{Compiler, offset, text_constant};
use crate::error::{FormulaError, FormulaErrorKind};
use crate::functions::{self, FormKind, Function, flags};
use crate::program::{Form, Node};
use crate::syntax::{Expression, ExpressionKind, Target};
use crate::value::Value;

/// What the compiler of one form answers: a form, or a simpler node that does the same.
enum Compiled {
    Form(Form),
    Node(Node),
}

type FormResult = Result<Compiled, FormulaError>;

impl Compiler<'_> {
    /// The number of arguments has been checked against the function's arity.
    pub(super) fn form(
        &mut self,
        function: &'static Function,
        kind: FormKind,
        arguments: &[Expression],
        at: usize,
    ) -> Result<Node, FormulaError> {
        let compiled = match kind {
            FormKind::If => self.if_form(function, arguments, at),
            FormKind::Select => self.select_form(arguments),
            FormKind::Do => Ok(Compiled::Form(Form::Do(self.nodes(arguments)?))),
            FormKind::Return => self.one(arguments).map(|value| Compiled::Form(Form::Return(value))),
            FormKind::While => self.while_form(arguments),
            FormKind::DoWhile => self.do_while_form(arguments),
            FormKind::For => self.for_form(arguments),
            FormKind::IfError => self.if_error_form(arguments),
            FormKind::IsError => self.one(arguments).map(|value| Compiled::Form(Form::IsError(value))),
            FormKind::IsNull => self.one(arguments).map(|value| Compiled::Form(Form::IsNull(value))),
            FormKind::IsAvailable => self.available_form(function, arguments, at, true),
            FormKind::IsUnavailable => self.available_form(function, arguments, at, false),
            FormKind::GetField => self.get_field_form(arguments, at),
            FormKind::Set => self.set_form(function, arguments, at, Target::Temporary),
            FormKind::SetField => self.set_form(function, arguments, at, Target::Field),
            FormKind::Transform => self.transform_form(function, arguments, at),
            FormKind::Sort => self.sort_form(function, arguments, at),
        };
        Ok(match compiled? {
            Compiled::Form(form) => Node::Form { form: Box::new(form), at: offset(at) },
            Compiled::Node(node) => node,
        })
    }

    fn wrong(&self, function: &Function, at: usize, message: &str) -> FormulaError {
        let message = format!("{} {message}", function.name);
        self.error(at, FormulaErrorKind::Arguments, message, format!("write {}", function.usage()))
    }

    /// The first argument.
    fn one(&mut self, arguments: &[Expression]) -> Result<Node, FormulaError> {
        arguments.first().map_or_else(|| Ok(absent()), |argument| self.node(argument))
    }

    /// Its first condition is always evaluated, the rest perhaps.
    fn if_form(&mut self, function: &Function, arguments: &[Expression], at: usize) -> FormResult {
        let [first, rest @ .., otherwise] = arguments else {
            return Err(self.wrong(function, at, "lacks an argument"));
        };
        if rest.len() % 2 == 0 {
            return Err(self.wrong(function, at, "needs a value for the case that no condition holds"));
        }
        let mut conditions = vec![self.node(first)?];
        self.branches += 1;
        let rest = self.nodes(rest);
        let otherwise = self.node(otherwise);
        self.branches -= 1;
        conditions.extend(rest?);
        let mut branches = Vec::with_capacity(conditions.len() / 2);
        let mut conditions = conditions.into_iter();
        while let (Some(condition), Some(value)) = (conditions.next(), conditions.next()) {
            branches.push((condition, value));
        }
        Ok(Compiled::Form(Form::If { branches: branches.into(), otherwise: otherwise? }))
    }

    fn select_form(&mut self, arguments: &[Expression]) -> FormResult {
        let number = self.one(arguments)?;
        let values = self.optional(|compiler| compiler.nodes(arguments.get(1..).unwrap_or(&[])))?;
        Ok(Compiled::Form(Form::Choose { number, values }))
    }

    fn while_form(&mut self, arguments: &[Expression]) -> FormResult {
        self.looped(|compiler| {
            let condition = compiler.one(arguments)?;
            let body = compiler.nodes(arguments.get(1..).unwrap_or(&[]))?;
            Ok(Compiled::Form(Form::While { condition, body, check_first: true }))
        })
    }

    fn do_while_form(&mut self, arguments: &[Expression]) -> FormResult {
        let (condition, body) = arguments
            .split_last()
            .map_or((&[][..], &[][..]), |(last, body)| (std::slice::from_ref(last), body));
        self.looped(|compiler| {
            let body = compiler.nodes(body)?;
            let condition = compiler.one(condition)?;
            Ok(Compiled::Form(Form::While { condition, body, check_first: false }))
        })
    }

    fn for_form(&mut self, arguments: &[Expression]) -> FormResult {
        let start = self.one(arguments)?;
        self.looped(|compiler| {
            let condition = compiler.one(arguments.get(1..).unwrap_or(&[]))?;
            let body = compiler.nodes(arguments.get(3..).unwrap_or(&[]))?;
            let step = compiler.one(arguments.get(2..).unwrap_or(&[]))?;
            Ok(Compiled::Form(Form::For { start, condition, step, body }))
        })
    }

    fn if_error_form(&mut self, arguments: &[Expression]) -> FormResult {
        let mut all = vec![self.one(arguments)?];
        all.extend(self.optional(|compiler| compiler.nodes(arguments.get(1..).unwrap_or(&[])))?);
        if all.len() == 1 {
            all.push(absent());
        }
        Ok(Compiled::Form(Form::IfError(all.into())))
    }

    fn available_form(
        &mut self,
        function: &Function,
        arguments: &[Expression],
        at: usize,
        wanted: bool,
    ) -> FormResult {
        let [Expression { kind: ExpressionKind::Name(name), .. }] = arguments else {
            return Err(self.wrong(function, at, "takes the plain name of a field"));
        };
        let variable = self.variables.get(&name.to_lowercase()).map(|variable| variable.slot);
        let field = self.read_field(name, at)?;
        Ok(Compiled::Form(Form::Available { field, variable, wanted }))
    }

    fn get_field_form(&mut self, arguments: &[Expression], at: usize) -> FormResult {
        if let Some(name) = arguments.first().and_then(text_constant) {
            return self.read_field(&name, at).map(|field| Compiled::Node(Node::Field(field)));
        }
        self.traits.flags |= flags::ANY_FIELD;
        self.one(arguments).map(|name| Compiled::Form(Form::GetField(name)))
    }

    fn set_form(
        &mut self,
        function: &Function,
        arguments: &[Expression],
        at: usize,
        target: Target,
    ) -> FormResult {
        let [name, value] = arguments else { return Err(self.wrong(function, at, "lacks an argument")) };
        let Some(name) = text_constant(name) else {
            return Err(self.wrong(function, at, "needs its name as a constant in double quotes"));
        };
        self.assign(target, &name, value, at).map(Compiled::Node)
    }

    fn transform_form(&mut self, function: &Function, arguments: &[Expression], at: usize) -> FormResult {
        let [list, name, body] = arguments else { return Err(self.wrong(function, at, "lacks an argument")) };
        let Some(name) = text_constant(name) else {
            return Err(self.wrong(
                function,
                at,
                "needs the name of its variable as a constant in double quotes",
            ));
        };
        let list = self.node(list)?;
        let slot = self.variable(&name, at)?;
        let body = self.looped(|compiler| compiler.with_set(&[&name], |inside| inside.node(body)))?;
        Ok(Compiled::Form(Form::Transform { list, slot, body }))
    }

    /// With an expression that compares it is a form; without one, an ordinary function.
    fn sort_form(&mut self, function: &'static Function, arguments: &[Expression], at: usize) -> FormResult {
        let [list, options, greater] = arguments else {
            let arguments = self.optional(|compiler| compiler.nodes(arguments))?;
            let native = functions::plain_sort;
            return Ok(Compiled::Node(Node::Call { function, native, arguments, at: offset(at) }));
        };
        let (list, options) =
            self.optional(|compiler| Ok((compiler.node(list)?, compiler.node(options)?)))?;
        let slots = (self.variable("$A", at)?, self.variable("$B", at)?);
        let greater =
            self.looped(|compiler| compiler.with_set(&["$A", "$B"], |inside| inside.node(greater)))?;
        Ok(Compiled::Form(Form::Sort { list, options, slots, greater }))
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

/// Stands for an argument that is not there.
const fn absent() -> Node {
    Node::Constant(Value::empty())
}
