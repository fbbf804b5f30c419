//! Kinds of the stragglers thesis: `dtd`, `dtd-fit`, `mst`, `rates`, `g-m-1`, `m-g-1`, `workers`, `budget`.

use crate::verify::Checker;
use crate::verify::compare::{json_of, number_of};
use gristmill_scheduler::estimate::dtd;
use gristmill_scheduler::placement::g_m_1::{Arrivals, GM1};
use gristmill_scheduler::placement::{PlaceError, Placed, place, place_by};
use gristmill_scheduler::queueing::sizing::{Law, Spend, WorkerPrice, best_count, best_mix};
use gristmill_scheduler::queueing::{Dtd, QueueError, Server, mean_sojourn};
use serde_json::{Map, Value, json};

/// Maximum values of a list.
const VALUES_MAX: usize = 1_000_000;
/// Number of workers up to which the reference computes the optimum of Lemma 11.
const LEMMA_11_MAX: u32 = 80;

/// Kind `dtd`: distribution function, density and mean.
pub(super) fn dtd(input: &Value, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let dtd = Dtd::new(number(input, "a")?, number(input, "b")?, number(input, "T")?).map_err(words)?;
    let xs = if input.get("xs").is_some() { numbers(input, "xs")? } else { Vec::new() };
    let computed = json!({
        "cdf": list(xs.iter().map(|x| dtd.cdf(*x))),
        "pdf": list(xs.iter().map(|x| dtd.pdf(*x))),
        "mean": json_of(dtd.mean()),
    });
    checker.value("", expect, &computed);
    Ok(())
}

/// Kind `dtd-fit`: maximum likelihood.
pub(super) fn dtd_fit(input: &Value, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let fit = dtd::fit(&numbers(input, "data")?).map_err(|error| format!("`data`: {error}"))?;
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
pub(super) fn mst(input: &Value, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let times = match input.get("params") {
        Some(_) => {
            rows(input, "params", 3)?.into_iter().map(|row| Dtd::new(row[0], row[1], row[2])).collect()
        }
        None => {
            let rates = numbers(input, "rates")?;
            let offsets = if input.get("offsets").is_some() {
                numbers(input, "offsets")?
            } else {
                vec![0.0; rates.len()]
            };
            same_length("offsets", offsets.len(), "rates", rates.len())?;
            rates.into_iter().zip(offsets).map(|(rate, offset)| Dtd::new(rate, 0.0, offset)).collect()
        }
    };
    let times: Result<Vec<Dtd>, QueueError> = times;
    let mean = times.and_then(|times| mean_sojourn(&times)).map_err(words)?;
    checker.value("", expect, &json!({ "mst": json_of(mean) }));
    Ok(())
}

/// Kind `rates`: arrival rates by split, with the mean sojourn times that follow.
pub(super) fn rates(input: &Value, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let servers: Vec<Server> = numbers(input, "mu")?.into_iter().map(Server::exponential).collect();
    let lambda = number(input, "lam")?;
    let delay = if input.get("D").is_some() { number(input, "D")? } else { 0.0 };
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
pub(super) fn g_m_1(input: &Value, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let kind = input.get("kind").and_then(Value::as_str).ok_or("`kind` is no text")?;
    let wanted = "M, D, E and a number of stages, or H2: and a squared coefficient of variation";
    let arrivals: Arrivals =
        kind.parse().map_err(|_| format!("`kind` is `{kind}`, which is not {wanted}"))?;
    let servers: Vec<Server> = numbers(input, "mu")?.into_iter().map(Server::exponential).collect();
    let placed = place_by(&GM1::new(arrivals), &servers, number(input, "lam")?).map_err(words)?;
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
pub(super) fn m_g_1(input: &Value, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let mu = numbers(input, "mu")?;
    let lambda = number(input, "lam")?;
    let both = |own: &'static str| if input.get(own).is_some() { own } else { "var_or_cs2" };
    let mut computed = Map::new();
    let mut add = |name: &str, call: &str, field: &str, square: fn(f64) -> f64| -> Result<(), String> {
        let variability = numbers(input, field)?;
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
    if input.get(both("var")).is_some() {
        add("mg1", "m-ep:model=m-g-1", both("var"), |mu| mu * mu)?;
    }
    if input.get("ca2").is_some() {
        add("gg1", &format!("m-ep:model=g-g-1,ca2={}", number(input, "ca2")?), both("cs2"), |_| 1.0)?;
    }
    checker.value("", expect, &computed.into());
    Ok(())
}

/// Kind `workers`: best numbers of equal workers.
pub(super) fn workers(input: &Value, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let (mu, lambda) = (number(input, "mu")?, number(input, "lam")?);
    let delay = if input.get("D").is_some() { number(input, "D")? } else { 0.0 };
    let range = input.get("range").and_then(Value::as_array).ok_or("`range` is no list")?;
    let bound = |index: usize| {
        let bound = range.get(index).and_then(Value::as_u64).and_then(|bound| u32::try_from(bound).ok());
        bound.ok_or_else(|| format!("`range[{index}]` is no whole number of workers"))
    };
    let (least, most) = (bound(0)?, bound(1)?);
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
pub(super) fn budget(input: &Value, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let menu: Vec<WorkerPrice> =
        rows(input, "types", 2)?.into_iter().map(|row| WorkerPrice { mu: row[0], price: row[1] }).collect();
    let spend = match input.get("spend").map(|spend| spend.as_str()) {
        None | Some(Some("at-most")) => Spend::AtMost,
        Some(Some("all")) => Spend::Exactly,
        Some(_) => return Err("`spend` is neither `at-most` nor `all`".to_owned()),
    };
    let best = best_mix(&menu, number(input, "lam")?, number(input, "budget")?, spend).map_err(words)?;
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

fn number(input: &Value, field: &str) -> Result<f64, String> {
    input.get(field).and_then(number_of).ok_or_else(|| format!("`{field}` is no number"))
}

fn numbers(input: &Value, field: &str) -> Result<Vec<f64>, String> {
    let values = input.get(field).and_then(Value::as_array).ok_or_else(|| format!("`{field}` is no list"))?;
    numbers_of(values, field)
}

fn numbers_of(values: &[Value], field: &str) -> Result<Vec<f64>, String> {
    if VALUES_MAX < values.len() {
        return Err(format!("`{field}` has more than {VALUES_MAX} values"));
    }
    let number = |(index, value): (usize, &Value)| {
        number_of(value).ok_or_else(|| format!("`{field}[{index}]` is no number"))
    };
    values.iter().enumerate().map(number).collect()
}

/// Parses lists of this many numbers each.
fn rows(input: &Value, field: &str, width: usize) -> Result<Vec<Vec<f64>>, String> {
    let rows = input.get(field).and_then(Value::as_array).ok_or_else(|| format!("`{field}` is no list"))?;
    if VALUES_MAX < rows.len() {
        return Err(format!("`{field}` has more than {VALUES_MAX} rows"));
    }
    let row = |(index, row): (usize, &Value)| {
        let place = format!("{field}[{index}]");
        let values = row.as_array().filter(|row| row.len() == width);
        numbers_of(values.ok_or_else(|| format!("`{place}` is no list of {width} numbers"))?, &place)
    };
    rows.iter().enumerate().map(row).collect()
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
