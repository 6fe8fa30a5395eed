//! Experiments of a data sheet, as files that `fwdlab run` also accepts.

/// Name and text of the ruleset for NAT, in the directory of the experiments.
pub(super) const MASQUERADE: (&str, &str) =
    ("masquerade.nft", include_str!("../../../../../experiments/rulesets/masquerade.nft"));

/// One experiment of the sheet.
pub(super) struct Part {
    /// Name of its file and of the directory of its store.
    pub(super) name: &'static str,
    /// The question that it answers.
    pub(super) title: &'static str,
    /// Text of the experiment file after the title.
    body: String,
}

/// A goal with searches short enough for shared CPUs: trials of 200 ms, bounds 2 % apart.
fn goal(name: &str, loss: &str) -> String {
    format!(
        "[[method.goal]]\nname = \"{name}\"\n{loss}initial_trial = \"200ms\"\n\
         final_trial = \"200ms\"\nduration_sum = \"2s\"\nwidth = \"2%\"\n\n"
    )
}

/// All parts in measuring order; `queues` is the larger number of queues.
pub(super) fn parts(queues: u32) -> Vec<Part> {
    let trial = "[trial]\nwarmup = \"200ms\"\nduration = \"1s\"\n\n";
    let short = "[trial]\nwarmup = \"100ms\"\n\n";
    let sizes = "[traffic]\nframe_size = [64, \"imix\"]\n\n";
    let [ndr, pdr] = [goal("ndr", ""), goal("pdr", "loss_ratio = 0.005\n")];
    let part = |name, title, body: String| Part { name, title, body };
    vec![
        part(
            "rates",
            "Forwarding rate at the maximum offered load",
            format!("{sizes}{trial}[design]\nblocks = 5\n"),
        ),
        part(
            "firewall",
            "Forwarding rate behind a firewall",
            format!(
                "{trial}[design]\nblocks = 5\n\n[[factor]]\nname = \"firewall\"\n\
                 levels = [\"none\", \"rules:100\", \"rules:1000\", \"stateful\"]\n"
            ),
        ),
        // A separate part: translation is measured in one direction only.
        part(
            "nat",
            "Forwarding rate with address translation",
            format!(
                "{trial}[design]\nblocks = 5\n\n[[factor]]\nname = \"firewall\"\nlevels = [\n  \
                 {{ label = \"stateful\", firewall = \"stateful\" }},\n  {{ label = \"NAT\", \
                 firewall = \"{}\", nat = \"source\" }},\n]\n",
                MASQUERADE.0
            ),
        ),
        part(
            "queues",
            "Forwarding rate with one and several queues",
            format!(
                "[testbed]\narrangement = \"closed\"\nsenders = {queues}\n\n{trial}[design]\n\
                 blocks = 5\n\n[[factor]]\nname = \"queues\"\nlevels = [1, {queues}]\n"
            ),
        ),
        part(
            "throughput",
            "Throughput without loss and at 0.5 % loss",
            format!(
                "{sizes}{short}[method]\nkind = \"mlrsearch\"\nmax_trials = 400\n\n{ndr}{pdr}\
                 [design]\nblocks = 3\n"
            ),
        ),
        part(
            "latency",
            "Delay at shares of the throughput at 0.5 % loss",
            format!(
                "{short}[method]\nkind = \"latency\"\nshares = [\"10%\", \"50%\", \"90%\"]\n\n\
                 {pdr}[design]\nblocks = 3\n"
            ),
        ),
    ]
}

impl Part {
    /// The experiment file.
    pub(super) fn experiment(&self) -> String {
        let Part { title, body, .. } = self;
        format!("# Made by `fwdlab datasheet`.\nversion = 1\ntitle = \"{title}\"\n\n{body}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_valid_experiments() {
        for part in parts(2) {
            let file = format!("{}.toml", part.name);
            let plan = fwdlab_model::load(&file, &part.experiment(), &|_| Ok(MASQUERADE.1.into()));
            let plan = plan.unwrap_or_else(|faults| panic!("{}\n{faults}", part.experiment()));
            assert!(plan.runs.len() >= 3, "{}", part.name);
        }
    }
}
