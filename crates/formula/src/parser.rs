//! Tokens into expressions.
//!
//! The grammar, and how tightly operators bind, are the original's: subscripts, then `:`, then signs,
//! `* /`, `+ -`, comparisons, and last `! & |`; operators of one level are applied from left to right.

use smol_str::SmolStr;

use crate::error::{FormulaError, FormulaErrorKind};
use crate::lexer::{Reserved, Token, TokenKind, error_at, tokens};
use crate::syntax::{
    Binary, COMPARISON, Expression, ExpressionKind, LOOSEST, Level, Link, Operator, SIGN, TIGHTEST, Target,
};
use crate::value::Value;

/// A formula of a view's selection or column had at most 64 KB in the original; here every formula.
pub(crate) const MAX_SOURCE_BYTES: usize = 64 * 1024;

/// Parentheses, arguments, signs and subscripts inside each other. Real formulas stay far below; a thread's
/// stack of 2 MB holds several times this.
pub(crate) const MAX_DEPTH: usize = 100;

/// The statements of a formula, in order, remarks left out. There is at least one.
pub(crate) fn parse(source: &str) -> Result<Vec<Expression>, FormulaError> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(error_at(
            source,
            0,
            FormulaErrorKind::TooLarge,
            format!("the formula has {} bytes, more than {MAX_SOURCE_BYTES}", source.len()),
            "shorten it, or keep long lists in documents",
        ));
    }
    Parser { source, tokens: tokens(source)?, next: 0, depth: 0 }.formula()
}

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

const END: &Token = &Token { kind: TokenKind::End, at: usize::MAX };

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.tokens.get(self.next).or_else(|| self.tokens.last()).unwrap_or(END)
    }

    fn second(&self) -> &TokenKind {
        self.tokens.get(self.next + 1).map_or(&TokenKind::End, |token| &token.kind)
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    fn accept(&mut self, kind: &TokenKind) -> bool {
        let found = self.peek().kind == *kind;
        self.next += usize::from(found);
        found
    }

    fn error(&self, at: usize, message: impl Into<String>, advice: &str) -> FormulaError {
        error_at(self.source, at, FormulaErrorKind::Syntax, message, advice)
    }

    fn formula(mut self) -> Result<Vec<Expression>, FormulaError> {
        let mut statements = Vec::new();
        loop {
            while self.accept(&TokenKind::Semicolon) {}
            if self.peek().kind == TokenKind::End {
                break;
            }
            statements.extend(self.statement()?);
            if self.peek().kind == TokenKind::End {
                break;
            }
            self.end_of_statement()?;
        }
        if statements.is_empty() {
            return Err(self.error(
                0,
                "the formula says nothing",
                "write an expression, for example SELECT @All or the name of a field",
            ));
        }
        Ok(statements)
    }

    fn end_of_statement(&mut self) -> Result<(), FormulaError> {
        let token = self.peek().clone();
        match token.kind {
            TokenKind::Semicolon => {
                self.next += 1;
                Ok(())
            }
            TokenKind::Close => Err(self.error(
                token.at,
                "this ')' closes nothing",
                "remove it, or add the '(' it belongs to",
            )),
            TokenKind::CloseSubscript => Err(self.error(
                token.at,
                "this ']' closes nothing",
                "remove it, or add the '[' it belongs to",
            )),
            TokenKind::Assign => Err(self.error(
                token.at,
                "':=' must follow a plain name",
                "write name := value, one statement for each",
            )),
            TokenKind::Not => Err(self.error(
                token.at,
                "'!' does not continue what stands before it",
                "write <> or != for 'is not equal', & or | between two conditions",
            )),
            kind => Err(self.error(
                token.at,
                format!("{} does not continue what stands before it", describe(&kind)),
                "put an operator between two values, or a ';' between two statements",
            )),
        }
    }

    /// One statement; none for a remark.
    fn statement(&mut self) -> Result<Option<Expression>, FormulaError> {
        let token = self.peek().clone();
        let TokenKind::Reserved(reserved) = token.kind else { return self.argument().map(Some) };
        self.next += 1;
        match reserved {
            Reserved::Field => self.assignment(token.at, Target::Field).map(Some),
            Reserved::Default => self.assignment(token.at, Target::Default).map(Some),
            Reserved::Select => {
                let condition = Box::new(self.expression(LOOSEST)?);
                Ok(Some(Expression { kind: ExpressionKind::Select(condition), at: token.at }))
            }
            Reserved::Remark => self.remark().map(|()| None),
            Reserved::Environment => Err(error_at(
                self.source,
                token.at,
                FormulaErrorKind::NotPermitted,
                "ENVIRONMENT would change the settings of the machine, which a formula on a server may not",
                "use a temporary variable: name := value",
            )),
        }
    }

    /// What stands behind `REM`: a text, or nothing.
    fn remark(&mut self) -> Result<(), FormulaError> {
        let next = self.peek().clone();
        match next.kind {
            TokenKind::Text(_) => {
                self.next += 1;
                Ok(())
            }
            TokenKind::Semicolon | TokenKind::End => Ok(()),
            _ => Err(self.error(
                next.at,
                "REM is not followed by a text",
                "write REM \"...\" or REM {...}, or REM; alone",
            )),
        }
    }

    fn assignment(&mut self, at: usize, target: Target) -> Result<Expression, FormulaError> {
        let word = if target == Target::Field { "FIELD" } else { "DEFAULT" };
        let name = match self.take() {
            Token { kind: TokenKind::Name(name), .. } => SmolStr::new(name),
            other => {
                return Err(self.error(
                    other.at,
                    format!("{word} is not followed by the name of a field"),
                    &format!("write {word} name := value"),
                ));
            }
        };
        let assign = self.take();
        if assign.kind != TokenKind::Assign {
            return Err(self.error(
                assign.at,
                format!("{word} {name} is not followed by ':='"),
                &format!("write {word} {name} := value"),
            ));
        }
        self.deeper(assign.at, |parser| {
            let value = Box::new(parser.argument()?);
            Ok(Expression { kind: ExpressionKind::Assign { target, name, value }, at })
        })
    }

    /// An expression, or the assignment of one to a temporary variable.
    fn argument(&mut self) -> Result<Expression, FormulaError> {
        let token = self.peek().clone();
        let TokenKind::Name(name) = token.kind else { return self.expression(LOOSEST) };
        if *self.second() != TokenKind::Assign {
            return self.expression(LOOSEST);
        }
        self.next += 2;
        self.deeper(token.at, |parser| {
            let value = Box::new(parser.argument()?);
            let kind = ExpressionKind::Assign { target: Target::Temporary, name: SmolStr::new(name), value };
            Ok(Expression { kind, at: token.at })
        })
    }

    /// Bounds how deeply expressions stand inside each other, and with it every recursion over them.
    fn deeper<T>(
        &mut self,
        at: usize,
        parse: impl FnOnce(&mut Self) -> Result<T, FormulaError>,
    ) -> Result<T, FormulaError> {
        if self.depth >= MAX_DEPTH {
            return Err(error_at(
                self.source,
                at,
                FormulaErrorKind::TooLarge,
                format!("expressions stand more than {MAX_DEPTH} deep inside each other"),
                "split the formula with temporary variables: name := value",
            ));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// An expression of operators that bind at least as tightly as `loosest`.
    fn expression(&mut self, loosest: Level) -> Result<Expression, FormulaError> {
        let mut left = self.operand()?;
        loop {
            let Token { kind: TokenKind::Binary(binary), at } = *self.peek() else { return Ok(left) };
            let level = binary.operator.level();
            if level > loosest {
                return Ok(left);
            }
            self.next += 1;
            let operand = self.expression(level - 1)?;
            left = link(left, Link { binary, at, operand });
        }
    }

    /// A value with the signs before it and the subscripts behind it.
    fn operand(&mut self) -> Result<Expression, FormulaError> {
        let token = self.peek().clone();
        let (level, wrap): (Level, fn(Box<Expression>) -> ExpressionKind) = match token.kind {
            TokenKind::Not => (COMPARISON, ExpressionKind::Not),
            TokenKind::Binary(Binary { operator: Operator::Subtract, permuted: false }) => {
                (SIGN - 1, ExpressionKind::Negate)
            }
            TokenKind::Binary(Binary { operator: Operator::Add, permuted: false }) => {
                (SIGN - 1, ExpressionKind::Plus)
            }
            _ => return self.subscripted(),
        };
        self.next += 1;
        self.deeper(token.at, |parser| {
            let operand = Box::new(parser.expression(level)?);
            Ok(Expression { kind: wrap(operand), at: token.at })
        })
    }

    fn subscripted(&mut self) -> Result<Expression, FormulaError> {
        let mut value = self.value()?;
        let mut subscripts = 0;
        while self.peek().kind == TokenKind::OpenSubscript {
            let open = self.take();
            subscripts += 1;
            if subscripts > 1 {
                return Err(self.error(
                    open.at,
                    "a value has one subscript only",
                    "an element of a list is not a list itself: write list[1]",
                ));
            }
            let index = Box::new(self.deeper(open.at, |parser| parser.expression(LOOSEST))?);
            let close = self.take();
            if close.kind != TokenKind::CloseSubscript {
                return Err(self.error(close.at, "this subscript is not closed", "add the closing ]"));
            }
            let at = value.at;
            value = Expression {
                kind: ExpressionKind::Subscript { list: Box::new(value), index, at: open.at },
                at,
            };
        }
        Ok(value)
    }

    fn value(&mut self) -> Result<Expression, FormulaError> {
        let token = self.take();
        let kind = match token.kind {
            TokenKind::Text(text) => ExpressionKind::Constant(Value::text(text)),
            TokenKind::Number(number) => ExpressionKind::Constant(Value::number(number)),
            TokenKind::Keyword(word) => ExpressionKind::Constant(Value::text(format!("[{word}]"))),
            TokenKind::Time(time) => ExpressionKind::Time(time),
            TokenKind::Name(name) => ExpressionKind::Name(SmolStr::new(name)),
            TokenKind::Function(name) => {
                ExpressionKind::Call { arguments: self.arguments(&name)?, name: SmolStr::new(name) }
            }
            TokenKind::Open => {
                let inside = self.deeper(token.at, Self::argument)?;
                let close = self.take();
                if close.kind != TokenKind::Close {
                    let (line, column) = crate::lexer::position(self.source, token.at);
                    return Err(self.error(
                        close.at,
                        format!(
                            "the '(' of line {line}, column {column} is not closed before {}",
                            describe(&close.kind)
                        ),
                        "add the closing ')'",
                    ));
                }
                return Ok(inside);
            }
            TokenKind::Reserved(reserved) => {
                let word = reserved.word();
                return Err(self.error(
                    token.at,
                    format!("{word} begins a statement and cannot stand inside one"),
                    &format!("put it at the beginning; a field of this name is @GetField(\"{word}\")"),
                ));
            }
            other => {
                return Err(self.error(
                    token.at,
                    format!("a value is missing before {}", describe(&other)),
                    "write a field name, a constant or a function there",
                ));
            }
        };
        Ok(Expression { kind, at: token.at })
    }

    fn arguments(&mut self, function: &str) -> Result<Vec<Expression>, FormulaError> {
        let mut arguments = Vec::new();
        let open = self.peek().at;
        if !self.accept(&TokenKind::Open) || self.accept(&TokenKind::Close) {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.deeper(open, Self::argument)?);
            let token = self.take();
            match token.kind {
                TokenKind::Semicolon => {}
                TokenKind::Close => return Ok(arguments),
                TokenKind::End => {
                    return Err(self.error(
                        token.at,
                        format!("the arguments of {function} are not closed"),
                        "add the closing ')'",
                    ));
                }
                other => {
                    return Err(self.error(
                        token.at,
                        format!("{} does not continue the arguments of {function}", describe(&other)),
                        "separate arguments with ';' and close them with ')'",
                    ));
                }
            }
        }
    }
}

/// Adds an operator to the chain of its level, or begins one.
fn link(left: Expression, link: Link) -> Expression {
    let level = link.binary.operator.level();
    let at = left.at;
    let kind = match left.kind {
        ExpressionKind::Chain { first, mut rest }
            if rest.last().is_some_and(|last| last.binary.operator.level() == level) && level > TIGHTEST =>
        {
            rest.push(link);
            ExpressionKind::Chain { first, rest }
        }
        kind => ExpressionKind::Chain { first: Box::new(Expression { kind, at }), rest: vec![link] },
    };
    Expression { kind, at }
}

fn describe(kind: &TokenKind) -> String {
    match kind {
        TokenKind::Text(_) => "a text".to_owned(),
        TokenKind::Number(number) => format!("the number {number}"),
        TokenKind::Time(_) => "a date constant".to_owned(),
        TokenKind::Keyword(word) => format!("the keyword [{word}]"),
        TokenKind::Name(name) => format!("the name {name}"),
        TokenKind::Function(name) => name.clone(),
        TokenKind::Reserved(reserved) => reserved.word().to_owned(),
        TokenKind::Binary(binary) => binary.symbol().to_owned(),
        TokenKind::Not => "'!'".to_owned(),
        TokenKind::Assign => "':='".to_owned(),
        TokenKind::Open => "'('".to_owned(),
        TokenKind::Close => "')'".to_owned(),
        TokenKind::OpenSubscript => "'['".to_owned(),
        TokenKind::CloseSubscript => "']'".to_owned(),
        TokenKind::Semicolon => "';'".to_owned(),
        TokenKind::End => "the end".to_owned(),
    }
}
