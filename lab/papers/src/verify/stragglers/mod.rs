//! Kinds of the stragglers thesis: `dtd`, `dtd-fit`, `mst`, `rates`, `g-m-1`, `m-g-1`, `workers`, `budget`.

use super::compare::{json_of, list};
use super::input::field;
use gristmill_scheduler::estimate::dtd;
use gristmill_scheduler::placement::g_m_1::ArrivalProcess;
use gristmill_scheduler::placement::{PlaceError, place};
use gristmill_scheduler::queueing::sizing::{Law, Spend, WorkerMix, WorkerPrice, best_count, best_mix};
use gristmill_scheduler::queueing::{Dtd, QueueError, Server, mean_sojourn};
use serde_json::{Map, Value, json};

/// Number of workers up to which the reference computes the optimum of Lemma 11.
const LEMMA_11_MAX: u32 = 80;

/// Kind `dtd`: distribution function, density and mean.
pub(super) fn dtd(input: &Value) -> Result<Value, String> {
    let dtd = Dtd::new(field(input, "a")?, field(input, "b")?, field(input, "T")?).map_err(words)?;
    let xs: Vec<f64> = field::<Option<_>>(input, "xs")?.unwrap_or_default();
    Ok(json!({
        "cdf": list(xs.iter().map(|x| dtd.cdf(*x))),
        "pdf": list(xs.iter().map(|x| dtd.pdf(*x))),
        "mean": json_of(dtd.mean()),
    }))
}

/// Kind `dtd-fit`: maximum likelihood.
pub(super) fn dtd_fit(input: &Value) -> Result<Value, String> {
    let fit = dtd::fit(&field::<Vec<f64>>(input, "data")?).map_err(|error| format!("`data`: {error}"))?;
    Ok(json!({
        "T": fit.dtd.offset,
        "a": fit.dtd.a,
        "b": fit.dtd.b,
        "mean": json_of(fit.dtd.mean()),
        "loglik": fit.log_likelihood,
        "cdf_mse": fit.mean_squared_error,
    }))
}

/// Kind `mst`: the mean of the largest of shifted exponential times (`rates`, `offsets`) or of general ones (`params`).
pub(super) fn mst(input: &Value) -> Result<Value, String> {
    let times: Vec<[f64; 3]> = if let Some(params) = field(input, "params")? {
        params
    } else {
        let rates: Vec<f64> = field(input, "rates")?;
        let offsets = field::<Option<_>>(input, "offsets")?.unwrap_or_else(|| vec![0.0; rates.len()]);
        same_length(("offsets", &offsets), ("rates", &rates))?;
        rates.into_iter().zip(offsets).map(|(rate, offset)| [rate, 0.0, offset]).collect()
    };
    let times = times.into_iter().map(|[a, b, offset]| Dtd::new(a, b, offset));
    let times: Result<Vec<Dtd>, QueueError> = times.collect();
    let mean = times.and_then(|times| mean_sojourn(&times)).map_err(words)?;
    Ok(json!({ "mst": json_of(mean) }))
}

/// Names of splits in cases, and their calls without D.
const SPLITS: [(&str, &str); 9] = [
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

/// Kind `rates`: arrival rates by split, with the mean sojourn times that follow.
pub(super) fn rates(input: &Value, expect: &Map<String, Value>) -> Result<Value, String> {
    let (servers, lambda) = (servers(input)?, field(input, "lam")?);
    let delay: f64 = field::<Option<_>>(input, "D")?.unwrap_or_default();
    let (mut computed, mut means) = (Map::new(), Map::new());
    for (name, call) in SPLITS {
        // The numerical optimum takes longest, and is only computed if expected.
        let expected =
            || expect.contains_key(name) || expect.get("mst").is_some_and(|mst| mst.get(name).is_some());
        if name == "optimal" && !expected() {
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
    Ok(computed.into())
}

/// Parses workers with exponential service.
fn servers(input: &Value) -> Result<Vec<Server>, String> {
    Ok(field::<Vec<f64>>(input, "mu")?.into_iter().map(Server::exponential).collect())
}

/// Kind `g-m-1`: Algorithm 1.
pub(super) fn g_m_1(input: &Value) -> Result<Value, String> {
    let kind: String = field(input, "kind")?;
    let wanted = "M, D, E and a number of stages, or H2: and a squared coefficient of variation";
    if kind.parse::<ArrivalProcess>().is_err() {
        return Err(format!("`kind` is `{kind}`, not {wanted}"));
    }
    let servers = servers(input)?;
    let placed = place(&format!("g-m-1:arrivals={kind}"), &servers, field(input, "lam")?).map_err(words)?;
    let alpha = placed.level.unwrap_or_default();
    let root = |server: &Server| (alpha < server.mu).then(|| 1.0 - alpha / server.mu);
    Ok(json!({
        "lam": list(placed.rates.iter().copied()),
        "alpha": alpha,
        "r0": servers.iter().map(root).collect::<Vec<Option<f64>>>(),
        "mst": json_of(placed.mean),
    }))
}

/// Kind `m-g-1`: Algorithms 3 and 4. `var_or_cs2` is the variance of service times in the former and their squared
/// coefficient of variation in the latter.
pub(super) fn m_g_1(input: &Value) -> Result<Value, String> {
    let (mu, lambda): (Vec<f64>, f64) = (field(input, "mu")?, field(input, "lam")?);
    let either = |own: &str| {
        Ok::<Option<Vec<f64>>, String>(field::<Option<_>>(input, own)?.or(field(input, "var_or_cs2")?))
    };
    let split = |call: &str, variability: &[f64], square: fn(f64) -> f64| {
        same_length(("variability", variability), ("mu", &mu))?;
        let server = |(&mu, value): (&f64, &f64)| Server { mu, offset: 0.0, variability: value * square(mu) };
        let servers: Vec<Server> = mu.iter().zip(variability).map(server).collect();
        let placed = place(call, &servers, lambda).map_err(words)?;
        let level = placed.level.map_or(Value::Null, json_of);
        Ok::<Value, String>(json!({ "lam": list(placed.rates.iter().copied()), "alpha": level }))
    };
    let mut computed = json!({});
    if let Some(variances) = either("var")? {
        computed["mg1"] = split("m-ep:model=m-g-1", &variances, |mu| mu * mu)?;
    }
    if let (Some(ca2), Some(cs2)) = (field::<Option<f64>>(input, "ca2")?, either("cs2")?) {
        computed["gg1"] = split(&format!("m-ep:model=g-g-1,ca2={ca2}"), &cs2, |_| 1.0)?;
    }
    Ok(computed)
}

/// Kind `workers`: best numbers of equal workers.
pub(super) fn workers(input: &Value) -> Result<Value, String> {
    let (mu, lambda): (f64, f64) = (field(input, "mu")?, field(input, "lam")?);
    let delay: f64 = field::<Option<_>>(input, "D")?.unwrap_or_default();
    let [least, most]: [u32; 2] = field(input, "range")?;
    let best = |law: Law, most: u32| -> Result<Value, String> {
        let best = best_count(mu, lambda, law, least..=most).map_err(words)?;
        Ok(best.map_or(Value::Null, |best| json!([best.count, best.mean])))
    };
    Ok(json!({
        "lemma10": best(Law::Lemma10, most)?,
        "lemma11": best(Law::Lemma11, most.min(LEMMA_11_MAX))?,
        "dtd": best(Law::Delayed(delay), most)?,
    }))
}

/// Kind `budget`: the best mix of workers for at most the budget; with `"spend": "all"` for exactly the budget.
pub(super) fn budget(input: &Value) -> Result<Value, String> {
    let types: Vec<[f64; 2]> = field(input, "types")?;
    let menu: Vec<WorkerPrice> = types.into_iter().map(|[mu, price]| WorkerPrice { mu, price }).collect();
    let spend = match field::<Option<String>>(input, "spend")?.as_deref() {
        None | Some("at-most") => Spend::AtMost,
        Some("all") => Spend::Exactly,
        Some(other) => return Err(format!("`spend` is `{other}`, neither `at-most` nor `all`")),
    };
    let best = best_mix(&menu, field(input, "lam")?, field(input, "budget")?, spend).map_err(words)?;
    let numbers = |mix: WorkerMix| -> Vec<f64> {
        mix.counts.iter().map(|&count| f64::from(count)).chain([mix.mean]).collect()
    };
    Ok(json!({ "best": best.map(numbers) }))
}

fn words(error: impl Into<PlaceError>) -> String {
    error.into().to_string()
}

fn same_length((field, one): (&str, &[f64]), (other_field, other): (&str, &[f64])) -> Result<(), String> {
    match (one.len(), other.len()) {
        (length, other) if length == other => Ok(()),
        (length, other) => Err(format!("`{field}` has {length} values, but `{other_field}` has {other}")),
    }
}

#[cfg(test)]
mod tests;
