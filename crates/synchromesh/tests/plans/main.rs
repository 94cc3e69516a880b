//! The integration tests of plans, one program. They look for parameters, which no instruction set changes.

#[path = "../it/machine.rs"]
mod machine;
mod plan;
mod plan_bootstrap;
mod plan_budgets;
mod plan_circuits;
mod plan_functions;
mod plan_options;
mod plan_switches;
