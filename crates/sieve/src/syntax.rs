//! Commands, tests and arguments as they are written (RFC 5228, section 8.2), whatever they mean.

use crate::error::{Position, ScriptError, ScriptFault};
use crate::lexer::{Lexer, Token, TokenKind};
use crate::limits::Limits;

#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) position: Position,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Tag(String),
    Number(u64),
    /// One string, without brackets.
    Text(Text),
    List(Vec<Text>),
}

#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) value: Value,
    pub(crate) position: Position,
}

#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) position: Position,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) tests: Vec<Test>,
}

#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// The command itself, without its block.
    pub(crate) head: Test,
    pub(crate) block: Option<Vec<Command>>,
}

/// Reads a script.
pub(crate) fn parse(source: &[u8], limits: &Limits) -> Result<Vec<Command>, ScriptError> {
    let start = Position { line: 1, column: 1 };
    if source.len() > limits.script_bytes {
        return Err(ScriptFault::ScriptTooLong(limits.script_bytes).at(start));
    }
    let text = text(source)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lexer = Lexer::new(text, limits);
    let token = lexer.next()?;
    let mut parser = Parser { lexer, token, limits, depth: 0, commands: 0 };
    let commands = parser.commands()?;
    match parser.token.kind {
        TokenKind::End => Ok(commands),
        _ => Err(parser.expected("a command")),
    }
}

/// The source as text: UTF-8 (RFC 5228, section 2.1) without NUL.
fn text(source: &[u8]) -> Result<&str, ScriptError> {
    let (good, bad) = match std::str::from_utf8(source) {
        Ok(text) => (text, text.find('\0')),
        Err(error) => {
            let good = source.get(..error.valid_up_to()).and_then(|good| std::str::from_utf8(good).ok());
            (good.unwrap_or_default(), Some(error.valid_up_to()))
        }
    };
    let Some(bad) = bad else { return Ok(good) };
    let before = good.get(..bad).unwrap_or(good);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let fit = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Err(ScriptFault::NotText.at(Position { line: fit(line), column: fit(column) }))
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    limits: &'a Limits,
    depth: usize,
    commands: usize,
}

impl Parser<'_> {
    fn take(&mut self) -> Result<Token, ScriptError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn is(&self, symbol: char) -> bool {
        self.token.kind == TokenKind::Symbol(symbol)
    }

    fn expected(&self, what: &str) -> ScriptError {
        ScriptFault::Expected { expected: what.to_owned(), found: self.token.kind.shown() }
            .at(self.token.position)
    }

    fn deeper(&mut self) -> Result<(), ScriptError> {
        self.depth += 1;
        if self.depth > self.limits.nesting {
            return Err(ScriptFault::TooDeep(self.limits.nesting).at(self.token.position));
        }
        Ok(())
    }

    fn commands(&mut self) -> Result<Vec<Command>, ScriptError> {
        let mut commands = Vec::new();
        while matches!(self.token.kind, TokenKind::Identifier(_)) {
            commands.push(self.command()?);
        }
        Ok(commands)
    }

    fn command(&mut self) -> Result<Command, ScriptError> {
        let head = self.head("a command")?;
        if self.is(';') {
            self.take()?;
            return Ok(Command { head, block: None });
        }
        if !self.is('{') {
            return Err(self.expected("\";\" or a block"));
        }
        self.deeper()?;
        self.take()?;
        let block = self.commands()?;
        if !self.is('}') {
            return Err(self.expected("a command or \"}\""));
        }
        self.take()?;
        self.depth -= 1;
        Ok(Command { head, block: Some(block) })
    }

    /// A name with arguments and tests, which a command and a test have in common.
    fn head(&mut self, what: &str) -> Result<Test, ScriptError> {
        let position = self.token.position;
        let TokenKind::Identifier(name) = &self.token.kind else { return Err(self.expected(what)) };
        let name = name.to_ascii_lowercase();
        self.commands += 1;
        if self.commands > self.limits.commands {
            return Err(ScriptFault::TooManyCommands(self.limits.commands).at(position));
        }
        self.take()?;
        let mut arguments = Vec::new();
        while let Some(argument) = self.argument()? {
            if arguments.len() >= self.limits.list_strings {
                return Err(ScriptFault::ListTooLong(self.limits.list_strings).at(argument.position));
            }
            arguments.push(argument);
        }
        let tests = self.tests()?;
        Ok(Test { name, position, arguments, tests })
    }

    fn argument(&mut self) -> Result<Option<Argument>, ScriptError> {
        let position = self.token.position;
        let value = match &self.token.kind {
            TokenKind::Tag(name) => Value::Tag(name.clone()),
            TokenKind::Number(number) => Value::Number(*number),
            TokenKind::Text(text) => Value::Text(Text { text: text.clone(), position }),
            TokenKind::Symbol('[') => {
                return Ok(Some(Argument { value: Value::List(self.list()?), position }));
            }
            _ => return Ok(None),
        };
        self.take()?;
        Ok(Some(Argument { value, position }))
    }

    fn list(&mut self) -> Result<Vec<Text>, ScriptError> {
        self.take()?;
        let mut texts = Vec::new();
        loop {
            let position = self.token.position;
            let TokenKind::Text(_) = self.token.kind else {
                return Err(self.expected("a string of the list"));
            };
            if texts.len() >= self.limits.list_strings {
                return Err(ScriptFault::ListTooLong(self.limits.list_strings).at(position));
            }
            if let TokenKind::Text(text) = self.take()?.kind {
                texts.push(Text { text, position });
            }
            match self.token.kind {
                TokenKind::Symbol(',') => {
                    self.take()?;
                }
                TokenKind::Symbol(']') => {
                    self.take()?;
                    return Ok(texts);
                }
                _ => return Err(self.expected("\",\" or \"]\"")),
            }
        }
    }

    fn tests(&mut self) -> Result<Vec<Test>, ScriptError> {
        let mut tests = Vec::new();
        if matches!(self.token.kind, TokenKind::Identifier(_)) {
            self.deeper()?;
            tests.push(self.head("a test")?);
            self.depth -= 1;
        } else if self.is('(') {
            self.deeper()?;
            loop {
                self.take()?;
                tests.push(self.head("a test")?);
                if !self.is(',') {
                    break;
                }
            }
            if !self.is(')') {
                return Err(self.expected("\",\" or \")\""));
            }
            self.take()?;
            self.depth -= 1;
        }
        Ok(tests)
    }
}
