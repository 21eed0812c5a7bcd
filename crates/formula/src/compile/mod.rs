//! Expressions into a program.

mod forms;

use std::collections::HashMap;

use smol_str::SmolStr;

use crate::error::{FormulaError, FormulaErrorKind};
use crate::functions::{self, Body, FormKind, Function, Native, flags};
use crate::lexer::error_at;
use crate::machine::Machine;
use crate::parser;
use crate::program::{BinaryStep, Field, Node, Program};
use crate::syntax::{COMPARISON, Expression, ExpressionKind, LIST, LOOSEST, Link, Target};
use crate::value::Value;

/// What a compiled formula tells about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traits {
    /// The flags of all the functions that it calls.
    pub(crate) flags: u16,
    /// The names of the fields that it may read, as it spells them first.
    pub(crate) reads: Vec<String>,
    /// Whether it has a SELECT statement.
    pub(crate) has_selection: bool,
}

/// The work that may be spent on reckoning constants of one formula.
const FOLDING_WORK: u32 = 500_000;

/// A constant that weighs more is not kept in the formula but reckoned every time.
const MAX_CONSTANT_WEIGHT: usize = 4096;

pub(crate) fn compile(source: &str) -> Result<(Program, Traits), FormulaError> {
    compile_within(source, FOLDING_WORK)
}

/// Whether a text can be compiled; nothing of it is reckoned.
pub(crate) fn check(source: &str) -> Result<(), FormulaError> {
    compile_within(source, 0).map(drop)
}

fn compile_within(source: &str, folding_work: u32) -> Result<(Program, Traits), FormulaError> {
    let statements = parser::parse(source)?;
    let mut compiler = Compiler {
        source,
        fields: Vec::new(),
        field_numbers: HashMap::new(),
        variables: HashMap::new(),
        slots: 0,
        loops: 0,
        branches: 0,
        folding_work,
        traits: Traits::default(),
    };
    for statement in &statements {
        compiler.find_variables(statement)?;
    }
    let nodes = compiler.nodes(&statements)?;
    Ok(compiler.finish(nodes))
}

struct Compiler<'s> {
    source: &'s str,
    fields: Vec<FieldUse>,
    /// By lower-case name.
    field_numbers: HashMap<String, u16>,
    /// By lower-case name.
    variables: HashMap<String, Variable>,
    slots: usize,
    /// How many loops stand around what is being compiled.
    loops: u32,
    /// How many places that may be left out stand around what is being compiled. Operands and arguments are
    /// among them, since an error in an earlier one leaves out those behind it.
    branches: u32,
    folding_work: u32,
    traits: Traits,
}

struct FieldUse {
    name: SmolStr,
    uses: u32,
    slot: Option<u16>,
    /// Whether the document may be asked for it.
    read: bool,
    /// Whether it certainly has been given a value before what is being compiled.
    set: bool,
}

#[derive(Clone, Copy)]
struct Variable {
    slot: u16,
    /// Whether it certainly has a value.
    set: bool,
}

impl Compiler<'_> {
    fn error(
        &self,
        at: usize,
        kind: FormulaErrorKind,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> FormulaError {
        error_at(self.source, at, kind, message, advice)
    }

    fn new_slot(&mut self, at: usize) -> Result<u16, FormulaError> {
        let slot = u16::try_from(self.slots).map_err(|_| {
            self.error(at, FormulaErrorKind::TooLarge, "the formula has too many names", "split the formula")
        })?;
        self.slots += 1;
        Ok(slot)
    }

    /// Notes every name that is a variable anywhere in the formula.
    fn find_variables(&mut self, expression: &Expression) -> Result<(), FormulaError> {
        match &expression.kind {
            ExpressionKind::Constant(_) | ExpressionKind::Time(_) | ExpressionKind::Name(_) => Ok(()),
            ExpressionKind::Chain { first, rest } => {
                self.find_variables(first)?;
                rest.iter().try_for_each(|link| self.find_variables(&link.operand))
            }
            ExpressionKind::Negate(inside)
            | ExpressionKind::Plus(inside)
            | ExpressionKind::Not(inside)
            | ExpressionKind::Select(inside) => self.find_variables(inside),
            ExpressionKind::Subscript { list, index, .. } => {
                self.find_variables(list)?;
                self.find_variables(index)
            }
            ExpressionKind::Assign { target, name, value } => {
                if *target == Target::Temporary {
                    self.variable(name, expression.at)?;
                }
                self.find_variables(value)
            }
            ExpressionKind::Call { name, arguments } => {
                if let Some(Function { body: Body::Form(form), .. }) = functions::find(name) {
                    match (form, arguments.as_slice()) {
                        (FormKind::Set, [variable, ..]) | (FormKind::Transform, [_, variable, ..]) => {
                            if let Some(variable) = text_constant(variable) {
                                self.variable(&variable, expression.at)?;
                            }
                        }
                        (FormKind::Sort, [_, _, _]) => {
                            self.variable("$A", expression.at)?;
                            self.variable("$B", expression.at)?;
                        }
                        _ => {}
                    }
                }
                arguments.iter().try_for_each(|argument| self.find_variables(argument))
            }
        }
    }

    fn variable(&mut self, name: &str, at: usize) -> Result<u16, FormulaError> {
        let key = name.to_lowercase();
        if let Some(variable) = self.variables.get(&key) {
            return Ok(variable.slot);
        }
        let slot = self.new_slot(at)?;
        self.variables.insert(key, Variable { slot, set: false });
        Ok(slot)
    }

    fn field(&mut self, name: &str, at: usize) -> Result<u16, FormulaError> {
        let key = name.to_lowercase();
        if let Some(number) = self.field_numbers.get(&key) {
            return Ok(*number);
        }
        let number = u16::try_from(self.fields.len()).map_err(|_| {
            self.error(
                at,
                FormulaErrorKind::TooLarge,
                "the formula names too many fields",
                "split the formula",
            )
        })?;
        self.fields.push(FieldUse { name: name.into(), uses: 0, slot: None, read: false, set: false });
        self.field_numbers.insert(key, number);
        Ok(number)
    }

    /// The field, counted as read here.
    fn read_field(&mut self, name: &str, at: usize) -> Result<u16, FormulaError> {
        let number = self.field(name, at)?;
        let in_loop = self.loops > 0;
        if let Some(field) = self.fields.get_mut(usize::from(number)) {
            field.uses += if in_loop { 2 } else { 1 };
            field.read |= !field.set;
        }
        self.keep_if_read_again(number, at)?;
        Ok(number)
    }

    /// Gives a field a slot once it is read a second time, so that the document is asked once only.
    fn keep_if_read_again(&mut self, number: u16, at: usize) -> Result<(), FormulaError> {
        let again = self.fields.get(usize::from(number)).is_some_and(|field| field.uses > 1);
        if again { self.field_slot(number, at).map(drop) } else { Ok(()) }
    }

    fn field_slot(&mut self, number: u16, at: usize) -> Result<u16, FormulaError> {
        if let Some(slot) = self.fields.get(usize::from(number)).and_then(|field| field.slot) {
            return Ok(slot);
        }
        let slot = self.new_slot(at)?;
        if let Some(field) = self.fields.get_mut(usize::from(number)) {
            field.slot = Some(slot);
        }
        Ok(slot)
    }

    fn finish(mut self, statements: Box<[Node]>) -> (Program, Traits) {
        let read = self.fields.iter().filter(|field| field.read);
        self.traits.reads = read.map(|field| field.name.to_string()).collect();
        let fields = self.fields.into_iter().map(|field| Field { name: field.name, slot: field.slot });
        let program =
            Program { source: self.source.into(), statements, fields: fields.collect(), slots: self.slots };
        (program, self.traits)
    }

    fn node(&mut self, expression: &Expression) -> Result<Node, FormulaError> {
        match &expression.kind {
            ExpressionKind::Constant(value) => Ok(Node::Constant(value.clone())),
            ExpressionKind::Time(written) => Ok(match written.fixed() {
                Some(Ok(time)) => Node::Constant(Value::time(time)),
                Some(Err(_)) | None => Node::LocalTime(Box::new(*written)),
            }),
            ExpressionKind::Name(name) => self.name(name, expression.at),
            ExpressionKind::Chain { first, rest } => self.chain(first, rest),
            ExpressionKind::Negate(inside) | ExpressionKind::Plus(inside) | ExpressionKind::Not(inside) => {
                self.prefix(&expression.kind, inside, expression.at)
            }
            ExpressionKind::Subscript { list, index, at } => self.subscript(list, index, *at),
            ExpressionKind::Assign { target, name, value } => {
                self.assign(*target, name, value, expression.at)
            }
            ExpressionKind::Select(condition) => {
                self.traits.has_selection = true;
                let condition = Box::new(self.node(condition)?);
                Ok(Node::Select { condition, at: offset(expression.at) })
            }
            ExpressionKind::Call { name, arguments } => self.call(name, arguments, expression.at),
        }
    }

    fn nodes(&mut self, expressions: &[Expression]) -> Result<Box<[Node]>, FormulaError> {
        let mut nodes = Vec::with_capacity(expressions.len());
        for expression in expressions {
            nodes.push(self.node(expression)?);
        }
        Ok(nodes.into())
    }

    fn prefix(
        &mut self,
        kind: &ExpressionKind,
        inside: &Expression,
        at: usize,
    ) -> Result<Node, FormulaError> {
        let (operand, at) = (Box::new(self.optional(|compiler| compiler.node(inside))?), offset(at));
        Ok(self.folded(match kind {
            ExpressionKind::Negate(_) => Node::Negate { operand, at },
            ExpressionKind::Plus(_) => Node::Plus { operand, at },
            _ => Node::Not { operand, at },
        }))
    }

    fn subscript(&mut self, list: &Expression, index: &Expression, at: usize) -> Result<Node, FormulaError> {
        let (list, index) = self.optional(|compiler| Ok((compiler.node(list)?, compiler.node(index)?)))?;
        let (list, index) = (Box::new(list), Box::new(index));
        Ok(self.folded(Node::Subscript { list, index, at: offset(at) }))
    }

    fn name(&mut self, name: &str, at: usize) -> Result<Node, FormulaError> {
        let Some(variable) = self.variables.get(&name.to_lowercase()).copied() else {
            return self.read_field(name, at).map(Node::Field);
        };
        let field = if variable.set { self.field(name, at)? } else { self.read_field(name, at)? };
        Ok(Node::Variable { slot: variable.slot, field })
    }

    fn assign(
        &mut self,
        target: Target,
        name: &str,
        value: &Expression,
        at: usize,
    ) -> Result<Node, FormulaError> {
        if target == Target::Default {
            let field = self.read_field(name, at)?;
            let slot = self.field_slot(field, at)?;
            let value = Box::new(self.optional(|compiler| compiler.node(value))?);
            self.mark_field(field);
            return Ok(Node::DefaultField { field, slot, value });
        }
        let value = Box::new(self.node(value)?);
        if target == Target::Temporary {
            return self.set_variable(name, value, at);
        }
        let field = self.field(name, at)?;
        let slot = self.field_slot(field, at)?;
        self.mark_field(field);
        Ok(Node::SetField { slot, value })
    }

    fn mark_field(&mut self, number: u16) {
        let certain = self.branches == 0;
        if let Some(field) = self.fields.get_mut(usize::from(number)) {
            field.set |= certain;
        }
    }

    fn set_variable(&mut self, name: &str, value: Box<Node>, at: usize) -> Result<Node, FormulaError> {
        let slot = self.variable(name, at)?;
        if self.branches == 0
            && let Some(variable) = self.variables.get_mut(&name.to_lowercase())
        {
            variable.set = true;
        }
        Ok(Node::SetVariable { slot, value })
    }

    /// Compiles what may be left out.
    fn optional<T>(
        &mut self,
        compile: impl FnOnce(&mut Self) -> Result<T, FormulaError>,
    ) -> Result<T, FormulaError> {
        self.branches += 1;
        let result = compile(self);
        self.branches -= 1;
        result
    }

    /// Compiles what may be left out or run many times.
    fn looped<T>(
        &mut self,
        compile: impl FnOnce(&mut Self) -> Result<T, FormulaError>,
    ) -> Result<T, FormulaError> {
        self.loops += 1;
        let result = self.optional(compile);
        self.loops -= 1;
        result
    }

    fn chain(&mut self, first: &Expression, rest: &[Link]) -> Result<Node, FormulaError> {
        let (level, at) = rest.first().map_or((LIST, 0), |link| (link.binary.operator.level(), link.at));
        let (first, mut steps) = self.optional(|compiler| {
            let first = compiler.node(first)?;
            let mut steps = Vec::with_capacity(rest.len());
            for Link { binary, at, operand } in rest {
                let operand = compiler.node(operand)?;
                steps.push(BinaryStep { binary: *binary, operand, at: offset(*at) });
            }
            Ok((first, steps))
        })?;
        let node = match level {
            LIST => {
                let elements =
                    std::iter::once(first).chain(steps.into_iter().map(|step| step.operand)).collect();
                Node::List { elements, at: offset(at) }
            }
            LOOSEST => Node::Logic { first: Box::new(first), rest: steps.into() },
            COMPARISON if steps.len() == 1 => match steps.pop() {
                Some(BinaryStep { binary, operand, at }) => {
                    Node::Compare { left: Box::new(first), right: Box::new(operand), binary, at }
                }
                None => first,
            },
            _ => Node::Chain { first: Box::new(first), rest: steps.into() },
        };
        Ok(self.folded(node))
    }

    fn call(&mut self, name: &str, arguments: &[Expression], at: usize) -> Result<Node, FormulaError> {
        let Some(function) = functions::find(name) else { return Err(self.unknown(name, at)) };
        self.check_arity(function, arguments.len(), at)?;
        self.traits.flags |= function.flags;
        for field in function.reads() {
            self.read_field(field, at)?;
        }
        match function.body {
            Body::Form(form) => self.form(function, form, arguments, at),
            Body::Native(native) => {
                let nodes = self.optional(|compiler| compiler.nodes(arguments))?;
                if function.flags & flags::NAMES_FIELDS != 0 {
                    self.read_named(&nodes, at)?;
                }
                Ok(self.native(function, native, nodes, offset(at)))
            }
        }
    }

    /// Counts the fields as read whose names are the last of these arguments.
    fn read_named(&mut self, arguments: &[Node], at: usize) -> Result<(), FormulaError> {
        let Some(Node::Constant(Value::Text(names))) = arguments.last() else {
            self.traits.flags |= flags::ANY_FIELD;
            return Ok(());
        };
        names.iter().try_for_each(|name| self.read_field(name, at).map(drop))
    }

    fn native(
        &mut self,
        function: &'static Function,
        native: Native,
        arguments: Box<[Node]>,
        at: u32,
    ) -> Node {
        let needs_today =
            function.flags & flags::FORMAT != 0 && functions::format_needs_today(function, &arguments);
        let needs_now = function.flags & flags::NOW_IF_NOT_GIVEN != 0 && arguments.is_empty();
        if needs_today || needs_now {
            self.traits.flags |= flags::TIME_VARIANT;
        }
        if function.flags & flags::DAY_WORDS != 0
            && let Some((function, native)) = functions::day_word(&arguments)
        {
            self.traits.flags |= function.flags;
            return Node::Call { function, native, arguments: [].into(), at };
        }
        let node = Node::Call { function, native, arguments, at };
        if function.flags & flags::VARYING == 0 { self.folded(node) } else { node }
    }

    #[cold]
    fn unknown(&self, name: &str, at: usize) -> FormulaError {
        if let Some((name, refusal)) = functions::refused(name) {
            let message = format!("{name} is not available here: {}", refusal.reason());
            return self.error(at, FormulaErrorKind::NotPermitted, message, refusal.advice());
        }
        let advice = functions::similar(name).map_or_else(
            || "see the formula reference for the functions there are".to_owned(),
            |similar| format!("did you mean {similar}?"),
        );
        self.error(at, FormulaErrorKind::UnknownFunction, format!("there is no function {name}"), advice)
    }

    fn check_arity(&self, function: &Function, count: usize, at: usize) -> Result<(), FormulaError> {
        let (least, most) = function.arity();
        if count >= least && most.is_none_or(|most| count <= most) {
            return Ok(());
        }
        let expected = match most {
            Some(0) => "no arguments".to_owned(),
            Some(most) if most == least => format!("{least} argument{}", if least == 1 { "" } else { "s" }),
            Some(most) => format!("{least} to {most} arguments"),
            None => format!("at least {least} argument{}", if least == 1 { "" } else { "s" }),
        };
        Err(self.error(
            at,
            FormulaErrorKind::Arguments,
            format!("{} takes {expected}, not {count}", function.name),
            format!("write {}", function.usage()),
        ))
    }

    /// The constant that a node of constants comes to. What comes to an error, or depends on the
    /// evaluation, stays as it is.
    fn folded(&mut self, node: Node) -> Node {
        if self.folding_work == 0 || !is_foldable(&node) {
            return node;
        }
        let (result, spent) = Machine::fold(&node, self.folding_work);
        self.folding_work = self.folding_work.saturating_sub(spent);
        match result {
            Some(value) if value.weight() <= MAX_CONSTANT_WEIGHT => Node::Constant(value),
            _ => node,
        }
    }
}

fn is_foldable(node: &Node) -> bool {
    let constant = |node: &Node| matches!(node, Node::Constant(_));
    match node {
        Node::List { elements: nodes, .. } | Node::Call { arguments: nodes, .. } => {
            nodes.iter().all(constant)
        }
        Node::Negate { operand, .. } | Node::Plus { operand, .. } | Node::Not { operand, .. } => {
            constant(operand)
        }
        Node::Chain { first, rest } | Node::Logic { first, rest } => {
            constant(first) && rest.iter().all(|step| constant(&step.operand))
        }
        Node::Subscript { list: left, index: right, .. } | Node::Compare { left, right, .. } => {
            constant(left) && constant(right)
        }
        _ => false,
    }
}

fn text_constant(expression: &Expression) -> Option<SmolStr> {
    match &expression.kind {
        ExpressionKind::Constant(Value::Text(list)) => list.single().cloned(),
        _ => None,
    }
}

/// Sources are at most 64 KB, so that every place fits.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
