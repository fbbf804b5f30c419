//! Kinds of the stragglers thesis: `dtd`, `dtd-fit`, `mst`, `rates`, `g-m-1`, `m-g-1`, `workers`, `budget`.

use crate::verify::compare::json_of;
use crate::verify::{Checker, Input};
use gristmill_scheduler::estimate::dtd;
use gristmill_scheduler::placement::g_m_1::Arrivals;
use gristmill_scheduler::placement::{PlaceError, Placed, place};
use gristmill_scheduler::queueing::sizing::{Law, Spend, WorkerPrice, best_count, best_mix};
use gristmill_scheduler::queueing::{Dtd, QueueError, Server, mean_sojourn};
use serde_json::{Map, Value, json};

/// Maximum values of a list.
const VALUES_MAX: u64 = 1_000_000;
/// Number of workers up to which the reference computes the optimum of Lemma 11.
const LEMMA_11_MAX: u32 = 80;

/// Kind `dtd`: distribution function, density and mean.
pub(super) fn dtd(input: &Input<'_>, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let dtd = Dtd::new(input.field("a")?.number()?, input.field("b")?.number()?, input.field("T")?.number()?)
        .map_err(words)?;
    let xs = input.optional("xs").map_or(Ok(Vec::new()), |xs| xs.numbers(VALUES_MAX))?;
    let computed = json!({
        "cdf": list(xs.iter().map(|x| dtd.cdf(*x))),
        "pdf": list(xs.iter().map(|x| dtd.pdf(*x))),
        "mean": json_of(dtd.mean()),
    });
    checker.value("", expect, &computed);
    Ok(())
}

/// Kind `dtd-fit`: maximum likelihood.
pub(super) fn dtd_fit(input: &Input<'_>, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let fit =
        dtd::fit(&input.field("data")?.numbers(VALUES_MAX)?).map_err(|error| format!("`data`: {error}"))?;
    let computed = json!({
        "T": fit.dtd.offset,
        "a": fit.dtd.a,
        "b": fit.dtd.b,
        "mean": json_of(fit.dtd.mean()),
        "loglik": fit.log_likelihood,
        "cdf_mse": fit.mean_squared_error,
    });
    checker.value("", expect, &computed);
    Ok(())
}

/// Kind `mst`: the mean of the largest of shifted exponential times (`rates`, `offsets`) or of general ones (`params`).
pub(super) fn mst(input: &Input<'_>, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let times: Result<Vec<Dtd>, QueueError> = match input.optional("params") {
        Some(params) => rows(&params)?.into_iter().map(|[a, b, offset]| Dtd::new(a, b, offset)).collect(),
        None => {
            let rates = input.field("rates")?.numbers(VALUES_MAX)?;
            let none = vec![0.0; rates.len()];
            let offsets =
                input.optional("offsets").map_or(Ok(none), |offsets| offsets.numbers(VALUES_MAX))?;
            same_length("offsets", offsets.len(), "rates", rates.len())?;
            rates.into_iter().zip(offsets).map(|(rate, offset)| Dtd::new(rate, 0.0, offset)).collect()
        }
    };
    let mean = times.and_then(|times| mean_sojourn(&times)).map_err(words)?;
    checker.value("", expect, &json!({ "mst": json_of(mean) }));
    Ok(())
}

/// Kind `rates`: arrival rates by split, with the mean sojourn times that follow.
pub(super) fn rates(input: &Input<'_>, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let servers: Vec<Server> =
        input.field("mu")?.numbers(VALUES_MAX)?.into_iter().map(Server::exponential).collect();
    let lambda = input.field("lam")?.number()?;
    let delay = input.optional("D").map_or(Ok(0.0), |delay| delay.number())?;
    let splits = [
        ("fair", "fair-split:"),
        ("det", "pure-deterministic:"),
        ("stoch", "pure-stochastic:rates=raw,"),
        ("stoch_nonneg", "pure-stochastic:rates=nonneg,"),
        ("mep", "m-ep:rates=raw,"),
        ("mep_nonneg", "m-ep:rates=nonneg,"),
        ("dmep", "dm-ep:rates=raw,"),
        ("dmep_nonneg", "dm-ep:rates=nonneg,"),
        ("optimal", "optimal:"),
    ];
    let (mut computed, mut means) = (Map::new(), Map::new());
    for (name, call) in splits {
        // The numerical optimum takes longest, and is only computed if expected.
        if name == "optimal" && expect.get(name).is_none() && expect.pointer("/mst/optimal").is_none() {
            continue;
        }
        let placed = place(&format!("{call}d={delay}"), &servers, lambda).map_err(words)?;
        if let Some(level) = placed.level {
            computed.insert(format!("{name}_alpha"), json_of(level));
        }
        computed.insert(name.to_owned(), list(placed.rates.iter().copied()));
        means.insert(name.to_owned(), json_of(placed.mean));
    }
    computed.insert("mst".to_owned(), means.into());
    checker.value("", expect, &computed.into());
    Ok(())
}

/// Kind `g-m-1`: Algorithm 1.
pub(super) fn g_m_1(input: &Input<'_>, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let kind = input.field("kind")?.text()?;
    let wanted = "M, D, E and a number of stages, or H2: and a squared coefficient of variation";
    if kind.parse::<Arrivals>().is_err() {
        return Err(format!("`input.kind` is `{kind}`, not {wanted}"));
    }
    let servers: Vec<Server> =
        input.field("mu")?.numbers(VALUES_MAX)?.into_iter().map(Server::exponential).collect();
    let placed =
        place(&format!("g-m-1:arrivals={kind}"), &servers, input.field("lam")?.number()?).map_err(words)?;
    let alpha = placed.level.unwrap_or_default();
    let root = |server: &Server| {
        if server.mu <= alpha { Value::Null } else { (1.0 - alpha / server.mu).into() }
    };
    let computed = json!({
        "lam": list(placed.rates.iter().copied()),
        "alpha": alpha,
        "r0": servers.iter().map(root).collect::<Vec<Value>>(),
        "mst": json_of(placed.mean),
    });
    checker.value("", expect, &computed);
    Ok(())
}

/// Kind `m-g-1`: Algorithms 3 and 4. `var_or_cs2` is the variance of service times in the former and their squared
/// coefficient of variation in the latter.
pub(super) fn m_g_1(input: &Input<'_>, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let mu = input.field("mu")?.numbers(VALUES_MAX)?;
    let lambda = input.field("lam")?.number()?;
    let both = |own: &'static str| if input.optional(own).is_some() { own } else { "var_or_cs2" };
    let mut computed = Map::new();
    let mut add = |name: &str, call: &str, field: &str, square: fn(f64) -> f64| -> Result<(), String> {
        let variability = input.field(field)?.numbers(VALUES_MAX)?;
        same_length(field, variability.len(), "mu", mu.len())?;
        let pairs = mu.iter().zip(variability);
        let server = |(&mu, value): (&f64, f64)| Server { mu, offset: 0.0, variability: value * square(mu) };
        let placed: Placed =
            place(call, &pairs.map(server).collect::<Vec<Server>>(), lambda).map_err(words)?;
        let level = placed.level.map_or(Value::Null, json_of);
        computed
            .insert(name.to_owned(), json!({ "lam": list(placed.rates.iter().copied()), "alpha": level }));
        Ok(())
    };
    if input.optional(both("var")).is_some() {
        add("mg1", "m-ep:model=m-g-1", both("var"), |mu| mu * mu)?;
    }
    if input.optional("ca2").is_some() {
        add("gg1", &format!("m-ep:model=g-g-1,ca2={}", input.field("ca2")?.number()?), both("cs2"), |_| 1.0)?;
    }
    checker.value("", expect, &computed.into());
    Ok(())
}

/// Kind `workers`: best numbers of equal workers.
pub(super) fn workers(input: &Input<'_>, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let (mu, lambda) = (input.field("mu")?.number()?, input.field("lam")?.number()?);
    let delay = input.optional("D").map_or(Ok(0.0), |delay| delay.number())?;
    let [least, most] =
        input.field("range")?.exactly()?.map(|bound: Input<'_>| bound.whole(0, u64::from(u32::MAX)));
    let (least, most) = (least? as u32, most? as u32);
    let best = |law: Law, most: u32| -> Result<Value, String> {
        let best = best_count(mu, lambda, law, least..=most).map_err(words)?;
        Ok(best.map_or(Value::Null, |best| json!([best.count, best.mean])))
    };
    let computed = json!({
        "lemma10": best(Law::Lemma10, most)?,
        "lemma11": best(Law::Lemma11, most.min(LEMMA_11_MAX))?,
        "dtd": best(Law::Delayed(delay), most)?,
    });
    checker.value("", expect, &computed);
    Ok(())
}

/// Kind `budget`: the best mix of workers for at most the budget; with `"spend": "all"` for exactly the budget.
pub(super) fn budget(input: &Input<'_>, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let menu: Vec<WorkerPrice> =
        rows(&input.field("types")?)?.into_iter().map(|[mu, price]| WorkerPrice { mu, price }).collect();
    let spend = match input.optional("spend").map_or(Ok("at-most"), |spend| spend.text())? {
        "at-most" => Spend::AtMost,
        "all" => Spend::Exactly,
        _ => return Err("`input.spend` is neither `at-most` nor `all`".to_owned()),
    };
    let best = best_mix(&menu, input.field("lam")?.number()?, input.field("budget")?.number()?, spend)
        .map_err(words)?;
    let best = best.map_or(Value::Null, |mix| {
        let counts = mix.counts.iter().map(|count| Value::from(*count));
        counts.chain([Value::from(mix.mean)]).collect::<Vec<Value>>().into()
    });
    checker.value("", expect, &json!({ "best": best }));
    Ok(())
}

fn words(error: impl Into<PlaceError>) -> String {
    error.into().to_string()
}

fn list(values: impl Iterator<Item = f64>) -> Value {
    values.map(json_of).collect::<Vec<Value>>().into()
}

/// Parses lists of this many numbers each.
fn rows<const WIDTH: usize>(input: &Input<'_>) -> Result<Vec<[f64; WIDTH]>, String> {
    let row = |row: &Input<'_>| {
        let mut numbers = [0.0; WIDTH];
        for (number, value) in numbers.iter_mut().zip(row.exactly::<WIDTH>()?) {
            *number = value.number()?;
        }
        Ok(numbers)
    };
    input.items(VALUES_MAX)?.iter().map(row).collect()
}

fn same_length(field: &str, length: usize, other: &str, other_length: usize) -> Result<(), String> {
    if length == other_length {
        Ok(())
    } else {
        Err(format!("`{field}` has {length} values, but `{other}` has {other_length}"))
    }
}

#[cfg(test)]
mod tests;
