//! Threads (RFC 5256, section 3), for those who keep the messages.

use std::collections::HashMap;

use scrinium_imap_wire::Thread;
use scrinium_mailbox::BaseSubject;

/// Branches in branches. Deeper ones stand side by side, so that nobody's stack is exhausted by an answer.
const DEPTH_MAX: usize = 100;

/// What of a message decides about its thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadMessage {
    /// What the answer calls it: its number or its UID.
    pub number: u32,
    /// Its message id, without brackets.
    pub id: Option<String>,
    /// Ids that it refers to, the oldest first.
    pub references: Vec<String>,
    /// Its subject.
    pub subject: BaseSubject,
    /// When it was sent, in seconds since 1970.
    pub sent: i64,
}

/// A node: a message, or one that others refer to and that is not there.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    message: Option<usize>,
    parent: Option<usize>,
}

/// ORDEREDSUBJECT: a thread is what has one subject, all behind the first one.
#[must_use]
pub fn ordered_subject(messages: &[ThreadMessage]) -> Vec<Thread> {
    let mut order: Vec<&ThreadMessage> = messages.iter().collect();
    order.sort_by_key(|message| (message.sent, message.number));
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut threads: Vec<Thread> = Vec::new();
    for message in order {
        match places.get(message.subject.text.as_str()).and_then(|place| threads.get_mut(*place)) {
            Some(thread) => {
                thread.branches.push(Thread { messages: vec![message.number], branches: Vec::new() });
            }
            None => {
                places.insert(&message.subject.text, threads.len());
                threads.push(Thread { messages: vec![message.number], branches: Vec::new() });
            }
        }
    }
    threads.into_iter().map(straightened).collect()
}

/// A single branch goes on in the row of its parent.
fn straightened(mut thread: Thread) -> Thread {
    while thread.branches.len() == 1
        && let Some(only) = thread.branches.pop()
    {
        thread.messages.extend(only.messages);
        thread.branches = only.branches;
    }
    thread
}

/// REFERENCES: a message stands below the one that it answers.
#[must_use]
pub fn references(messages: &[ThreadMessage]) -> Vec<Thread> {
    let mut forest = Forest::default();
    for (index, message) in messages.iter().enumerate() {
        forest.add(index, message);
    }
    forest.group_subjects(messages);
    forest.threads(messages)
}

#[derive(Default)]
struct Forest<'a> {
    nodes: Vec<Node>,
    by_id: HashMap<&'a str, usize>,
}

impl<'a> Forest<'a> {
    fn node(&mut self, id: &'a str) -> usize {
        *self.by_id.entry(id).or_insert_with(|| {
            self.nodes.push(Node::default());
            self.nodes.len() - 1
        })
    }

    /// Step 1: a message and what it refers to, each below the one before it.
    fn add(&mut self, index: usize, message: &'a ThreadMessage) {
        let own = message.id.as_deref().map(|id| self.node(id));
        // An id that comes twice is one of nobody for the second message.
        let free = own.filter(|own| self.nodes.get(*own).is_some_and(|node| node.message.is_none()));
        let own = free.unwrap_or_else(|| {
            self.nodes.push(Node::default());
            self.nodes.len() - 1
        });
        let mut parent = None;
        for id in &message.references {
            let node = self.node(id);
            if let Some(parent) = parent
                && self.nodes.get(node).is_some_and(|node| node.parent.is_none())
            {
                self.link(node, parent);
            }
            parent = Some(node);
        }
        if let Some(node) = self.nodes.get_mut(own) {
            node.message = Some(index);
            node.parent = None;
        }
        if let Some(parent) = parent {
            self.link(own, parent);
        }
    }

    /// Links unless a circle would come of it.
    fn link(&mut self, child: usize, parent: usize) {
        let mut above = Some(parent);
        while let Some(node) = above {
            if node == child {
                return;
            }
            above = self.nodes.get(node).and_then(|node| node.parent);
        }
        if let Some(node) = self.nodes.get_mut(child) {
            node.parent = Some(parent);
        }
    }

    /// The children of all nodes, and the roots.
    fn children(&self) -> (Vec<Vec<usize>>, Vec<usize>) {
        let mut children = vec![Vec::new(); self.nodes.len()];
        let mut roots = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            match node.parent.and_then(|parent| children.get_mut(parent)) {
                Some(siblings) => siblings.push(index),
                None => roots.push(index),
            }
        }
        (children, roots)
    }

    /// The first message of a node and what is below it, in the order of the tree.
    fn first_message(&self, children: &[Vec<usize>], root: usize) -> Option<usize> {
        let mut waiting = vec![root];
        while let Some(node) = waiting.pop() {
            if let Some(message) = self.nodes.get(node).and_then(|node| node.message) {
                return Some(message);
            }
            waiting.extend(children.get(node).into_iter().flatten().rev());
        }
        None
    }

    /// Step 5: threads with one subject belong together.
    fn group_subjects(&mut self, messages: &[ThreadMessage]) {
        let (children, mut roots) = self.children();
        let sent = |root: &usize| {
            let first = self.first_message(&children, *root).and_then(|first| messages.get(first));
            first.map_or((i64::MAX, u32::MAX), |first| (first.sent, first.number))
        };
        roots.sort_by_key(sent);
        let mut by_subject: HashMap<&str, usize> = HashMap::new();
        let mut links = Vec::new();
        for root in roots {
            let Some(message) = self.first_message(&children, root).and_then(|first| messages.get(first))
            else {
                continue;
            };
            if message.subject.text.is_empty() {
                continue;
            }
            match by_subject.get(message.subject.text.as_str()) {
                Some(first) => links.push((root, *first, message.subject.is_reply)),
                None => {
                    by_subject.insert(&message.subject.text, root);
                }
            }
        }
        for (root, first, is_reply) in links {
            let is_empty = |node: usize| self.nodes.get(node).is_some_and(|node| node.message.is_none());
            if is_empty(first) || is_reply {
                self.link(root, first);
                continue;
            }
            // Two that are no replies stand side by side.
            let both = self.nodes.len();
            let above = self.nodes.get(first).and_then(|node| node.parent);
            match above {
                Some(above) => self.link(root, above),
                None => {
                    self.nodes.push(Node::default());
                    self.link(first, both);
                    self.link(root, both);
                }
            }
        }
    }

    /// Steps 2 to 4 and 6: nodes without messages go, siblings are sorted, and what is left is the answer.
    fn threads(&self, messages: &[ThreadMessage]) -> Vec<Thread> {
        let (children, roots) = self.children();
        let sent = |node: &usize| {
            let first = self.first_message(&children, *node).and_then(|first| messages.get(first));
            first.map_or((i64::MAX, u32::MAX), |first| (first.sent, first.number))
        };
        // From the leaves up, without recursion: what is below a node is done before it.
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut waiting: Vec<(usize, usize)> = roots.iter().map(|root| (*root, 0)).collect();
        let mut depths = vec![0; self.nodes.len()];
        while let Some((node, depth)) = waiting.pop() {
            order.push(node);
            if let Some(place) = depths.get_mut(node) {
                *place = depth;
            }
            let below = children.get(node).into_iter().flatten();
            waiting.extend(below.map(|child| (*child, depth + 1)));
        }
        let mut done: Vec<Vec<Thread>> = vec![Vec::new(); self.nodes.len()];
        for node in order.into_iter().rev() {
            let mut below: Vec<usize> = children.get(node).cloned().unwrap_or_default();
            below.sort_by_key(sent);
            let mut branches = Vec::new();
            for child in below {
                branches.extend(done.get_mut(child).map(std::mem::take).unwrap_or_default());
            }
            let message =
                self.nodes.get(node).and_then(|node| node.message).and_then(|place| messages.get(place));
            let is_root = self.nodes.get(node).is_some_and(|node| node.parent.is_none());
            let depth = depths.get(node).copied().unwrap_or_default();
            let threads = joined(message.map(|message| message.number), branches, is_root, depth);
            if let Some(place) = done.get_mut(node) {
                *place = threads;
            }
        }
        let mut roots = roots;
        roots.sort_by_key(sent);
        roots
            .into_iter()
            .flat_map(|root| done.get_mut(root).map(std::mem::take).unwrap_or_default())
            .collect()
    }
}

fn joined(number: Option<u32>, branches: Vec<Thread>, is_root: bool, depth: usize) -> Vec<Thread> {
    let Some(number) = number else {
        // A message that is not there: its children go up, but at the root they stay together.
        if is_root && branches.len() > 1 {
            return vec![Thread { messages: Vec::new(), branches }];
        }
        return branches;
    };
    let own = Thread { messages: vec![number], branches: Vec::new() };
    if depth > DEPTH_MAX && branches.len() > 1 {
        return std::iter::once(own).chain(branches).collect();
    }
    vec![straightened(Thread { branches, ..own })]
}
