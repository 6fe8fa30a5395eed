//! Evaluation of a run's trials for the goals of a search.

use fwdlab_model::record::MethodRecord;
use fwdlab_model::units::format_pps;
use fwdlab_model::{Plan, RunRecord};
use fwdlab_search::{Ending, Goal, GoalResult, Irregular, Limits, SearchResult};

/// Evaluates a run's trials for the plan's goals; `None` if the method is not a search.
pub(in crate::report) fn of_run(plan: &Plan, run: &RunRecord) -> Option<SearchResult> {
    let (method, record) = (plan.method.as_ref()?, run.method.as_ref()?);
    let mut parts = method.parts().iter().zip(record.parts());
    parts.find_map(|(method, record)| result_of(method.goals(), record))
}

/// Evaluates trials for goals; `None` without goals.
pub(in crate::report) fn result_of(goals: &[Goal], record: &MethodRecord) -> Option<SearchResult> {
    if goals.is_empty() {
        return None;
    }
    let limits = Limits { link: record.link, ..Limits::between(record.min_load, record.max_load) };
    let outcomes = record.outcomes(goals);
    Some(SearchResult::of(goals.to_vec(), &limits, outcomes, record.ended.as_ref()))
}

/// Returns the reason why a goal of a run has no regular result, and the remedy; empty for a
/// regular one.
pub(in crate::report) fn reason(run: &RunRecord, goal: &GoalResult) -> String {
    match &goal.irregular {
        None => String::new(),
        Some(Irregular::Ended { by: Ending::Unmeasurable { .. } }) => {
            let parts = run.method.iter().flat_map(MethodRecord::parts);
            parts.filter_map(MethodRecord::given_up).next().unwrap_or_default()
        }
        Some(why) => why.to_string(),
    }
}

/// Describes a run's search result in words; `None` if the method is not a search.
pub fn found_in_words(plan: &Plan, run: &RunRecord) -> Option<String> {
    let result = of_run(plan, run)?;
    let goals = result.goals.iter().map(|goal| {
        let name = &goal.goal.name;
        match (&goal.irregular, goal.conditional_throughput) {
            (None, Some(pps)) => format!("{name} {}", format_pps(pps)),
            (Some(Irregular::LineRate), Some(pps)) => {
                format!("{name} {}, the line rate", format_pps(pps))
            }
            (Some(_), _) => format!("{name}: irregular, {}", reason(run, goal)),
            (None, None) => format!("{name}: nothing"),
        }
    });
    let goals: Vec<String> = goals.collect();
    let invalid = match result.invalid.len() {
        0 => String::new(),
        count => format!(", {count} more invalid"),
    };
    Some(format!("{} ({} trials{invalid})", goals.join(", "), result.trials.len()))
}
