//! How long requests wait for processors and for the log. Pure formulas.

/// The probability that a request finds all of `servers` busy and has to wait, in a queue M/M/c with `offered` of them
/// busy on average (Erlang's second formula). 1 where more is offered than there is.
///
/// Source: A. K. Erlang, 1917; L. Kleinrock, "Queueing Systems" I, section 3.5. By the recursion of Erlang's B, which
/// neither overflows nor cancels.
#[must_use]
pub fn erlang_c(servers: u32, offered: f64) -> f64 {
    let capacity = f64::from(servers.max(1));
    if offered <= 0.0 {
        return 0.0;
    }
    if offered >= capacity {
        return 1.0;
    }
    let blocked = (1..=servers.max(1))
        .fold(1.0, |blocked, server| offered * blocked / (f64::from(server) + offered * blocked));
    let busy = offered / capacity;
    blocked / (1.0 - busy * (1.0 - blocked))
}

/// Seconds that a request waits for one of `servers` on average, where `offered` of them are busy and one request keeps
/// one busy for `service_s`. Infinite where the queue would grow for ever.
#[must_use]
pub fn waiting_s(servers: u32, offered: f64, service_s: f64) -> f64 {
    let free = f64::from(servers.max(1)) - offered;
    if free <= 0.0 {
        return f64::INFINITY;
    }
    erlang_c(servers, offered) * service_s / free
}

/// A log that joins all who wait into one sync: anyone who comes while it is at rest waits for one sync; anyone who comes
/// during one waits for the rest of it and for the next.
///
/// With syncs of a fixed length and commits that come at random, the log is at rest after a sync if nobody came
/// during it, so a cycle is a sync and a mean rest of `exp(-rate × sync) / rate`; who comes meets a sync under way with
/// the probability that it takes of a cycle, and half of that is left on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupCommit {
    /// Seconds of one sync.
    pub sync_s: f64,
}

impl GroupCommit {
    /// The part of the time in which the log syncs, at this many commits a second.
    #[must_use]
    pub fn busy(self, commits_per_s: f64) -> f64 {
        if commits_per_s <= 0.0 || self.sync_s <= 0.0 {
            return 0.0;
        }
        let rest_s = (-commits_per_s * self.sync_s).exp() / commits_per_s;
        self.sync_s / (self.sync_s + rest_s)
    }

    /// Syncs a second.
    #[must_use]
    pub fn syncs_per_s(self, commits_per_s: f64) -> f64 {
        if self.sync_s <= 0.0 { commits_per_s.max(0.0) } else { self.busy(commits_per_s) / self.sync_s }
    }

    /// Seconds from the commit to the answer, on average: between one sync and one and a half.
    #[must_use]
    pub fn waiting_s(self, commits_per_s: f64) -> f64 {
        self.sync_s * (1.0 + self.busy(commits_per_s) / 2.0)
    }

    /// Commits a second that make this many syncs; the other way round of [`Self::syncs_per_s`]. `None` where the log was
    /// so busy that their number cannot be told.
    #[must_use]
    pub fn commits_per_s(self, syncs_per_s: f64) -> Option<f64> {
        // Nearer to always busy than this, a little more in syncs would be many times the commits.
        const MOST_BUSY: f64 = 0.95;
        if syncs_per_s <= 0.0 {
            return Some(0.0);
        }
        if self.sync_s <= 0.0 {
            return Some(syncs_per_s);
        }
        if syncs_per_s * self.sync_s > MOST_BUSY {
            return None;
        }
        let (mut low, mut high) = (0.0, 10.0 / self.sync_s);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if self.syncs_per_s(middle) < syncs_per_s { low = middle } else { high = middle }
        }
        Some(f64::midpoint(low, high))
    }
}
