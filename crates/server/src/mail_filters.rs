//! What examines messages of other servers, as the configuration describes it.

use std::net::Ipv4Addr;
use std::sync::Arc;

use scrinium_mail_filters::greylist::{GreyPolicy, GreyStore};
use scrinium_mail_filters::{DnsList, MAX_LISTS};
use scrinium_sender_authentication::DomainName;
use scrinium_smtp_server::{FilterAddress, FilterOptions, GateOptions, ListOptions, Rspamd, SenderDns};

use crate::cli::Failure;
use crate::config::Settings;
use crate::grey_records::GreyRecords;
use crate::ground::Ground;
use crate::junk_teacher::{JunkTeacher, JunkWatcher};
use crate::mail_out;

/// Reads `ZONE` or `ZONE=WEIGHT`.
///
/// # Errors
/// Says what is wrong with the text.
pub(crate) fn dns_list(text: &str) -> Result<DnsList, String> {
    let wrong =
        || format!("{text:?} is no list in DNS: write it like zen.spamhaus.org, or zen.spamhaus.org=2");
    let (zone, weight) = text.split_once('=').unwrap_or((text, "1"));
    let zone =
        DomainName::parse(zone).filter(|zone| zone.is_plain() && zone.labels() > 1).ok_or_else(wrong)?;
    let weight: i32 = weight.trim().parse().map_err(|_| wrong())?;
    if weight.abs() > 1_000 {
        return Err(wrong());
    }
    let all = (Ipv4Addr::new(127, 0, 0, 0), Ipv4Addr::new(127, 255, 255, 255));
    Ok(DnsList { zone, weights: vec![(all, weight)] })
}

/// Programs that look at messages, if there are any.
pub(crate) fn filters(ground: &Ground, settings: &Settings) -> Option<FilterOptions> {
    let set = &settings.filters;
    let milters: Vec<FilterAddress> =
        set.milters.iter().filter_map(|address| FilterAddress::parse(address).ok()).collect();
    let rspamd = FilterAddress::parse(&set.rspamd).ok();
    (!milters.is_empty() || rspamd.is_some()).then(|| FilterOptions {
        milters,
        rspamd,
        passes_unfiltered: set.on_failure == "pass",
        keeps_back: set.put_aside == "quarantine",
        timeout: set.timeout,
        server: mail_out::host_name(ground, settings),
    })
}

/// Who teaches rspamd, if somebody is to.
pub(crate) fn teacher(ground: &Ground, settings: &Settings) -> Option<(Arc<JunkWatcher>, JunkTeacher)> {
    let set = &settings.filters;
    let address = FilterAddress::parse(&set.rspamd_controller).ok()?;
    let file = settings.in_data_dir(&set.rspamd_password);
    let password = move || match mail_out::password_in(&file) {
        Ok(password) => Ok(Some(password)),
        Err(_) if !file.exists() => Ok(None),
        Err(error) => Err(format!("rspamd's password cannot be read ({}): {error}", file.display())),
    };
    let rspamd = Rspamd::new(address, ground.workers().clone());
    let how = (Box::new(password) as _, set.timeout);
    Some(JunkTeacher::new(rspamd, how, ground.workers().clone(), ground.statistics()))
}

/// What strangers have to pass before a text, if anything.
///
/// # Errors
/// What the store reports.
pub(crate) fn gate(
    ground: &Ground,
    settings: &Settings,
    (dns, records): (Arc<dyn SenderDns>, impl FnOnce() -> Result<Arc<GreyRecords>, Failure>),
) -> Result<Option<GateOptions>, Failure> {
    let set = &settings.filters;
    let lists: Vec<DnsList> = set.dns_lists.iter().filter_map(|list| dns_list(list).ok()).collect();
    if lists.len() > MAX_LISTS {
        return Err(Failure::Use(format!("filters.dns_lists: at most {MAX_LISTS} lists are asked")));
    }
    let refused_from = i32::try_from(set.dns_lists_refuse_from).unwrap_or(i32::MAX);
    let greylist = match set.greylisting {
        true => {
            let policy =
                GreyPolicy { delay_seconds: set.greylisting_delay.as_secs(), ..GreyPolicy::default() };
            let records: Arc<dyn GreyStore + Send + Sync> = records()?;
            Some((policy, records))
        }
        false => None,
    };
    if lists.is_empty() && greylist.is_none() {
        return Ok(None);
    }
    let trusted = settings.smtp.trusted_networks.iter().filter_map(|range| range.parse().ok());
    Ok(Some(GateOptions {
        dns,
        lists: (!lists.is_empty()).then_some(ListOptions { lists, refused_from }),
        greylist,
        trusted: trusted.collect(),
        clock: ground.clock().clone(),
    }))
}
