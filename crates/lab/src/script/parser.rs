//! From words to statements.

use super::arguments::{Arguments, error_at};
use super::command::{CalendarKind, Command, Direction, LoopName, MessageSize, Statement};
use super::error::{Problem, ScriptError};
use super::header::Variables;
use super::mail::MailCommand;
use super::table::{COMMANDS, CommandInfo, Support, find, nearest};
use super::words::{Line, Word};

/// What is open at one place of a script, and the line that opened it.
struct Block {
    kind: BlockKind,
    line: usize,
    /// The statement to which the block's jump, or its loop, is bound.
    at: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Loop(LoopName),
    Critical,
    If,
    Else,
}

impl BlockKind {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Loop(LoopName::First) => ("BeginLoop", "Rewind"),
            Self::Loop(LoopName::Second) => ("BeginLoop2", "Rewind2"),
            Self::Critical => ("BeginCrit", "EndCrit"),
            Self::If => ("@If", "@EndIf"),
            Self::Else => ("@Else", "@EndIf"),
        }
    }
}

pub(super) struct Parser<'a> {
    variables: &'a Variables,
    statements: Vec<Statement>,
    open: Vec<Block>,
    /// Loops that were begun, to refuse a second one of the same name.
    begun: Vec<LoopName>,
    /// Blocks are crossed somewhere: which of them are never closed says nothing any more.
    crossed: bool,
}

/// Makes statements of lines. Each line that is wrong adds one error.
pub(super) fn parse(lines: &[Line], variables: &Variables, errors: &mut Vec<ScriptError>) -> Vec<Statement> {
    let mut parser =
        Parser { variables, statements: Vec::new(), open: Vec::new(), begun: Vec::new(), crossed: false };
    for line in lines {
        if let Err(error) = parser.line(line) {
            errors.push(error);
        }
    }
    for block in parser.open.iter().filter(|_| !parser.crossed) {
        let (opening, closing) = block.kind.words();
        let line = lines.iter().find(|line| line.number == block.line);
        let Some((line, word)) = line.and_then(|line| Some((line, line.words.first()?))) else { continue };
        errors.push(error_at(line, word, Problem::NeverClosed { opening, closing, line: block.line }));
    }
    parser.statements
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
                let command = action(info, arguments)?;
                self.add(line, command);
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
        let command = match info.name {
            "Pause" | "Break" | "ErrorDelay" | "Close" | "DBClose" | "Drop" => simple(info, inner)?,
            _ if info.support == Support::Steers => return Err(error_at(line, word, Problem::NotAfterIf)),
            _ => action(info, inner)?,
        };
        let target = self.statements.len() + 2;
        self.add(line, Command::SkipUnless { holds, target });
        self.add(line, command);
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
            "@Else" => {
                let block = self.end(&arguments, BlockKind::If)?;
                arguments.finish()?;
                self.begin(line, BlockKind::Else);
                self.add(line, Command::Jump { target: 0 });
                self.bind(block.at);
                Ok(())
            }
            "@EndIf" => {
                let is_else = self.open.last().is_some_and(|block| block.kind == BlockKind::Else);
                let block = self.end(&arguments, if is_else { BlockKind::Else } else { BlockKind::If })?;
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
        if let Some(Command::SkipUnless { target, .. } | Command::Jump { target }) = command {
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
        "DBClose" => Command::CloseDatabase,
        "Drop" => Command::Drop,
        _ => return Ok(Command::Known(info.name)),
    };
    arguments.finish()?;
    Ok(command)
}

/// Commands that send requests, and those that cannot be run: of these the words are not looked at.
fn action(info: &'static CommandInfo, mut arguments: Arguments<'_>) -> Result<Command, ScriptError> {
    let command = match info.name {
        "ChangeTo" => change_to(&mut arguments)?,
        "Open" => {
            let view = match arguments.take() {
                Some(word) => arguments.text(word)?,
                None => super::command::UserText(vec![super::command::UserPiece::Text("$Inbox".to_owned())]),
            };
            Command::Open { view }
        }
        "Entries" => {
            let start = arguments.take().map(|word| arguments.number(word, 0)).transpose()?;
            Command::Entries { start: start.map(|start| start.max(1)), count: arguments.number_or(1, 20)? }
        }
        "Navigate" => navigate(&mut arguments)?,
        "Read" => Command::Read { count: arguments.number_or(1, 1)? },
        "Add" => add(&mut arguments)?,
        "Stamp" | "Update" => {
            Command::Update { count: arguments.number_or(1, 1)?, stamp: info.name == "Stamp" }
        }
        "Delete" => Command::Delete { count: arguments.number_or(0, 1)? },
        "Populate" => populate(&mut arguments)?,
        "SendMessage" => send_message(&mut arguments)?,
        "Cal" => calendar(&mut arguments)?,
        "CheckForNewMail" => {
            let database = arguments.take().map(|word| arguments.text(word)).transpose()?;
            Command::CheckForNewMail { database }
        }
        _ => match MailCommand::parse(info.name, &mut arguments)? {
            Some(command) => command,
            None => return Ok(Command::Known(info.name)),
        },
    };
    arguments.finish()?;
    Ok(command)
}

fn change_to(arguments: &mut Arguments<'_>) -> Result<Command, ScriptError> {
    let word = arguments.require("a database")?;
    let database = arguments.text(word)?;
    let mut keep_open = arguments.take_keyword("-KeepOpen");
    if !keep_open {
        // The template that a missing database would be made from: mail files are made beforehand.
        if let Some(template) = arguments.take() {
            arguments.text(template)?;
        }
        keep_open = arguments.take_keyword("-KeepOpen");
    }
    Ok(Command::ChangeTo { database, keep_open })
}

fn navigate(arguments: &mut Arguments<'_>) -> Result<Command, ScriptError> {
    let (mut count, mut direction, mut circular) = (1, Direction::Next, false);
    while let Some(word) = arguments.take() {
        for option in word.written.split('|') {
            match option.to_ascii_uppercase().as_str() {
                "NEXT" => direction = Direction::Next,
                "PREV" => direction = Direction::Previous,
                "CURRENT" => direction = Direction::Current,
                "CIRCULAR" => circular = true,
                _ if option.starts_with(|first: char| first.is_ascii_digit() || first == '[') => {
                    count = arguments.number(word, 1)?;
                }
                _ => {
                    let choice = Problem::Choice("NEXT, PREV, CURRENT, CIRCULAR or a number");
                    return Err(arguments.error(word, choice));
                }
            }
        }
    }
    Ok(Command::Navigate { count, direction, circular })
}

fn add(arguments: &mut Arguments<'_>) -> Result<Command, ScriptError> {
    let word = arguments.require("a number of documents")?;
    let count = arguments.number(word, 1)?;
    let mut folder = arguments.take_keyword("-f");
    let mut body = None;
    if !folder {
        arguments.number_or(0, 0)?;
        folder = arguments.take_keyword("-f");
        if !folder {
            body = Some(arguments.bytes_or_normal()?);
            folder = arguments.take_keyword("-f");
        }
    }
    if folder {
        inbox(arguments)?;
    }
    let body = match body {
        Some(body) => body,
        None => arguments.bytes_or_normal()?,
    };
    Ok(Command::Add { count, body })
}

fn populate(arguments: &mut Arguments<'_>) -> Result<Command, ScriptError> {
    let word = arguments.require("a number of documents")?;
    let count = arguments.number(word, 0)?;
    inbox(arguments)?;
    arguments.number_or(0, 0)?;
    Ok(Command::Populate { count, body: arguments.bytes_or_normal()? })
}

/// New documents stand in the inbox; there is no other folder to put them into yet.
fn inbox(arguments: &mut Arguments<'_>) -> Result<(), ScriptError> {
    let Some(word) = arguments.take() else { return Ok(()) };
    let folder = arguments.fixed(word)?;
    if folder.eq_ignore_ascii_case("$Inbox") || folder.eq_ignore_ascii_case("($Inbox)") {
        return Ok(());
    }
    Err(arguments.error(word, Problem::Choice("$Inbox")))
}

fn send_message(arguments: &mut Arguments<'_>) -> Result<Command, ScriptError> {
    let profile = arguments.take_keyword("profile");
    let body = if profile {
        0
    } else {
        let word = arguments.require("a size in bytes, or profile,")?;
        arguments.number(word, 0)?
    };
    let sending = arguments.sending()?;
    let size = if profile {
        MessageSize::Profile
    } else {
        let attachment = arguments.number_or(0, 0)?;
        let bytes = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        MessageSize::Bytes { body: bytes(body), attachment: bytes(attachment) }
    };
    Ok(Command::SendMessage { size, sending })
}

fn calendar(arguments: &mut Arguments<'_>) -> Result<Command, ScriptError> {
    let word = arguments.require("Appointment or Invitation")?;
    let kind = match arguments.fixed(word)?.to_ascii_lowercase().as_str() {
        "appointment" => CalendarKind::Appointment,
        "invitation" => CalendarKind::Invitation,
        _ => return Err(arguments.error(word, Problem::Choice("Appointment or Invitation"))),
    };
    Ok(Command::Calendar { kind, sending: arguments.sending()? })
}
