//! The log of dropped packets of a set-up.

use super::firewall::written_rules;
use super::mistake;
use fwdlab_model::router::RouterSetup;
use fwdlab_netio::files::{RecordFile, WriteLosses};
use fwdlab_router::path::{DropLog, DropLogSetting};
use std::path::Path;
use std::sync::Arc;

/// Reads the setting of the log; `None` without a log.
///
/// # Errors
/// User errors.
pub(super) fn setting(setup: &RouterSetup) -> anyhow::Result<Option<DropLogSetting>> {
    let Some(log) = &setup.drop_log else { return Ok(None) };
    let fault = |what| mistake(format!("drop_log: {what}"));
    if log.pps == 0 {
        return Err(fault("pps = 0: at least one packet per second is logged".into()));
    }
    let folder = Path::new(&log.file).parent().filter(|folder| *folder != Path::new(""));
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(fault(format!("{}: there is no such directory", log.file)));
    }
    let reasons = DropLogSetting::reasons(&log.reasons).map_err(fault)?;
    Ok(Some(DropLogSetting { per_second: log.pps, reasons }))
}

/// Begins the log; `None` without one.
///
/// # Errors
/// User errors, and a file that cannot be created.
pub(super) fn open(
    setup: &RouterSetup,
    interfaces: &[String],
) -> anyhow::Result<Option<(Arc<DropLog>, Arc<WriteLosses>)>> {
    let (Some(log), Some(setting)) = (&setup.drop_log, setting(setup)?) else { return Ok(None) };
    let fault = |error| mistake(format!("drop_log: {}: {error}", log.file));
    let file = RecordFile::create(&log.file, true).map_err(fault)?;
    let losses = file.losses();
    let log = DropLog::new(file, interfaces, &setting).map_err(fault)?;
    log.set_rules(rules(setup));
    Ok(Some((Arc::new(log), losses)))
}

/// Returns the texts of the firewall's rules in their order.
pub(super) fn rules(setup: &RouterSetup) -> Vec<String> {
    written_rules(setup).map(|(_, text)| text.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::router::DropLogSetup;

    fn setup(pps: u32, reasons: &[&str]) -> RouterSetup {
        let reasons = reasons.iter().map(|name| (*name).to_owned()).collect();
        let log = DropLogSetup { file: "x".into(), pps, reasons };
        let firewall = "# Rules.\nblock in proto tcp\n\npass all\n".into();
        RouterSetup { drop_log: Some(log), firewall, ..RouterSetup::default() }
    }

    #[test]
    fn setting_knows_reasons_by_name_and_rules_by_number() {
        let defaults = setting(&setup(9, &[])).expect("sound").expect("a log");
        assert!(defaults.per_second == 9 && defaults.reasons.len() > 4, "{defaults:?}");
        let one = setting(&setup(9, &["other_mac"])).expect("sound").expect("a log");
        assert_eq!(one.reasons.len(), 1);
        for (pps, reason, words) in [
            (0, "firewall", "pps = 0"),
            (
                1,
                "forwarded",
                "`forwarded` is no reason of a dropped packet: use one of ethernet_short",
            ),
            (1, "no_room", "`no_room` is no reason"),
        ] {
            let error = setting(&setup(pps, &[reason])).expect_err("a mistake").to_string();
            assert!(error.contains(words), "{error}");
        }
        assert_eq!(rules(&setup(1, &[])), ["block in proto tcp", "pass all"]);
        assert!(setting(&RouterSetup::default()).expect("sound").is_none());
        let mut nowhere = setup(1, &[]);
        nowhere.drop_log.iter_mut().for_each(|log| log.file = "/no/such/x".into());
        let error = setting(&nowhere).expect_err("a mistake").to_string();
        assert!(error.contains("/no/such/x: there is no such directory"), "{error}");
    }
}
