//! Connections: how many there are, whose they are, and which of them have been idle for longest.

use std::collections::HashMap;
use std::sync::Arc;

use crate::accounts::Accounts;
use crate::ring::{Links, Members, Ring};
use crate::{ConnectionRefusal, Holder};

/// Ends a connection that is shed; must not wait.
pub type Shed = Arc<dyn Fn() + Send + Sync>;

/// Connections that were shed and have not closed yet: this many, and no more are taken until one has.
const LEAVING_MOST: usize = 16;

/// All connections.
#[derive(Default)]
pub(crate) struct Book {
    slots: Slots,
    free: Vec<usize>,
    holders: HashMap<Holder, HolderConnections>,
    /// All idle ones, the longest idle first.
    idle: Ring,
    open: usize,
    leaving: usize,
    shed: u64,
}

#[derive(Default)]
struct HolderConnections {
    open: usize,
    idle: Ring,
}

struct Slot {
    holder: Option<Holder>,
    /// Requests under way.
    busy: usize,
    all: Links,
    own: Links,
    /// Taken once it is shed.
    shed: Option<Shed>,
}

#[derive(Default)]
struct Slots(Vec<Option<Slot>>);

struct All<'s>(&'s mut Slots);

struct Own<'s>(&'s mut Slots);

impl Slots {
    fn get(&mut self, index: usize) -> Option<&mut Slot> {
        self.0.get_mut(index).and_then(Option::as_mut)
    }
}

impl Members for All<'_> {
    fn links(&mut self, index: usize) -> Option<&mut Links> {
        self.0.get(index).map(|slot| &mut slot.all)
    }
}

impl Members for Own<'_> {
    fn links(&mut self, index: usize) -> Option<&mut Links> {
        self.0.get(index).map(|slot| &mut slot.own)
    }
}

impl Book {
    fn become_idle(&mut self, index: usize) {
        self.idle.push(&mut All(&mut self.slots), index);
        let Some(holder) = self.slots.get(index).and_then(|slot| slot.holder.clone()) else { return };
        if let Some(connections) = self.holders.get_mut(&holder) {
            connections.idle.push(&mut Own(&mut self.slots), index);
        }
    }

    fn become_busy(&mut self, index: usize) {
        self.idle.remove(&mut All(&mut self.slots), index);
        let Some(holder) = self.slots.get(index).and_then(|slot| slot.holder.clone()) else { return };
        if let Some(connections) = self.holders.get_mut(&holder) {
            connections.idle.remove(&mut Own(&mut self.slots), index);
        }
    }

    fn count_in(&mut self, holder: Option<&Holder>) {
        if let Some(holder) = holder {
            self.holders.entry(holder.clone()).or_default().open += 1;
        }
    }

    fn count_out(&mut self, holder: Option<&Holder>) {
        let Some(holder) = holder else { return };
        if let Some(connections) = self.holders.get_mut(holder) {
            connections.open = connections.open.saturating_sub(1);
            if connections.open == 0 {
                self.holders.remove(holder);
            }
        }
    }

    /// Takes the connection out of all counts but the server's, and gives what ends it.
    fn shed(&mut self, index: usize) -> Option<Shed> {
        self.become_busy(index);
        let slot = self.slots.get(index)?;
        let (shed, holder) = (slot.shed.take(), slot.holder.take());
        self.count_out(holder.as_ref());
        self.open -= 1;
        self.leaving += 1;
        self.shed += 1;
        shed
    }

    /// Makes room for one more connection of `holder`, which may have `limit`; what is to be shed for that.
    fn room_of(
        &mut self,
        holder: &Holder,
        limit: usize,
    ) -> std::result::Result<Option<Shed>, ConnectionRefusal> {
        let Some(connections) = self.holders.get(holder).filter(|held| held.open >= limit) else {
            return Ok(None);
        };
        match connections.idle.oldest() {
            Some(oldest) => Ok(self.shed(oldest)),
            None => Err(ConnectionRefusal::HolderFull { limit }),
        }
    }

    fn room_of_all(&mut self, limit: usize) -> std::result::Result<Option<Shed>, ConnectionRefusal> {
        if self.open < limit && self.leaving < LEAVING_MOST {
            return Ok(None);
        }
        match self.idle.oldest() {
            Some(oldest) if self.leaving < LEAVING_MOST => Ok(self.shed(oldest)),
            _ => Err(ConnectionRefusal::ServerFull { limit }),
        }
    }

    fn insert(&mut self, slot: Slot) -> usize {
        self.open += 1;
        let index = self.free.pop().unwrap_or(self.slots.0.len());
        match self.slots.0.get_mut(index) {
            Some(place) => *place = Some(slot),
            None => self.slots.0.push(Some(slot)),
        }
        index
    }

    fn remove(&mut self, index: usize) {
        let Some(slot) = self.slots.get(index) else { return };
        let (idle, was_shed) = (slot.busy == 0, slot.shed.is_none());
        if was_shed {
            self.leaving -= 1;
        } else {
            if idle {
                self.become_busy(index);
            }
            let holder = self.slots.get(index).and_then(|slot| slot.holder.take());
            self.count_out(holder.as_ref());
            self.open -= 1;
        }
        if let Some(place) = self.slots.0.get_mut(index) {
            *place = None;
        }
        self.free.push(index);
    }
}

/// A connection; it is idle until [`Connection::begin`], and given back when it is dropped.
pub struct Connection {
    accounts: Accounts,
    index: usize,
}

/// Something is under way on a connection, until this is dropped.
pub struct Busy(Arc<Connection>);

impl Accounts {
    /// Takes a connection of `holder`; `None` is a proxy, whose clients are told apart later. Where that is too
    /// many, the oldest idle one is shed: of the holder, or of all.
    ///
    /// # Errors
    /// [`ConnectionRefusal`] where none of those is idle.
    pub fn connect(&self, holder: Option<Holder>, shed: Shed) -> Result<Arc<Connection>, ConnectionRefusal> {
        let limit = self.shared.options.connections.max(1);
        let (mut own_end, mut other_end) = (None, None);
        let index = {
            let mut book = self.shared.book.lock();
            if let Some(holder) = &holder {
                own_end = book.room_of(holder, self.limits(holder).connections)?;
            }
            let room = book.room_of_all(limit);
            if room.is_ok() {
                book.count_in(holder.as_ref());
            }
            room.map(|end| {
                other_end = end;
                let slot =
                    Slot { holder, busy: 0, all: Links::default(), own: Links::default(), shed: Some(shed) };
                let index = book.insert(slot);
                book.become_idle(index);
                index
            })
        };
        // Without the lock: a notification may drop connections.
        for end in [own_end, other_end].into_iter().flatten() {
            end();
        }
        Ok(Arc::new(Connection { accounts: self.clone(), index: index? }))
    }

    /// Completes when a connection has gone since this was called, or at once if one went just before.
    pub async fn freed(&self) {
        self.shared.freed.notified().await;
    }

    /// Connections that are open, those that were shed and have not closed yet not among them.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.book.lock().open
    }

    /// Connections of one holder.
    #[must_use]
    pub fn connections_of(&self, holder: &Holder) -> usize {
        self.shared.book.lock().holders.get(holder).map_or(0, |connections| connections.open)
    }

    /// Connections that were shed since the start.
    #[must_use]
    pub fn connections_shed(&self) -> u64 {
        self.shared.book.lock().shed
    }

    /// Sheds the connection that has been idle for longest, no matter who holds it; false where none is idle.
    pub fn shed_oldest(&self) -> bool {
        let end = {
            let mut book = self.shared.book.lock();
            book.idle.oldest().and_then(|oldest| book.shed(oldest))
        };
        end.inspect(|end| end()).is_some()
    }
}

impl Connection {
    /// Says that something is under way: it is not idle until the last of these is dropped.
    #[must_use]
    pub fn begin(self: &Arc<Self>) -> Busy {
        let mut book = self.accounts.shared.book.lock();
        if let Some(slot) = book.slots.get(self.index) {
            slot.busy += 1;
            if slot.busy == 1 && slot.shed.is_some() {
                book.become_busy(self.index);
            }
        }
        drop(book);
        Busy(Arc::clone(self))
    }

    /// Says whose it is from now on. Where the holder has too many with it, its oldest idle one is shed.
    ///
    /// # Errors
    /// [`ConnectionRefusal::HolderFull`] where none of those is idle; then the connection stays whose it was.
    pub fn belongs_to(&self, holder: &Holder) -> Result<(), ConnectionRefusal> {
        let limit = self.accounts.limits(holder).connections;
        let end = {
            let mut book = self.accounts.shared.book.lock();
            let Some(slot) = book.slots.get(self.index) else { return Ok(()) };
            if slot.holder.as_ref() == Some(holder) || slot.shed.is_none() {
                return Ok(());
            }
            let idle = slot.busy == 0;
            let end = book.room_of(holder, limit)?;
            if idle {
                book.become_busy(self.index);
            }
            let former = book.slots.get(self.index).and_then(|slot| slot.holder.replace(holder.clone()));
            book.count_out(former.as_ref());
            book.count_in(Some(holder));
            if idle {
                book.become_idle(self.index);
            }
            end
        };
        if let Some(end) = end {
            end();
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.accounts.shared.book.lock().remove(self.index);
        self.accounts.shared.freed.notify_one();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut book = self.0.accounts.shared.book.lock();
        if let Some(slot) = book.slots.get(self.0.index) {
            slot.busy = slot.busy.saturating_sub(1);
            if slot.busy == 0 && slot.shed.is_some() {
                book.become_idle(self.0.index);
            }
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Connection").field("index", &self.index).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Busy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}
