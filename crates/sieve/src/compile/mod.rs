//! From what is written to what is executed: everything that can be checked before a message is there, is checked here.

mod actions;
mod arguments;
mod options;
mod tests;

use std::collections::BTreeSet;

use crate::error::{Position, ScriptError, ScriptFault};
use crate::extension::Extension;
use crate::lexer::shortened;
use crate::limits::Limits;
use crate::matching::{Keys, MatchKind, Matching, compile_regex};
use crate::program::{Block, Branch, Condition, Instruction, Statement};
use crate::syntax::{self, Command, Test, Text, Value};
use crate::template::{Template, decode_characters, variable_name};
use arguments::Reader;

/// What a script is made of.
pub(crate) struct Compiled {
    pub(crate) block: Block,
    pub(crate) extensions: BTreeSet<Extension>,
}

pub(crate) fn compile(source: &[u8], limits: &Limits) -> Result<Compiled, ScriptError> {
    let commands = syntax::parse(source, limits)?;
    let mut compiler = Compiler {
        limits,
        extensions: BTreeSet::new(),
        variables: BTreeSet::new(),
        regexes: 0,
        may_require: true,
    };
    let block = compiler.block(&commands, true)?;
    Ok(Compiled { block, extensions: compiler.extensions })
}

pub(crate) struct Compiler<'a> {
    limits: &'a Limits,
    extensions: BTreeSet<Extension>,
    variables: BTreeSet<String>,
    regexes: usize,
    may_require: bool,
}

impl Compiler<'_> {
    pub(crate) fn has(&self, extension: Extension) -> bool {
        self.extensions.contains(&extension)
    }

    /// # Errors
    /// The script does not require the extension that `what` needs.
    pub(crate) fn need(
        &self,
        extension: Extension,
        what: impl FnOnce() -> String,
        position: Position,
    ) -> Result<(), ScriptError> {
        if self.has(extension) {
            return Ok(());
        }
        Err(ScriptFault::NotRequired { what: what(), extension: extension.name() }.at(position))
    }

    fn block(&mut self, commands: &[Command], is_top: bool) -> Result<Block, ScriptError> {
        let mut block: Block = Vec::new();
        // Whether `elsif` and `else` may follow.
        let mut open_if = false;
        for command in commands {
            let Test { name, position, .. } = &command.head;
            if name == "require" {
                self.require(command, is_top)?;
                continue;
            }
            self.may_require = false;
            if matches!(name.as_str(), "if" | "elsif" | "else") {
                if name != "if" && !open_if {
                    return Err(ScriptFault::NoIf(name.clone()).at(*position));
                }
                let branch = self.branch(command)?;
                open_if = branch.condition.is_some();
                match block.last_mut() {
                    Some(Statement { instruction: Instruction::If(branches), .. }) if name != "if" => {
                        branches.push(branch);
                    }
                    _ => block
                        .push(Statement { position: *position, instruction: Instruction::If(vec![branch]) }),
                }
                continue;
            }
            open_if = false;
            let instruction = match self.action(command) {
                Err(error) if self.has(Extension::Ihave) && error.fault.is_unknown() => {
                    Instruction::Unknown(error.fault)
                }
                other => other?,
            };
            block.push(Statement { position: *position, instruction });
        }
        Ok(block)
    }

    /// `require` (RFC 5228, section 3.2).
    fn require(&mut self, command: &Command, is_top: bool) -> Result<(), ScriptError> {
        if !self.may_require || !is_top {
            return Err(ScriptFault::LateRequire.at(command.head.position));
        }
        self.no_block(command)?;
        let mut reader = Reader::new(&command.head);
        let names = reader.texts("the names of extensions")?;
        reader.end()?;
        for name in names {
            let extension = self
                .offered(&name.text)
                .ok_or_else(|| ScriptFault::UnknownExtension(shortened(&name.text)).at(name.position))?;
            self.enable(extension);
        }
        Ok(())
    }

    /// The extension of a name, unless the host hides it.
    pub(crate) fn offered(&self, name: &str) -> Option<Extension> {
        Extension::parse(name).filter(|extension| !self.limits.hidden.contains(extension))
    }

    pub(crate) fn enable(&mut self, extension: Extension) {
        self.extensions.insert(extension);
        // RFC 6131, section 2.
        if extension == Extension::VacationSeconds {
            self.extensions.insert(Extension::Vacation);
        }
    }

    fn branch(&mut self, command: &Command) -> Result<Branch, ScriptError> {
        let head = &command.head;
        let condition = if head.name == "else" {
            Reader::new(head).end()?;
            None
        } else {
            let mut reader = Reader::new(head);
            reader.may_test = true;
            reader.end()?;
            Some(self.one_test(head)?)
        };
        let Some(block) = &command.block else {
            let what = "its block".to_owned();
            return Err(ScriptFault::Missing { owner: head.name.clone(), what }.at(head.position));
        };
        Ok(Branch { condition, block: self.block(block, false)? })
    }

    /// The only test of `if`, `elsif` or `not`.
    fn one_test(&mut self, head: &Test) -> Result<Condition, ScriptError> {
        let owner = head.name.clone();
        match head.tests.as_slice() {
            [test] => self.test(test),
            [] => Err(ScriptFault::Missing { owner, what: "a test".to_owned() }.at(head.position)),
            [_, second, ..] => {
                let what = "a second test without \"allof\" or \"anyof\"".to_owned();
                Err(ScriptFault::Superfluous { owner, what }.at(second.position))
            }
        }
    }

    pub(crate) fn no_block(&self, command: &Command) -> Result<(), ScriptError> {
        if command.block.is_some() {
            let Test { name, position, .. } = &command.head;
            let fault = ScriptFault::Superfluous { owner: name.clone(), what: "a block".to_owned() };
            return Err(fault.at(*position));
        }
        Ok(())
    }

    /// A string with its encoded characters and variables.
    pub(crate) fn template(&self, text: &Text) -> Result<Template, ScriptError> {
        let value = |found: String, expected: &str| {
            ScriptFault::Value { expected: expected.to_owned(), found }.at(text.position)
        };
        let decoded = if self.has(Extension::EncodedCharacter) {
            decode_characters(&text.text)
                .map_err(|found| value(shortened(&found), "a character of Unicode"))?
        } else {
            text.text.clone()
        };
        if !self.has(Extension::Variables) {
            return Ok(Template::plain(&decoded));
        }
        Template::parse(&decoded, self.has(Extension::Include))
            .map_err(|found| value(shortened(&found), "a variable that this script can have"))
    }

    pub(crate) fn templates(&self, texts: &[Text]) -> Result<Vec<Template>, ScriptError> {
        texts.iter().map(|text| self.template(text)).collect()
    }

    /// Keys for a way to match.
    pub(crate) fn keys(&mut self, texts: &[Text], matching: Matching) -> Result<Keys, ScriptError> {
        let templates = self.templates(texts)?;
        let mut regexes = Vec::new();
        if matching.kind == MatchKind::Regex {
            for (template, text) in templates.iter().zip(texts) {
                self.regexes += 1;
                if self.regexes > self.limits.regexes {
                    return Err(ScriptFault::TooManyRegexes(self.limits.regexes).at(text.position));
                }
                let regex = template
                    .constant()
                    .map(|pattern| compile_regex(pattern, matching.comparator, self.limits))
                    .transpose();
                regexes.push(regex.map_err(|reason| ScriptFault::Regex(reason).at(text.position))?);
            }
        }
        Ok(Keys { templates, regexes })
    }

    /// The name of a variable that is set; it counts toward the limit.
    pub(crate) fn variable(&mut self, text: &Text) -> Result<crate::template::VariableName, ScriptError> {
        let Some(name) = variable_name(&text.text, self.has(Extension::Include)) else {
            let expected = "the name of a variable".to_owned();
            let found = format!("\"{}\"", shortened(&text.text));
            return Err(ScriptFault::Value { expected, found }.at(text.position));
        };
        self.variables.insert(text.text.to_ascii_lowercase());
        if self.variables.len() > self.limits.variables {
            return Err(ScriptFault::TooManyVariables(self.limits.variables).at(text.position));
        }
        Ok(name)
    }
}

/// What an argument is, for an error.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Tag(name) => format!("\":{}\"", shortened(name)),
        Value::Number(number) => format!("the number {number}"),
        Value::Text(text) => format!("the string \"{}\"", shortened(&text.text)),
        Value::List(_) => "a list of strings".to_owned(),
    }
}
