//! The commands that the laboratory and the planner carry out.

pub(crate) use crate::demo::run as demo;
pub(crate) use crate::lab_command::run as lab;
pub(crate) use crate::plan_command::run as plan;
