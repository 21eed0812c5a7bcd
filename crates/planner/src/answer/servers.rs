//! Servers that share a demand: what each of them does, and how many are enough.

use super::limits::Limit;
use crate::class::PerClass;
use crate::demand::Demand;
use crate::fit::{Costs, Model, Response};
use crate::organisation::{MOST_SERVERS, Organisation};
use crate::range::{Case, Range};

/// A server's databases need some memory however little is in them.
const LEAST_BUDGET_BYTES: f64 = 256.0 * 1024.0 * 1024.0;

/// Nobody knows before how much of the data is in use: it may be half of what is assumed, or double.
const WORKING_SET_DOUBT: f64 = 2.0;

/// Memory for the system itself.
pub(super) const SYSTEM_BYTES: f64 = 512.0 * 1024.0 * 1024.0;

/// The log's default size (`log.max_size`).
pub(super) const LOG_BYTES: f64 = 4.0 * 1024.0 * 1024.0 * 1024.0;

/// Load is tried up to this many times what is asked.
pub(super) const MOST_LOAD: f64 = 1000.0;

/// Attachments do not become smaller.
const ATTACHMENT_RATIO: f64 = 1.0;

/// An organisation's demand on machines like those of a model, changed by what the organisation wants otherwise.
pub(super) struct Servers<'a> {
    pub(super) organisation: &'a Organisation,
    pub(super) demand: &'a Demand,
    pub(super) model: &'a Model,
    pub(super) costs: Costs,
    response: Response,
}

impl<'a> Servers<'a> {
    pub(super) fn new(organisation: &'a Organisation, demand: &'a Demand, model: &'a Model) -> Self {
        let (cpu, response) = changes(organisation, demand, model);
        let mut costs = model.costs.clone();
        costs.cpu_s = PerClass::of(|class| times(*costs.cpu_s.get(class), cpu));
        costs.sync_cpu_s = times(costs.sync_cpu_s, cpu);
        costs.written_bytes = PerClass::of(|class| {
            times(*costs.written_bytes.get(class), Range::exactly(demand.written_factor))
        });
        let mut slower = model.response.clone();
        slower.alone_ms = slower.alone_ms.times(response.value);
        let wider = (response.high / response.value).max(response.value / response.low);
        slower.error = (1.0 + slower.error) * wider - 1.0;
        Self { organisation, demand, model, costs, response: slower }
    }

    pub(super) fn cores(&self) -> u32 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 1024")]
        self.organisation.machine.cores.map_or(self.model.cores, |cores| cores as u32)
    }

    pub(super) fn lost(&self) -> u32 {
        self.organisation.availability.servers_lost
    }

    fn copies(&self) -> f64 {
        f64::from(self.organisation.availability.copies)
    }

    /// Those that run when as many are lost as may be; at least one, so that there is something to say.
    pub(super) fn running(&self, installed: u32) -> u32 {
        installed.saturating_sub(self.lost()).max(1)
    }

    /// The fewest that can be, whatever is asked of them.
    pub(super) fn least(&self) -> u32 {
        (self.lost() + 1).max(self.organisation.availability.copies)
    }

    /// Requests a second of each running server. A copy of what is written is written too.
    pub(super) fn per_s(&self, running: u32, load: f64) -> PerClass<f64> {
        PerClass::of(|class| {
            let copies = if class.commits() { self.copies() } else { 1.0 };
            self.demand.per_s.get(class) * load * copies / f64::from(running)
        })
    }

    pub(super) fn connected(&self, running: u32, load: f64) -> f64 {
        self.demand.connected * load / f64::from(running)
    }

    /// The part of its processors that each keeps busy; more than 1 where they are too few.
    pub(super) fn cpu_part(&self, running: u32, load: f64, case: Case) -> f64 {
        self.costs.cpus(&self.per_s(running, load), case) / f64::from(self.cores())
    }

    pub(super) fn mean_ms(&self, running: u32, load: f64, case: Case) -> f64 {
        self.response.mean_ms(&self.per_s(running, load), &self.costs, self.cores(), 0.0, case)
    }

    pub(super) fn p95_ms(&self, running: u32, load: f64, case: Case) -> f64 {
        self.mean_ms(running, load, case) * self.response.p95.at(case)
    }

    pub(super) fn p99_ms(&self, running: u32, load: f64, case: Case) -> f64 {
        self.mean_ms(running, load, case) * self.response.p99.at(case)
    }

    pub(super) fn written_per_s(&self, running: u32, load: f64, case: Case) -> f64 {
        self.costs.written_per_s(&self.per_s(running, load), case)
    }

    pub(super) fn commits_per_s(&self, running: u32, load: f64, case: Case) -> f64 {
        self.costs.commits_per_s(&self.per_s(running, load), case)
    }

    /// Bytes a second as a part of what the device writes. Syncs are no limit: the log joins those who wait, and their
    /// wait is part of the response.
    pub(super) fn device_part(&self, running: u32, load: f64, case: Case) -> f64 {
        let speed = match case {
            Case::Low => self.model.disk.write_bytes_per_s.high,
            Case::Expected => self.model.disk.write_bytes_per_s.value,
            Case::High => self.model.disk.write_bytes_per_s.low,
        };
        self.written_per_s(running, load, case) / speed.max(1.0)
    }

    /// Bytes on disk for one byte of mail.
    fn ratio(&self, case: Case) -> f64 {
        let attachments = self.organisation.storage.attachment_percent / 100.0;
        (1.0 - attachments) * self.model.disk.text_ratio.at(case) + attachments * ATTACHMENT_RATIO
    }

    /// Databases of all servers together, with all copies.
    fn data_bytes(&self, case: Case) -> f64 {
        self.demand.mail_bytes * self.copies() * self.ratio(case)
    }

    /// The disk of each server, with what stays free. Data lies on all that are installed.
    pub(super) fn disk_bytes(&self, installed: u32, case: Case) -> f64 {
        let used = self.data_bytes(case) / f64::from(installed) + LOG_BYTES;
        used / (1.0 - self.organisation.storage.free_percent / 100.0)
    }

    /// What `memory.budget` should be: the data that is in use, once, by those that run.
    pub(super) fn budget_bytes(&self, running: u32, case: Case) -> f64 {
        let doubt = match case {
            Case::Low => 1.0 / WORKING_SET_DOUBT,
            Case::Expected => 1.0,
            Case::High => WORKING_SET_DOUBT,
        };
        let in_use =
            doubt * self.demand.mail_bytes * self.ratio(case) * self.organisation.storage.working_set_percent
                / 100.0;
        (in_use / f64::from(running)).max(LEAST_BUDGET_BYTES)
    }

    pub(super) fn memory_bytes(&self, running: u32, load: f64, case: Case) -> f64 {
        let memory = &self.model.memory;
        SYSTEM_BYTES
            + memory.base_bytes.at(case)
            + memory.user_bytes.at(case) * self.connected(running, load)
            + self.budget_bytes(running, case)
    }

    /// The limits that are missed, the first the one that is missed by most.
    pub(super) fn missed(&self, running: u32, load: f64, case: Case) -> Vec<Limit> {
        let objective = &self.organisation.objective;
        let limits = [
            (Limit::Processors, self.cpu_part(running, load, case), objective.cpu_percent / 100.0),
            (Limit::Response, self.mean_ms(running, load, case), objective.average_ms),
            (Limit::Percentile, self.p99_ms(running, load, case), objective.p99_ms.unwrap_or(f64::INFINITY)),
            (Limit::Device, self.device_part(running, load, case), objective.disk_percent / 100.0),
            (
                Limit::Memory,
                self.memory_bytes(running, load, case),
                self.organisation.machine.memory.unwrap_or(f64::INFINITY),
            ),
        ];
        let mut missed: Vec<(Limit, f64)> = limits
            .into_iter()
            .filter(|(_, value, limit)| value > limit)
            .map(|(name, value, limit)| (name, value / limit))
            .collect();
        missed.sort_by(|one, other| other.1.total_cmp(&one.1));
        missed.into_iter().map(|(limit, _)| limit).collect()
    }

    fn hold(&self, installed: u32, case: Case) -> bool {
        installed > self.lost() && self.missed(self.running(installed), 1.0, case).is_empty()
    }

    /// The fewest servers that hold everything, with those lost that may be; `None` if no number does.
    pub(super) fn fewest(&self, case: Case) -> Option<u32> {
        let least = self.least();
        if self.hold(least, case) {
            return Some(least);
        }
        // With more servers each does less, so that what holds continues holding.
        let (mut low, mut high) = (least, least);
        while !self.hold(high, case) {
            if high >= MOST_SERVERS {
                return None;
            }
            low = high;
            high = high.saturating_mul(2).min(MOST_SERVERS);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.hold(middle, case) { high = middle } else { low = middle }
        }
        Some(high)
    }

    /// This many times the load is held; less than 1 where not even what is asked is.
    pub(super) fn load_until_limit(&self, installed: u32, case: Case) -> f64 {
        let running = self.running(installed);
        let holds = |load: f64| self.missed(running, load, case).is_empty();
        if !holds(0.0) {
            return 0.0;
        }
        if holds(MOST_LOAD) {
            return MOST_LOAD;
        }
        let (mut low, mut high) = (0.0, MOST_LOAD);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if holds(middle) { low = middle } else { high = middle }
        }
        low
    }
}

fn times(range: Range, factor: Range) -> Range {
    Range::of(range.low * factor.low, range.value * factor.value, range.high * factor.high)
}

/// By how much CPU and response are more than in the calibration: through encryption, and through larger mail files.
fn changes(organisation: &Organisation, demand: &Demand, model: &Model) -> (Range, Range) {
    let mut changes = (Range::exactly(1.0), Range::exactly(1.0));
    let mut add =
        |(cpu, response): (Range, Range)| changes = (times(changes.0, cpu), times(changes.1, response));
    if organisation.network.encryption
        && let Some(encryption) = &model.encryption
    {
        add((encryption.cpu, encryption.response));
    }
    if let (Some(doubled), Some(rung)) = (&model.doubled_inbox, model.ladder_documents) {
        // What lies around it costs nothing below the size that was measured.
        let doublings = (demand.documents / rung.max(1.0)).log2().max(0.0);
        add(doubled.times(doublings));
    }
    changes
}
