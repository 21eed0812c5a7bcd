//! SEARCH, SORT and THREAD (RFC 9051, section 6.4.4; RFC 4731, 5182, 5256, 5267, 9394).
//!
//! A plain result is kept as ranges and told at its end, so that signs of progress can be given before it. One that has no order to
//! make ranges of goes out as it comes.

use std::collections::VecDeque;

use scrinium_imap_wire::{
    Response, ResponseCode, SearchKey, SearchProgram, SearchReturn, SortKey, Status, Thread, Value,
};
use scrinium_mailbox::{NumberSet, Picked};

use crate::capability::Capability;
use crate::request::{Answer, FolderOutcome, FolderQuestion, SearchOrder, SearchQuestion, ThreadAlgorithm};
use crate::session::{ServerSession, word};
use crate::task::{Changes, Ending, Flow, Task};

/// Results at the end of a sorted list that are kept for PARTIAL.
const TAIL_MAX: usize = 10_000;

/// Results of one step.
const FOUND_MAX: u32 = 8192;

/// Numbers that are written at a time.
const WRITTEN_AT_ONCE: u32 = 4000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchKind {
    Search,
    Sort,
    Thread(ThreadAlgorithm),
}

pub(crate) struct SearchTask {
    kind: SearchKind,
    by_uid: bool,
    /// ESEARCH, with these options.
    returns: Option<Vec<SearchReturn>>,
    tells_mod_seq: bool,
    question: SearchQuestion,
    /// Orders in which one result each is looked for: MIN and MAX by themselves.
    ends: VecDeque<SearchOrder>,
    result: SearchResult,
    /// A line has begun that results go into.
    line: Line,
    is_whole: bool,
}

#[derive(Default)]
struct SearchResult {
    /// What was found and not written.
    numbers: NumberSet,
    uids: NumberSet,
    count: u64,
    min: Option<u32>,
    max: Option<u32>,
    mod_seq: u64,
    /// The last ones of a sorted list.
    tail: VecDeque<u32>,
    /// Of a sorted list: from and to.
    window: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Closed,
    /// Nothing stands in the line.
    Begun,
    Open,
}

impl SearchTask {
    pub(crate) fn held_bytes(&self) -> usize {
        let found = &self.result;
        size_of_val(found.numbers.ranges())
            + size_of_val(found.uids.ranges())
            + (found.tail.len() + found.window.len()) * size_of::<u32>()
    }

    fn wants(&self, option: SearchReturn) -> bool {
        self.returns.as_ref().is_some_and(|returns| returns.contains(&option))
    }

    fn saves(&self) -> bool {
        self.wants(SearchReturn::Save)
    }

    /// Whether all results are told.
    fn tells_all(&self) -> bool {
        self.returns.is_none() || self.wants(SearchReturn::All)
    }

    fn partial(&self) -> Option<(i64, i64)> {
        self.returns.iter().flatten().find_map(|option| match option {
            SearchReturn::Partial(from, to) => Some((*from.min(to), *from.max(to))),
            _ => None,
        })
    }
}

impl ServerSession {
    pub(crate) fn search(&mut self, by_uid: bool, program: SearchProgram) -> Flow {
        self.begin_search(SearchKind::Search, by_uid, SearchOrder::Ascending, program)
    }

    pub(crate) fn sort(&mut self, by_uid: bool, keys: Vec<(SortKey, bool)>, program: SearchProgram) -> Flow {
        self.begin_search(SearchKind::Sort, by_uid, SearchOrder::Sorted(keys), program)
    }

    pub(crate) fn thread(
        &mut self,
        by_uid: bool,
        algorithm: ThreadAlgorithm,
        program: SearchProgram,
    ) -> Flow {
        self.begin_search(SearchKind::Thread(algorithm), by_uid, SearchOrder::Ascending, program)
    }

    fn begin_search(
        &mut self,
        kind: SearchKind,
        by_uid: bool,
        order: SearchOrder,
        program: SearchProgram,
    ) -> Flow {
        let SearchProgram { returns, charset: _, keys } = program;
        let tells_mod_seq = has_mod_seq(&keys);
        self.enabled.condstore |= tells_mod_seq;
        let is_plain = kind == SearchKind::Search;
        // A session of rev2 never hears SEARCH (RFC 9051, section 7.3.4).
        let returns = match returns {
            None if is_plain && self.enabled.rev2 => Some(vec![SearchReturn::All]),
            // RFC 4731, section 3.1.
            Some(returns) if returns.is_empty() => Some(vec![SearchReturn::All]),
            returns => returns,
        };
        let question =
            SearchQuestion { keys, saved: self.saved.clone(), order, cursor: None, limit: FOUND_MAX };
        let mut task = SearchTask {
            kind,
            by_uid,
            returns,
            tells_mod_seq,
            question,
            ends: VecDeque::new(),
            result: SearchResult::default(),
            line: Line::Closed,
            is_whole: false,
        };
        if let Some(ending) = plan(&mut task) {
            return ending.into();
        }
        if task.saves() {
            // RFC 5182, section 2.1: what fails leaves nothing.
            self.saved = NumberSet::default();
        }
        Flow::Go(Task::Search(Box::new(task)))
    }

    pub(crate) fn search_advance(&mut self, mut task: Box<SearchTask>) -> Flow {
        if task.is_whole {
            return self.write_results(task);
        }
        if let Some(order) = task.ends.front() {
            task.question.order = order.clone();
            task.question.limit = 1;
        }
        let question = match task.kind {
            SearchKind::Thread(algorithm) => FolderQuestion::Thread(task.question.clone(), algorithm),
            _ => FolderQuestion::Search(task.question.clone()),
        };
        self.ask_folder(question, Task::Search(task))
    }

    pub(crate) fn search_answered(&mut self, mut task: Box<SearchTask>, answer: Answer) -> Flow {
        let (found, mod_seq, cursor, progress) = match self.outcome(answer) {
            Ok(FolderOutcome::Found { found, mod_seq, cursor, progress }) => {
                (found, mod_seq, cursor, progress)
            }
            Ok(FolderOutcome::Threads { threads, cursor, progress }) => {
                self.write_threads(&mut task, threads);
                (Vec::new(), 0, cursor, progress)
            }
            Ok(outcome) => {
                let changes = changes(&task);
                self.output.end_line();
                return Ending::of_outcome(outcome).telling(changes).into();
            }
            Err(flow) => return flow,
        };
        if task.line == Line::Closed {
            self.tell_exists();
            self.tell_progress(progress);
        }
        task.result.mod_seq = task.result.mod_seq.max(mod_seq);
        let is_end = !task.ends.is_empty() && (!found.is_empty() || cursor.is_none());
        for picked in found {
            if let Some(ending) = self.take_found(&mut task, picked) {
                return ending.into();
            }
        }
        task.question.cursor = cursor;
        if is_end {
            task.ends.pop_front();
            task.question.cursor = None;
            task.is_whole = task.ends.is_empty();
        } else {
            task.is_whole = cursor.is_none() || has_enough(&task);
        }
        Flow::Go(Task::Search(task))
    }

    /// RFC 9585: a client that waits sees that something happens.
    fn tell_progress(&mut self, (done, total): (u32, u32)) {
        if self.now_ms.saturating_sub(self.kept_ms.max(self.active_ms)) < self.options.times.progress_ms {
            return;
        }
        self.kept_ms = self.now_ms;
        let tag = self.tag.as_ref().map(|tag| Value::text_of(tag.as_str()));
        let code = tag.filter(|_| self.has(Capability::InProgress)).map(|tag| {
            let numbers = [done, total].map(|number| Value::atom(number.to_string()));
            let list = std::iter::once(tag).chain(numbers).collect();
            ResponseCode::Other("INPROGRESS".to_owned(), vec![Value::List(list)])
        });
        self.say_status(Status::Ok, code, "Still working");
    }

    fn take_found(&mut self, task: &mut SearchTask, picked: Picked) -> Option<Ending> {
        let number = if task.by_uid { picked.uid } else { picked.number };
        let ranges_max = self.limits().result_ranges;
        let rank = i64::try_from(task.result.count).unwrap_or(i64::MAX).saturating_add(1);
        task.result.count += 1;
        task.result.min = Some(task.result.min.map_or(number, |min| min.min(number)));
        task.result.max = Some(task.result.max.map_or(number, |max| max.max(number)));
        if task.saves() && task.result.uids.insert(picked.uid, ranges_max).is_err() {
            let code = word("NOTSAVED");
            return Some(Ending::no(code, "Too many messages to be saved").telling(changes(task)));
        }
        if let Some((from, to)) = task.partial() {
            let is_descending = task.question.order == SearchOrder::Descending;
            let rank = if is_descending { -rank } else { rank };
            if from > 0 || is_descending {
                if (from..=to).contains(&rank) {
                    task.result.window.push(number);
                }
            } else {
                task.result.tail.push_back(number);
                if task.result.tail.len() > usize::try_from(from.unsigned_abs()).unwrap_or(usize::MAX) {
                    task.result.tail.pop_front();
                }
            }
        }
        if !task.tells_all() {
            return None;
        }
        if task.kind == SearchKind::Sort {
            self.begin_line(task);
            self.write_number(task, number, number);
        } else if task.result.numbers.insert(number, ranges_max).is_err() {
            // Too many to be kept: what there is goes out.
            self.begin_line(task);
            let numbers = std::mem::take(&mut task.result.numbers);
            for (from, to) in numbers.ranges() {
                self.write_range(task, *from, *to);
            }
            let _ = task.result.numbers.insert(number, ranges_max);
        }
        None
    }

    /// Begins the line that results go into.
    fn begin_line(&mut self, task: &mut SearchTask) {
        if task.line != Line::Closed {
            return;
        }
        let head = match (&task.returns, task.kind) {
            (Some(_), _) => self.esearch_head(task),
            (None, SearchKind::Search) => "* SEARCH".to_owned(),
            (None, SearchKind::Sort) => "* SORT".to_owned(),
            (None, SearchKind::Thread(_)) => "* THREAD".to_owned(),
        };
        self.output.push(head.as_bytes());
        task.line = Line::Begun;
    }

    fn esearch_head(&self, task: &SearchTask) -> String {
        let tag = self.tag.as_ref().map_or("", |tag| tag.as_str());
        format!("* ESEARCH (TAG \"{tag}\"){}", if task.by_uid { " UID" } else { "" })
    }

    fn write_number(&mut self, task: &mut SearchTask, from: u32, to: u32) {
        let is_first = std::mem::replace(&mut task.line, Line::Open) == Line::Begun;
        let separator = match (&task.returns, is_first) {
            (None, _) => " ",
            (Some(_), true) => " ALL ",
            (Some(_), false) => ",",
        };
        let number = if from == to { from.to_string() } else { format!("{from}:{to}") };
        self.output.push(format!("{separator}{number}").as_bytes());
    }

    /// A range, as the answer has it: ESEARCH has ranges, the old ones have numbers.
    fn write_range(&mut self, task: &mut SearchTask, from: u32, to: u32) {
        if task.returns.is_some() {
            return self.write_number(task, from, to);
        }
        (from..=to).for_each(|number| self.write_number(task, number, number));
    }

    fn write_threads(&mut self, task: &mut SearchTask, threads: Vec<Thread>) {
        if threads.is_empty() {
            return;
        }
        self.begin_line(task);
        let response = Response::Thread(threads).write(self.names(), self.write_options());
        let bytes = scrinium_imap_wire::joined(&response);
        let text = bytes.strip_prefix(b"* THREAD ").and_then(|text| text.strip_suffix(b"\r\n"));
        let is_first = std::mem::replace(&mut task.line, Line::Open) == Line::Begun;
        if is_first {
            self.output.push(b" ");
        }
        self.output.push(text.unwrap_or_default());
    }

    /// Everything is found: what was kept goes out as there is room, then the end of the line.
    fn write_results(&mut self, mut task: Box<SearchTask>) -> Flow {
        if task.tells_all() {
            if task.returns.is_none() || !task.result.numbers.is_empty() {
                self.begin_line(&mut task);
            }
            while let Some((from, to)) = task.result.numbers.ranges().first().copied() {
                if self.output.len() >= self.limits().output_bytes {
                    return Flow::Go(Task::Search(task));
                }
                let last = to.min(from.saturating_add(WRITTEN_AT_ONCE));
                let last = if task.returns.is_some() { to } else { last };
                self.write_range(&mut task, from, last);
                task.result.numbers = task.result.numbers.above(last);
            }
        }
        self.end_results(&mut task);
        if task.saves() {
            self.saved = std::mem::take(&mut task.result.uids);
        }
        Ending::ok("Found").telling(changes(&task)).into()
    }

    fn end_results(&mut self, task: &mut SearchTask) {
        let mod_seq = Some(task.result.mod_seq).filter(|mod_seq| task.tells_mod_seq && *mod_seq > 0);
        let Some(returns) = task.returns.clone() else {
            if let Some(mod_seq) = mod_seq.filter(|_| task.result.count > 0) {
                self.output.push(format!(" (MODSEQ {mod_seq})").as_bytes());
            }
            return self.output.push(b"\r\n");
        };
        if returns == [SearchReturn::Save] {
            return;
        }
        if task.line == Line::Closed {
            let head = self.esearch_head(task);
            self.output.push(head.as_bytes());
        }
        let mut rest = String::new();
        let mut add = |name: &str, value: Option<u64>| {
            if let Some(value) = value {
                rest.push_str(&format!(" {name} {value}"));
            }
        };
        let wants = |option| returns.contains(&option);
        add("MIN", task.result.min.map(u64::from).filter(|_| wants(SearchReturn::Min)));
        add("MAX", task.result.max.map(u64::from).filter(|_| wants(SearchReturn::Max)));
        add("COUNT", Some(task.result.count).filter(|_| wants(SearchReturn::Count)));
        add("MODSEQ", mod_seq.filter(|_| task.result.count > 0));
        if let Some((from, to)) = task.partial() {
            rest.push_str(&format!(" PARTIAL ({} {})", partial_range(from, to), partial_set(task, from, to)));
        }
        self.output.push(rest.as_bytes());
        self.output.push(b"\r\n");
    }
}

/// How a search is done: looking for one end needs no list.
fn plan(task: &mut SearchTask) -> Option<Ending> {
    let Some(returns) = &task.returns else { return None };
    let partial = task.partial();
    if partial.is_some() && returns.contains(&SearchReturn::All) {
        // RFC 9394, section 3.1.
        return Some(Ending::bad("ALL and PARTIAL do not go together"));
    }
    let needs_list = returns
        .iter()
        .any(|option| matches!(option, SearchReturn::All | SearchReturn::Count | SearchReturn::Partial(..)));
    let wants_end = returns.iter().any(|option| matches!(option, SearchReturn::Min | SearchReturn::Max));
    if wants_end && !needs_list && task.kind == SearchKind::Search {
        if returns.contains(&SearchReturn::Min) {
            task.ends.push_back(SearchOrder::Ascending);
        }
        if returns.contains(&SearchReturn::Max) {
            task.ends.push_back(SearchOrder::Descending);
        }
    }
    if let Some((from, _)) = partial.filter(|(from, _)| *from < 0) {
        let counts = returns.iter().any(|option| !matches!(option, SearchReturn::Partial(..)));
        if task.kind == SearchKind::Search && !counts {
            task.question.order = SearchOrder::Descending;
        } else if from.unsigned_abs() > TAIL_MAX as u64 {
            return Some(Ending::no(word("LIMIT"), "Fewer results can be counted from the end"));
        }
    }
    None
}

/// PARTIAL alone needs nothing behind its last result.
fn has_enough(task: &SearchTask) -> bool {
    let only_partial = task
        .returns
        .as_ref()
        .is_some_and(|returns| returns.iter().all(|option| matches!(option, SearchReturn::Partial(..))));
    let Some((from, to)) = task.partial().filter(|_| only_partial) else { return false };
    let last = match (from > 0, task.question.order == SearchOrder::Descending) {
        (true, _) => to.unsigned_abs(),
        (false, true) => from.unsigned_abs(),
        (false, false) => return false,
    };
    task.result.count >= last
}

fn partial_range(from: i64, to: i64) -> String {
    if from > 0 { format!("{from}:{to}") } else { format!("{to}:{from}") }
}

/// RFC 9394, section 3.1: NIL where nothing is there.
fn partial_set(task: &mut SearchTask, from: i64, to: i64) -> String {
    let mut numbers = std::mem::take(&mut task.result.window);
    if from < 0 && task.question.order != SearchOrder::Descending {
        // From the end of the list: the last one is -1.
        let skip_end = usize::try_from(to.unsigned_abs()).unwrap_or(usize::MAX).saturating_sub(1);
        let count = task.result.tail.len().saturating_sub(skip_end);
        numbers = task.result.tail.iter().take(count).copied().collect();
    }
    if task.kind == SearchKind::Search {
        numbers.sort_unstable();
    }
    let set = scrinium_imap_wire::SequenceSet::of_numbers(numbers);
    set.map_or_else(|| "NIL".to_owned(), |set| set.to_string())
}

fn changes(task: &SearchTask) -> Changes {
    if task.by_uid { Changes::All } else { Changes::Flags }
}

fn has_mod_seq(keys: &[SearchKey]) -> bool {
    keys.iter().any(|key| match key {
        SearchKey::ModSeq(..) => true,
        SearchKey::Not(key) | SearchKey::Fuzzy(key) => has_mod_seq(std::slice::from_ref(key)),
        SearchKey::Or(one, other) => {
            has_mod_seq(std::slice::from_ref(one)) || has_mod_seq(std::slice::from_ref(other))
        }
        SearchKey::And(keys) => has_mod_seq(keys),
        _ => false,
    })
}
