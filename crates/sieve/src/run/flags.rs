//! Flags (RFC 5232).

use super::Run;
use crate::error::RunFault;
use crate::limits::Limits;
use crate::program::FlagChange;
use crate::template::Template;

/// The flags in texts, each of which may hold several with blanks between them, each flag once. What no flag can be is
/// passed over (RFC 5232, section 2).
pub(super) fn flags_of(texts: &[String], limits: &Limits) -> Vec<String> {
    let mut flags: Vec<String> = Vec::new();
    for flag in texts.iter().flat_map(|text| text.split_ascii_whitespace()) {
        if flags.len() >= limits.flags {
            break;
        }
        if is_flag(flag) && !flags.iter().any(|other| other.eq_ignore_ascii_case(flag)) {
            flags.push(flag.to_owned());
        }
    }
    flags
}

/// A keyword, or one of the flags that a client may set (RFC 9051, section 2.3.2).
fn is_flag(flag: &str) -> bool {
    if let Some(name) = flag.strip_prefix('\\') {
        let known = ["answered", "flagged", "deleted", "seen", "draft"];
        return known.iter().any(|known| known.eq_ignore_ascii_case(name));
    }
    let is_atom = |byte: u8| byte.is_ascii_graphic() && !b"(){%*\"\\]".contains(&byte);
    (1..=64).contains(&flag.len()) && flag.bytes().all(is_atom)
}

impl Run<'_> {
    pub(super) fn change_flags(
        &mut self,
        change: FlagChange,
        variable: Option<&Template>,
        flags: &[Template],
    ) -> Result<(), RunFault> {
        let texts = self.expand_all(flags)?;
        let given = flags_of(&texts, self.limits);
        let name = variable.map(|name| self.named(name)).transpose()?;
        let present = match &name {
            Some(name) => flags_of(&[self.variable(name).to_owned()], self.limits),
            None => std::mem::take(&mut self.flags),
        };
        let changed = match change {
            FlagChange::Set => given,
            FlagChange::Add => {
                let both: Vec<String> = present.into_iter().chain(given).collect();
                flags_of(&both, self.limits)
            }
            FlagChange::Remove => {
                let stays = |flag: &String| !given.iter().any(|given| given.eq_ignore_ascii_case(flag));
                present.into_iter().filter(stays).collect()
            }
        };
        match name {
            Some(name) => self.store_variable(&name, changed.join(" ")),
            None => {
                self.flags = changed;
                Ok(())
            }
        }
    }

    /// The flags of a copy: those that are named, or else those of the internal variable (RFC 5232, section 5).
    pub(super) fn flags_for(&mut self, named: Option<&[Template]>) -> Result<Vec<String>, RunFault> {
        match named {
            Some(named) => {
                let texts = self.expand_all(named)?;
                Ok(flags_of(&texts, self.limits))
            }
            None => Ok(self.flags.clone()),
        }
    }
}
