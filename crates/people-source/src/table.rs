//! Tables of people as CSV: Google's and Microsoft 365's lists of users, Outlook's contacts, and our own.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::columns::{Column, column, is_disabled};
use crate::encoding::decode;
use crate::record::{
    ALIASES_MAX, Fields, GroupRecord, InitialPassword, Member, PersonField, PersonRecord, RecordFault,
    RecordPlace, SourceRecords, checked_address, checked_short_name, cleaned, folded, quoted,
};

/// Limits of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLimits {
    /// The whole file, in bytes.
    pub bytes: usize,
    /// Lines of people.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Members of groups in all.
    pub members: usize,
}

impl Default for TableLimits {
    fn default() -> Self {
        Self { bytes: 256 << 20, rows: 500_000, columns: 256, members: 5_000_000 }
    }
}

/// Why a file is no table of people.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TableError {
    /// It is too large.
    #[error("the file has {found} bytes, and at most {limit} are read; split it")]
    TooLarge {
        /// Its bytes.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// It has too many lines.
    #[error("line {line}: the file has more than {limit} people; split it")]
    TooManyRows {
        /// The line, from 1.
        line: u64,
        /// The limit.
        limit: usize,
    },
    /// It has too many columns.
    #[error("line {line}: {found} columns, and at most {limit} are read")]
    TooManyColumns {
        /// The line, from 1.
        line: u64,
        /// Its columns.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// People are in too many groups.
    #[error("line {line}: people are in groups more than {limit} times in all")]
    TooManyMembers {
        /// The line, from 1.
        line: u64,
        /// The limit.
        limit: usize,
    },
    /// It is empty.
    #[error("the file is empty; its first line names the columns")]
    Empty,
    /// Nothing in the first line says who a line is about.
    #[error(
        "line 1: none of the columns is a name to log in with or an address, such as \"ShortName\", \"Username\" or \"Email Address\""
    )]
    NoColumn,
    /// A column comes twice.
    #[error("line 1: the column {0:?} comes twice")]
    Twice(String),
    /// It is not CSV.
    #[error("line {line}: this is not CSV: {what}")]
    Form {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
}

/// Reads a table. Its first line names the columns, in any order; those that are not known are left out and listed. Lines
/// that cannot be taken are left out and listed, too.
///
/// Columns are separated by commas, semicolons or tabs, whichever the first line has most of. Several addresses or groups
/// in one field are separated by `;`, `,` or `|`, and by `+` where Microsoft lists addresses.
///
/// # Errors
/// [`TableError`]
pub fn read_table(bytes: &[u8], limits: TableLimits) -> Result<SourceRecords, TableError> {
    if bytes.len() > limits.bytes {
        return Err(TableError::TooLarge { found: bytes.len(), limit: limits.bytes });
    }
    let text = decode(bytes);
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter(&text))
        .from_reader(text.as_bytes());
    let mut row = csv::StringRecord::new();
    if !next(&mut reader, &mut row)? {
        return Err(TableError::Empty);
    }
    let (head, ignored) = Head::read(&row, limits)?;
    let mut table =
        Table { records: SourceRecords { ignored, ..SourceRecords::default() }, ..Table::default() };
    let mut rows = 0;
    while next(&mut reader, &mut row)? {
        let line = line_of(&row);
        if row.iter().all(|value| value.trim().is_empty()) {
            continue;
        }
        rows += 1;
        if rows > limits.rows {
            return Err(TableError::TooManyRows { line, limit: limits.rows });
        }
        match head.person(&row, line) {
            Ok((person, groups)) => table.add(person, groups, line, limits)?,
            Err((identity, fault)) => table.records.leave_out(RecordPlace::Line(line), identity, fault),
        }
    }
    Ok(table.finish())
}

/// The next line; `false` at the end.
fn next(reader: &mut csv::Reader<&[u8]>, row: &mut csv::StringRecord) -> Result<bool, TableError> {
    reader.read_record(row).map_err(|error| TableError::Form {
        line: error.position().map_or(1, csv::Position::line),
        what: error.to_string(),
    })
}

fn line_of(row: &csv::StringRecord) -> u64 {
    row.position().map_or(1, csv::Position::line)
}

/// The sign that parts columns: the one of which the first line has most, outside quotation marks.
fn delimiter(text: &str) -> u8 {
    let first_line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let count = |sign: char| {
        let mut is_quoted = false;
        let outside = first_line.chars().filter(|&found| {
            is_quoted ^= found == '"';
            found == sign && !is_quoted
        });
        outside.count()
    };
    let (commas, semicolons, tabs) = (count(','), count(';'), count('\t'));
    if tabs > commas && tabs > semicolons {
        b'\t'
    } else if semicolons > commas {
        b';'
    } else {
        b','
    }
}

/// Which column holds what.
struct Head {
    columns: Vec<Option<Column>>,
}

impl Head {
    /// Reads the first line; gives also the columns that are left out.
    fn read(row: &csv::StringRecord, limits: TableLimits) -> Result<(Self, Vec<String>), TableError> {
        if row.len() > limits.columns {
            return Err(TableError::TooManyColumns { line: 1, found: row.len(), limit: limits.columns });
        }
        let known: Vec<Option<(Column, usize)>> = row.iter().map(column).collect();
        let mut best: BTreeMap<Column, usize> = BTreeMap::new();
        for (kind, rank) in known.iter().flatten() {
            let best = best.entry(*kind).or_insert(*rank);
            *best = (*best).min(*rank);
        }
        let (mut columns, mut ignored, mut seen) = (Vec::new(), Vec::new(), Vec::new());
        for (head, known) in row.iter().zip(known) {
            let taken = known.filter(|(kind, rank)| best.get(kind) == Some(rank)).map(|(kind, _)| kind);
            if let Some(kind) = taken.filter(|kind| *kind != Column::Field(PersonField::Aliases)) {
                if seen.contains(&kind) {
                    return Err(TableError::Twice(quoted(head)));
                }
                seen.push(kind);
            }
            if taken.is_none() && !head.trim().is_empty() {
                ignored.push(quoted(head));
            }
            columns.push(taken);
        }
        let says_who = [
            Column::ShortName,
            Column::LoginAddress,
            Column::Field(PersonField::Address),
            Column::ProxyAddresses,
        ];
        if says_who.iter().any(|kind| seen.contains(kind)) {
            Ok((Self { columns }, ignored))
        } else {
            Err(TableError::NoColumn)
        }
    }

    /// The person of a line, and their groups if the table has such a column; or the identity as far as it can be read,
    /// and what is wrong.
    fn person(
        &self,
        row: &csv::StringRecord,
        line: u64,
    ) -> Result<(PersonRecord, Vec<String>), (Option<String>, RecordFault)> {
        let mut draft = Draft::default();
        // Spreadsheets leave out empty columns at the end.
        let is_too_long = row.len() > self.columns.len();
        let mut fault =
            is_too_long.then(|| RecordFault::Columns { found: row.len(), expected: self.columns.len() });
        for (number, column) in self.columns.iter().enumerate() {
            if let Some(column) = column
                && let Err(found) = draft.take(*column, row.get(number).unwrap_or_default())
            {
                fault.get_or_insert(found);
            }
        }
        let identity = draft.identity();
        match fault {
            Some(fault) => Err((identity, fault)),
            None => draft.finish(line).map_err(|fault| (identity, fault)),
        }
    }
}

/// A person while the columns of a line are read.
#[derive(Default)]
struct Draft {
    identity: Option<String>,
    short_name: Option<String>,
    login_address: Option<String>,
    fields: Fields<PersonField>,
    is_disabled: Option<bool>,
    has_primary_address: bool,
    groups: Vec<String>,
    password: Option<InitialPassword>,
}

impl Draft {
    fn take(&mut self, column: Column, value: &str) -> Result<(), RecordFault> {
        match column {
            Column::Identity => self.identity = cleaned("the id", value)?,
            Column::ShortName => self.short_name = cleaned("the name to log in with", value)?,
            Column::LoginAddress => self.login_address = cleaned("the user name", value)?,
            Column::Field(PersonField::Aliases) => self.take_aliases(value, &[';', ',', '|'])?,
            Column::Field(field) => {
                let values: Vec<String> = cleaned(field.document_field(), value)?.into_iter().collect();
                if field == PersonField::Address {
                    values.iter().try_for_each(|address| checked_address(address).map(drop))?;
                    self.has_primary_address = !values.is_empty();
                }
                self.fields.insert(field, values);
            }
            Column::ProxyAddresses => self.take_proxy_addresses(value)?,
            Column::Groups => {
                for group in value.split([';', ',', '|']) {
                    self.groups.extend(cleaned("a group", group)?);
                }
            }
            Column::Enabled | Column::Blocked | Column::Status => {
                if !value.trim().is_empty() {
                    let says = is_disabled(column, value);
                    self.is_disabled = Some(says.ok_or_else(|| RecordFault::Status(quoted(value)))?);
                }
            }
            // Google writes stars where passwords would stand.
            Column::Password => {
                let is_shown = !value.is_empty() && !value.bytes().all(|byte| byte == b'*');
                self.password = is_shown.then(|| InitialPassword(value.to_owned()));
            }
        }
        Ok(())
    }

    fn take_aliases(&mut self, value: &str, signs: &[char]) -> Result<(), RecordFault> {
        for address in value.split(signs) {
            let address = cleaned("an alias", address)?;
            if let Some(address) = &address {
                checked_address(address)?;
            }
            self.fields.entry(PersonField::Aliases).or_default().extend(address);
        }
        Ok(())
    }

    fn take_proxy_addresses(&mut self, value: &str) -> Result<(), RecordFault> {
        let (primary, others) = proxy_addresses(value.split(['+', ';', ',', '|']))?;
        if let Some(primary) = primary {
            self.has_primary_address = true;
            self.fields.insert(PersonField::Address, vec![primary]);
        }
        self.fields.entry(PersonField::Aliases).or_default().extend(others);
        Ok(())
    }

    /// The name to log in with, as far as the line says one: a user name or an address gives the part before its `@`.
    fn name(&self) -> Option<&str> {
        let address = self.fields.get(&PersonField::Address).and_then(|addresses| addresses.first());
        let name = self.short_name.as_ref().or(self.login_address.as_ref()).or(address)?;
        name.split('@').next()
    }

    fn identity(&self) -> Option<String> {
        self.identity.clone().or_else(|| self.name().map(folded))
    }

    fn finish(mut self, line: u64) -> Result<(PersonRecord, Vec<String>), RecordFault> {
        let short_name = checked_short_name(self.name().ok_or(RecordFault::NoName)?)?.to_owned();
        let identity = self.identity().unwrap_or_else(|| folded(&short_name));
        // A user name that is an address is the address, unless the table has one as well.
        if let Some(login) = self.login_address.take().filter(|login| login.contains('@'))
            && self.fields.get(&PersonField::Address).is_none_or(Vec::is_empty)
        {
            checked_address(&login)?;
            self.fields.insert(PersonField::Address, vec![login]);
            self.has_primary_address = true;
        }
        settle_names(&mut self.fields, &short_name);
        settle_addresses(&mut self.fields)?;
        let person = PersonRecord {
            identity,
            place: RecordPlace::Line(line),
            short_name,
            fields: self.fields,
            is_disabled: self.is_disabled,
            has_primary_address: self.has_primary_address,
            password: self.password,
        };
        Ok((person, self.groups))
    }
}

/// The first address and the others, of a list as Exchange writes it.
pub(crate) fn proxy_addresses<'a>(
    list: impl Iterator<Item = &'a str>,
) -> Result<(Option<String>, Vec<String>), RecordFault> {
    let (mut primary, mut others) = (None, Vec::new());
    for item in list {
        let Some(item) = cleaned("an address", item)? else { continue };
        match item.split_once(':') {
            Some(("SMTP", address)) if primary.is_none() => {
                primary = Some(checked_address(address)?.to_owned());
            }
            Some((kind, address)) if kind.eq_ignore_ascii_case("smtp") => {
                others.push(checked_address(address)?.to_owned());
            }
            // Addresses of other systems: X400, SIP, EUM.
            Some(_) => {}
            None => others.push(checked_address(&item)?.to_owned()),
        }
    }
    Ok((primary, others))
}

/// A person without a full name gets one made of the others.
pub(crate) fn settle_names(fields: &mut Fields<PersonField>, short_name: &str) {
    if fields.get(&PersonField::FullName).is_some_and(|names| !names.is_empty()) {
        return;
    }
    let part = |field| fields.get(&field).and_then(|names| names.first()).map(String::as_str);
    let parts: Vec<&str> =
        [PersonField::FirstName, PersonField::LastName].into_iter().filter_map(part).collect();
    let name = if parts.is_empty() { short_name.to_owned() } else { parts.join(" ") };
    fields.insert(PersonField::FullName, vec![name]);
}

/// Each address once, and the first one not among the aliases.
pub(crate) fn settle_addresses(fields: &mut Fields<PersonField>) -> Result<(), RecordFault> {
    if fields.get(&PersonField::Aliases).is_some_and(|aliases| aliases.len() > ALIASES_MAX) {
        return Err(RecordFault::TooManyAliases);
    }
    let mut seen: Vec<String> =
        fields.get(&PersonField::Address).into_iter().flatten().map(|address| folded(address)).collect();
    if let Some(aliases) = fields.get_mut(&PersonField::Aliases) {
        aliases.retain(|address| {
            let address = folded(address);
            let is_new = !seen.contains(&address);
            if is_new {
                seen.push(address);
            }
            is_new
        });
    }
    Ok(())
}

/// A table while it is read.
#[derive(Default)]
struct Table {
    records: SourceRecords,
    groups: BTreeMap<String, GroupRecord>,
    members: usize,
}

impl Table {
    fn add(
        &mut self,
        person: PersonRecord,
        groups: Vec<String>,
        line: u64,
        limits: TableLimits,
    ) -> Result<(), TableError> {
        for name in groups {
            self.members += 1;
            if self.members > limits.members {
                return Err(TableError::TooManyMembers { line, limit: limits.members });
            }
            let identity = folded(&name);
            let group = self.groups.entry(identity.clone()).or_insert_with(|| GroupRecord {
                identity,
                place: RecordPlace::Line(line),
                name,
                members: Vec::new(),
                fields: Fields::new(),
            });
            group.members.push(Member::Name(person.short_name.clone()));
        }
        self.records.people.push(person);
        Ok(())
    }

    fn finish(mut self) -> SourceRecords {
        self.records.groups = self.groups.into_values().collect();
        self.records
    }
}
