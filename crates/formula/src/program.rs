//! A compiled formula: names and functions looked up, constants reckoned, variables numbered.

use smol_str::SmolStr;

use crate::functions::{Function, Native};
use crate::syntax::Binary;
use crate::value::Value;
use crate::written::Written;

#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) source: Box<str>,
    pub(crate) statements: Box<[Node]>,
    pub(crate) fields: Box<[Field]>,
    /// Places for variables and for fields that are read more than once.
    pub(crate) slots: usize,
}

/// A field that the formula names.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// As the formula spells it first.
    pub(crate) name: SmolStr,
    /// Where its value is kept during an evaluation; none if it is read only once.
    pub(crate) slot: Option<u16>,
}

/// `at` is the byte of the source that an error is about.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Constant(Value),
    /// A date-time constant, or a range, without a zone.
    LocalTime(Box<Written>),
    /// The field of this number.
    Field(u16),
    /// A variable, or while it has no value the field of its name.
    Variable {
        slot: u16,
        field: u16,
    },
    SetVariable {
        slot: u16,
        value: Box<Node>,
    },
    SetField {
        slot: u16,
        value: Box<Node>,
    },
    DefaultField {
        field: u16,
        slot: u16,
        value: Box<Node>,
    },
    Select {
        condition: Box<Node>,
        at: u32,
    },
    List {
        elements: Box<[Node]>,
        at: u32,
    },
    Negate {
        operand: Box<Node>,
        at: u32,
    },
    Plus {
        operand: Box<Node>,
        at: u32,
    },
    Not {
        operand: Box<Node>,
        at: u32,
    },
    /// One comparison.
    Compare {
        left: Box<Node>,
        right: Box<Node>,
        binary: Binary,
        at: u32,
    },
    /// Arithmetic, or several comparisons, from left to right.
    Chain {
        first: Box<Node>,
        rest: Box<[BinaryStep]>,
    },
    /// AND and OR, from left to right.
    Logic {
        first: Box<Node>,
        rest: Box<[BinaryStep]>,
    },
    Subscript {
        list: Box<Node>,
        index: Box<Node>,
        at: u32,
    },
    Call {
        function: &'static Function,
        native: Native,
        arguments: Box<[Node]>,
        at: u32,
    },
    Form {
        form: Box<Form>,
        at: u32,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct BinaryStep {
    pub(crate) binary: Binary,
    pub(crate) operand: Node,
    pub(crate) at: u32,
}

/// Functions that do not simply evaluate their arguments once, in order.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// Pairs of condition and value, and the value if no condition holds.
    If {
        branches: Box<[(Node, Node)]>,
        otherwise: Node,
    },
    Choose {
        number: Node,
        values: Box<[Node]>,
    },
    Do(Box<[Node]>),
    Return(Node),
    /// `check_first` tells `@While` from `@DoWhile`.
    While {
        condition: Node,
        body: Box<[Node]>,
        check_first: bool,
    },
    For {
        start: Node,
        condition: Node,
        step: Node,
        body: Box<[Node]>,
    },
    /// The first of these that is not an error.
    IfError(Box<[Node]>),
    IsError(Node),
    IsNull(Node),
    /// Whether the document has the field; for a variable, whether it has a value.
    Available {
        field: u16,
        variable: Option<u16>,
        wanted: bool,
    },
    /// A field whose name is known only when evaluated.
    GetField(Node),
    Transform {
        list: Node,
        slot: u16,
        body: Node,
    },
    /// `greater` is true if the element in the first slot belongs behind that in the second.
    Sort {
        list: Node,
        options: Node,
        slots: (u16, u16),
        greater: Node,
    },
}
