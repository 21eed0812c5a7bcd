//! A run, planned: everything that the command line and the script say about it.

use std::sync::Arc;
use std::time::Duration;

use scrinium_lab_script::{
    Ability, Command, Estimate, MessageSize, Script, Variables, connected_share, message_size,
};

use crate::driver::{Person, stay_logged_in};
use crate::schedule::Model;

/// What has to happen for a run to be stopped before its time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct StopConditions {
    pub time_outs: u64,
    pub errors_percent: f64,
    pub average_ms: Option<f64>,
}

/// What a run has to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Objectives {
    pub average_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub errors_percent: f64,
}

/// A run, before it begins.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Plan {
    pub workload: String,
    pub origin: String,
    pub script: Arc<Script>,
    pub variables: Variables,
    pub users: usize,
    pub user_prefix: String,
    /// Addresses of the servers, with `, ` between them.
    pub target: String,
    pub duration: Duration,
    pub ramp_up: Option<Duration>,
    pub ramp_down: Duration,
    pub speedup: f64,
    /// Users close an HTTP connection that was idle for so long.
    pub keep_alive: Option<Duration>,
    pub model: Model,
    pub seed: u64,
    pub time_out: Duration,
    pub prepare: bool,
    pub server_pid: Option<u32>,
    pub stop: StopConditions,
    pub objectives: Objectives,
}

/// A ramp-up that waits for everyone's first round ends after this many rounds at the latest.
const LONGEST_RAMP_UP_ROUNDS: u32 = 5;

/// A round that takes less than this is taken for this long when the ramp-up is planned.
const SHORTEST_ROUND: Duration = Duration::from_secs(1);

impl Plan {
    /// This many users who run a script, with everything else as the command line has it by default.
    #[must_use]
    pub fn new(workload: &str, script: Script, variables: Variables, users: usize) -> Self {
        Self {
            workload: workload.to_owned(),
            origin: workload.to_owned(),
            script: Arc::new(script),
            variables,
            users,
            user_prefix: "user".to_owned(),
            target: String::new(),
            duration: Duration::from_secs(60),
            ramp_up: None,
            ramp_down: Duration::from_secs(3),
            speedup: 1.0,
            keep_alive: None,
            model: Model::Open,
            seed: 1,
            time_out: Duration::from_secs(30),
            prepare: true,
            server_pid: None,
            stop: StopConditions { time_outs: 1000, errors_percent: 50.0, average_ms: None },
            objectives: Objectives { average_ms: None, p99_ms: None, errors_percent: 1.0 },
        }
    }

    /// The users, in the order of their numbers. Their mail databases lie in `[nb_dbdir]`.
    #[must_use]
    pub fn people(&self) -> Vec<Person> {
        let digits = self.users.to_string().len().max(4);
        let folder = self.variables.get("nb_dbdir").unwrap_or("mail/");
        let person = |number: usize| {
            let name = format!("{}{number:0digits$}", self.user_prefix);
            Person {
                number,
                full_name: format!("Lab User {number:0digits$}"),
                mail_database: format!("{folder}{name}"),
                name,
            }
        };
        (1..=self.users).map(person).collect()
    }

    /// The mean think time of a round and of what comes before it, with the speed-up.
    #[must_use]
    pub fn round(&self) -> (Duration, Duration) {
        let estimate = Estimate::of(&self.script);
        let scaled = |time: Duration| time.div_f64(self.speedup);
        (scaled(estimate.before_loop), scaled(estimate.one_loop).max(SHORTEST_ROUND))
    }

    /// Whether users work until the run is over; else each runs the script once.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        let mut commands = self.script.statements.iter().map(|statement| &statement.command);
        commands.any(|command| matches!(command, Command::Rewind { times: None, .. }))
    }

    /// Over what time the users begin, and when counting begins at the latest.
    #[must_use]
    pub fn ramp_up_times(&self) -> (Duration, Duration) {
        let (before, round) = self.round();
        match self.ramp_up {
            Some(ramp_up) => (ramp_up, ramp_up),
            None => (round, (before + round) * LONGEST_RAMP_UP_ROUNDS),
        }
    }

    /// How large messages are where the script does not say: `[NormalMessageSize]`, or 1,000 bytes.
    #[must_use]
    pub fn normal_message_size(&self) -> MessageSize {
        let normal = self.variables.get("NormalMessageSize").and_then(message_size);
        normal.unwrap_or(MessageSize::Bytes { body: 1000, attachment: 0 })
    }

    /// Of the users this many percent get this many percent of all messages: `[RecipientSkew]`, written `20:80`.
    #[must_use]
    pub fn recipient_skew(&self) -> Option<(f64, f64)> {
        let (people, messages) = self.variables.get("RecipientSkew")?.split_once(':')?;
        let percent = |text: &str| {
            text.trim()
                .parse::<f64>()
                .ok()
                .filter(|percent| (0.0..=100.0).contains(percent))
                .map(|percent| percent / 100.0)
        };
        Some((percent(people)?, percent(messages)?))
    }

    /// What the script needs servers for: for each, any one of some abilities.
    #[must_use]
    pub fn abilities(&self) -> Vec<&'static [Ability]> {
        self.script.abilities()
    }

    /// How many of this many users are connected at the same time, at most: with a keep-alive, half as many more as on
    /// average, for users are not spread evenly.
    #[must_use]
    pub fn connected(&self, users: usize) -> usize {
        if self.target.split(", ").any(stay_logged_in) {
            return users;
        }
        let Some(keep_alive) = self.keep_alive else { return users };
        let share = connected_share(&self.script, keep_alive.mul_f64(self.speedup)) * 1.5;
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "users are few"
        )]
        let connected = (users as f64 * share.min(1.0)).round() as usize;
        connected
    }

    /// Connections of this many connected users: one to each server that the script needs.
    #[must_use]
    pub fn connections(&self, connected: usize) -> usize {
        connected * self.abilities().len().clamp(1, self.target.split(", ").count())
    }

    /// How long a ramp-up takes if all goes well: the last user begins, and does a round.
    #[must_use]
    pub fn expected_ramp_up(&self) -> Duration {
        let (before, round) = self.round();
        let (spread, longest) = self.ramp_up_times();
        self.ramp_up.unwrap_or_else(|| (spread + before + round).min(longest))
    }

    /// A number among the script's variables.
    #[must_use]
    pub fn number(&self, name: &str, default: u64) -> u64 {
        self.variables.get(name).and_then(|value| value.trim().parse().ok()).unwrap_or(default)
    }
}
