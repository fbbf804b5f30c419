//! k-means: each point belongs to the nearest of k centres, and each centre moves to the mean of its
//! points until no centre moves. Sums of floats depend on their order, so there is no combiner.

use gristmill::prelude::*;

type Point = Vec<f64>;

/// Find the centres of k clusters of points
#[derive(clap::Args)]
struct KMeans {
    /// File with a point on each line: numbers between white space
    input: String,
    /// Number of clusters; the first points are the first centres
    k: usize,
}

impl Rounds for KMeans {
    const NAME: &'static str = "k-means";

    fn drive(&self, client: &mut Client) -> anyhow::Result<String> {
        let text = std::fs::read_to_string(&self.input)?;
        let mut centres = text.lines().take(self.k).map(point).collect::<Result<Vec<Point>, _>>()?;
        for round in 1.. {
            let (input, before) = (self.input.clone(), centres.clone());
            let moved = client.round(&format!("round-{round}"), Move { input, centres: before.clone() })?;
            moved.json::<(usize, Point)>()?.into_iter().for_each(|(at, centre)| centres[at] = centre);
            if centres == before {
                break;
            }
        }
        Ok(centres.iter().map(|centre| format!("{centre:?}")).collect::<Vec<_>>().join("\n"))
    }
}

fn point(line: &str) -> Result<Point, std::num::ParseFloatError> {
    line.split_whitespace().map(str::parse).collect()
}

/// One round: each centre that has points moves to their mean.
#[derive(Serialize, Deserialize)]
struct Move {
    input: String,
    centres: Vec<Point>,
}

impl Job for Move {
    const NAME: &'static str = "k-means-move";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let centres = self.centres.clone();
        let nearest = move |line: Record<'_>, out: &mut Emitter<u64, Point>| {
            let point = point(&line.text())?;
            let far = |at: &usize| centres[*at].iter().zip(&point).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            let nearest = (0..centres.len()).min_by(|a, b| far(a).total_cmp(&far(b)));
            out.emit(nearest.unwrap_or(0) as u64, point);
            Ok(())
        };
        Ok(JobPlan::map_each(Input::lines([&self.input]), nearest).reduce_each(|at, points, out| {
            let points: Vec<Point> = points.iter().collect();
            let mean = |axis| points.iter().map(|point| point[axis]).sum::<f64>() / points.len() as f64;
            out.json(&(at, (0..points[0].len()).map(mean).collect::<Point>()))
        }))
    }
}

fn registry() -> Registry {
    Registry::new().rounds::<KMeans>().inner_job::<Move>()
}

fn main() -> std::process::ExitCode {
    gristmill::cli::main(registry())
}

#[test]
fn centres_come_to_rest_in_the_middle_of_their_points() {
    let mut cluster = gristmill::testing::LocalCluster::start(&registry()).unwrap();
    let input = cluster.file("points", "1 1\n1 3\n3 1\n3 3\n8 8\n8 10\n10 8\n10 10\n").unwrap();
    assert_eq!(cluster.drive(&KMeans { input, k: 2 }).unwrap(), "[2.0, 2.0]\n[9.0, 9.0]");
}
