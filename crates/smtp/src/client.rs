//! stub
#[derive(Debug)]
pub struct ClientSession;
