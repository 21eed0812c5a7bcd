//! A script that was checked and can be run.

use std::collections::BTreeSet;

use crate::action::ScriptOutcome;
use crate::address::single;
use crate::compile::compile;
use crate::error::ScriptError;
use crate::extension::Extension;
use crate::limits::Limits;
use crate::message::{Delivery, Host, Message};
use crate::program::{Block, Instruction};
use crate::run::run;

/// A script that was checked and can be run. It may be shared between threads.
#[derive(Clone, Debug)]
pub struct Script {
    pub(crate) block: Block,
    extensions: BTreeSet<Extension>,
}

impl Script {
    /// Reads and checks a script.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn compile(source: &[u8], limits: &Limits) -> Result<Self, ScriptError> {
        let compiled = compile(source, limits)?;
        Ok(Self { block: compiled.block, extensions: compiled.extensions })
    }

    /// The extensions that it requires.
    pub fn extensions(&self) -> impl Iterator<Item = Extension> + '_ {
        self.extensions.iter().copied()
    }

    /// The addresses that the script may redirect to, each once; `None` for those that are made of variables. Scripts
    /// that it includes are not looked at.
    #[must_use]
    pub fn redirects(&self) -> Vec<Option<String>> {
        let mut found = Vec::new();
        collect_redirects(&self.block, &mut found);
        found
    }

    /// What the script wants to be done with a message. The same input gives the same result.
    #[must_use]
    pub fn run(
        &self,
        message: &dyn Message,
        delivery: &Delivery<'_>,
        host: &dyn Host,
        limits: &Limits,
    ) -> ScriptOutcome {
        run(self, message, delivery, host, limits)
    }
}

/// Blocks are no deeper than a script may be.
fn collect_redirects(block: &Block, found: &mut Vec<Option<String>>) {
    for statement in block {
        match &statement.instruction {
            Instruction::If(branches) => {
                branches.iter().for_each(|branch| collect_redirects(&branch.block, found));
            }
            Instruction::Redirect { address, .. } => {
                let address = address.constant().and_then(single);
                if !found.contains(&address) {
                    found.push(address);
                }
            }
            _ => {}
        }
    }
}
