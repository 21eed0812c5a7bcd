//! What has to be there before a script is run, besides the users' mail databases.

use crate::Script;
use crate::command::{Command, UserText};
use crate::table::{COMMANDS, Elsewhere};

/// A database that is no user's mail file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SharedDatabase {
    pub name: UserText,
    /// Whether each user has another one of it.
    pub personal: bool,
}

/// What has to be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Needs {
    /// Names are looked up.
    pub address_book: bool,
    /// Folders of mail databases other than the inbox.
    pub folders: Vec<UserText>,
    /// Views other than the inbox, as the script writes them.
    pub views: Vec<UserText>,
    pub databases: Vec<SharedDatabase>,
    /// Databases, as the script writes them, of which users have replicas; `MAIL` is their mail database.
    pub replicated: Vec<UserText>,
    /// Commands that only Scrinium has, with their lines.
    pub only_here: Vec<(usize, &'static str)>,
}

impl Needs {
    /// Looks through a script.
    #[must_use]
    pub fn of(script: &Script) -> Self {
        let mut needs = Self::default();
        for statement in &script.statements {
            needs.add(&statement.command);
            let name = statement.command.to_string();
            let name = name.split(' ').next().unwrap_or_default();
            let info = COMMANDS.iter().find(|info| info.name == name);
            if let Some(info) = info.filter(|info| info.elsewhere == Elsewhere::Refused) {
                needs.only_here.push((statement.line, info.name));
            }
        }
        needs
    }

    fn add(&mut self, command: &Command) {
        match command {
            Command::Lookup { .. } => self.address_book = true,
            Command::Accept { .. } => add_new(&mut self.views, &UserText::from("Invitations")),
            Command::Open { view: Some(view) }
            | Command::Index { view: Some(view) }
            | Command::OpenCollection { view } => add_new(&mut self.views, view),
            Command::Add { folder: Some(folder), .. }
            | Command::Populate { folder: Some(folder), .. }
            | Command::MoveToFolder { folder, .. } => add_new(&mut self.folders, folder),
            Command::ChangeTo { database, .. } => self.add_database(database),
            Command::Replicate { databases, .. } => {
                for database in databases {
                    self.add_database(database);
                    add_new(&mut self.replicated, database);
                }
                if databases.is_empty() {
                    add_new(&mut self.replicated, &UserText::from("MAIL"));
                }
            }
            _ => {}
        }
    }

    fn add_database(&mut self, name: &UserText) {
        if !self.databases.iter().any(|known| known.name == *name) {
            self.databases.push(SharedDatabase { name: name.clone(), personal: name.is_personal() });
        }
    }
}

fn add_new(texts: &mut Vec<UserText>, text: &UserText) {
    if !texts.contains(text) {
        texts.push(text.clone());
    }
}
