//! From words to statements.

use crate::ScriptNote;
use crate::actions::action;
use crate::arguments::{Arguments, error_at};
use crate::blocks::{Block, BlockKind};
use crate::command::{Command, LoopName, Statement};
use crate::error::{Problem, ScriptError};
use crate::header::Variables;
use crate::table::{COMMANDS, CommandInfo, Support, find, nearest};
use crate::words::{Line, Word};

/// After this many errors nothing more is looked at.
const MOST_ERRORS: usize = 1000;

pub(super) struct Parser<'a> {
    variables: &'a Variables,
    statements: Vec<Statement>,
    open: Vec<Block>,
    /// Loops that were begun, to refuse a second one of the same name.
    begun: Vec<LoopName>,
    /// Blocks are crossed somewhere: which of them are never closed says nothing any more.
    crossed: bool,
    notes: Vec<ScriptNote>,
}

/// Makes statements of lines, and says what is done otherwise than it is written. Each line that is wrong adds one
/// error.
pub(super) fn parse(
    lines: &[Line],
    variables: &Variables,
    errors: &mut Vec<ScriptError>,
) -> (Vec<Statement>, Vec<ScriptNote>) {
    let mut parser = Parser {
        variables,
        statements: Vec::new(),
        open: Vec::new(),
        begun: Vec::new(),
        crossed: false,
        notes: Vec::new(),
    };
    for line in lines {
        if let Err(error) = parser.line(line) {
            errors.push(error);
        }
        // A file with this many is no script.
        if errors.len() >= MOST_ERRORS {
            break;
        }
    }
    for block in parser.open.iter().filter(|_| !parser.crossed) {
        let (opening, closing) = block.kind.words();
        let line = lines.iter().find(|line| line.number == block.line);
        let Some((line, word)) = line.and_then(|line| Some((line, line.words.first()?))) else { continue };
        errors.push(error_at(line, word, Problem::NeverClosed { opening, closing, line: block.line }));
    }
    (parser.statements, parser.notes)
}

impl Parser<'_> {
    fn line(&mut self, line: &Line) -> Result<(), ScriptError> {
        let Some(word) = line.words.first() else { return Ok(()) };
        let info = command_named(line, word)?;
        let arguments = Arguments::new(line, 0, info, self.variables);
        match info.name {
            "If" => self.short_if(line, arguments),
            _ if info.support == Support::Steers => self.steering(line, info, arguments),
            _ => {
                for command in action(info, arguments, &mut self.notes)? {
                    self.add(line, command);
                }
                Ok(())
            }
        }
    }

    fn add(&mut self, line: &Line, command: Command) {
        self.statements.push(Statement { line: line.number, command });
    }

    fn short_if(&mut self, line: &Line, mut arguments: Arguments<'_>) -> Result<(), ScriptError> {
        let holds = arguments.condition()?;
        let word = arguments.require("a command")?;
        let info = command_named(line, word)?;
        let inner = Arguments::new(line, arguments.position() - 1, info, self.variables);
        let commands = match info.name {
            "Pause" | "Break" | "ErrorDelay" | "Close" | "CloseColl" | "DBClose" | "Drop"
            | "ProfileClose" => {
                vec![simple(info, inner)?]
            }
            _ if info.support == Support::Steers => return Err(error_at(line, word, Problem::NotAfterIf)),
            _ => action(info, inner, &mut self.notes)?,
        };
        let target = self.statements.len() + 1 + commands.len();
        self.add(line, Command::SkipUnless { holds, target });
        for command in commands {
            self.add(line, command);
        }
        Ok(())
    }

    fn steering(
        &mut self,
        line: &Line,
        info: &'static CommandInfo,
        mut arguments: Arguments<'_>,
    ) -> Result<(), ScriptError> {
        match info.name {
            "BeginLoop" => self.begin_loop(line, LoopName::First, arguments),
            "BeginLoop2" => self.begin_loop(line, LoopName::Second, arguments),
            "Rewind" => self.rewind(line, LoopName::First, arguments),
            "Rewind2" => self.rewind(line, LoopName::Second, arguments),
            "BeginCrit" => {
                if self.open.iter().any(|block| block.kind == BlockKind::Critical) {
                    return Err(arguments.at_name(Problem::Repeated("BeginCrit without an EndCrit")));
                }
                arguments.finish()?;
                self.begin(line, BlockKind::Critical);
                self.add(line, Command::BeginCritical);
                Ok(())
            }
            "EndCrit" => {
                self.end(&arguments, BlockKind::Critical)?;
                arguments.finish()?;
                self.add(line, Command::EndCritical);
                Ok(())
            }
            "@If" => {
                let holds = arguments.condition()?;
                arguments.finish()?;
                self.begin(line, BlockKind::If);
                self.add(line, Command::SkipUnless { holds, target: 0 });
                Ok(())
            }
            "@Chance" => {
                let percent = arguments.percent()?;
                arguments.finish()?;
                self.begin(line, BlockKind::Chance);
                self.add(line, Command::SkipUnlessChance { percent, target: 0 });
                Ok(())
            }
            "@Nth" => {
                let word = arguments.require("a number of rounds")?;
                let nth = arguments.number(word, 1)?;
                arguments.finish()?;
                self.begin(line, BlockKind::Nth);
                self.add(line, Command::SkipUnlessNth { nth, target: 0 });
                Ok(())
            }
            "@Else" => {
                let block = self.end(&arguments, self.innermost_condition())?;
                arguments.finish()?;
                self.begin(line, BlockKind::Else);
                self.add(line, Command::Jump { target: 0 });
                self.bind(block.at);
                Ok(())
            }
            "@EndIf" => {
                let is_else = self.open.last().is_some_and(|block| block.kind == BlockKind::Else);
                let kind = if is_else { BlockKind::Else } else { self.innermost_condition() };
                let block = self.end(&arguments, kind)?;
                arguments.finish()?;
                self.bind(block.at);
                Ok(())
            }
            _ => {
                let command = simple(info, arguments)?;
                self.add(line, command);
                Ok(())
            }
        }
    }

    /// The kind of the condition that was opened last; `@If` where there is none.
    fn innermost_condition(&self) -> BlockKind {
        let mut open = self.open.iter().rev().map(|block| block.kind);
        open.find(|kind| kind.is_condition()).unwrap_or(BlockKind::If)
    }

    fn begin(&mut self, line: &Line, kind: BlockKind) {
        self.open.push(Block { kind, line: line.number, at: self.statements.len() });
    }

    /// Closes the innermost block, which must be of this kind.
    fn end(&mut self, arguments: &Arguments<'_>, kind: BlockKind) -> Result<Block, ScriptError> {
        let (opening, _) = kind.words();
        let Some(block) = self.open.pop() else {
            return Err(arguments.at_name(Problem::NeverOpened { opening }));
        };
        if block.kind == kind {
            return Ok(block);
        }
        let opened = self.open.iter().any(|block| block.kind == kind);
        self.crossed |= opened;
        let (inner, closing) = block.kind.words();
        let line = block.line;
        self.open.push(block);
        Err(arguments.at_name(if opened {
            Problem::Crossed { opening: inner, closing, line }
        } else {
            Problem::NeverOpened { opening }
        }))
    }

    /// Lets the jump at `statement` go to the next statement.
    fn bind(&mut self, statement: usize) {
        let next = self.statements.len();
        let command = self.statements.get_mut(statement).map(|statement| &mut statement.command);
        if let Some(
            Command::SkipUnless { target, .. }
            | Command::SkipUnlessChance { target, .. }
            | Command::SkipUnlessNth { target, .. }
            | Command::Jump { target },
        ) = command
        {
            *target = next;
        }
    }

    fn begin_loop(
        &mut self,
        line: &Line,
        name: LoopName,
        arguments: Arguments<'_>,
    ) -> Result<(), ScriptError> {
        let kind = BlockKind::Loop(name);
        self.begin(line, kind);
        self.add(line, Command::BeginLoop(name));
        if self.begun.contains(&name) {
            return Err(arguments.at_name(Problem::Repeated(kind.words().0)));
        }
        self.begun.push(name);
        arguments.finish()
    }

    fn rewind(
        &mut self,
        line: &Line,
        name: LoopName,
        mut arguments: Arguments<'_>,
    ) -> Result<(), ScriptError> {
        let block = self.end(&arguments, BlockKind::Loop(name))?;
        let times = arguments.take().map(|word| arguments.number(word, 1)).transpose()?;
        arguments.finish()?;
        self.add(line, Command::Rewind { name, times, target: block.at + 1 });
        Ok(())
    }
}

fn command_named(line: &Line, word: &Word) -> Result<&'static CommandInfo, ScriptError> {
    // Some commands write their values in brackets after the name: NewMail(a,b,c).
    let name = word.written.split('(').next().unwrap_or_default();
    find(name).ok_or_else(|| {
        let nearest = nearest(name, COMMANDS.iter().map(|command| command.name));
        error_at(line, word, Problem::UnknownCommand { nearest })
    })
}

/// Commands without a block that send nothing.
fn simple(info: &'static CommandInfo, mut arguments: Arguments<'_>) -> Result<Command, ScriptError> {
    let command = match info.name {
        "Pause" => Command::Pause(arguments.time()?),
        "ErrorDelay" => Command::ErrorDelay(arguments.time()?),
        "Break" => {
            let word = arguments.require("a number of errors")?;
            Command::Break(Some(arguments.number(word, 0)?).filter(|errors| *errors > 0))
        }
        "Close" => Command::Close,
        "CloseColl" => {
            // The view's name: one is open at a time.
            arguments.take();
            Command::CloseCollection
        }
        "ProfileClose" => {
            arguments.take();
            Command::ProfileClose
        }
        "DBClose" => Command::CloseDatabase,
        "Drop" => Command::Drop,
        _ => return Ok(Command::Known(info.name)),
    };
    arguments.finish()?;
    Ok(command)
}
