//! Tests of the ledger, and the audit that tests of cores run after each event. Not in release builds.

pub(crate) mod audit;

#[test]
fn the_rate_of_arrivals_is_that_of_the_last_minutes() {
    use crate::ledger::ArrivalRate;
    use crate::units::{Span, Time};
    let mut arrivals = ArrivalRate::default();
    arrivals.add(Time::ZERO, 1_000);
    assert_eq!(arrivals.rate(), None, "one job has no rate");
    let mut now = Time::ZERO;
    for _ in 0..1_000 {
        now = now + Span::whole_seconds(2);
        arrivals.add(now, 10);
    }
    let rate = arrivals.rate().unwrap();
    assert!((rate - 5.0).abs() < 0.05, "{rate}");
    for _ in 0..2_000 {
        now = now + Span::whole_seconds(2);
        arrivals.add(now, 1);
    }
    let rate = arrivals.rate().unwrap();
    assert!((rate - 0.5).abs() < 0.02, "{rate}");
}
