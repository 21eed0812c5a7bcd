//! What an organisation asks of its servers in the busiest hour: requests by class, who is connected, what lies on disk.

use scrinium_lab_script::{Estimate, Variables, Workload};

use crate::class::{Class, PerClass};
use crate::error::PlanError;
use crate::organisation::{Group, Organisation};

/// Everything that is asked, by all users together, at the end of the years that are planned for.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Demand {
    pub users: f64,
    pub connected: f64,
    pub per_s: PerClass<f64>,
    /// Bytes of mail, once, as users would count them.
    pub mail_bytes: f64,
    /// Documents in the average mail file.
    pub documents: f64,
    /// By how much what is written is larger than in the calibration, where messages are.
    pub written_factor: f64,
    pub groups: Vec<GroupDemand>,
}

/// One group's part.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct GroupDemand {
    pub workload: String,
    pub users: f64,
    /// Requests of one user in an hour, at the workload's own pace.
    pub per_user_hour: PerClass<f64>,
}

const HOUR_S: f64 = 3600.0;

/// The mean of Server.Load's message profile, attachments included; see `docs/reference/workloads.md`.
const PROFILE_BYTES: f64 = 100_000.0;

impl Demand {
    /// What the organisation's users ask. `calibrated_bytes` is the size of the calibration's messages.
    ///
    /// # Errors
    /// A workload is unknown, wrong, or of requests that nothing has measured.
    pub fn of(organisation: &Organisation, calibrated_bytes: f64) -> Result<Self, PlanError> {
        let years = organisation.growth.years;
        let growth = |percent: f64| (1.0 + percent / 100.0).powf(years);
        let (users_growth, mail_growth) =
            (growth(organisation.growth.users_percent), growth(organisation.growth.mail_percent));
        let connected_part = organisation.busy_hour.connected_percent / 100.0;
        let mut demand = Self {
            users: 0.0,
            connected: 0.0,
            per_s: PerClass::default(),
            mail_bytes: 0.0,
            documents: 0.0,
            written_factor: 1.0,
            groups: Vec::new(),
        };
        let (mut written, mut documents) = (0.0, 0.0);
        for group in &organisation.users {
            let (per_user_hour, message_bytes) = requests(group)?;
            let users = (group.count * users_growth).ceil();
            let at_work = users * connected_part * organisation.busy_hour.load / HOUR_S;
            for class in Class::ALL {
                *demand.per_s.get_mut(class) += per_user_hour.get(class) * at_work;
            }
            let writes = (per_user_hour.write + per_user_hour.send) * at_work;
            written += writes * (message_bytes / calibrated_bytes.max(1.0)).max(1.0);
            demand.users += users;
            demand.mail_bytes += users * group.mail_file * mail_growth;
            documents += users * group.documents * mail_growth;
            demand.groups.push(GroupDemand { workload: group.workload.clone(), users, per_user_hour });
        }
        demand.connected = (demand.users * connected_part).ceil();
        demand.documents = documents / demand.users.max(1.0);
        let writes = demand.per_s.write + demand.per_s.send;
        demand.written_factor = if writes > 0.0 { written / writes } else { 1.0 };
        Ok(demand)
    }

    /// The mean size of a document in mail files.
    #[must_use]
    pub fn document_bytes(&self) -> f64 {
        self.mail_bytes / (self.documents * self.users).max(1.0)
    }
}

/// Requests of one user in an hour, and the bytes of a message.
fn requests(group: &Group) -> Result<(PerClass<f64>, f64), PlanError> {
    let mut given = Variables::default();
    for (name, value) in &group.set {
        given.set(name, &value.0);
    }
    let workload = Workload::find(&group.workload, &given)?;
    let estimate = Estimate::of(&workload.script);
    let mut per_hour = PerClass::<f64>::default();
    let mut unknown: Vec<&str> = Vec::new();
    for request in &estimate.requests {
        match Class::of(request.operation.transaction()) {
            Some(class) => *per_hour.get_mut(class) += request.per_hour,
            None if request.per_hour > 0.0 && !unknown.contains(&request.operation.transaction()) => {
                unknown.push(request.operation.transaction());
            }
            None => {}
        }
    }
    if !unknown.is_empty() {
        return Err(PlanError::NotMeasured {
            workload: group.workload.clone(),
            transactions: unknown.join(", "),
        });
    }
    if per_hour.sum() <= 0.0 {
        return Err(PlanError::Usage(format!(
            "{} does nothing again and again: a workload that can be planned has a loop that is repeated for ever",
            group.workload
        )));
    }
    let size = workload.variables.get("NormalMessageSize").unwrap_or_default();
    Ok((per_hour, message_bytes(size)))
}

/// Bytes of a message on average: a number, `profile`, or sizes with their weights.
fn message_bytes(text: &str) -> f64 {
    if text.eq_ignore_ascii_case("profile") {
        return PROFILE_BYTES;
    }
    let pairs = text.split('|').filter_map(|pair| {
        let (size, weight) = pair.split_once(':').unwrap_or((pair, "1"));
        Some((size.trim().parse::<f64>().ok()?, weight.trim().parse::<f64>().ok()?))
    });
    let (bytes, weights) =
        pairs.fold((0.0, 0.0), |(bytes, weights), (size, weight)| (bytes + size * weight, weights + weight));
    if weights > 0.0 { bytes / weights } else { 0.0 }
}
