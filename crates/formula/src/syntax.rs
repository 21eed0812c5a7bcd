//! What a formula says, before names and functions are looked up.

use smol_str::SmolStr;

use crate::value::Value;
use crate::written::Written;

/// An expression and the byte of the source where it begins.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    pub(crate) kind: ExpressionKind,
    pub(crate) at: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum ExpressionKind {
    Constant(Value),
    Time(Written),
    Name(SmolStr),
    /// Operators of one level, applied from left to right. Held flat, so that a list of a thousand
    /// elements is no deeper than one of two.
    Chain {
        first: Box<Expression>,
        rest: Vec<Link>,
    },
    Negate(Box<Expression>),
    Plus(Box<Expression>),
    Not(Box<Expression>),
    /// `at` is the place of its bracket.
    Subscript {
        list: Box<Expression>,
        index: Box<Expression>,
        at: usize,
    },
    Call {
        name: SmolStr,
        arguments: Vec<Expression>,
    },
    Assign {
        target: Target,
        name: SmolStr,
        value: Box<Expression>,
    },
    Select(Box<Expression>),
}

/// One operator of a chain and its right operand.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) binary: Binary,
    pub(crate) at: usize,
    pub(crate) operand: Expression,
}

/// What an assignment changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Target {
    /// `name := value`
    Temporary,
    /// `FIELD name := value`
    Field,
    /// `DEFAULT name := value`
    Default,
}

/// A binary operator, and whether it pairs every element with every other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Binary {
    pub(crate) operator: Operator,
    pub(crate) permuted: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operator {
    List,
    Multiply,
    Divide,
    Add,
    Subtract,
    Equal,
    NotEqual,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
    And,
    Or,
}

/// How tightly an operator binds; less is tighter. The levels are the original's, of which subscripts
/// are the first.
pub(crate) type Level = u8;

pub(crate) const TIGHTEST: Level = 1;
pub(crate) const LIST: Level = 2;
pub(crate) const SIGN: Level = 3;
pub(crate) const COMPARISON: Level = 6;
pub(crate) const LOOSEST: Level = 7;

impl Operator {
    pub(crate) const fn level(self) -> Level {
        match self {
            Self::List => LIST,
            Self::Multiply | Self::Divide => 4,
            Self::Add | Self::Subtract => 5,
            Self::Equal
            | Self::NotEqual
            | Self::Less
            | Self::Greater
            | Self::LessOrEqual
            | Self::GreaterOrEqual => COMPARISON,
            Self::And | Self::Or => LOOSEST,
        }
    }
}

impl Binary {
    pub(crate) const fn pairwise(operator: Operator) -> Self {
        Self { operator, permuted: false }
    }

    pub(crate) const fn permuted(operator: Operator) -> Self {
        Self { operator, permuted: true }
    }

    /// The operator as messages quote it.
    pub(crate) const fn symbol(self) -> &'static str {
        match (self.operator, self.permuted) {
            (Operator::List, _) => "':'",
            (Operator::Multiply, false) => "'*'",
            (Operator::Multiply, true) => "'**'",
            (Operator::Divide, false) => "'/'",
            (Operator::Divide, true) => "'*/'",
            (Operator::Add, false) => "'+'",
            (Operator::Add, true) => "'*+'",
            (Operator::Subtract, false) => "'-'",
            (Operator::Subtract, true) => "'*-'",
            (Operator::Equal, false) => "'='",
            (Operator::Equal, true) => "'*='",
            (Operator::NotEqual, false) => "'!='",
            (Operator::NotEqual, true) => "'*<>'",
            (Operator::Less, false) => "'<'",
            (Operator::Less, true) => "'*<'",
            (Operator::Greater, false) => "'>'",
            (Operator::Greater, true) => "'*>'",
            (Operator::LessOrEqual, false) => "'<='",
            (Operator::LessOrEqual, true) => "'*<='",
            (Operator::GreaterOrEqual, false) => "'>='",
            (Operator::GreaterOrEqual, true) => "'*>='",
            (Operator::And, _) => "'&'",
            (Operator::Or, _) => "'|'",
        }
    }
}
