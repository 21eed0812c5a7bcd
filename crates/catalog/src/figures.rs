//! The statistics of databases, under names in Domino's manner.

use scrinium_database::figures::float;
use scrinium_statistics::Registry;
use scrinium_views::register_view_statistics;

use crate::databases::Databases;

impl Databases {
    /// Registers the statistics of objects (`Attachment.Store.*`), of views (`View.*`), and `Database.PassedOver`: how often
    /// something was passed over that cannot be read, and `Database.Conflicts.*`: documents that have come into conflict since
    /// the start, and those that are in it no more.
    pub fn register_statistics(&self, statistics: &Registry) {
        self.objects().register_statistics(statistics);
        self.object_figure(statistics, "Attachment.Store.Objects", |(objects, _)| objects);
        self.object_figure(statistics, "Attachment.Store.Bytes", |(_, bytes)| bytes);
        let server = &self.first().server;
        register_view_statistics(self.views(), statistics);
        server.figure(statistics, "Database.PassedOver", |server| float(server.passed_over.count()));
        server.figure(statistics, "Database.Conflicts.Made", |server| float(server.conflicts.made()));
        server.figure(statistics, "Database.Conflicts.Settled", |server| float(server.conflicts.settled()));
        self.io_limits().register(statistics);
    }

    /// A gauge of the objects of all volumes.
    fn object_figure(&self, statistics: &Registry, name: &str, read: fn((u64, u64)) -> u64) {
        let databases = self.downgrade();
        statistics.gauge(name, move || {
            let contexts = databases().map(|databases| databases.contexts()).unwrap_or_default();
            float(contexts.iter().map(|context| read(context.contents.object_totals())).sum())
        });
    }
}
