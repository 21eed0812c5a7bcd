//! The set of instances of a series: rules and dates, without exceptions.

use scrinium_dav_wire::recurrence::{RecurrenceRule, RuleEnd};

use crate::civil::{CivilTime, DAY_S};
use crate::rule::{Rule, RuleError, RuleWalk};
use crate::time::{CalendarTime, Extent, TimeKind, civil_of_value};
use crate::zone::CivilOrigin;

/// Occurrences that are counted for COUNT.
const COUNT_MAX: u32 = 100_000;
/// Rules of one component. More than one is rare; Lotus Notes wrote some.
pub(super) const RULES_MAX: usize = 8;

/// When a series' component recurs.
#[derive(Clone, Debug)]
pub(super) struct RecurrenceSet {
    start: CalendarTime,
    rules: Vec<BoundedRule>,
    excluding_rules: Vec<BoundedRule>,
    /// DTSTART and RDATE, by key.
    dates: Vec<Identity>,
    excluded_keys: Vec<i64>,
    /// EXDATE that names a whole day of a series of times.
    excluded_days: Vec<i64>,
}

/// An instance, before exceptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// [`CalendarTime::key`] of the start.
    pub(super) key: i64,
    pub(super) start: CalendarTime,
    /// Of an RDATE with a period.
    pub(super) extent: Option<Extent>,
}

impl Identity {
    fn new(start: CalendarTime, extent: Option<Extent>) -> Self {
        Self { key: start.key(), start, extent }
    }
}

/// The last time that a rule may give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleBound {
    None,
    /// What clocks show.
    Civil(i64),
    /// A moment.
    Instant(i64),
}

#[derive(Clone, Debug)]
struct BoundedRule {
    rule: Rule,
    bound: RuleBound,
}

impl RecurrenceSet {
    pub(super) fn new(start: CalendarTime) -> Self {
        let dates = vec![Identity::new(start.clone(), None)];
        let (rules, excluding_rules, excluded_keys, excluded_days) = Default::default();
        Self { start, rules, excluding_rules, dates, excluded_keys, excluded_days }
    }

    /// RRULE.
    pub(super) fn add_rule(&mut self, rule: &RecurrenceRule) -> Result<(), RuleError> {
        let rule = self.bounded(rule)?;
        add(&mut self.rules, rule)
    }

    /// EXRULE (RFC 2445).
    pub(super) fn add_excluding_rule(&mut self, rule: &RecurrenceRule) -> Result<(), RuleError> {
        let rule = self.bounded(rule)?;
        add(&mut self.excluding_rules, rule)
    }

    fn bounded(&self, rule: &RecurrenceRule) -> Result<BoundedRule, RuleError> {
        let compiled = Rule::new(rule, self.start.civil(), self.start.is_day())?;
        let bound = match &rule.end {
            RuleEnd::Never => RuleBound::None,
            RuleEnd::Until(until) => {
                let civil = civil_of_value(until).ok_or(RuleError::OutOfRange)?;
                match until.second_of_day() {
                    // To the end of the day, on the series' clocks. A series of days has no other end.
                    Some(_) if self.start.is_day() => RuleBound::Civil(civil.day() * DAY_S + DAY_S - 1),
                    None => RuleBound::Civil(civil.0 + DAY_S - 1),
                    Some(_) if until.is_utc() && self.is_zoned() => RuleBound::Instant(civil.0),
                    Some(_) => RuleBound::Civil(civil.0),
                }
            }
            RuleEnd::Count(count) => self.counted(&compiled, *count)?,
        };
        Ok(BoundedRule { rule: compiled, bound })
    }

    /// The last of COUNT occurrences, so that nobody has to count again. The start is the first one, whether the rule gives it or
    /// not (RFC 5545, section 3.3.10); a time that clocks skip is not counted.
    fn counted(&self, rule: &Rule, count: u32) -> Result<RuleBound, RuleError> {
        if count > COUNT_MAX {
            return Err(RuleError::CountTooLarge(COUNT_MAX));
        }
        let endless = BoundedRule { rule: rule.clone(), bound: RuleBound::None };
        let Some(place) = usize::try_from(count).unwrap_or(usize::MAX).checked_sub(2) else {
            return Ok(RuleBound::Civil(i64::MIN));
        };
        let behind_start = CivilTime(self.start.civil().0 + 1);
        let last = RuleIdentities::new(&endless, &self.start, behind_start).nth(place);
        Ok(last.map_or(RuleBound::None, |last| RuleBound::Civil(last.start.civil().0)))
    }

    /// RDATE. A day among times is the start's time on that day.
    pub(super) fn add_date(&mut self, time: &CalendarTime, extent: Option<Extent>) {
        let start = if time.is_day() && !self.start.is_day() {
            self.start.at(CivilTime(time.civil().0 + self.start.civil().second_of_day()))
        } else {
            self.in_own_terms(time)
        };
        self.dates.push(Identity::new(start, extent));
    }

    /// EXDATE.
    pub(super) fn add_exception(&mut self, time: &CalendarTime) {
        match self.key_of(time) {
            InstanceKey::Moment(key) => self.excluded_keys.push(key),
            InstanceKey::Day(day) => self.excluded_days.push(day),
        }
    }

    /// To be called when all parts are there.
    pub(super) fn finish(&mut self) {
        // A period says more than a start of the same moment.
        self.dates.sort_by_key(|date| (date.key, date.extent.is_none()));
        self.dates.dedup_by_key(|date| date.key);
        self.excluded_keys.sort_unstable();
        self.excluded_days.sort_unstable();
    }

    pub(super) fn is_recurring(&self) -> bool {
        !self.rules.is_empty() || self.dates.len() > 1
    }

    pub(super) fn is_zoned(&self) -> bool {
        self.start.zone().is_some()
    }

    pub(super) fn first_key(&self) -> i64 {
        self.dates.first().map_or_else(|| self.start.key(), |first| first.key)
    }

    /// A bound for the last instance; `None` if there is no last one.
    pub(super) fn last_key(&self) -> Option<i64> {
        let mut last = self.dates.last().map_or_else(|| self.start.key(), |last| last.key);
        for rule in &self.rules {
            let key = match rule.bound {
                RuleBound::None => return None,
                RuleBound::Civil(i64::MIN) => continue,
                RuleBound::Civil(civil) => self.start.at(CivilTime(civil)).key(),
                RuleBound::Instant(instant) => instant,
            };
            last = last.max(key);
        }
        Some(last)
    }

    /// The longest period of its own that an instance has, in seconds.
    pub(super) fn most_s(&self) -> i64 {
        self.dates.iter().filter_map(|date| date.extent).map(Extent::most_s).max().unwrap_or_default()
    }

    /// Which instance a RECURRENCE-ID or EXDATE means, however it is written.
    pub(super) fn key_of(&self, time: &CalendarTime) -> InstanceKey {
        if time.is_day() && !self.start.is_day() {
            return InstanceKey::Day(time.civil().day());
        }
        InstanceKey::Moment(self.in_own_terms(time).key())
    }

    /// A time of another kind than the series', as one of its kind: a floating time hangs on the series' clocks, and a day
    /// is the day that is written.
    fn in_own_terms(&self, time: &CalendarTime) -> CalendarTime {
        match (self.start.kind(), time.kind()) {
            (TimeKind::Zoned(_), TimeKind::Zoned(_)) => time.clone(),
            _ => self.start.at(time.civil()),
        }
    }

    /// Instances with a key of at least this one, in order.
    pub(super) fn walk_from(&self, key: i64) -> SetWalk<'_> {
        let civil = match self.start.zone() {
            // A day before, because clocks may show a time twice.
            Some(zone) => CivilTime(zone.civil_of(crate::zone::Instant(key)).0 - DAY_S),
            None => CivilTime(key),
        };
        let rules = self.rules.iter().map(|rule| RuleIdentities::new(rule, &self.start, civil).peekable());
        let date = self.dates.partition_point(|date| date.key < key);
        SetWalk { set: self, from: key, rules: rules.collect(), date, last: None }
    }

    pub(super) fn excludes(&self, identity: &Identity) -> bool {
        let civil = identity.start.civil();
        self.excluded_keys.binary_search(&identity.key).is_ok()
            || self.excluded_days.binary_search(&civil.day()).is_ok()
            || self
                .excluding_rules
                .iter()
                .any(|rule| rule.allows(civil, identity.key) && rule.rule.contains(civil))
    }
}

fn add(rules: &mut Vec<BoundedRule>, rule: BoundedRule) -> Result<(), RuleError> {
    if rules.len() >= RULES_MAX {
        return Err(RuleError::TooManyRules(RULES_MAX));
    }
    rules.push(rule);
    Ok(())
}

/// What an instance is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstanceKey {
    Moment(i64),
    /// Days since 1970, on the series' clocks.
    Day(i64),
}

impl BoundedRule {
    fn allows(&self, civil: CivilTime, key: i64) -> bool {
        match self.bound {
            RuleBound::None => true,
            RuleBound::Civil(last) => civil.0 <= last,
            RuleBound::Instant(last) => key <= last,
        }
    }
}

/// The instances that one rule gives.
#[derive(Clone, Debug)]
struct RuleIdentities<'a> {
    rule: &'a BoundedRule,
    start: &'a CalendarTime,
    walk: RuleWalk<'a>,
}

impl<'a> RuleIdentities<'a> {
    fn new(rule: &'a BoundedRule, start: &'a CalendarTime, from: CivilTime) -> Self {
        Self { rule, start, walk: rule.rule.walk_from(from) }
    }
}

impl Iterator for RuleIdentities<'_> {
    type Item = Identity;

    fn next(&mut self) -> Option<Identity> {
        loop {
            let civil = self.walk.next()?;
            let key = match self.start.zone() {
                None => civil.0,
                Some(zone) => match zone.instant_of(civil, CivilOrigin::Generated) {
                    Some(instant) => instant.0,
                    // Clocks skip it: it is left out, and not counted (RFC 5545, section 3.3.10).
                    None => continue,
                },
            };
            if !self.rule.allows(civil, key) {
                return None;
            }
            return Some(Identity { key, start: self.start.at(civil), extent: None });
        }
    }
}

/// Instances of a set, in order, each once.
#[derive(Clone, Debug)]
pub(super) struct SetWalk<'a> {
    set: &'a RecurrenceSet,
    from: i64,
    rules: Vec<std::iter::Peekable<RuleIdentities<'a>>>,
    date: usize,
    last: Option<i64>,
}

impl Iterator for SetWalk<'_> {
    type Item = Identity;

    fn next(&mut self) -> Option<Identity> {
        loop {
            let date = self.set.dates.get(self.date);
            let by_rule =
                self.rules.iter_mut().enumerate().filter_map(|(place, rule)| Some((rule.peek()?.key, place)));
            // A date comes before a rule's instance of the same moment, which is then left out: it may have a period.
            let next = match (date, by_rule.min()) {
                (Some(date), by_rule) if by_rule.is_none_or(|(key, _)| date.key <= key) => {
                    self.date += 1;
                    date.clone()
                }
                (_, Some((_, place))) => self.rules.get_mut(place)?.next()?,
                (_, None) => return None,
            };
            if next.key >= self.from && self.last != Some(next.key) {
                self.last = Some(next.key);
                return Some(next);
            }
        }
    }
}
