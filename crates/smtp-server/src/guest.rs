//! What a session asks of its surroundings.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use scrinium_credentials::Protection;
use scrinium_port::Link;
use scrinium_smtp::{Answer, Request};

/// What all sessions of a port ask.
pub trait Surroundings: Send + Sync + 'static {
    /// Somebody connected; the questions of that session go to what this gives.
    fn receive(&self, link: &Arc<Link>) -> Box<dyn Guest>;
}

/// One session's questions, one after the other.
pub trait Guest: Send {
    /// Answers one question, asked over a connection to which others can listen or not. [`Request::StartTls`] is the port's and
    /// never comes here. A caller that does not wait for the answer drops it: what was not acknowledged may or may not have happened.
    fn answer(&mut self, request: Request, protection: Protection) -> BoxFuture<'_, Answer>;
}
