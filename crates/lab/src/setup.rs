//! What a command line says of a run: values of the script, the plan, and the servers.

use std::sync::Arc;

use scrinium_lab_script::{Variables, Workload};

use crate::arguments::LoadArguments;
use crate::crew::{Objectives, Plan, StopConditions};
use crate::driver::{HttpOptions, TargetOptions, Targets};
use crate::error::LabError;
use crate::program::without_password;
use crate::schedule::Model;

/// Variables of a script that a command line gives.
pub(crate) fn given(set: &[(String, String)]) -> Variables {
    let mut variables = Variables::default();
    for (name, value) in set {
        variables.set(name, value);
    }
    variables
}

/// Values for the script's variables.
pub(crate) fn variables(arguments: &LoadArguments) -> Variables {
    let mut variables = given(&arguments.script.set);
    if let Some(messages) = arguments.messages_per_user {
        variables.set("NumMailNotesPerUser", &messages.to_string());
    }
    variables
}

/// What the command line and the workload say of a run.
pub(crate) fn plan_of(arguments: &LoadArguments, workload: Workload) -> Plan {
    let model = if arguments.closed_model { Model::Closed } else { Model::Open };
    Plan {
        workload: workload.name,
        origin: workload.origin,
        script: Arc::new(workload.script),
        variables: workload.variables,
        users: usize::try_from(arguments.users).unwrap_or(usize::MAX),
        user_prefix: arguments.user_prefix.clone(),
        target: arguments.target.iter().map(|target| without_password(target)).collect::<Vec<_>>().join(", "),
        duration: arguments.duration,
        ramp_up: arguments.ramp_up,
        ramp_down: arguments.ramp_down,
        speedup: arguments.speedup,
        keep_alive: arguments.keep_alive,
        model,
        seed: arguments.seed,
        time_out: arguments.time_out,
        prepare: !arguments.skip_prepare,
        server_pid: arguments.server_pid,
        stop: StopConditions {
            time_outs: arguments.stop_time_outs,
            errors_percent: arguments.stop_errors,
            average_ms: arguments.stop_average,
        },
        objectives: Objectives {
            average_ms: arguments.max_average,
            p99_ms: arguments.max_p99,
            errors_percent: arguments.max_errors,
        },
    }
}

/// The servers that the command line names.
pub(crate) fn driver(arguments: &LoadArguments, plan: &Plan) -> Result<Targets, LabError> {
    let admin = arguments.admin.as_ref().map(|name| (name.clone(), arguments.password.clone()));
    let http = HttpOptions {
        target: String::new(),
        admin,
        login: arguments.login,
        user_password: arguments.user_password.clone(),
        view_language: arguments.view_language,
        directory: arguments.directory.clone(),
        mail_box: arguments.mail_box.clone(),
        time_out: arguments.time_out,
        compressed: arguments.compressed,
        edge: arguments.edge.clone(),
    };
    Targets::new(&TargetOptions {
        targets: arguments.target.clone(),
        http,
        domain: arguments
            .mail_domain
            .as_deref()
            .or_else(|| plan.variables.get("RecipientDomain"))
            .unwrap_or("lab.invalid")
            .to_owned(),
        login_name: arguments.login_name.clone(),
        authority: arguments.ca.clone(),
        check_deliveries: match (arguments.check_deliveries, arguments.no_check_deliveries) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        },
        users: plan.users,
        recipients: plan.script.recipients(),
        delivery_wait: arguments.delivery_wait,
    })
    .map_err(LabError::Usage)
}
