//! The table of metrics in the scheduler's README is generated from their declarations.

use super::{read, root};
use gristmill::scheduler::metrics::{Better, Metric, System};
use std::fs;

/// Variable that makes the test write the table instead of comparing it.
const WRITE: &str = "GRISTMILL_WRITE_TABLES";

const BEGIN: &str = "<!-- Metrics, from their declarations -->\n";
const END: &str = "<!-- End of metrics -->\n";

fn table() -> String {
    let mut text = "| metric | unit | better | of | meaning |\n|---|---|---|---|---|\n".to_owned();
    for metric in Metric::ALL {
        let declaration = metric.declaration();
        let better = match declaration.better {
            Better::Lower => "lower",
            Better::Higher => "higher",
            Better::Neither => "",
        };
        let systems: Vec<&str> = declaration.systems.iter().map(|system| system.name()).collect();
        let systems = if systems.len() == System::ALL.len() { "all".to_owned() } else { systems.join(", ") };
        let cells = [&format!("`{metric}`"), declaration.unit, better, &systems, declaration.meaning];
        text.push_str(&format!("| {} |\n", cells.join(" | ").replace("  ", " ")));
    }
    text
}

#[test]
fn the_table_of_metrics_is_that_of_their_declarations() {
    let path = root().join("scheduler/README.md");
    let text = read(&path);
    let (before, rest) = text.split_once(BEGIN).expect("the README says where the table of metrics begins");
    let (found, after) = rest.split_once(END).expect("the README says where the table of metrics ends");
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, [before, BEGIN, &table(), END, after].concat()).unwrap();
        return;
    }
    let command = format!("{WRITE}=1 cargo test -p gristmill --test it -- walls::metrics");
    assert_eq!(found, table(), "the table is not that of the declarations; `{command}` writes it");
}
